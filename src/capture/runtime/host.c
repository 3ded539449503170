/* SPDX-License-Identifier: MIT */
/* The host: a kernel thread that runs the machine and the program's threads in turn
 * (docs/design/controlled-execution.md).
 * The registers of a borrowed thread are on its stack. Its carrier, the kernel thread that was created for it, sleeps
 * on the alternate stack with its signals blocked. The thread pointer moves with the thread, and with it all that the C
 * library has of the thread. The kernel does not know of this: signal mask and alternate stack are the host's, and the
 * mask is changed when the next thread has another one.
 * Between the moment when a thread reports a stop and the moment when it continues, code here may not touch
 * thread-local variables. */
#include <asm/prctl.h>
#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "capture/runtime/real.h"
#include "capture/runtime/rt.h"
#include "capture/runtime/host.h"
#include "capture/runtime/skip.h"

enum { RED_ZONE = 128, MASK_BYTES = 8, STACK_BYTES = 1 << 24 };
#define LARGEST_RANGE (1l << 36)
enum { SMALLEST_RANGE = 4096, MAX_RANGES = 1024 };

bool peet_rt_in_process;

static struct rt_self *borrowed[RAW_THREADS]; /* by index in the table of threads */
static uint32_t last_place;                   /* index of the thread that ran last */
static void *host_sp;
static uint64_t host_pointer, host_mask;
static int32_t host_tid;
static struct raw_host host;
static char host_stack[RT_ALTSTACK_BYTES];
static volatile uint64_t deferred_signals; /* signals that came while the machine ran */

/* ---- changing stacks ---- */

/* Saves callee-saved registers on the stack, stores the stack pointer to *save, and restores the registers on the stack
 * `to`. */
void peet_rt_swap(void **save, void *to, uint64_t thread_pointer);
/* Saves them, too, and calls sleep(self) on an empty stack, with the same thread pointer. */
void peet_rt_sleep_on(void **save, void *stack, struct rt_self *self, void (*sleep)(struct rt_self *self));
void peet_rt_divert_entry(void);
void peet_rt_diverted(struct rt_registers *r);
RT_PUBLIC void peet_rt_cross(void);
RT_PUBLIC void peet_rt_access(void);

__asm__(
    ".text\n"
    ".macro peet_rt_save\n"
    " push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
    " sub $8, %rsp\n stmxcsr (%rsp)\n fnstcw 4(%rsp)\n mov %rsp, (%rdi)\n"
    ".endm\n"
    ".type peet_rt_swap, @function\n.hidden peet_rt_swap\n.globl peet_rt_swap\n.p2align 5\n"
    "peet_rt_swap:\n"
    " peet_rt_save\n"
    " wrfsbase %rdx\n mov %rsi, %rsp\n"
    " ldmxcsr (%rsp)\n fldcw 4(%rsp)\n add $8, %rsp\n"
    " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n"
    ".size peet_rt_swap, . - peet_rt_swap\n"
    ".type peet_rt_sleep_on, @function\n.hidden peet_rt_sleep_on\n.globl peet_rt_sleep_on\n"
    "peet_rt_sleep_on:\n"
    " peet_rt_save\n"
    " mov %rsi, %rsp\n mov %rdx, %rdi\n xor %ebp, %ebp\n call *%rcx\n hlt\n"
    ".size peet_rt_sleep_on, . - peet_rt_sleep_on\n"
    /* The return address is on the stack, followed by a red zone. Saves all vector registers, except those of AMX. */
    ".macro peet_rt_save_all function\n"
    " .cfi_startproc simple\n .cfi_signal_frame\n .cfi_def_cfa %rsp, 136\n .cfi_offset %rip, -136\n"
    " pushfq\n push %rax\n push %rcx\n push %rdx\n push %rsi\n push %rdi\n push %r8\n push %r9\n"
    " push %r10\n push %r11\n push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n"
    " cld\n mov %rsp, %rbp\n"
    " .cfi_def_cfa %rbp, 264\n .cfi_offset %r15, -264\n .cfi_offset %r14, -256\n .cfi_offset %r13, -248\n"
    " .cfi_offset %r12, -240\n .cfi_offset %rbp, -232\n .cfi_offset %rbx, -224\n"
    " sub $4096, %rsp\n and $-64, %rsp\n"
    " xor %eax, %eax\n mov $8, %ecx\n lea 512(%rsp), %rdi\n rep stosq\n"
    " mov $0xe7, %eax\n xor %edx, %edx\n xsave64 (%rsp)\n"
    " mov %rbp, %rdi\n call \\function\n"
    " mov $0xe7, %eax\n xor %edx, %edx\n xrstor64 (%rsp)\n mov %rbp, %rsp\n"
    " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n pop %r11\n pop %r10\n"
    " pop %r9\n pop %r8\n pop %rdi\n pop %rsi\n pop %rdx\n pop %rcx\n pop %rax\n popfq\n"
    " ret $128\n .cfi_endproc\n"
    ".endm\n"
    ".type peet_rt_divert_entry, @function\n.hidden peet_rt_divert_entry\n.globl peet_rt_divert_entry\n"
    "peet_rt_divert_entry:\n"
    " peet_rt_save_all peet_rt_diverted\n"
    ".size peet_rt_divert_entry, . - peet_rt_divert_entry\n"
    /* Counting copies jump here (docs/design/instrumentation.md). */
    ".type peet_rt_cross, @function\n.globl peet_rt_cross\n"
    "peet_rt_cross:\n"
    " peet_rt_save_all peet_rt_crossed\n"
    ".size peet_rt_cross, . - peet_rt_cross\n"
    /* Hooks before shared accesses call this (ordered.c). */
    ".type peet_rt_access, @function\n.globl peet_rt_access\n"
    "peet_rt_access:\n"
    " peet_rt_save_all peet_rt_ordered_access\n"
    ".size peet_rt_access, . - peet_rt_access\n");

