/* SPDX-License-Identifier: MIT */
/* Stops of threads: the meaning of each, and the action.
 *
 * After PTRACE_SINGLESTEP a thread stops with SIGTRAP when it has executed one instruction, or one element of a repeated one. The signal's code is
 * TRAP_TRACE then, after a system call TRAP_BRKPT. It is SIGTRAP when a handler was entered and nothing was executed. With any other code it
 * is a signal of the program. A stop for another signal comes before the pending instruction, or in place of it if it faults.
 *
 * A system call that a signal interrupts has an internal result (ERESTARTSYS and kin) until the kernel decides: it returns EINTR, or is
 * restarted, after the handler if there is one. A restarted call is recorded once, where it is restarted.
 *
 * Leaves out: a system call or repeated instruction that SIGKILL or the end of its process interrupts; SIGTRAP sent by other processes, which the
 * kernel drops while a step's is pending; code in the vsyscall page, which the kernel emulates. A critical section of rseq never ends under
 * single-stepping, because each stop restarts it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/step/step.h"

/* Internal results of interrupted system calls, which programs never see. */
enum { ERESTARTSYS = 512, ERESTARTNOHAND = 514, ERESTART_RESTARTBLOCK = 516 };

/* ---- resume ---- */

/* If the thread has ended in between, the stop for its end comes next. */
void tracee_resume(struct tracee *t)
{
    t->delivered = t->deliver;
    t->deliver = 0;
    t->running = true;
    ptrace(PTRACE_SINGLESTEP, t->tid, 0, t->delivered);
}

static void read_values(struct stepper *r, struct tracee *t, bool is_before)
{
    for (unsigned i = 0; r->layout.record_values && i < t->pending->memories; i++) {
        const struct x86_memory *m = &t->pending->memory[i];
        bool is_one = m->form == X86_PLAIN || m->form == X86_BIT || m->form == X86_BYTE;
        if ((m->kind == PEET_STORE) == is_before || m->size > sizeof t->moment.value[i] || !is_one)
            continue;
        memset(t->moment.value[i], 0, sizeof t->moment.value[i]);
        memory_read(t->process, x86_address(m, &t->before), t->moment.value[i], m->size);
    }
}

/* Makes the instruction at which the thread is the pending one. */
static int stop_prepare(struct stepper *r, struct tracee *t)
{
    int result = code_at(r, t->process, t->before.rip, &t->pending);

    if (result < 0)
        return result;
    t->moment.count = 0;
    if (t->pending->needs_vectors) {
        if (!t->vectors)
            t->vectors = mem_alloc(1, sizeof *t->vectors);
        t->moment.vectors = t->vectors;
        vectors_read(t->tid, t->vectors);
    }
    read_values(r, t, true);
    return 0;
}

int tracee_go(struct stepper *r, struct tracee *t)
{
    int64_t call;
    bool is_64;

    if (registers_read(t->tid, &t->before, &call, &is_64) < 0) {
        t->running = true; /* it is ending */
        return 0;
    }
    if (!is_64) {
        r->ret->left_64_bit++;
        release_thread(r, t);
        return 0;
    }
    int result = stop_prepare(r, t);
    if (result == 0)
        tracee_resume(t);
    return result;
}

/* ---- executed ---- */

static bool is_undecided(int64_t result)
{
    return (-result >= ERESTARTSYS && -result <= ERESTARTNOHAND) || -result == ERESTART_RESTARTBLOCK;
}

static uint64_t elements_done(const struct tracee *t, uint64_t rcx)
{
    uint64_t n = t->before.gpr[X86_RCX] - rcx;

    return t->pending->narrow_count ? (uint32_t)n : n;
}

static unsigned variant_of(const struct tracee *t)
{
    return t->pending->is_repeated && t->before.flags & X86_FLAG_DIRECTION ? X86_DOWN : 0;
}

/* The pending system call was executed. */
static int commit_call(struct stepper *r, struct tracee *t, int64_t result)
{
    uint64_t site = t->pending->insn.addr;
    int done = flow_commit(r, t, 0);

    return done < 0 ? done : call_done(r, t, site, result);
}

