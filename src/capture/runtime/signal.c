/* SPDX-License-Identifier: MIT */
/* Signals: the runtime's own SIGSEGV, and the handlers of the program.
 *
 * A handler can interrupt instrumented code in the middle of a block, whose words stand at the cursor, unfinished. So
 * handlers write into a buffer of their own, and what they wrote is put into the stream, as signal_enter … signal_exit, at
 * the thread's next event, or where a buffer ends and the block at its end has the stack pointer in a slot. The stream
 * then tells it a little later than it happened. Handlers that interrupt handlers are not recorded, and neither is what
 * does not fit; a gap event says so.
 *
 * A handler that is left by longjmp takes the unfinished block with it: its words are wiped out.
 *
 * SIGSEGV is never blocked, whatever the program asks for, because buffers end with one. */
#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "capture/runtime/real.h"
#include "capture/runtime/rt.h"

enum { SIGNALS = 65, RED_ZONE = 128 };

/* Not in every version of the headers. */
sighandler_t sysv_signal(int number, sighandler_t handler);
sighandler_t bsd_signal(int number, sighandler_t handler);

/* pthread.h declares it where it is used. */
extern void __pthread_unregister_cancel(__pthread_unwind_buf_t *buf);

/* What the program wants to be done with each signal. */
static struct sigaction wish[SIGNALS];
static stack_t own_stack; /* of the program, for sigaltstack */

/* ---- handlers of the program ---- */

static bool is_in(const struct rt_window *w, const uint64_t *p)
{
    return p >= w->start && p <= w->end;
}

/* The cursor of the interrupted code. In instrumented code it is %r15, and not before the one that was put down last;
 * elsewhere that one counts, and %r15 holds anything, perhaps an older cursor. */
static uint64_t *live_cursor(const ucontext_t *u)
{
    const struct rt_window *now = &peet_rt_self.now;
    uint64_t *r15 = (uint64_t *)(uintptr_t)u->uc_mcontext.gregs[REG_R15];

    if (!is_in(now, r15))
        return peet_rt_cursor;
    return is_in(now, peet_rt_cursor) && peet_rt_cursor > r15 ? peet_rt_cursor : r15;
}

static void call_handler(int number, siginfo_t *info, void *context)
{
    peet_rt_self.handled++;
    peet_rt_self.handled_firm += !(wish[number].sa_flags & SA_RESTART);
    if (wish[number].sa_flags & SA_SIGINFO)
        wish[number].sa_sigaction(number, info, context);
    else
        wish[number].sa_handler(number);
}

/* What the interrupted code needs if its handler returns in the child of a fork, where the buffers are others. */
struct interruption {
    char *memory;
    uint64_t block[2 * RAW_MAX_WORDS]; /* what it has written of its record, and before that of others */
    size_t before, words;              /* in front of the cursor, and in all; 0: it is not in a block */
};

static void keep_block(struct interruption *i, const ucontext_t *u)
{
    const struct rt_self *s = &peet_rt_self;
    const uint64_t *from = live_cursor(u);

    i->memory = s->memory;
    i->words = i->before = 0;
    if (RT_ADDR(from) != (uint64_t)u->uc_mcontext.gregs[REG_R15])
        return;
    while (i->before < RAW_MAX_WORDS && from > s->now.start) {
        i->before++;
        from--;
    }
    for (; i->words < i->before + RAW_MAX_WORDS && from + i->words < s->now.end; i->words++)
        i->block[i->words] = from[i->words];
}

/* Whether this is the child of a fork by the handler: the block goes on in the new buffer. Its record may have begun before it, and only
 * its key, when it is there, will tell where. */
static bool is_child(const struct interruption *i, ucontext_t *u, int depth)
{
    struct rt_self *s = &peet_rt_self;

    if (s->memory == i->memory || s->over)
        return false;
    s->handlers = 0;
    s->depth = 0;
    RT_EVENT(jump, 0, 0);
    uint64_t *to = peet_rt_room(2 * RAW_MAX_WORDS);
    for (size_t k = 0; k < i->words; k++)
        to[k] = i->block[k];
    if (i->words) {
        s->doubtful = to;
        s->doubtful_words = (unsigned)i->before;
        for (size_t k = 0; k < i->before; k++)
            s->copied[k] = to[k];
        u->uc_mcontext.gregs[REG_R15] = (greg_t)RT_ADDR(to + i->before);
    }
    s->depth = depth;
    return true;
}

