/* SPDX-License-Identifier: MIT */
/* The table of threads: who has begun, whose buffers are full, who has ended. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/live/live.h"

enum { WORDS = RAW_BUFFER_BYTES / 8 };

uint64_t *live_buffer(struct producer_state *s, uint32_t place, unsigned i)
{
    return (uint64_t *)(void *)(s->data + ((size_t)place * RAW_BUFFERS + i) * RAW_BUFFER_BYTES);
}

void live_stop(struct producer_state *s, int code)
{
    if (!s->failed)
        s->failed = code;
    atomic_store(&s->header->stop, 1);
    for (uint32_t i = 0; i < atomic_load(&s->header->places); i++) { /* nobody is to wait */
        struct raw_thread *t = &s->header->thread[i];
        syscall(SYS_futex, &t->seen, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
        for (unsigned k = 0; k < RAW_BUFFERS; k++)
            syscall(SYS_futex, &t->buffer[k].state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    }
}

/* ---- processes ---- */

/* The stack grows by itself, down to its limit or to what lies below it. */
static void find_stack(struct live_process *p, const struct mappings *m)
{
    for (size_t i = 0; i < m->count; i++) {
        struct rlimit limit;
        if (strcmp(m->at[i].name, "[stack]") != 0)
            continue;
        p->stack_high = m->at[i].end;
        p->stack_low = i ? m->at[i - 1].end : 0;
        if (prlimit(p->pid, RLIMIT_STACK, NULL, &limit) == 0 && limit.rlim_cur < p->stack_high - p->stack_low)
            p->stack_low = p->stack_high - limit.rlim_cur;
    }
}

/* What we share with the program is not its memory. */
static void leave_out_buffers(struct mappings *m)
{
    size_t kept = 0;

    for (size_t i = 0; i < m->count; i++)
        if (strncmp(m->at[i].name, LIVE_MEMORY, sizeof LIVE_MEMORY - 1) != 0)
            m->at[kept++] = m->at[i];
    m->count = kept;
}

static int tell_level(struct producer_state *s, enum level level)
{
    enum level most = s->config->level && s->config->level < level ? s->config->level : level;

    s->built |= 1u << level;
    if (s->levels >> most & 1)
        return 0;
    s->levels |= 1u << most;
    return peet_writer_meta(s->writer, "level", level_name(most), s->err);
}

/* What the trace will hold is known before it does, so that one without its end tells it, too. */
static int tell_levels(struct producer_state *s, const struct live_process *p)
{
    unsigned levels = p->modules ? 0 : 1u << LEVEL_events;
    int r = 0;

    for (size_t i = 0; i < p->modules; i++)
        levels |= p->module[i]->levels;
    for (int i = LEVEL_events; r == 0 && i < LEVEL_END; i++)
        if (levels >> i & 1)
            r = tell_level(s, (enum level)i);
    return r;
}

static int scan(struct producer_state *s, struct live_process *p, bool is_new)
{
    struct mappings m;

    if (mappings_read(p->pid, &m, s->err) < 0)
        return 0; /* it is gone */
    if (is_new)
        find_stack(p, &m);
    leave_out_buffers(&m);
    struct module_scan tell = { p->pid, p->number, &m, is_new };
    int r = modules_tell(&p->told, &tell, s->writer, s->err);
    if (r == 0)
        r = code_scan(&s->code, p->pid, &m, &p->module, &p->modules, s->err);
    mappings_release(&m);
    return r < 0 ? r : tell_levels(s, p);
}

static struct live_process *find_process(struct producer_state *s, uint32_t number)
{
    for (size_t i = s->processes; i-- > 0;)
        if (s->process[i]->number == number)
            return s->process[i];
    return NULL;
}

static uint32_t process_of_thread(struct producer_state *s, uint32_t number)
{
    for (uint32_t i = 0; i < RAW_THREADS; i++)
        if (s->thread[i].number == number)
            return s->thread[i].process->number;
    return 0;
}

static int add_process(struct producer_state *s, const struct raw_thread *t)
{
    struct live_process *p = mem_alloc(1, sizeof *p);
    char *program = process_program(t->pid), *command = process_command(t->pid);
    uint32_t parent = t->parent != t->number ? process_of_thread(s, t->parent) : 0;

    p->number = t->number;
    p->pid = t->pid;
    s->process = mem_room(s->process, s->processes, sizeof *s->process);
    s->process[s->processes++] = p;
    s->ret->processes++;
    struct peet_process defined = { p->number, parent ? parent : p->number, program, command };
    int r = peet_writer_process(s->writer, &defined, s->err);
    free(program);
    free(command);
    return r < 0 ? r : scan(s, p, true);
}