static RT_TLS void (*divert_function)(struct rt_registers *);

void peet_rt_diverted(struct rt_registers *r)
{
    divert_function(r);
}

void peet_rt_divert(void *context, void (*function)(struct rt_registers *))
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;

    r[REG_RSP] -= RED_ZONE + 8;
    *(uint64_t *)(uintptr_t)r[REG_RSP] = (uint64_t)r[REG_RIP];
    r[REG_RIP] = (greg_t)RT_ADDR(peet_rt_divert_entry);
    divert_function = function;
}

/* ---- signals ---- */

static void host_set_mask(uint64_t mask)
{
    host_mask = mask;
    peet_rt_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, MASK_BYTES, 0, 0);
}

static uint64_t signal_bit(int number)
{
    return 1ull << (number - 1);
}

bool peet_rt_in_machine(void)
{
    return peet_rt_in_process && !peet_rt_self.hosted.is_borrowed
           && peet_rt_call(SYS_gettid, 0, 0, 0, 0, 0, 0) == host_tid;
}

bool peet_rt_defer_signal(int number)
{
    if (!peet_rt_in_machine())
        return false;
    deferred_signals |= signal_bit(number);
    return true;
}

/* Sends signals to the host, where the current thread receives them. */
static void deliver_signals(uint64_t signals)
{
    for (int i = 1; i < 64; i++)
        if (signals & signal_bit(i))
            peet_rt_call(SYS_tgkill, peet_rt_call(SYS_getpid, 0, 0, 0, 0, 0, 0), host_tid, i, 0, 0, 0);
}

/* Delivers signals that other threads have sent to this one. Those that it blocks stay with it, because the kernel
 * would deliver them to any thread that the host runs. */
static void deliver_pending_signals(struct rt_self *s)
{
    uint64_t signals = s->hosted.signals & ~s->hosted.mask;

    s->hosted.signals &= s->hosted.mask;
    signals |= deferred_signals;
    deferred_signals = 0;
    deliver_signals(signals);
}

void peet_rt_mask_changed(void)
{
    if (!peet_rt_self.hosted.is_borrowed)
        return;
    peet_rt_call(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&host_mask, MASK_BYTES, 0, 0);
    peet_rt_self.hosted.mask = host_mask;
    if (peet_rt_self.hosted.signals & ~peet_rt_self.hosted.mask)
        deliver_pending_signals(&peet_rt_self);
}

