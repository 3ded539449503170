/* SPDX-License-Identifier: MIT */
/* Signals: the runtime's SIGSEGV handler, and handlers of the program.
 * A handler can interrupt instrumented code within a block, with incomplete words at the cursor. So handlers write
 * into a separate buffer. Their words are copied into the stream, as signal_enter … signal_exit, at the thread's next
 * event, or where a buffer ends and the block at its end has %rsp in a slot. The trace then has them a little later
 * than they happened. Handlers that interrupt handlers are not recorded, nor is what does not fit; a gap event marks
 * both.
 * If a handler is left by longjmp, the words of the interrupted block are erased.
 * SIGSEGV is never blocked, whatever the program asks for, because buffers end with one. */
#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "capture/runtime/real.h"
#include "capture/runtime/rt.h"
#include "capture/runtime/host.h"
#include "capture/runtime/skip.h"

enum { SIGNALS = 65, RED_ZONE = 128 };

/* Not in every version of the headers. */
sighandler_t sysv_signal(int number, sighandler_t handler);
sighandler_t bsd_signal(int number, sighandler_t handler);

/* pthread.h declares it only within its macros. */
extern void __pthread_unregister_cancel(__pthread_unwind_buf_t *buf);

/* The program's action for each signal. */
static struct sigaction program_action[SIGNALS];
static stack_t program_stack; /* the program's alternate stack */

/* ---- handlers of the program ---- */

static bool is_in_span(const struct rt_span *w, const uint64_t *p)
{
    return p >= w->start && p <= w->end;
}

/* The cursor of the interrupted code. In instrumented code it is %r15, which is never before the stored cursor. In
 * other code the stored cursor is right, and %r15 may hold anything, also an older cursor. */
static uint64_t *live_cursor(const ucontext_t *u)
{
    const struct rt_span *now = &peet_rt_self.buffer;
    uint64_t *r15 = (uint64_t *)(uintptr_t)u->uc_mcontext.gregs[REG_R15];

    if (!is_in_span(now, r15))
        return peet_rt_cursor;
    return is_in_span(now, peet_rt_cursor) && peet_rt_cursor > r15 ? peet_rt_cursor : r15;
}

static void call_handler(int number, siginfo_t *info, void *context)
{
    peet_rt_self.hosted.handlers_run++;
    peet_rt_self.hosted.handlers_firm += !(program_action[number].sa_flags & SA_RESTART);
    if (program_action[number].sa_flags & SA_SIGINFO)
        program_action[number].sa_sigaction(number, info, context);
    else
        program_action[number].sa_handler(number);
}

/* A record that was interrupted by a signal. Needed if the handler returns in the child of a fork, which has other
 * buffers. */
struct interrupted_record {
    char *memory;                      /* rt_self.memory at that time */
    uint64_t block[2 * RAW_MAX_WORDS]; /* what has been written of the record, after words that precede it */
    size_t before;                     /* words of `block` before the cursor */
    size_t words;                      /* words of `block` in use; 0: no block was interrupted */
};

static void save_interrupted_record(struct interrupted_record *i, const ucontext_t *u)
{
    const struct rt_self *s = &peet_rt_self;
    const uint64_t *from = live_cursor(u);

    i->memory = s->memory;
    i->words = i->before = 0;
    if (RT_ADDR(from) != (uint64_t)u->uc_mcontext.gregs[REG_R15])
        return;
    while (i->before < RAW_MAX_WORDS && from > s->buffer.start) {
        i->before++;
        from--;
    }
    for (; i->words < i->before + RAW_MAX_WORDS && from + i->words < s->buffer.end; i->words++)
        i->block[i->words] = from[i->words];
}

/* Whether this is the child of a fork by the handler. If so, the interrupted record continues in the new buffer. It may
 * begin before the cursor; only its key will show where. */