/* ---- from words to items ---- */

static struct live_module *find_module(struct live_thread *t, uint64_t key)
{
    const struct live_process *p = t->process;

    for (size_t i = 0; i < p->modules; i++)
        if (key >= p->module[i]->schema && key < p->module[i]->schema_end)
            return t->last = p->module[i];
    return NULL;
}

int live_find(struct live_thread *t, uint64_t key, struct live_item **ret, struct peet_err *err)
{
    struct producer_state *s = t->recorder;
    struct live_module *m = t->last;
    int r = 0;

    if (!m || key < m->schema || key >= m->schema_end)
        m = find_module(t, key);
    if (!m && (r = scan(s, t->process, false)) == 0) /* a library may have been loaded since */
        m = find_module(t, key);
    if (r < 0)
        return r;
    if (!m || (key - m->schema) % RAW_ALIGN)
        return err_set(err, PEET_ERR_FORMAT, "0x%016" PRIx64 " is the key of no block", key);
    *ret = &m->items[(key - m->schema) / RAW_ALIGN];
    return (*ret)->node ? 0 : code_plan(&s->code, m, key, err);
}

static int item_of_key(void *context, uint64_t key, uint32_t *ret_item, struct peet_err *err)
{
    struct live_thread *t = context;
    struct live_code *c = &t->recorder->code;
    struct live_item *item;
    uint64_t part = c->level == LEVEL_calls ? key & (LIVE_ENTRY | LIVE_LAST) : 0;

    if (key & RAW_EVENT)
        return code_event(c, key, ret_item, err);
    int r = live_find(t, key - part, &item, err);
    if (r == 0 && !item->is_defined)
        r = code_define(c, t->last, key - part, item, err);
    if (r == 0)
        *ret_item = part == LIVE_ENTRY ? item->entry : item->item;
    return r;
}

static const struct live_item *find_known(struct live_thread *t, uint64_t key)
{
    const struct live_module *m = t->last;

    if (!m || key < m->schema || key >= m->schema_end)
        m = find_module(t, key);
    return &m->items[(key - m->schema) / RAW_ALIGN];
}

/* Loops left the registers that count: their trips follow. */
static void count_trips(void *context, uint64_t key, uint64_t *slots)
{
    x86_path_settle(find_known(context, key)->node, slots);
}

static const struct peet_trips *trips_of(void *context, uint64_t key)
{
    const struct live_item *item = find_known(context, key);

    return item->is_simple ? &item->trips : NULL;
}

/* How many words of a buffer in which a program was interrupted are whole: up to the first key 0, and not the last block,
 * which may lack slots. */
static size_t whole_words(struct live_thread *t, const uint64_t *words)
{
    size_t i = 0;

    while (i < WORDS && words[i]) {
        struct live_item *item;
        struct peet_err own; /* what makes no sense was about to be written over */
        bool is_event = words[i] & RAW_EVENT;
        if (!is_event && live_find(t, words[i], &item, &own) < 0)
            break;
        int slots = is_event ? peet_event_arity((uint32_t)(words[i] >> 48 & 0x7fff)) : item->slots;
        if (slots < 0 || WORDS - i <= (size_t)slots)
            break;
        size_t next = i + (size_t)slots + 1;
        if (!is_event && (next == WORDS || !words[next]))
            break;
        i = next;
    }
    return i;
}

static int tell_strings(struct producer_state *s)
{
    uint32_t there = atomic_load_explicit(&s->header->strings, memory_order_acquire), number;
    int r = 0;

    for (; r == 0 && s->strings < there && s->strings < RAW_STRINGS; s->strings++) {
        char text[RAW_STRING_BYTES];
        memcpy(text, s->header->string[s->strings], sizeof text);
        text[sizeof text - 1] = '\0';
        r = peet_writer_string(s->writer, text, &number, s->err);
        if (r == 0 && number != s->strings + 1)
            r = err_set(s->err, PEET_ERR_FORMAT, "the program has two strings '%s'", text);
    }
    return r;
}

int live_put(struct live_thread *t, uint64_t *words, size_t n, struct peet_err *err)
{
    bool strips = t->recorder->code.layout.strips; /* then trips have been counted */
    const struct peet_names names = {
        .item = item_of_key, .context = t, .loop = strips ? NULL : count_trips, .trips = strips ? NULL : trips_of
    };

    return peet_stream_put_named(t->stream, words, n, &names, err);
}

