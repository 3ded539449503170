/* SPDX-License-Identifier: MIT */
/* The host: a thread of the kernel that runs the machine, and the program's threads in turn. See docs/design/controlled-execution.md.
 *
 * A thread that is lent has its registers on its stack, behind where it stopped; its own thread of the kernel sleeps on a stack apart (that of
 * its signals, which do not come while it sleeps). What the C library knows of a thread it finds through the thread pointer, which goes
 * with it. The kernel knows nothing of this: what it keeps for each of its threads (signals that are blocked, alternate stacks) is the host's here, and
 * masks are changed when the next thread has another one.
 *
 * Nothing here may touch a variable of its thread between the moment in which it says that it has stopped and the one in which it goes on. */
#include <asm/prctl.h>
#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "capture/runtime/real.h"
#include "capture/runtime/rt.h"

enum { RED_ZONE = 128, MASK_BYTES = 8, STACK_BYTES = 1 << 24 };
#define LARGEST (1l << 36)
enum { SMALLEST = 4096, TAKEN = 1024 };

bool peet_rt_inside;

static struct rt_self *lent[RAW_THREADS]; /* by place */
static uint32_t last;                     /* place that ran last */
static void *host_sp;
static uint64_t host_pointer, host_mask;
static int32_t host_tid;
static struct raw_host host;
static char host_stack[RT_ALTSTACK_BYTES];
static volatile uint64_t later; /* signals that came while the machine ran */

/* ---- changing stacks ---- */

/* Leaves the callee's registers on the stack, whose top goes to *save, and takes those on the other one. */
void peet_rt_swap(void **save, void *to, uint64_t thread_pointer);
/* The same, but goes on in sleep(self) on an empty stack, with the same thread pointer. */
void peet_rt_sleep_on(void **save, void *stack, struct rt_self *self, void (*sleep)(struct rt_self *self));
void peet_rt_detour_entry(void);
void peet_rt_detoured(struct rt_registers *r);
RT_PUBLIC void peet_rt_cross(void);

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
    /* The return address stands on the stack, with a red zone behind it. All vector registers are kept, but those of AMX. */
    ".macro peet_rt_keep_all function\n"
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
    ".type peet_rt_detour_entry, @function\n.hidden peet_rt_detour_entry\n.globl peet_rt_detour_entry\n"
    "peet_rt_detour_entry:\n"
    " peet_rt_keep_all peet_rt_detoured\n"
    ".size peet_rt_detour_entry, . - peet_rt_detour_entry\n"
    /* To here jumps code that counted: docs/design/instrumentation.md. */
    ".type peet_rt_cross, @function\n.globl peet_rt_cross\n"
    "peet_rt_cross:\n"
    " peet_rt_keep_all peet_rt_come_on\n"
    ".size peet_rt_cross, . - peet_rt_cross\n");

static RT_TLS void (*detour)(struct rt_registers *);

void peet_rt_detoured(struct rt_registers *r)
{
    detour(r);
}

void peet_rt_detour(void *context, void (*function)(struct rt_registers *))
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;

    r[REG_RSP] -= RED_ZONE + 8;
    *(uint64_t *)(uintptr_t)r[REG_RSP] = (uint64_t)r[REG_RIP];
    r[REG_RIP] = (greg_t)RT_ADDR(peet_rt_detour_entry);
    detour = function;
}

/* ---- signals ---- */

static void set_mask(uint64_t mask)
{
    host_mask = mask;
    peet_rt_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, MASK_BYTES, 0, 0);
}

static uint64_t bit(int number)
{
    return 1ull << (number - 1);
}

bool peet_rt_is_machine(void)
{
    return peet_rt_inside && !peet_rt_self.is_lent && peet_rt_call(SYS_gettid, 0, 0, 0, 0, 0, 0) == host_tid;
}

bool peet_rt_is_for_later(int number)
{
    if (!peet_rt_is_machine())
        return false;
    later |= bit(number);
    return true;
}

/* What a thread on the host can hear now. */
static void hear(uint64_t signals)
{
    for (int i = 1; i < 64; i++)
        if (signals & bit(i))
            peet_rt_call(SYS_tgkill, peet_rt_call(SYS_getpid, 0, 0, 0, 0, 0, 0), host_tid, i, 0, 0, 0);
}

/* What other threads have sent to this one stays with it while it blocks that: the kernel would give it to any thread that the host runs. */
static void hear_all(struct rt_self *s)
{
    uint64_t signals = s->signals & ~s->mask;

    s->signals &= s->mask;
    signals |= later;
    later = 0;
    hear(signals);
}