static bool continue_in_child(const struct interrupted_record *i, ucontext_t *u, int depth)
{
    struct rt_self *s = &peet_rt_self;

    if (s->memory == i->memory || s->has_ended)
        return false;
    s->handlers.active = 0;
    s->depth = 0;
    RT_EVENT(jump, 0, 0);
    uint64_t *to = peet_rt_room(2 * RAW_MAX_WORDS);
    for (size_t k = 0; k < i->words; k++)
        to[k] = i->block[k];
    if (i->words) {
        s->forked.words = to;
        s->forked.preceding = (unsigned)i->before;
        for (size_t k = 0; k < i->before; k++)
            s->forked.copy[k] = to[k];
        u->uc_mcontext.gregs[REG_R15] = (greg_t)RT_ADDR(to + i->before);
    }
    s->depth = depth;
    return true;
}

static void run_handler(int number, siginfo_t *info, void *context)
{
    struct rt_self *s = &peet_rt_self;
    struct rt_span now = s->buffer;
    struct interrupted_record interruption;
    int depth = s->depth;
    uint64_t outer_budget = s->skip.budget;
    uint64_t *cursor = peet_rt_cursor, *signal_end = s->handlers.end;
    char frame;

    save_interrupted_record(&interruption, context);
    s->skip.budget = 0; /* handlers are recorded without skipping */
    if (s->handlers.active++ == 0) {
        s->handlers.outer_cursor = live_cursor(context);
        s->skip.outer_budget = outer_budget;
        s->handlers.frame = &frame;
        s->handlers.outer = s->buffer;
        s->buffer = s->handlers.buffer;
        peet_rt_cursor = s->handlers.end;
        s->depth = 0;
        peet_rt_event(PEET_EV_signal_enter, 0, 1, &(uint64_t){ (uint64_t)number });
    } else {
        peet_rt_next_buffer(cursor, 0); /* words of nested handlers are discarded */
        s->depth = 0;
    }
    call_handler(number, info, context);
    if (continue_in_child(&interruption, context, depth))
        return;
    if (--s->handlers.active == 0 && !s->has_ended) {
        if (is_in_span(&s->handlers.buffer, peet_rt_cursor) && s->handlers.buffer.end - peet_rt_cursor >= 2) {
            peet_rt_cursor[1] = (uint64_t)number;
            peet_rt_cursor[0] = raw_event_key(PEET_EV_signal_exit, 0);
            s->handlers.end = peet_rt_cursor + 2;
        } else {
            s->handlers.end = signal_end; /* the handler's words are recorded whole or not at all */
            s->handlers.overflow = true;
        }
    }
    if (!s->has_ended) {
        s->buffer = now;
        peet_rt_cursor = cursor;
        s->skip.budget = outer_budget;
    }
    s->depth = depth;
}

/* A signal to the process group reaches both the program and peet, which forwards it. */
enum { SAME_SIGNAL_MS = 300, SENDERS = 2 };

/* Whether the signal is the second copy of one that has come before: of two copies within SAME_SIGNAL_MS, one is from the
 * recorder and the other is not. */
static bool is_second_copy(int number, const siginfo_t *info)
{
    /* millisecond of a copy without its counterpart, by sender (1: the recorder); 0: none */
    static _Atomic int64_t came_at[SIGNALS][SENDERS];
    struct timespec t = { 0 };

    if (!peet_rt_header || info->si_code != SI_USER)
        return false;
    bool is_forwarded = info->si_pid == peet_rt_header->recorder;
    peet_rt_call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&t, 0, 0, 0, 0);
    int64_t now = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    int64_t other = atomic_exchange(&came_at[number][!is_forwarded], 0);
    if (other && now - other <= SAME_SIGNAL_MS)
        return true;
    atomic_store(&came_at[number][is_forwarded], now);
    return false;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    uint64_t handler = RT_ADDR(program_action[number].sa_handler);

    if (is_second_copy(number, info))
        return;
    if (peet_rt_defer_signal(number))
        return;
    if (handler == RT_ADDR(SIG_DFL) || handler == RT_ADDR(SIG_IGN))
        return; /* the handler was removed at this moment */
    if (peet_rt_has_cursor())
        run_handler(number, info, context);
    else
        call_handler(number, info, context);
}