static void put(struct producer_state *s, struct live_thread *t, uint64_t *words, size_t n)
{
    struct peet_totals totals;

    if (s->failed || s->ret->stopped)
        return;
    int r = tell_strings(s);
    if (r == 0)
        r = filter_is_wanted(s) ? filter_put(t, words, n, s->err) : live_put(t, words, n, s->err);
    t->began |= n > 0;
    if (r < 0) {
        live_stop(s, r);
        return;
    }
    peet_writer_totals(s->writer, &totals);
    if (s->config->progress)
        progress_at(s->config->progress, totals.instructions);
    if (s->config->max && totals.instructions >= s->config->max) {
        s->ret->stopped = true;
        live_stop(s, 0);
    }
}

static void put_event(struct producer_state *s, struct live_thread *t, unsigned kind, const uint64_t *arg)
{
    uint32_t item;

    if (s->failed)
        return;
    int r = code_event(&s->code, raw_event_key(kind, 0), &item, s->err);
    if (r == 0)
        r = peet_stream_put(t->stream, item, arg, s->err);
    if (r < 0)
        live_stop(s, r);
}

/* ---- the life of a thread ---- */

/* How a process ended of which we heard; false: not yet. */
static bool find_status(struct producer_state *s, pid_t pid, int *ret)
{
    bool found = false;

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->ended_count; i++)
        if (s->ended[i].pid == pid) {
            *ret = s->ended[i].status;
            found = true;
        }
    pthread_mutex_unlock(&s->lock);
    return found;
}