/* Clears the trap flag, by which the thread is stepped, in a pushed flags register. */
static void hide_trap_flag(const struct tracee *t, const struct x86_state *after)
{
    uint64_t at = after->gpr[X86_RSP] + 1;
    uint8_t byte;

    if (t->before.flags & X86_FLAG_TRAP || memory_read(t->process, at, &byte, 1) != 1)
        return;
    byte &= (uint8_t) ~(X86_FLAG_TRAP >> 8);
    memory_write(t->process, at, &byte, 1);
}

/* The pending instruction was executed, and is not to be repeated. */
static int stop_commit(struct stepper *r, struct tracee *t, const struct x86_state *after)
{
    const struct x86_insn *insn = t->pending;
    int done;

    if (insn->special == X86_SYSCALL) {
        bool ends_handler = t->before.gpr[X86_RAX] == SYS_rt_sigreturn;
        done = commit_call(r, t, ends_handler ? 0 : (int64_t)after->gpr[X86_RAX]);
        if (ends_handler)
            return done < 0 ? done : flow_exit_signal(r, t, after);
    } else {
        if (insn->is_repeated)
            t->moment.count = elements_done(t, after->gpr[X86_RCX]);
        if (insn->special == X86_PUSHF)
            hide_trap_flag(t, after);
        read_values(r, t, false);
        done = flow_commit(r, t, variant_of(t));
    }
    return done < 0 ? done : flow_arrive(r, t, insn, after);
}

static int take_step(struct stepper *r, struct tracee *t, const struct x86_state *after, int64_t call)
{
    const struct x86_insn *insn = t->pending;
    bool repeats = insn && insn->is_repeated && after->rip == insn->insn.addr;

    if (repeats || (insn && insn->special == X86_SYSCALL && call >= 0 && is_undecided((int64_t)after->gpr[X86_RAX]))) {
        tracee_resume(t);
        return 0;
    }
    int done = insn ? stop_commit(r, t, after) : 0;
    if (done < 0)
        return done;
    if (r->config->max && r->executed >= r->config->max) {
        r->ret->stopped = true;
        return 0;
    }
    return tracee_go(r, t);
}

/* ---- signals ---- */

/* A handler was entered: the signal frame on the stack has the interrupted instruction. */
static int take_handler(struct stepper *r, struct tracee *t, const struct x86_state *after)
{
    greg_t saved[NGREG] = { 0 };
    uint64_t frame = after->gpr[X86_RSP] + sizeof(void *); /* a ucontext_t, after the return address */
    const struct x86_insn *insn = t->pending;
    int done = 0;

    memory_read(t->process, frame + offsetof(ucontext_t, uc_mcontext.gregs), saved, sizeof saved);
    uint64_t resume_at = (uint64_t)saved[REG_RIP];
    if (insn && insn->special == X86_SYSCALL && resume_at == insn->insn.addr + insn->insn.length) {
        done = commit_call(r, t, saved[REG_RAX]);
    } else if (insn && insn->is_repeated && resume_at == insn->insn.addr) {
        t->moment.count = elements_done(t, (uint64_t)saved[REG_RCX]);
        if (t->moment.count)
            done = flow_commit(r, t, variant_of(t) | X86_INTERRUPTED);
    }
    t->pending = NULL;
    if (done == 0)
        done = flow_enter_signal(r, t, t->delivered, resume_at, after);
    return done < 0 ? done : tracee_go(r, t);
}

/* Delivers a signal. If the program survives it and has no handler, the pending instruction is executed next. */
static int take_signal(struct tracee *t, int signal)
{
    struct x86_state now;
    int64_t call;
    bool is_64;

    if (t->pending && t->pending->is_repeated && registers_read(t->tid, &now, &call, &is_64) == 0)
        t->moment.count = elements_done(t, now.gpr[X86_RCX]); /* in case the signal ends it */
    t->deliver = signal;
    tracee_resume(t);
    return 0;
}