void peet_rt_signals_append(void)
{
    struct rt_self *s = &peet_rt_self;
    size_t n = (size_t)(s->handlers.end - s->handlers.buffer.start);

    if (s->buffer.end - peet_rt_cursor < (ptrdiff_t)n + 3)
        peet_rt_next_buffer(peet_rt_cursor, 0);
    uint64_t *to = peet_rt_cursor;
    for (size_t i = 0; i < n; i++)
        to[i] = s->handlers.buffer.start[i];
    to += n;
    if (s->handlers.overflow) {
        to[0] = raw_event_key(PEET_EV_gap, 0);
        to[1] = to[2] = 0;
        to += 3;
    }
    s->handlers.overflow = false;
    s->handlers.end = s->handlers.buffer.start;
    peet_rt_cursor = to;
}

/* ---- SIGSEGV ---- */

/* Whether the record's %rsp is in a register of the trace: the flags are the fourth word of the schema entry that the
 * key names. */
static bool sp_is_in_register(uint64_t key)
{
    return key == 0 || key >> 63 || (((const uint32_t *)(uintptr_t)key)[3] & RAW_SP_IN_REGISTER);
}

/* The buffer of the calling thread ended within a record at `from` that began when %rsp was `stack`. Returns the cursor
 * with which the record continues. */
static uint64_t *continue_in_next_buffer(uint64_t *from, uint64_t stack, uint64_t r14, uint64_t *rip)
{
    struct rt_self *s = &peet_rt_self;
    uint64_t *end = s->buffer.end, *at;
    uint64_t r15, block[RAW_MAX_WORDS + 1];
    size_t n = (size_t)(end - from);

    for (size_t i = 0; i < n; i++)
        block[i] = from[i];
    peet_rt_next_buffer(from, stack);
    if (s->skip.pending && s->handlers.active == 0 && peet_rt_skip_at_fault(block, n, r14, rip, &r15))
        return (uint64_t *)(uintptr_t)r15;
    if (s->handlers.end != s->handlers.buffer.start && s->handlers.active == 0 && n > 0 && !sp_is_in_register(block[0]))
        peet_rt_signals_append();
    at = peet_rt_cursor;
    for (size_t i = 0; i < n; i++)
        at[i] = block[i];
    return at;
}

/* Called after the signal handler, because the host may run other threads in between. */
static void continue_after_handler(struct rt_registers *r)
{
    r->r15 =
        RT_ADDR(continue_in_next_buffer((uint64_t *)(uintptr_t)r->r15, RT_ADDR(r + 1) + RED_ZONE, r->r14, &r->rip));
}

/* Handles instrumented code with a counter in %r15, which has returned from a counting copy. */
static bool handle_counter_fault(const char *fault, ucontext_t *u)
{
    greg_t *r = u->uc_mcontext.gregs;
    uint64_t counter = (uint64_t)r[REG_R15], other;

    if (!peet_rt_self.skip.budget || peet_rt_self.handlers.active > 0 || RT_ADDR(fault) != counter)
        return false;
    other = peet_rt_counting_copy((uint64_t)r[REG_RIP], (uint64_t)r[REG_R14]);
    if ((int64_t)counter < 0 && other)
        r[REG_RIP] = (greg_t)other;
    else if (peet_rt_in_process)
        peet_rt_divert(u, peet_rt_crossed);
    else
        r[REG_R15] = (greg_t)peet_rt_skip_end_at(counter, (uint64_t)r[REG_RSP]);
    return true;
}