void peet_rt_send(struct rt_self *to, int signal)
{
    to->hosted.signals |= signal_bit(signal);
    if (to == &peet_rt_self)
        deliver_pending_signals(to);
}

int peet_rt_take_signal(uint64_t among)
{
    uint64_t there = peet_rt_self.hosted.signals & among;

    if (!there)
        return 0;
    peet_rt_self.hosted.signals &= ~(there & -there);
    return __builtin_ctzll(there) + 1;
}

uint64_t peet_rt_set_mask(uint64_t mask)
{
    uint64_t old = peet_rt_self.hosted.mask;

    peet_rt_self.hosted.mask = mask & ~signal_bit(SIGSEGV);
    host_set_mask(peet_rt_self.hosted.mask);
    deliver_pending_signals(&peet_rt_self);
    return old;
}

/* Signals within this time are one request: kill of a process group reaches both the program and peet, which forwards
 * it. */
enum { ONE_REQUEST_MS = 300 };

void peet_rt_on_end_signal(int number)
{
    static int64_t asked_at; /* millisecond of the first signal; 0: none came */
    struct timespec t = { 0 };

    peet_rt_call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&t, 0, 0, 0, 0);
    int64_t now = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    if (asked_at == 0)
        asked_at = now;
    else if (now - asked_at > ONE_REQUEST_MS) /* the program does not end */
        peet_rt_call(SYS_exit_group, 128 + number, 0, 0, 0, 0, 0);
    peet_rt_header->want_end = (uint32_t)number;
}