static void run_handler(int number, siginfo_t *info, void *context)
{
    struct rt_self *s = &peet_rt_self;
    struct rt_window now = s->now;
    struct interruption interruption;
    int depth = s->depth;
    uint64_t off = s->off;
    uint64_t *cursor = peet_rt_cursor, *signal_end = s->signal_end;
    char frame;

    keep_block(&interruption, context);
    s->off = 0; /* a handler says everything */
    if (s->handlers++ == 0) {
        s->interrupted = live_cursor(context);
        s->interrupted_off = off;
        s->handler_frame = &frame;
        s->stream = s->now;
        s->now = s->signal;
        peet_rt_cursor = s->signal_end;
        s->depth = 0;
        peet_rt_event(PEET_EV_signal_enter, 0, 1, &(uint64_t){ (uint64_t)number });
    } else {
        peet_rt_turn(cursor, 0); /* to where nobody reads */
        s->depth = 0;
    }
    call_handler(number, info, context);
    if (is_child(&interruption, context, depth))
        return;
    if (--s->handlers == 0 && !s->over) {
        if (is_in(&s->signal, peet_rt_cursor) && s->signal.end - peet_rt_cursor >= 2) {
            peet_rt_cursor[1] = (uint64_t)number;
            peet_rt_cursor[0] = raw_event_key(PEET_EV_signal_exit, 0);
            s->signal_end = peet_rt_cursor + 2;
        } else {
            s->signal_end = signal_end; /* all of it, or nothing */
            s->lost = true;
        }
    }
    if (!s->over) {
        s->now = now;
        peet_rt_cursor = cursor;
        s->off = off;
    }
    s->depth = depth;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    uint64_t handler = RT_ADDR(wish[number].sa_handler);

    if (peet_rt_is_for_later(number))
        return;
    if (handler == RT_ADDR(SIG_DFL) || handler == RT_ADDR(SIG_IGN))
        return; /* it was taken away at this moment */
    if (peet_rt_has_cursor())
        run_handler(number, info, context);
    else
        call_handler(number, info, context);
}

void peet_rt_signals_append(void)
{
    struct rt_self *s = &peet_rt_self;
    size_t n = (size_t)(s->signal_end - s->signal.start);

    if (s->now.end - peet_rt_cursor < (ptrdiff_t)n + 3)
        peet_rt_turn(peet_rt_cursor, 0);
    uint64_t *to = peet_rt_cursor;
    for (size_t i = 0; i < n; i++)
        to[i] = s->signal.start[i];
    to += n;
    if (s->lost) {
        to[0] = raw_event_key(PEET_EV_gap, 0);
        to[1] = to[2] = 0;
        to += 3;
    }
    s->lost = false;
    s->signal_end = s->signal.start;
    peet_rt_cursor = to;
}

/* ---- SIGSEGV ---- */

/* The word at the beginning of a block is the address of its schema entry: u32, i32, u16, u16, u32 flags. */
static bool is_carried(uint64_t key)
{
    return key == 0 || key >> 63 || (((const uint32_t *)(uintptr_t)key)[3] & RAW_SP_IN_REGISTER);
}

/* The buffer of the calling thread is full, in the middle of a block at `from`, that began with %rsp as it is in `stack`: where
 * the block goes on. */
static uint64_t *next_buffer(uint64_t *from, uint64_t stack, uint64_t r14, uint64_t *rip)
{
    struct rt_self *s = &peet_rt_self;
    uint64_t *end = s->now.end, *at;
    uint64_t r15, block[RAW_MAX_WORDS + 1];
    size_t n = (size_t)(end - from);

    for (size_t i = 0; i < n; i++)
        block[i] = from[i];
    peet_rt_turn(from, stack);
    if (s->wish && s->handlers == 0 && peet_rt_off_at(block, n, r14, rip, &r15))
        return (uint64_t *)(uintptr_t)r15;
    if (s->signal_end != s->signal.start && s->handlers == 0 && n > 0 && !is_carried(block[0]))
        peet_rt_signals_append();
    at = peet_rt_cursor;
    for (size_t i = 0; i < n; i++)
        at[i] = block[i];
    return at;
}

/* Behind the handler, for a host may run somebody else meanwhile. */
static void next_buffer_later(struct rt_registers *r)
{
    r->r15 = RT_ADDR(next_buffer((uint64_t *)(uintptr_t)r->r15, RT_ADDR(r + 1) + RED_ZONE, r->r14, &r->rip));
}

/* Instrumented code with a counter in its register, which has come back from code that counts. */
static bool is_counter(const char *fault, ucontext_t *u)
{
    greg_t *r = u->uc_mcontext.gregs;
    uint64_t counter = (uint64_t)r[REG_R15], other;

    if (!peet_rt_self.off || peet_rt_self.handlers > 0 || RT_ADDR(fault) != counter)
        return false;
    other = peet_rt_other_copy((uint64_t)r[REG_RIP], (uint64_t)r[REG_R14]);
    if ((int64_t)counter < 0 && other)
        r[REG_RIP] = (greg_t)other;
    else if (peet_rt_inside)
        peet_rt_detour(u, peet_rt_come_on);
    else
        r[REG_R15] = (greg_t)peet_rt_come_on_at(counter, (uint64_t)r[REG_RSP]);
    return true;
}