static bool handle_guard_fault(siginfo_t *info, ucontext_t *u)
{
    struct rt_self *s = &peet_rt_self;
    greg_t *r15 = &u->uc_mcontext.gregs[REG_R15];
    char *fault = info->si_addr;

    if (info->si_code != SEGV_MAPERR && info->si_code != SEGV_ACCERR)
        return false;
    if (handle_counter_fault(fault, u))
        return true;
    if (!peet_rt_has_cursor()) { /* a thread that no wrapper created, at its first instrumented block */
        if (*r15 != 0 || RT_ADDR(fault) >= RAW_GUARD)
            return false;
        peet_rt_begin(peet_rt_take_entry(0, 0, peet_rt_process()));
        *r15 = (greg_t)RT_ADDR(peet_rt_cursor);
        return true;
    }
    uint64_t *from = (uint64_t *)(uintptr_t)*r15;
    if (!is_in_span(&s->buffer, from) || s->buffer.end - from > RAW_MAX_WORDS || fault < (char *)s->buffer.end
        || fault >= (char *)s->buffer.end + RAW_GUARD)
        return false;
    if (peet_rt_in_process && s->handlers.active == 0)
        peet_rt_divert(u, continue_after_handler);
    else
        *r15 = (greg_t)RT_ADDR(continue_in_next_buffer(from, (uint64_t)u->uc_mcontext.gregs[REG_RSP],
                                                       (uint64_t)u->uc_mcontext.gregs[REG_R14],
                                                       (uint64_t *)&u->uc_mcontext.gregs[REG_RIP]));
    return true;
}

/* Ends the program by a signal that it does not handle: hands its words over, and lets the signal come again. */
static void end_by_signal(int number, const siginfo_t *info, const ucontext_t *u)
{
    struct sigaction real = { .sa_handler = SIG_DFL };

    if (!peet_rt_in_machine() && peet_rt_has_cursor() && peet_rt_self.handlers.active == 0) {
        peet_rt_cursor = live_cursor(u);
        if (peet_rt_in_process)
            peet_rt_set_end(PEET_END_SIGNAL, (uint32_t)number);
        peet_rt_drain();
    }
    RT_REAL(sigaction)(number, &real, NULL);
    if (info->si_code <= 0)
        peet_rt_call(SYS_tgkill, peet_rt_call(SYS_getpid, 0, 0, 0, 0, 0, 0), peet_rt_call(SYS_gettid, 0, 0, 0, 0, 0, 0),
                     number, 0, 0, 0);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    uint64_t handler = RT_ADDR(program_action[SIGSEGV].sa_handler);

    bool is_ours = peet_rt_in_machine(); /* an error of peet */
    if (!is_ours && handle_guard_fault(info, u))
        return;
    if (!is_ours && handler != RT_ADDR(SIG_DFL) && handler != RT_ADDR(SIG_IGN)) {
        int flags = program_action[SIGSEGV].sa_flags;
        on_signal(number, info, context);
        if (flags & (int)SA_RESETHAND)
            program_action[SIGSEGV].sa_handler = SIG_DFL;
        return;
    }
    end_by_signal(number, info, u);
}

/* SIGILL: a trap, or an error of the program. */
static void on_unknown(int number, siginfo_t *info, void *context)
{
    uint64_t handler = RT_ADDR(program_action[number].sa_handler);

    if (peet_rt_is_trap(context))
        return;
    if (handler != RT_ADDR(SIG_DFL) && handler != RT_ADDR(SIG_IGN))
        on_signal(number, info, context);
    else
        end_by_signal(number, info, context);
}

/* Other signals for errors that the program does not handle. */
static void on_mistake(int number, siginfo_t *info, void *context)
{
    end_by_signal(number, info, context);
}

void peet_rt_traps_begin(void)
{
    struct sigaction own = { .sa_sigaction = on_unknown, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };

    RT_REAL(sigaction)(SIGILL, &own, &program_action[SIGILL]);
    own.sa_sigaction = on_mistake;
    RT_REAL(sigaction)(SIGFPE, &own, &program_action[SIGFPE]);
    RT_REAL(sigaction)(SIGBUS, &own, &program_action[SIGBUS]);
}