/* A signal that the program does not handle ends the machine first, which then reports its results. */
static void handle_end_signal(int number)
{
    /* no SA_RESTART, so that waiting calls return */
    struct sigaction own = { .sa_handler = peet_rt_on_end_signal }, old;

    if (RT_REAL(sigaction)(number, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        RT_REAL(sigaction)(number, &own, NULL);
}

/* ---- ids of users and groups ----
 * setuid and related functions of the C library change the ids of the calling kernel thread. They have each other
 * thread change its ids in the handler of SIGSETXID, which notes that in the C library's data of its thread. On the
 * host, the thread pointer is that of a program's thread: the note would be made there, and the caller would wait for
 * the host's note for ever. So the handler runs with the host's thread pointer. The carrier of the borrowed thread that
 * makes the call gets no signal; it takes the host's ids when it runs next. */

enum { SIGNAL_SETXID = 33, MOST_GROUPS = 1024 };

/* The argument of the system call rt_sigaction; the C library's sigaction refuses its internal signals. */
struct kernel_sigaction {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

static void (*library_setxid)(int, siginfo_t *, void *); /* the C library's handler */
static struct {
    _Atomic uint32_t changes; /* changes of the process's ids */
    uint32_t user[3], group[3];
    long groups; /* number of supplementary groups */
    uint32_t supplementary[MOST_GROUPS];
} ids;

static void ids_read(void)
{
    peet_rt_call(SYS_getresuid, (long)&ids.user[0], (long)&ids.user[1], (long)&ids.user[2], 0, 0, 0);
    peet_rt_call(SYS_getresgid, (long)&ids.group[0], (long)&ids.group[1], (long)&ids.group[2], 0, 0, 0);
    ids.groups = peet_rt_call(SYS_getgroups, MOST_GROUPS, (long)ids.supplementary, 0, 0, 0, 0);
}

/* Gives the calling carrier the host's ids. User ids come last, because they carry the right to change the others. */
static void ids_take(void)
{
    if (ids.groups >= 0)
        peet_rt_call(SYS_setgroups, ids.groups, (long)ids.supplementary, 0, 0, 0, 0);
    peet_rt_call(SYS_setresgid, ids.group[0], ids.group[1], ids.group[2], 0, 0, 0);
    peet_rt_call(SYS_setresuid, ids.user[0], ids.user[1], ids.user[2], 0, 0, 0);
}

/* The compiler's stack protector would use different thread pointers at the beginning and at the end. */
__attribute__((no_stack_protector)) static void on_setxid(int number, siginfo_t *info, void *context)
{
    uint64_t pointer = 0;

    if (peet_rt_call(SYS_gettid, 0, 0, 0, 0, 0, 0) != host_tid) {
        library_setxid(number, info, context);
        return;
    }
    atomic_fetch_add(&ids.changes, 1);
    __asm__ volatile("rdfsbase %0" : "=r"(pointer));
    __asm__ volatile("wrfsbase %0" : : "r"(host_pointer) : "memory");
    library_setxid(number, info, context);
    __asm__ volatile("wrfsbase %0" : : "r"(pointer) : "memory");
}

/* Takes over SIGSETXID. The C library sets its handler when a second thread is created. */
static void ids_begin(void)
{
    struct kernel_sigaction a = { 0 };

    if (peet_rt_call(SYS_rt_sigaction, SIGNAL_SETXID, 0, (long)&a, MASK_BYTES, 0, 0) != 0 || !a.handler)
        return;
    library_setxid = a.handler;
    a.handler = on_setxid;
    peet_rt_call(SYS_rt_sigaction, SIGNAL_SETXID, (long)&a, 0, MASK_BYTES, 0, 0);
}

/* ---- borrowed threads ---- */

/* Sleeps until the carrier has something to do; returns what. */
static enum rt_carrier_task carrier_wait(struct rt_self *self)
{
    uint32_t what;

    while ((what = atomic_load_explicit(&self->hosted.task, memory_order_acquire)) == CARRIER_SLEEP)
        peet_rt_call(SYS_futex, (long)&self->hosted.task, FUTEX_WAIT, CARRIER_SLEEP, 0, 0, 0);
    atomic_store_explicit(&self->hosted.task, CARRIER_SLEEP, memory_order_relaxed);
    if (atomic_load(&ids.changes))
        ids_take();
    return what;
}

static void carrier_perform(struct rt_self *self)
{
    const struct rt_call *c = &self->hosted.request;

    self->hosted.result = peet_rt_call(c->number, c->a[0], c->a[1], c->a[2], c->a[3], c->a[4], c->a[5]);
    atomic_store_explicit(&self->hosted.is_done, true, memory_order_release);
}

/* Called on the host. */
static void carrier_wake(struct rt_self *self, enum rt_carrier_task what)
{
    if (atomic_load(&ids.changes))
        ids_read();
    atomic_store_explicit(&self->hosted.task, what, memory_order_release);
    peet_rt_call(SYS_futex, (long)&self->hosted.task, FUTEX_WAKE, 1, 0, 0, 0);
}

void peet_rt_request(const struct rt_call *c)
{
    peet_rt_self.hosted.request = *c;
    atomic_store(&peet_rt_self.hosted.is_done, false);
    carrier_wake(&peet_rt_self, CARRIER_REQUEST);
}

bool peet_rt_is_done(long *ret_result)
{
    if (!atomic_load_explicit(&peet_rt_self.hosted.is_done, memory_order_acquire))
        return false;
    *ret_result = peet_rt_self.hosted.result;
    return true;
}

/* Runs on the alternate stack of a carrier, until its thread is to continue there. */
static void carrier_sleep(struct rt_self *self)
{
    struct raw_thread *entry = self->entry;
    void *unused_sp;

    self->hosted.is_borrowed = true;
    atomic_store_explicit(&entry->stopped, RAW_STOPPED, memory_order_release);
    peet_rt_call(SYS_futex, (long)&entry->stopped, FUTEX_WAKE, 2, 0, 0, 0);
    while (carrier_wait(self) == CARRIER_REQUEST)
        carrier_perform(self);
    self->hosted.is_borrowed = false;
    peet_rt_swap(&unused_sp, self->hosted.sp, self->hosted.thread_pointer);
}

uint64_t peet_rt_blocking_mask(void)
{
    uint64_t errors = signal_bit(SIGSEGV) | signal_bit(SIGBUS) | signal_bit(SIGFPE) | signal_bit(SIGILL)
                      | signal_bit(SIGTRAP) | signal_bit(SIGSYS);
    uint64_t library = 1ull << 31 | 1ull << 32;

    return ~(errors | library | signal_bit(SIGKILL)
             | signal_bit(SIGSTOP)); /* as the kernel has it, which never blocks the last two */
}

void peet_rt_yield_to_host(struct raw_thread *entry, enum raw_stop how)
{
    struct rt_self *s = &peet_rt_self;

    if (s->hosted.is_borrowed) {
        atomic_store_explicit(&entry->stopped, how, memory_order_relaxed);
        peet_rt_swap(&s->hosted.sp, host_sp, host_pointer);
        if (deferred_signals || s->hosted.signals)
            deliver_pending_signals(s);
    } else if (how == RAW_FINISHED) {
        borrowed[entry - peet_rt_header->thread] = NULL;
        atomic_store_explicit(&entry->stopped, how, memory_order_release);
        peet_rt_call(SYS_futex, (long)&entry->stopped, FUTEX_WAKE, 2, 0, 0, 0);
    } else {
        uint64_t sleeping = peet_rt_blocking_mask();
        if (!borrowed[entry - peet_rt_header->thread]) {
            peet_rt_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&sleeping, (long)&s->hosted.mask, MASK_BYTES, 0, 0);
            peet_rt_call(SYS_arch_prctl, ARCH_GET_FS, (long)&s->hosted.thread_pointer, 0, 0, 0, 0);
            borrowed[entry - peet_rt_header->thread] = s;
        }
        peet_rt_sleep_on(&s->hosted.sp, peet_rt_stack_top(), s, carrier_sleep);
    }
}

void peet_rt_to_carrier(void)
{
    struct rt_self *s = &peet_rt_self;

    if (!peet_rt_in_process || !s->hosted.is_borrowed || !s->entry)
        return;
    s->hosted.keeps_carrier = true;
    atomic_store_explicit(&s->entry->stopped, RAW_TO_CARRIER, memory_order_relaxed);
    peet_rt_swap(&s->hosted.sp, host_sp, host_pointer);
}

void peet_rt_cancel_here(void)
{
    if (!peet_rt_self.hosted.is_cancelled)
        return;
    peet_rt_to_carrier();
    RT_REAL(pthread_cancel)(pthread_self());
    RT_REAL(pthread_testcancel)();
}

struct rt_self *peet_rt_find_borrowed(uint32_t number)
{
    for (uint32_t i = 0; peet_rt_in_process && i < atomic_load(&peet_rt_header->entries_used); i++)
        if (borrowed[i] && peet_rt_header->thread[i].number == number)
            return borrowed[i];
    return NULL;
}

void peet_rt_forget_host(void)
{
    if (peet_rt_in_process)
        peet_rt_remove_traps();
    peet_rt_in_process = false;
    peet_rt_self.hosted.is_borrowed = false;
}

/* ---- the host ---- */

static void host_run(struct rt_self *c)
{
    if (c->hosted.mask != host_mask)
        host_set_mask(c->hosted.mask);
    peet_rt_swap(&host_sp, c->hosted.sp, c->hosted.thread_pointer);
}

static void host_resume(uint32_t number)
{
    struct raw_thread *entry = &peet_rt_header->thread[number];
    struct rt_self *c = borrowed[number];

    last_place = number;
    atomic_store_explicit(&entry->stopped, RAW_RUNS, memory_order_relaxed);
    if (!c->hosted.keeps_carrier) {
        host_run(c);
        if (atomic_load_explicit(&entry->stopped, memory_order_relaxed) != RAW_TO_CARRIER)
            return;
        atomic_store_explicit(&entry->stopped, RAW_RUNS, memory_order_relaxed);
    }
    carrier_wake(c, CARRIER_RUN);
    while (atomic_load_explicit(&entry->stopped, memory_order_acquire) == RAW_RUNS)
        peet_rt_call(SYS_futex, (long)&entry->stopped, FUTEX_WAIT, RAW_RUNS, 0, 0, 0);
}

static void host_set_skip(uint32_t number, uint64_t references)
{
    peet_rt_header->thread[number].skip = references;
}

static _Noreturn void end_process(int status)
{
    for (;;)
        peet_rt_call(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

static _Noreturn void host_fail(const char *what)
{
    static const char prefix[] = "peet: the machine cannot be loaded into the program: ";
    size_t n = 0;

    while (what && what[n])
        n++;
    peet_rt_call(SYS_write, 2, (long)prefix, sizeof prefix - 1, 0, 0, 0);
    peet_rt_call(SYS_write, 2, (long)what, (long)n, 0, 0, 0);
    peet_rt_call(SYS_write, 2, (long)"\n", 1, 0, 0, 0);
    end_process(3);
}

#ifdef RT_STATIC

static raw_machine *load_machine(void)
{
    host_fail("it is static");
}

#else

/* Address ranges that are occupied while the machine is loaded, so that its mappings lie below all that the program
 * will map. */
struct reserved_ranges {
    long at[MAX_RANGES], bytes[MAX_RANGES]; /* addresses; lengths */
    unsigned count;                         /* elements in use */
};

static long reserve_range(struct reserved_ranges *t, long bytes)
{
    long p = peet_rt_call(SYS_mmap, 0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p > 0 && t->count < MAX_RANGES) {
        t->at[t->count] = p;
        t->bytes[t->count++] = bytes;
    }
    return p;
}

static void reserve_upper_space(struct reserved_ranges *t)
{
    long low = reserve_range(t, LARGEST_RANGE);

    for (long bytes = LARGEST_RANGE / 2; low > 0 && bytes >= SMALLEST_RANGE; bytes /= 2)
        while (t->count < MAX_RANGES && reserve_range(t, bytes) > low)
            ;
}

static void release_ranges(const struct reserved_ranges *t)
{
    for (unsigned i = 0; i < t->count; i++)
        peet_rt_call(SYS_munmap, t->at[i], t->bytes[i], 0, 0, 0, 0);
}

static raw_machine *load_machine(void)
{
    static struct reserved_ranges taken;
    raw_machine *machine;

    host.syscall = RT_ADDR(dlsym(RTLD_NEXT, "syscall"));
    reserve_upper_space(&taken);
    void *library = dlmopen(LM_ID_NEWLM, peet_rt_header->library, RTLD_NOW | RTLD_LOCAL);
    release_ranges(&taken);
    if (!library)
        host_fail(dlerror());
    *(void **)&machine = dlsym(library, RAW_MACHINE);
    if (!machine)
        host_fail("it is not a machine");
    return machine;
}

#endif

static void *host_main(void *unused)
{
    (void)unused;
    peet_rt_call(SYS_arch_prctl, ARCH_GET_FS, (long)&host_pointer, 0, 0, 0, 0);
    host_tid = (int32_t)peet_rt_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    stack_t stack = { .ss_sp = host_stack, .ss_size = sizeof host_stack }; /* for signals of all threads */
    peet_rt_call(SYS_sigaltstack, (long)&stack, 0, 0, 0, 0, 0);
    peet_rt_self.depth = 1; /* allocations here are no events of the program */
    peet_rt_self.hosted.is_private = true;
    int status = load_machine()(&host);
    if (status != RAW_CONTINUE)
        end_process(status);
    if (borrowed[last_place]) /* it continues to the program's end */
        host_run(borrowed[last_place]);
    exit(0); /* the last thread has ended, and so does the process */
}

void peet_rt_host_begin(const char *file)
{
    pthread_attr_t attr;
    pthread_t thread;

    host = (struct raw_host){ peet_rt_header,           file, host_resume, peet_rt_set_traps, host_set_skip, 0,
                              &peet_rt_header->want_end };
    peet_rt_in_process = true;
    handle_end_signal(SIGINT);
    handle_end_signal(SIGTERM);
    uint64_t *cursor = peet_rt_cursor;
    peet_rt_cursor = NULL; /* no thread is recorded yet that could report allocations */
    long stack = peet_rt_call(SYS_mmap, 1l << 46, STACK_BYTES, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pthread_attr_init(&attr);
    if (stack > 0)
        pthread_attr_setstack(&attr, (void *)stack, STACK_BYTES);
    peet_rt_self.hosted.is_private = true;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (RT_REAL(pthread_create)(&thread, &attr, host_main, NULL) != 0)
        host_fail("no thread for it");
    ids_begin();
    pthread_attr_destroy(&attr);
    peet_rt_self.hosted.is_private = false;
    peet_rt_cursor = cursor;
}