static bool is_own(siginfo_t *info, ucontext_t *u)
{
    struct rt_self *s = &peet_rt_self;
    greg_t *r15 = &u->uc_mcontext.gregs[REG_R15];
    char *fault = info->si_addr;

    if (info->si_code != SEGV_MAPERR && info->si_code != SEGV_ACCERR)
        return false;
    if (is_counter(fault, u))
        return true;
    if (!peet_rt_has_cursor()) { /* a thread that came into being behind our back, at its first instrumented block */
        if (*r15 != 0 || RT_ADDR(fault) >= RAW_GUARD)
            return false;
        peet_rt_begin(peet_rt_take_place(0, 0, peet_rt_process()));
        *r15 = (greg_t)RT_ADDR(peet_rt_cursor);
        return true;
    }
    uint64_t *from = (uint64_t *)(uintptr_t)*r15;
    if (!is_in(&s->now, from) || s->now.end - from > RAW_MAX_WORDS || fault < (char *)s->now.end
        || fault >= (char *)s->now.end + RAW_GUARD)
        return false;
    if (peet_rt_inside && s->handlers == 0)
        peet_rt_detour(u, next_buffer_later);
    else
        *r15 = (greg_t)RT_ADDR(next_buffer(from, (uint64_t)u->uc_mcontext.gregs[REG_RSP],
                                           (uint64_t)u->uc_mcontext.gregs[REG_R14],
                                           (uint64_t *)&u->uc_mcontext.gregs[REG_RIP]));
    return true;
}

/* What nobody handles ends the program, when it happens again; what it has said until then is read. */
static void end_by(int number, const siginfo_t *info, const ucontext_t *u)
{
    struct sigaction real = { .sa_handler = SIG_DFL };

    if (!peet_rt_is_machine() && peet_rt_has_cursor() && peet_rt_self.handlers == 0) {
        peet_rt_cursor = live_cursor(u);
        if (peet_rt_inside)
            peet_rt_tell_end(PEET_END_SIGNAL, (uint32_t)number);
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
    uint64_t handler = RT_ADDR(wish[SIGSEGV].sa_handler);

    bool is_ours = peet_rt_is_machine(); /* a mistake of ours */
    if (!is_ours && is_own(info, u))
        return;
    if (!is_ours && handler != RT_ADDR(SIG_DFL) && handler != RT_ADDR(SIG_IGN)) {
        int flags = wish[SIGSEGV].sa_flags;
        on_signal(number, info, context);
        if (flags & (int)SA_RESETHAND)
            wish[SIGSEGV].sa_handler = SIG_DFL;
        return;
    }
    end_by(number, info, u);
}

/* Somewhere an instruction stands that the processor does not know. */
static void on_unknown(int number, siginfo_t *info, void *context)
{
    uint64_t handler = RT_ADDR(wish[number].sa_handler);

    if (peet_rt_is_trap(context))
        return;
    if (handler != RT_ADDR(SIG_DFL) && handler != RT_ADDR(SIG_IGN))
        on_signal(number, info, context);
    else
        end_by(number, info, context);
}

/* Something else that tells of a mistake, and that the program does not handle. */
static void on_mistake(int number, siginfo_t *info, void *context)
{
    end_by(number, info, context);
}

void peet_rt_traps_begin(void)
{
    struct sigaction own = { .sa_sigaction = on_unknown, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };

    RT_REAL(sigaction)(SIGILL, &own, &wish[SIGILL]);
    own.sa_sigaction = on_mistake;
    RT_REAL(sigaction)(SIGFPE, &own, &wish[SIGFPE]);
    RT_REAL(sigaction)(SIGBUS, &own, &wish[SIGBUS]);
}

void peet_rt_signals_begin(void)
{
    struct sigaction own = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };

    __builtin_memset(&own.sa_mask, 0xff, sizeof own.sa_mask);
    sigdelset(&own.sa_mask, SIGSEGV);
    RT_REAL(sigaction)(SIGSEGV, &own, &wish[SIGSEGV]);
    sigset_t segv;
    sigemptyset(&segv);
    sigaddset(&segv, SIGSEGV);
    RT_REAL(sigprocmask)(SIG_UNBLOCK, &segv, NULL);
    own_stack.ss_flags = SS_DISABLE;
}

/* ---- what the program asks for ---- */