static int take_trap(struct stepper *r, struct tracee *t)
{
    struct x86_state after;
    siginfo_t info;
    int64_t call;
    bool is_64;
    int done = 0;

    if (ptrace(PTRACE_GETSIGINFO, t->tid, 0, &info) < 0 || registers_read(t->tid, &after, &call, &is_64) < 0) {
        t->running = true;
        return 0;
    }
    if (info.si_code == SIGTRAP)
        return take_handler(r, t, &after);
    bool is_own = t->pending && t->pending->special == X86_TRAP_SIGNAL;
    if ((info.si_code == TRAP_TRACE || info.si_code == TRAP_BRKPT) && !is_own)
        return take_step(r, t, &after, call);
    if (is_own && after.rip != t->pending->insn.addr && (done = stop_commit(r, t, &after)) == 0)
        done = registers_read(t->tid, &t->before, &call, &is_64) < 0 ? 0 : stop_prepare(r, t);
    return done < 0 ? done : take_signal(t, SIGTRAP);
}

/* ---- births and deaths ---- */

static pid_t group_of(pid_t tid)
{
    char path[64], line[256];
    int group = 0;

    snprintf(path, sizeof path, "/proc/%d/status", (int)tid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "Tgid: %d", &group) != 1)
        ;
    if (f)
        fclose(f);
    return group;
}

/* Adds a thread or a process that t has created. */
static int make_child(struct stepper *r, struct tracee *t, pid_t tid, struct tracee **ret)
{
    bool is_thread = group_of(tid) == t->process->pid;
    struct tracee_parent family = { t->process, true, t->id, t->children++ };
    int done;

    if (!is_thread) {
        if ((done = process_new(r, tid, t->process->id, &family.process)) < 0)
            return done;
        family.process->brk = t->process->brk;
    }
    if ((done = tracee_new(r, tid, family, ret)) < 0)
        return done;
    (*ret)->running = true;
    if (is_thread)
        return PUT_EVENT(r, *ret, thread_start, 0, t->id);
    tracee_inherit(*ret, t);
    return 0;
}

static int take_birth(struct stepper *r, struct tracee *t)
{
    unsigned long message;
    struct tracee *child;
    int done;

    if (ptrace(PTRACE_GETEVENTMSG, t->tid, 0, &message) < 0) {
        t->running = true;
        return 0;
    }
    if ((done = make_child(r, t, (pid_t)message, &child)) < 0)
        return done;
    uint64_t site = t->pending ? t->pending->insn.addr : 0;
    bool is_thread = child->process == t->process;
    uint32_t number = is_thread ? child->id : child->process->id;
    if (t->pending && (done = commit_call(r, t, number)) < 0)
        return done;
    done = is_thread ? PUT_EVENT(r, t, thread_create, site, number) : PUT_EVENT(r, t, fork, site, number);
    if (done < 0)
        return done;
    tracee_resume(t);
    if (map_find(&r->early, message, 0)) {
        map_remove(&r->early, message, 0);
        return tracee_go(r, child);
    }
    return 0;
}

/* Ends all threads of a process but one, which has called exec: the kernel has ended the others without a stop. */
static int end_others(struct stepper *r, struct tracee_process *p, const struct tracee *but)
{
    struct tracee **t;
    uint64_t tid;
    uint32_t tag;
    int done = 0;

    for (size_t at = 0; done == 0 && (t = map_next(&r->threads, &at, &tid, &tag));)
        if ((*t)->process == p && *t != but) {
            done = tracee_end(r, *t, PEET_END_EXEC, 0);
            at = 0; /* the table has changed */
        }
    return done;
}

static int put_exec(struct stepper *r, struct tracee *t, pid_t tid)
{
    uint64_t site = t->pending ? t->pending->insn.addr : 0;
    char *program = process_program(tid);
    uint32_t string;
    int done = t->pending ? commit_call(r, t, 0) : 0;

    if (done == 0)
        done = peet_writer_string(r->writer, program, &string, r->err);
    if (done == 0)
        done = PUT_EVENT(r, t, exec, site, string);
    free(program);
    return done;
}