void peet_rt_mask_changed(void)
{
    if (!peet_rt_self.is_lent)
        return;
    peet_rt_call(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&host_mask, MASK_BYTES, 0, 0);
    peet_rt_self.mask = host_mask;
    if (peet_rt_self.signals & ~peet_rt_self.mask)
        hear_all(&peet_rt_self);
}

void peet_rt_send(struct rt_self *to, int signal)
{
    to->signals |= bit(signal);
    if (to == &peet_rt_self)
        hear_all(to);
}

int peet_rt_take_signal(uint64_t among)
{
    uint64_t there = peet_rt_self.signals & among;

    if (!there)
        return 0;
    peet_rt_self.signals &= ~(there & -there);
    return __builtin_ctzll(there) + 1;
}

uint64_t peet_rt_set_mask(uint64_t mask)
{
    uint64_t old = peet_rt_self.mask;

    peet_rt_self.mask = mask & ~bit(SIGSEGV);
    set_mask(peet_rt_self.mask);
    hear_all(&peet_rt_self);
    return old;
}

/* Signals that come within this time are one wish: kill of a process group reaches the program, and peet, which passes it on. */
enum { TOGETHER_MS = 300 };

void peet_rt_on_end(int number)
{
    static int64_t asked_at; /* the millisecond of the first signal; 0: none came */
    struct timespec t = { 0 };

    peet_rt_call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&t, 0, 0, 0, 0);
    int64_t now = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    if (asked_at == 0)
        asked_at = now;
    else if (now - asked_at > TOGETHER_MS) /* it does not come to its end */
        peet_rt_call(SYS_exit_group, 128 + number, 0, 0, 0, 0, 0);
    peet_rt_header->want_end = (uint32_t)number;
}