RT_WRAPPER int sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
    if (!RT_FOUND(sigaction))
        return -1;
    if (number <= 0 || number >= SIGNALS)
        return RT_REAL(sigaction)(number, new, old);
    struct sigaction before = wish[number], real;
    if (number == SIGSEGV || (number == SIGILL && peet_rt_inside)) {
        if (new)
            wish[number] = *new;
        if (old)
            *old = before;
        return 0;
    }
    bool wants_handler = new &&new->sa_handler != SIG_DFL &&new->sa_handler != SIG_IGN;
    if (new) {
        real = *new;
        sigdelset(&real.sa_mask, SIGSEGV);
        if (peet_rt_inside)
            sigdelset(&real.sa_mask, SIGILL);
        if (wants_handler) {
            real.sa_sigaction = on_signal;
            real.sa_flags |= SA_SIGINFO;
            wish[number] = *new;
        }
    }
    struct sigaction was;
    int r = RT_REAL(sigaction)(number, new ? &real : NULL, &was);
    if (r < 0) {
        wish[number] = before;
        return r;
    }
    bool is_ours = (was.sa_flags & SA_SIGINFO) && (was.sa_sigaction == on_signal || was.sa_sigaction == on_mistake);
    if (old)
        *old = is_ours || was.sa_handler == peet_rt_on_end ? before : was;
    if (new && !wants_handler)
        wish[number] = *new;
    return r;
}

RT_WRAPPER sighandler_t signal(int number, sighandler_t handler)
{
    struct sigaction new = { .sa_handler = handler, .sa_flags = SA_RESTART }, old;

    sigemptyset(&new.sa_mask);
    return sigaction(number, &new, &old) < 0 ? SIG_ERR : old.sa_handler;
}

/* What signal is called in strict C, where handlers are for one time. */
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

/* What sigset sets it unblocks, too, unless it is told to hold it. */
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
    if (peet_rt_inside)
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

/* The runtime's stack stays, unless the program brings one. */
RT_WRAPPER int sigaltstack(const stack_t *new, stack_t *old)
{
    if (!RT_FOUND(sigaltstack))
        return -1;
    stack_t was;
    int r = RT_REAL(sigaltstack)(new && (new->ss_flags &SS_DISABLE) ? NULL : new, &was);
    if (r == 0 && old)
        *old = peet_rt_self.memory && (char *)was.ss_sp > peet_rt_self.memory
                       && (char *)was.ss_sp < peet_rt_self.memory + (1 << 24)
                   ? own_stack
                   : was;
    return r;
}

/* ---- leaving handlers ---- */

/* The stack pointer that a jump goes to, from glibc's way to keep it. */
static char *target_stack(const struct __jmp_buf_tag *buf)
{
    uint64_t kept = (uint64_t)buf->__jmpbuf[6], guard;

    __asm__("ror $17, %0\n\txor %%fs:0x30, %0" : "=r"(guard) : "0"(kept));
    return (char *)(uintptr_t)guard;
}

static void jump(const struct __jmp_buf_tag *buf, uint64_t site)
{
    struct rt_self *s = &peet_rt_self;
    char here, *to = target_stack(buf);

    if (!peet_rt_has_cursor())
        return;
    if (s->handlers > 0 && !(to >= &here && to < s->handler_frame)) {
        if (is_in(&s->signal, peet_rt_cursor))
            s->signal_end = peet_rt_cursor;
        else
            s->lost = true;
        s->handlers = 0;
        s->now = s->stream;
        peet_rt_cursor = s->interrupted;
        s->off = s->interrupted_off;
        for (uint64_t *p = peet_rt_cursor; !s->off && p < s->now.end && p < peet_rt_cursor + RAW_MAX_WORDS; p++)
            *p = 0;
    }
    if (s->waiting && to > (char *)s->waiting) { /* out of a function that nobody will be cancelled in any more */
        __pthread_unregister_cancel(s->waiting);
        s->waiting = NULL;
    }
    s->depth = 0;
    RT_EVENT(jump, site, 0);
}

RT_WRAPPER void longjmp(struct __jmp_buf_tag buf[1], int value)
{
    jump(buf, RT_SITE);
    RT_REAL(longjmp)(buf, value);
    __builtin_unreachable();
}

RT_WRAPPER void _longjmp(struct __jmp_buf_tag buf[1], int value)
{
    jump(buf, RT_SITE);
    RT_REAL(_longjmp)(buf, value);
    __builtin_unreachable();
}

RT_WRAPPER void __longjmp_chk(struct __jmp_buf_tag buf[1], int value)
{
    jump(buf, RT_SITE);
    RT_REAL(__longjmp_chk)(buf, value);
    __builtin_unreachable();
}

RT_WRAPPER void siglongjmp(sigjmp_buf buf, int value)
{
    jump(buf, RT_SITE);
    RT_REAL(siglongjmp)(buf, value);
    __builtin_unreachable();
}