/* The process has become another program: its only thread has now the number of the process. */
static int take_exec(struct stepper *r, pid_t tid)
{
    unsigned long message;
    struct tracee *t;
    struct tracee_process *p;
    int done;

    if (ptrace(PTRACE_GETEVENTMSG, tid, 0, &message) < 0)
        return 0; /* it has ended */
    if (!(t = tracee_find(r, (pid_t)message))) {
        ptrace(PTRACE_DETACH, tid, 0, 0); /* an unknown thread */
        return 0;
    }
    struct tracee_parent family = { NULL, true, t->id, t->children };
    uint32_t parent = t->process->id;
    if ((done = end_others(r, t->process, t)) < 0 || (done = put_exec(r, t, tid)) < 0
        || (done = tracee_end(r, t, PEET_END_EXEC, 0)) < 0 || (done = process_new(r, tid, parent, &p)) < 0)
        return done;
    family.process = p;
    if ((done = tracee_new(r, tid, family, &t)) == 0)
        tracee_resume(t);
    return done;
}

static bool is_execing(const struct stepper *r, const struct tracee_process *p)
{
    struct tracee **t;
    uint64_t tid;
    uint32_t tag;

    for (size_t at = 0; (t = map_next(&r->threads, &at, &tid, &tag));)
        if ((*t)->process == p && (*t)->pending && (*t)->pending->special == X86_SYSCALL
            && ((*t)->before.gpr[X86_RAX] == SYS_execve || (*t)->before.gpr[X86_RAX] == SYS_execveat))
            return true;
    return false;
}

static int take_death(struct stepper *r, struct tracee *t, int status)
{
    uint64_t call = t->pending && t->pending->special == X86_SYSCALL ? t->before.gpr[X86_RAX] : UINT64_MAX;
    int done = 0;

    if (WIFEXITED(status) && (call == SYS_exit || call == SYS_exit_group))
        done = commit_call(r, t, 0);
    else if (t->pending && t->pending->is_repeated && t->moment.count)
        done = flow_commit(r, t, variant_of(t) | X86_INTERRUPTED);
    if (done < 0)
        return done;
    if (WIFEXITED(status) && call == SYS_exit) /* the status of the first thread is that of the process */
        return tracee_end(r, t, PEET_END_EXIT, t->before.gpr[X86_RDI] & 0xff);
    if (WIFEXITED(status))
        return tracee_end(r, t, PEET_END_PROCESS_EXIT, (uint64_t)WEXITSTATUS(status));
    if (is_execing(r, t->process))
        return tracee_end(r, t, PEET_END_EXEC, 0);
    return tracee_end(r, t, PEET_END_SIGNAL, (uint64_t)WTERMSIG(status));
}

/* ---- all stops ---- */

/* PTRACE_EVENT_STOP: of a new thread, of one that was woken, or of one that SIGSTOP and kin stop until SIGCONT. */
static int take_pause(struct stepper *r, struct tracee *t, int signal)
{
    if (signal != SIGTRAP) {
        t->running = true;
        ptrace(PTRACE_LISTEN, t->tid, 0, 0);
        return 0;
    }
    if (!t->pending)
        return tracee_go(r, t);
    tracee_resume(t);
    return 0;
}

static int take_stranger(struct stepper *r, struct tracee_stop stop)
{
    r->early.value_size = sizeof(int);
    if (!WIFSTOPPED(stop.status)) {
        map_remove(&r->early, (uint64_t)stop.tid, 0);
        return 0;
    }
    return map_put(&r->early, (uint64_t)stop.tid, 0) ? 0 : err_set(r->err, PEET_ERR_MEMORY, "no memory for a thread");
}

int stop_take(struct stepper *r, struct tracee_stop stop)
{
    struct tracee *t = tracee_find(r, stop.tid);

    if (stop.tid == r->root && !WIFSTOPPED(stop.status)) {
        r->root_ended = true;
        r->ret->status = stop.status;
    }
    if (WIFSTOPPED(stop.status) && stop.status >> 16 == PTRACE_EVENT_EXEC)
        return take_exec(r, stop.tid);
    if (!t)
        return take_stranger(r, stop);
    t->running = false;
    if (!WIFSTOPPED(stop.status))
        return take_death(r, t, stop.status);
    switch (stop.status >> 16) {
    case 0: return WSTOPSIG(stop.status) == SIGTRAP ? take_trap(r, t) : take_signal(t, WSTOPSIG(stop.status));
    case PTRACE_EVENT_CLONE:
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK: return take_birth(r, t);
    case PTRACE_EVENT_STOP: return take_pause(r, t, WSTOPSIG(stop.status));
    default: tracee_resume(t); return 0;
    }
}