void peet_rt_signals_begin(void)
{
    struct sigaction own = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };

    __builtin_memset(&own.sa_mask, 0xff, sizeof own.sa_mask);
    sigdelset(&own.sa_mask, SIGSEGV);
    RT_REAL(sigaction)(SIGSEGV, &own, &program_action[SIGSEGV]);
    sigset_t segv;
    sigemptyset(&segv);
    sigaddset(&segv, SIGSEGV);
    RT_REAL(sigprocmask)(SIG_UNBLOCK, &segv, NULL);
    program_stack.ss_flags = SS_DISABLE;
}

/* ---- actions of the program ---- */

RT_WRAPPER int sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
    if (!RT_FOUND(sigaction))
        return -1;
    if (number <= 0 || number >= SIGNALS)
        return RT_REAL(sigaction)(number, new, old);
    struct sigaction before = program_action[number], real;
    if (number == SIGSEGV || (number == SIGILL && peet_rt_in_process)) {
        if (new)
            program_action[number] = *new;
        if (old)
            *old = before;
        return 0;
    }
    bool wants_handler = new &&new->sa_handler != SIG_DFL &&new->sa_handler != SIG_IGN;
    if (new) {
        real = *new;
        sigdelset(&real.sa_mask, SIGSEGV);
        if (peet_rt_in_process)
            sigdelset(&real.sa_mask, SIGILL);
        if (wants_handler) {
            real.sa_sigaction = on_signal;
            real.sa_flags |= SA_SIGINFO;
            program_action[number] = *new;
        }
    }
    struct sigaction was;
    int r = RT_REAL(sigaction)(number, new ? &real : NULL, &was);
    if (r < 0) {
        program_action[number] = before;
        return r;
    }
    bool is_ours = (was.sa_flags & SA_SIGINFO) && (was.sa_sigaction == on_signal || was.sa_sigaction == on_mistake);
    if (old)
        *old = is_ours || was.sa_handler == peet_rt_on_end_signal ? before : was;
    if (new && !wants_handler)
        program_action[number] = *new;
    return r;
}

RT_WRAPPER sighandler_t signal(int number, sighandler_t handler)
{
    struct sigaction new = { .sa_handler = handler, .sa_flags = SA_RESTART }, old;

    sigemptyset(&new.sa_mask);
    return sigaction(number, &new, &old) < 0 ? SIG_ERR : old.sa_handler;
}

/* signal in strict C, where a handler runs once. */
RT_WRAPPER sighandler_t __sysv_signal(int number, sighandler_t handler)
{
    struct sigaction new = { .sa_handler = handler, .sa_flags = (int)SA_RESETHAND | SA_NODEFER }, old;

    sigemptyset(&new.sa_mask);
    return sigaction(number, &new, &old) < 0 ? SIG_ERR : old.sa_handler;
}

RT_WRAPPER sighandler_t sysv_signal(int number, sighandler_t handler)
{
    return __sysv_signal(number, handler);
}

RT_WRAPPER sighandler_t ssignal(int number, sighandler_t handler)
{
    return signal(number, handler);
}

RT_WRAPPER sighandler_t bsd_signal(int number, sighandler_t handler)
{
    return signal(number, handler);
}

/* sigset also unblocks the signal, unless handler is SIG_HOLD. */
RT_WRAPPER sighandler_t sigset(int number, sighandler_t handler)
{
    struct sigaction new = { .sa_handler = handler }, old;
    sigset_t one, before;

    sigemptyset(&new.sa_mask);
    sigemptyset(&one);
    if (sigaddset(&one, number) < 0 || sigprocmask(handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, &one, &before) < 0
        || sigaction(number, handler == SIG_HOLD ? NULL : &new, &old) < 0)
        return SIG_ERR;
    return sigismember(&before, number) ? SIG_HOLD : old.sa_handler;
}