/* What nobody handles ends the machine first, which then tells what it has. */
static void expect_end(int number)
{
    struct sigaction own = { .sa_handler = peet_rt_on_end }, old; /* no SA_RESTART: what waits is to wake up */

    if (RT_REAL(sigaction)(number, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
        RT_REAL(sigaction)(number, &own, NULL);
}

/* ---- ids of users and groups ----
 *
 * The C library's setuid and its kin change the ids of the calling thread of the kernel, and have each other thread change its own in the handler of
 * SIGSETXID, which notes that in the C library's part of its thread. On the host's kernel thread the thread pointer is that of the program's thread, so
 * the handler would note it there, and the caller would wait for the host's note for good. So the handler runs with the host's thread pointer there. The thread of
 * the kernel whose part the host plays at that time is the caller, to which no signal is sent: it takes the host's ids when it runs next. */

enum { SIGNAL_SETXID = 33, MOST_GROUPS = 1024 };

struct kernel_sigaction { /* as the system call has it: the C library's own function refuses its own signals */
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

static void (*library_setxid)(int, siginfo_t *, void *); /* the C library's handler */
static struct {
    _Atomic uint32_t changes; /* times that ids of the process have been changed */
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

/* The calling thread of the kernel gets the ids that the host had when it let a thread go home. Users last, for they carry the right to the rest. */
static void ids_take(void)
{
    if (ids.groups >= 0)
        peet_rt_call(SYS_setgroups, ids.groups, (long)ids.supplementary, 0, 0, 0, 0);
    peet_rt_call(SYS_setresgid, ids.group[0], ids.group[1], ids.group[2], 0, 0, 0);
    peet_rt_call(SYS_setresuid, ids.user[0], ids.user[1], ids.user[2], 0, 0, 0);
}

/* The compiler's stack protector would look for its word at another thread pointer at the end than at the beginning. */
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

/* Once the C library has its handler, which it has as soon as there is a second thread. */
static void ids_begin(void)
{
    struct kernel_sigaction a = { 0 };

    if (peet_rt_call(SYS_rt_sigaction, SIGNAL_SETXID, 0, (long)&a, MASK_BYTES, 0, 0) != 0 || !a.handler)
        return;
    library_setxid = a.handler;
    a.handler = on_setxid;
    peet_rt_call(SYS_rt_sigaction, SIGNAL_SETXID, (long)&a, 0, MASK_BYTES, 0, 0);
}

/* ---- threads that are lent ---- */

/* Sleeps until there is something for this thread of the kernel to do: what. */
static enum rt_home home_wait(struct rt_self *self)
{
    uint32_t what;

    while ((what = atomic_load_explicit(&self->home, memory_order_acquire)) == HOME_SLEEP)
        peet_rt_call(SYS_futex, (long)&self->home, FUTEX_WAIT, HOME_SLEEP, 0, 0, 0);
    atomic_store_explicit(&self->home, HOME_SLEEP, memory_order_relaxed);
    if (atomic_load(&ids.changes))
        ids_take();
    return what;
}

static void home_perform(struct rt_self *self)
{
    const struct rt_call *c = &self->request;

    self->result = peet_rt_call(c->number, c->a[0], c->a[1], c->a[2], c->a[3], c->a[4], c->a[5]);
    atomic_store_explicit(&self->is_done, true, memory_order_release);
}

/* From the host. */
static void home_wake(struct rt_self *self, enum rt_home what)
{
    if (atomic_load(&ids.changes))
        ids_read();
    atomic_store_explicit(&self->home, what, memory_order_release);
    peet_rt_call(SYS_futex, (long)&self->home, FUTEX_WAKE, 1, 0, 0, 0);
}

void peet_rt_request(const struct rt_call *c)
{
    peet_rt_self.request = *c;
    atomic_store(&peet_rt_self.is_done, false);
    home_wake(&peet_rt_self, HOME_REQUEST);
}

bool peet_rt_is_done(long *ret_result)
{
    if (!atomic_load_explicit(&peet_rt_self.is_done, memory_order_acquire))
        return false;
    *ret_result = peet_rt_self.result;
    return true;
}

/* On the stack apart: until it is the thread's own turn. */
static void sleep_at_home(struct rt_self *self)
{
    struct raw_thread *place = self->place;
    void *nobody;

    self->is_lent = true;
    atomic_store_explicit(&place->stopped, RAW_STOPPED, memory_order_release);
    peet_rt_call(SYS_futex, (long)&place->stopped, FUTEX_WAKE, 2, 0, 0, 0);
    while (home_wait(self) == HOME_REQUEST)
        home_perform(self);
    self->is_lent = false;
    peet_rt_swap(&nobody, self->sp, self->thread_pointer);
}

/* All but those that tell of mistakes, those of the C library, and SIGSEGV. */
static uint64_t quiet_mask(void)
{
    return ~(bit(SIGSEGV) | bit(SIGBUS) | bit(SIGFPE) | bit(SIGILL) | bit(SIGTRAP) | bit(SIGSYS) | 1ull << 31
             | 1ull << 32);
}

void peet_rt_lend(struct raw_thread *place, enum raw_stop how)
{
    struct rt_self *s = &peet_rt_self;

    if (s->is_lent) {
        atomic_store_explicit(&place->stopped, how, memory_order_relaxed);
        peet_rt_swap(&s->sp, host_sp, host_pointer);
        if (later || s->signals)
            hear_all(s);
    } else if (how == RAW_FINISHED) {
        lent[place - peet_rt_header->thread] = NULL;
        atomic_store_explicit(&place->stopped, how, memory_order_release);
        peet_rt_call(SYS_futex, (long)&place->stopped, FUTEX_WAKE, 2, 0, 0, 0);
    } else {
        uint64_t quiet = quiet_mask();
        if (!lent[place - peet_rt_header->thread]) {
            peet_rt_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&quiet, (long)&s->mask, MASK_BYTES, 0, 0);
            peet_rt_call(SYS_arch_prctl, ARCH_GET_FS, (long)&s->thread_pointer, 0, 0, 0, 0);
            lent[place - peet_rt_header->thread] = s;
        }
        peet_rt_sleep_on(&s->sp, peet_rt_stack_top(), s, sleep_at_home);
    }
}

void peet_rt_go_home(void)
{
    struct rt_self *s = &peet_rt_self;

    if (!peet_rt_inside || !s->is_lent || !s->place)
        return;
    s->stays_home = true;
    atomic_store_explicit(&s->place->stopped, RAW_TO_CARRIER, memory_order_relaxed);
    peet_rt_swap(&s->sp, host_sp, host_pointer);
}

void peet_rt_cancel_here(void)
{
    if (!peet_rt_self.is_cancelled)
        return;
    peet_rt_go_home();
    RT_REAL(pthread_cancel)(pthread_self());
    RT_REAL(pthread_testcancel)();
}

struct rt_self *peet_rt_find_lent(uint32_t number)
{
    for (uint32_t i = 0; peet_rt_inside && i < atomic_load(&peet_rt_header->entries_used); i++)
        if (lent[i] && peet_rt_header->thread[i].number == number)
            return lent[i];
    return NULL;
}

void peet_rt_forget_host(void)
{
    peet_rt_inside = false;
    peet_rt_self.is_lent = false;
}

/* ---- the host ---- */

static void run(struct rt_self *c)
{
    if (c->mask != host_mask)
        set_mask(c->mask);
    peet_rt_swap(&host_sp, c->sp, c->thread_pointer);
}

static void resume(uint32_t number)
{
    struct raw_thread *place = &peet_rt_header->thread[number];
    struct rt_self *c = lent[number];

    last = number;
    atomic_store_explicit(&place->stopped, RAW_RUNS, memory_order_relaxed);
    if (!c->stays_home) {
        run(c);
        if (atomic_load_explicit(&place->stopped, memory_order_relaxed) != RAW_TO_CARRIER)
            return;
        atomic_store_explicit(&place->stopped, RAW_RUNS, memory_order_relaxed);
    }
    home_wake(c, HOME_GO_ON);
    while (atomic_load_explicit(&place->stopped, memory_order_acquire) == RAW_RUNS)
        peet_rt_call(SYS_futex, (long)&place->stopped, FUTEX_WAIT, RAW_RUNS, 0, 0, 0);
}

static void set_off(uint32_t number, uint64_t references)
{
    peet_rt_header->thread[number].skip = references;
}

static _Noreturn void end_process(int status)
{
    for (;;)
        peet_rt_call(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

static _Noreturn void complain(const char *what)
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
    complain("it is static");
}

#else

/* What the machine needs to be mapped goes below all that the program will ever map: the place above is taken for that time. */
struct taken {
    long at[TAKEN], bytes[TAKEN];
    unsigned count;
};

static long take(struct taken *t, long bytes)
{
    long p = peet_rt_call(SYS_mmap, 0, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p > 0 && t->count < TAKEN) {
        t->at[t->count] = p;
        t->bytes[t->count++] = bytes;
    }
    return p;
}

static void take_place(struct taken *t)
{
    long low = take(t, LARGEST);

    for (long bytes = LARGEST / 2; low > 0 && bytes >= SMALLEST; bytes /= 2)
        while (t->count < TAKEN && take(t, bytes) > low)
            ;
}

static void give_place_back(const struct taken *t)
{
    for (unsigned i = 0; i < t->count; i++)
        peet_rt_call(SYS_munmap, t->at[i], t->bytes[i], 0, 0, 0, 0);
}

static raw_machine *load_machine(void)
{
    static struct taken taken;
    raw_machine *machine;

    host.syscall = RT_ADDR(dlsym(RTLD_NEXT, "syscall"));
    take_place(&taken);
    void *library = dlmopen(LM_ID_NEWLM, peet_rt_header->library, RTLD_NOW | RTLD_LOCAL);
    give_place_back(&taken);
    if (!library)
        complain(dlerror());
    *(void **)&machine = dlsym(library, RAW_MACHINE);
    if (!machine)
        complain("it is not a machine");
    return machine;
}

#endif

static void *host_main(void *unused)
{
    (void)unused;
    peet_rt_call(SYS_arch_prctl, ARCH_GET_FS, (long)&host_pointer, 0, 0, 0, 0);
    host_tid = (int32_t)peet_rt_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    stack_t stack = { .ss_sp = host_stack, .ss_size = sizeof host_stack }; /* for signals, whoever runs */
    peet_rt_call(SYS_sigaltstack, (long)&stack, 0, 0, 0, 0, 0);
    peet_rt_self.depth = 1; /* what is allocated here is nobody's event */
    peet_rt_self.is_private = true;
    int status = load_machine()(&host);
    if (status != RAW_CONTINUE)
        end_process(status);
    if (lent[last]) /* it is on its way to the end */
        run(lent[last]);
    exit(0); /* the last thread has ended: so does the process */
}

void peet_rt_host_begin(const char *file)
{
    pthread_attr_t attr;
    pthread_t thread;

    host = (struct raw_host){ peet_rt_header, file, resume, peet_rt_set_traps, set_off, 0, &peet_rt_header->want_end };
    peet_rt_inside = true;
    expect_end(SIGINT);
    expect_end(SIGTERM);
    uint64_t *cursor = peet_rt_cursor;
    peet_rt_cursor = NULL; /* there is nobody yet who could hear of what is allocated */
    long stack = peet_rt_call(SYS_mmap, 1l << 46, STACK_BYTES, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pthread_attr_init(&attr);
    if (stack > 0)
        pthread_attr_setstack(&attr, (void *)stack, STACK_BYTES);
    peet_rt_self.is_private = true;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (RT_REAL(pthread_create)(&thread, &attr, host_main, NULL) != 0)
        complain("no thread for it");
    ids_begin();
    pthread_attr_destroy(&attr);
    peet_rt_self.is_private = false;
    peet_rt_cursor = cursor;
}