static void close_thread(struct producer_state *s, uint32_t place)
{
    struct live_thread *t = &s->thread[place];
    const struct raw_thread *raw = &s->header->thread[place];
    uint64_t end[2] = { PEET_END_STOPPED, 0 };
    int status;

    if (raw->how) {
        end[0] = raw->how - 1;
        end[1] = raw->code;
    } else if (find_status(s, t->process->pid, &status)) {
        end[0] = WIFSIGNALED(status) ? PEET_END_SIGNAL : PEET_END_PROCESS_EXIT;
        end[1] = (uint64_t)(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    if (s->ret->stopped) {
        end[0] = PEET_END_STOPPED;
        end[1] = 0;
    }
    if (!t->began && raw->parent != raw->number)
        put_event(s, t, PEET_EV_thread_start, (uint64_t[]){ raw->parent });
    if (!s->failed && filter_is_wanted(s) && filter_end(t, s->err) < 0)
        live_stop(s, s->err->code);
    if (end[0] == PEET_END_EXEC)
        put_event(s, t, PEET_EV_exec, (uint64_t[]){ raw->program });
    put_event(s, t, PEET_EV_thread_end, end);
    struct peet_err own; /* what fails now has failed before, or is told when the writer is closed */
    int r = peet_stream_close(t->stream, s->failed ? &own : s->err);
    if (r < 0)
        live_stop(s, r);
    filter_release(&t->filter);
    *t = (struct live_thread){ 0 };
}

/* The place is free again, and its buffers are zero. */
static void free_place(struct producer_state *s, uint32_t place)
{
    struct raw_thread *raw = &s->header->thread[place];
    size_t bytes = (size_t)RAW_BUFFERS * RAW_BUFFER_BYTES;

    if (fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, RAW_DATA_OFFSET + (off_t)((size_t)place * bytes),
                  (off_t)bytes)
        < 0)
        memset(live_buffer(s, place, 0), 0, bytes);
    for (unsigned i = 0; i < RAW_BUFFERS; i++)
        atomic_store(&raw->buffer[i].state, RAW_EMPTY);
    atomic_store(&raw->life, RAW_FREE);
}

/* Threads of the process that has become another one by exec are no more. */
static void end_former(struct producer_state *s, const struct raw_thread *now)
{
    for (uint32_t i = 0; i < RAW_THREADS; i++) {
        struct live_thread *t = &s->thread[i];
        if (!t->number || t->process->pid != now->pid || t->process->number == now->process)
            continue;
        close_thread(s, i);
        free_place(s, i);
    }
}

static void adopt(struct producer_state *s, uint32_t place)
{
    struct raw_thread *raw = &s->header->thread[place];
    struct live_thread *t = &s->thread[place];
    bool is_first = raw->process == raw->number;
    int r = 0;

    if (is_first && atomic_load(&raw->life) != RAW_TAKEN) {
        end_former(s, raw);
        r = s->failed ? 0 : add_process(s, raw);
    }
    struct live_process *p = find_process(s, raw->process);
    if (r == 0 && p && !s->failed) {
        struct peet_thread thread = { raw->number, p->number, is_first ? raw->number : raw->parent, raw->ordinal, "" };
        r = peet_stream_open(s->writer, &thread, &t->stream, s->err);
    }
    if (r < 0)
        live_stop(s, r);
    if (t->stream) {
        *t = (struct live_thread){ .number = raw->number, .recorder = s, .process = p, .stream = t->stream };
        s->ret->threads++;
        uint64_t low = is_first ? p->stack_low : raw->stack_low, high = is_first ? p->stack_high : raw->stack_high;
        put_event(s, t, PEET_EV_set_register, (uint64_t[]){ X86_FS_REGISTER, raw->thread_pointer });
        if (high > low && is_first)
            put_event(s, t, PEET_EV_map, (uint64_t[]){ low, high - low, 6 });
    }
    atomic_store(&raw->seen, 1);
    syscall(SYS_futex, &raw->seen, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Takes the next buffer, if it is full. */
static bool take(struct producer_state *s, uint32_t place)
{
    struct live_thread *t = &s->thread[place];
    struct raw_buffer *b = &s->header->thread[place].buffer[t->turn];

    if (atomic_load_explicit(&b->state, memory_order_acquire) != RAW_FULL)
        return false;
    uint32_t how = s->header->thread[place].how;
    if (how > 1 + PEET_END_EXIT && !t->process->ending) { /* the last chance to see what was loaded meanwhile */
        t->process->ending = true;
        if (!s->failed && scan(s, t->process, false) < 0)
            live_stop(s, s->err->code);
    }
    uint64_t *words = live_buffer(s, place, t->turn);
    size_t bytes = b->bytes < RAW_BUFFER_BYTES ? b->bytes : RAW_BUFFER_BYTES, wipe = bytes + RAW_MAX_WORDS * 8;
    put(s, t, words, bytes / 8);
    memset(words, 0, wipe < RAW_BUFFER_BYTES ? wipe : RAW_BUFFER_BYTES);
    atomic_store_explicit(&b->state, RAW_EMPTY, memory_order_release);
    syscall(SYS_futex, &b->state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    t->turn = (t->turn + 1) % RAW_BUFFERS;
    return true;
}

bool drain_all(struct producer_state *s)
{
    uint32_t places = atomic_load(&s->header->places);
    bool did = false;

    for (uint32_t i = 0; i < places && i < RAW_THREADS; i++) {
        struct raw_thread *raw = &s->header->thread[i];
        struct live_thread *t = &s->thread[i];
        uint32_t life = atomic_load(&raw->life);
        if (life != RAW_LIVE && life != RAW_ENDED)
            continue;
        if (!t->number && !atomic_load(&raw->seen)) {
            adopt(s, i);
            did = true;
        }
        if (t->number && take(s, i))
            did = true;
        else if (life == RAW_ENDED) {
            if (t->number)
                close_thread(s, i);
            free_place(s, i);
            did = true;
        }
    }
    return did;
}

/* ---- the end of processes ---- */

static bool is_zombie(pid_t pid)
{
    char path[64], text[512];

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end && name_end[1] == ' ' && (name_end[2] == 'Z' || name_end[2] == 'X');
}

static bool is_alive(struct producer_state *s, pid_t pid)
{
    int status;

    return !find_status(s, pid, &status) && (kill(pid, 0) == 0 || errno == EPERM) && !is_zombie(pid);
}

bool drain_anybody(struct producer_state *s)
{
    for (uint32_t i = 0; i < RAW_THREADS && i < atomic_load(&s->header->places); i++) {
        const struct raw_thread *raw = &s->header->thread[i];
        pid_t pid = s->thread[i].number                   ? s->thread[i].process->pid
                    : atomic_load(&raw->life) != RAW_FREE ? raw->pid
                                                          : 0;
        if (pid > 0 && is_alive(s, pid))
            return true;
    }
    return false;
}

void drain_rest(struct producer_state *s, bool all)
{
    while (drain_all(s))
        ;
    for (uint32_t i = 0; i < RAW_THREADS; i++) {
        struct live_thread *t = &s->thread[i];
        if (!t->number && atomic_load(&s->header->thread[i].life) == RAW_TAKEN)
            adopt(s, i); /* a thread that was not fast enough */
        if (!t->number || (!all && is_alive(s, t->process->pid)))
            continue;
        struct raw_buffer *b = &s->header->thread[i].buffer[t->turn];
        uint64_t *words = live_buffer(s, i, t->turn);
        if (atomic_load(&b->state) == RAW_FILLING && !s->failed)
            put(s, t, words, whole_words(t, words));
        close_thread(s, i);
        free_place(s, i);
    }
}

void drain_release(struct producer_state *s)
{
    for (size_t i = 0; i < s->processes; i++) {
        modules_release(&s->process[i]->told);
        free(s->process[i]->module);
        free(s->process[i]);
    }
    free(s->process);
}