static const sigset_t *without_segv(int how, const sigset_t *set, sigset_t *room)
{
    if (!set || how == SIG_UNBLOCK)
        return set;
    *room = *set;
    sigdelset(room, SIGSEGV);
    if (peet_rt_in_process)
        sigdelset(room, SIGILL);
    return room;
}

RT_WRAPPER int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    sigset_t room;

    int r = RT_FOUND(sigprocmask) ? RT_REAL(sigprocmask)(how, without_segv(how, set, &room), old) : -1;

    if (set)
        peet_rt_mask_changed();
    return r;
}

RT_WRAPPER int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    sigset_t room;

    int r = RT_FOUND(pthread_sigmask) ? RT_REAL(pthread_sigmask)(how, without_segv(how, set, &room), old) : EINVAL;

    if (set)
        peet_rt_mask_changed();
    return r;
}

/* The runtime's alternate stack stays, unless the program sets one. */
RT_WRAPPER int sigaltstack(const stack_t *new, stack_t *old)
{
    if (!RT_FOUND(sigaltstack))
        return -1;
    stack_t was;
    int r = RT_REAL(sigaltstack)(new && (new->ss_flags &SS_DISABLE) ? NULL : new, &was);
    if (r == 0 && old)
        *old = peet_rt_self.memory && (char *)was.ss_sp > peet_rt_self.memory
                       && (char *)was.ss_sp < peet_rt_self.memory + (1 << 24)
                   ? program_stack
                   : was;
    return r;
}

/* ---- leaving handlers ---- */

/* The stack pointer of a jump's target, as glibc stores it. */
static char *jump_target_sp(const struct __jmp_buf_tag *buf)
{
    uint64_t mangled = (uint64_t)buf->__jmpbuf[6], guard;

    __asm__("ror $17, %0\n\txor %%fs:0x30, %0" : "=r"(guard) : "0"(mangled));
    return (char *)(uintptr_t)guard;
}

static void note_jump(const struct __jmp_buf_tag *buf, uint64_t site)
{
    struct rt_self *s = &peet_rt_self;
    char here, *to = jump_target_sp(buf);

    if (!peet_rt_has_cursor())
        return;
    if (s->handlers.active > 0 && !(to >= &here && to < s->handlers.frame)) {
        if (is_in_span(&s->handlers.buffer, peet_rt_cursor))
            s->handlers.end = peet_rt_cursor;
        else
            s->handlers.overflow = true;
        s->handlers.active = 0;
        s->buffer = s->handlers.outer;
        peet_rt_cursor = s->handlers.outer_cursor;
        s->skip.budget = s->skip.outer_budget;
        for (uint64_t *p = peet_rt_cursor; !s->skip.budget && p < s->buffer.end && p < peet_rt_cursor + RAW_MAX_WORDS;
             p++)
            *p = 0;
    }
    if (s->cancel_frame && to > (char *)s->cancel_frame) { /* it leaves a wait in which it could be cancelled */
        __pthread_unregister_cancel(s->cancel_frame);
        s->cancel_frame = NULL;
    }
    s->depth = 0;
    RT_EVENT(jump, site, 0);
}

RT_WRAPPER void longjmp(struct __jmp_buf_tag buf[1], int value)
{
    note_jump(buf, RT_SITE);
    RT_REAL(longjmp)(buf, value);
    __builtin_unreachable();
}

RT_WRAPPER void _longjmp(struct __jmp_buf_tag buf[1], int value)
{
    note_jump(buf, RT_SITE);
    RT_REAL(_longjmp)(buf, value);
    __builtin_unreachable();
}

RT_WRAPPER void __longjmp_chk(struct __jmp_buf_tag buf[1], int value)
{
    note_jump(buf, RT_SITE);
    RT_REAL(__longjmp_chk)(buf, value);
    __builtin_unreachable();
}

RT_WRAPPER void siglongjmp(sigjmp_buf buf, int value)
{
    note_jump(buf, RT_SITE);
    RT_REAL(siglongjmp)(buf, value);
    __builtin_unreachable();
}
