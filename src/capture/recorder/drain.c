/* SPDX-License-Identifier: MIT */
/* The loop's work on the table of threads: new threads, full buffers, ended threads. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "format/schema/schema_builder.h"
#include "base/mem.h"
#include "capture/recorder/live.h"

enum { WORDS = RAW_BUFFER_BYTES / 8 };

uint64_t *live_buffer(struct recorder *s, uint32_t entry, unsigned i)
{
    return (uint64_t *)(void *)(s->data + ((size_t)entry * RAW_BUFFERS + i) * RAW_BUFFER_BYTES);
}

void live_stop(struct recorder *s, int code)
{
    if (!s->failed)
        s->failed = code;
    atomic_store(&s->header->stop, 1);
    for (uint32_t i = 0; i < atomic_load(&s->header->entries_used); i++) { /* wakes all waiting threads */
        struct raw_thread *t = &s->header->thread[i];
        syscall(SYS_futex, &t->registered, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
        for (unsigned k = 0; k < RAW_BUFFERS; k++)
            syscall(SYS_futex, &t->buffer[k].state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    }
}

/* ---- words ---- */

/* Number of complete words in the buffer of a killed thread: up to the first key 0, without the last block, of which slots may be
 * missing. */
static size_t whole_words(struct live_thread *t, const uint64_t *words)
{
    size_t i = 0;

    while (i < WORDS && words[i]) {
        struct live_item *item;
        struct peet_err own; /* an invalid key: remains of an old record */
        bool is_event = words[i] & RAW_EVENT;
        if (!is_event && live_find(&t->reader, words[i], &item, &own) < 0)
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

int live_strings(struct recorder *s)
{
    uint32_t there = atomic_load_explicit(&s->header->strings, memory_order_acquire), number;
    int r = 0;

    for (; r == 0 && s->strings < there && s->strings < RAW_STRINGS; s->strings++) {
        char text[RAW_STRING_BYTES];
        memcpy(text, s->header->string[s->strings], sizeof text);
        text[sizeof text - 1] = '\0';
        r = schema_builder_string(s->schema, text, &number, s->err);
        if (r == 0 && number != s->strings + 1)
            r = err_set(s->err, PEET_ERR_FORMAT, "the program has two strings '%s'", text);
    }
    return r;
}

int live_put(struct live_thread *t, uint64_t *words, size_t n, struct peet_err *err)
{
    const struct peet_names names = live_names(&t->reader);

    return peet_stream_put_named(t->stream, words, n, &names, err);
}

/* ---- enough ---- */

static bool drain_is_alone(const struct live_thread *t)
{
    const struct recorder *s = t->recorder;

    for (uint32_t i = 0; i < RAW_THREADS && i < atomic_load(&s->header->entries_used); i++)
        if (&s->thread[i] != t && atomic_load(&s->header->thread[i].life) != RAW_FREE)
            return false;
    return true;
}

static bool has_max(const struct recorder *s)
{
    return s->config->max && s->limit.instructions >= s->config->max;
}

bool live_is_enough(const struct live_thread *t)
{
    return has_max(t->recorder) && !t->recorder->limit.is_last && drain_is_alone(t);
}

/* Counts the instructions of words, and cuts *n where the limit is reached. Invalid words are left to the stream, which reports them. */
static int drain_count_words(struct live_thread *t, const uint64_t *words, size_t *n, struct peet_err *err)
{
    size_t i = 0;

    while (i < *n && !live_is_enough(t)) {
        struct live_item *item = NULL;
        bool is_event = words[i] & RAW_EVENT;
        int r = is_event ? 0 : live_find(&t->reader, words[i], &item, err);
        if (r < 0)
            return r;
        int slots = is_event ? peet_event_arity((uint32_t)(words[i] >> 48 & 0x7fff)) : item->slots;
        if (slots < 0 || *n - i <= (size_t)slots)
            return 0;
        if (!is_event)
            t->recorder->limit.instructions += filter_instructions(item, words + i + 1);
        i += (size_t)slots + 1;
    }
    t->recorder->limit.is_cut |= i < *n;
    *n = i;
    return 0;
}

static void drain_put(struct recorder *s, struct live_thread *t, uint64_t *words, size_t n)
{
    if (s->failed || s->ret->stopped)
        return;
    bool filters = filter_is_wanted(s);
    int r = live_strings(s);
    if (r == 0 && s->config->max && !filters)
        r = drain_count_words(t, words, &n, s->err);
    if (r == 0)
        r = filters ? filter_put(t, words, n, s->err) : live_put(t, words, n, s->err);
    t->began |= n > 0;
    live_did_put(s, r);
}

void live_did_put(struct recorder *s, int code)
{
    struct peet_totals totals;

    if (code < 0) {
        live_stop(s, code);
        return;
    }
    peet_writer_totals(s->writer, &totals);
    if (s->config->progress)
        progress_at(s->config->progress, totals.instructions);
}

static void drain_put_event(struct recorder *s, struct live_thread *t, unsigned kind, const uint64_t *arg)
{
    uint32_t item;

    if (s->failed)
        return;
    pthread_mutex_lock(&s->code_lock);
    int r = code_event(&s->code, raw_event_key(kind, 0), &item, s->err);
    pthread_mutex_unlock(&s->code_lock);
    if (r == 0)
        r = peet_stream_put(t->stream, item, arg, s->err);
    if (r < 0)
        live_stop(s, r);
}

/* ---- the life of a thread ---- */

/* The status of a process; false: its end is not known yet. */
static bool find_status(struct recorder *s, pid_t pid, int *ret)
{
    bool found = false;

    pthread_mutex_lock(&s->children.lock);
    for (size_t i = 0; i < s->children.count; i++)
        if (s->children.ended[i].pid == pid) {
            *ret = s->children.ended[i].status;
            found = true;
        }
    pthread_mutex_unlock(&s->children.lock);
    return found;
}

static void close_thread(struct recorder *s, uint32_t entry)
{
    struct live_thread *t = &s->thread[entry];
    const struct raw_thread *raw = &s->header->thread[entry];
    uint64_t end[2] = { PEET_END_STOPPED, 0 };
    int status;

    if (raw->end_kind) {
        end[0] = raw->end_kind - 1;
        end[1] = raw->exit_code;
    } else if (find_status(s, t->process->pid, &status)) {
        end[0] = WIFSIGNALED(status) ? PEET_END_SIGNAL : PEET_END_PROCESS_EXIT;
        end[1] = (uint64_t)(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
    if (s->ret->stopped) {
        end[0] = PEET_END_STOPPED;
        end[1] = 0;
    }
    if (!t->began && raw->parent != raw->number)
        drain_put_event(s, t, PEET_EV_thread_start, (uint64_t[]){ raw->parent });
    if (!s->failed && filter_is_wanted(s) && filter_end(t, s->err) < 0)
        live_stop(s, s->err->code);
    if (end[0] == PEET_END_EXEC)
        drain_put_event(s, t, PEET_EV_exec, (uint64_t[]){ raw->program });
    drain_put_event(s, t, PEET_EV_thread_end, end);
    struct peet_err own; /* an error here was reported before, or is reported when the writer is closed */
    int r = peet_stream_close(t->stream, s->failed ? &own : s->err);
    if (r < 0)
        live_stop(s, r);
    filter_release(&t->filter);
    *t = (struct live_thread){ 0 };
}

/* Frees the entry; its buffers are zero then. */
static void free_place(struct recorder *s, uint32_t entry)
{
    struct raw_thread *raw = &s->header->thread[entry];
    size_t bytes = (size_t)RAW_BUFFERS * RAW_BUFFER_BYTES;

    if (fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, RAW_DATA_OFFSET + (off_t)((size_t)entry * bytes),
                  (off_t)bytes)
        < 0)
        memset(live_buffer(s, entry, 0), 0, bytes);
    for (unsigned i = 0; i < RAW_BUFFERS; i++)
        atomic_store(&raw->buffer[i].state, RAW_EMPTY);
    atomic_store(&raw->life, RAW_FREE);
}

/* Ends the threads of a process that has called exec. now: the first thread of the new program. */
static void end_former(struct recorder *s, const struct raw_thread *now)
{
    for (uint32_t i = 0; i < RAW_THREADS; i++) {
        struct live_thread *t = &s->thread[i];
        if (!t->number || t->process->pid != now->pid || t->process->number == now->process)
            continue;
        workers_settle(s);
        close_thread(s, i);
        free_place(s, i);
    }
}

static void drain_adopt(struct recorder *s, uint32_t entry)
{
    struct raw_thread *raw = &s->header->thread[entry];
    struct live_thread *t = &s->thread[entry];
    bool is_first = raw->process == raw->number;
    int r = 0;

    if (is_first && atomic_load(&raw->life) != RAW_TAKEN) {
        end_former(s, raw);
        r = s->failed ? 0 : processes_add(s, raw);
    }
    struct live_process *p = processes_find(s, raw->process);
    if (r == 0 && p && !s->failed) {
        struct peet_thread thread = { raw->number, p->number, is_first ? raw->number : raw->parent, raw->ordinal, "" };
        r = peet_stream_open(s->writer, &thread, &t->stream, s->err);
    }
    if (r < 0)
        live_stop(s, r);
    if (t->stream) {
        *t = (struct live_thread){ .number = raw->number, .recorder = s, .process = p, .stream = t->stream };
        t->reader.thread = t;
        s->ret->threads++;
        uint64_t low = is_first ? p->stack_low : raw->stack_low, high = is_first ? p->stack_high : raw->stack_high;
        drain_put_event(s, t, PEET_EV_set_register, (uint64_t[]){ X86_FS_REGISTER, raw->thread_pointer });
        if (high > low && is_first)
            drain_put_event(s, t, PEET_EV_map, (uint64_t[]){ low, high - low, 6 });
    }
    atomic_store(&raw->registered, 1);
    syscall(SYS_futex, &raw->registered, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void live_empty(struct raw_buffer *b, uint64_t *words, size_t bytes)
{
    size_t wipe = bytes + RAW_MAX_WORDS * 8;

    memset(words, 0, wipe < RAW_BUFFER_BYTES ? wipe : RAW_BUFFER_BYTES);
    atomic_store_explicit(&b->state, RAW_EMPTY, memory_order_release);
    syscall(SYS_futex, &b->state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Reads the memory map of a process that begins its end: libraries may have been loaded since the last time. */
static void see_end(struct recorder *s, struct live_process *p)
{
    p->is_ending = true;
    if (s->failed)
        return;
    pthread_mutex_lock(&s->code_lock);
    int r = processes_scan(s, p, false, s->err);
    pthread_mutex_unlock(&s->code_lock);
    if (r < 0)
        live_stop(s, r);
}

/* Whether there is a next buffer to be taken. */
static bool is_full(const struct recorder *s, uint32_t entry)
{
    const struct live_thread *t = &s->thread[entry];
    const struct raw_buffer *b = &s->header->thread[entry].buffer[t->next_buffer];

    return !atomic_load(&t->with_worker[t->next_buffer])
           && atomic_load_explicit(&b->state, memory_order_acquire) == RAW_FULL;
}

/* Takes the next full buffer. False: it must wait. Small buffers extend the stream's current chunk; filtered and counted ones depend on the
 * words before. So the loop encodes these, after all buffers with workers. */
static bool drain_take(struct recorder *s, uint32_t entry)
{
    struct live_thread *t = &s->thread[entry];
    const struct raw_thread *raw = &s->header->thread[entry];
    struct live_buffer b = { .raw = &s->header->thread[entry].buffer[t->next_buffer],
                             .with_worker = &t->with_worker[t->next_buffer],
                             .words = live_buffer(s, entry, t->next_buffer) };
    bool over = s->failed || s->ret->stopped;

    b.bytes = b.raw->bytes < RAW_BUFFER_BYTES ? b.raw->bytes : RAW_BUFFER_BYTES;
    bool by_worker = !over && b.bytes >= LIVE_LARGE && !filter_is_wanted(s) && !s->config->max;
    if (by_worker ? workers_are_busy(s) : !over && t->pending > 0)
        return false;
    if (raw->end_kind > 1 + PEET_END_EXIT && !t->process->is_ending)
        see_end(s, t->process);
    if (by_worker && !s->failed) {
        int r = live_strings(s);
        if (r < 0)
            live_stop(s, r);
        t->began = true;
        workers_take(s, t, &b, raw->thread_pointer);
    } else {
        drain_put(s, t, b.words, b.bytes / 8);
        live_empty(b.raw, b.words, b.bytes);
    }
    t->next_buffer = (t->next_buffer + 1) % RAW_BUFFERS;
    return true;
}

/* What stands in a buffer to which its thread still writes. Words are read in the order in which they are written. */
static void put_filling(struct recorder *s, uint32_t entry)
{
    struct live_thread *t = &s->thread[entry];
    const volatile uint64_t *from = live_buffer(s, entry, t->next_buffer);
    uint64_t *words = mem_alloc(WORDS, sizeof *words);

    for (size_t i = 0; i < s->header->buffer_limit / 8; i++)
        words[i] = from[i];
    drain_put(s, t, words, whole_words(t, words));
    free(words);
}

/* Records all words of a thread until now. Its buffers are not returned, so that it cannot write more than fits into them. */
static void drain_gather(struct recorder *s, uint32_t entry)
{
    struct raw_thread *raw = &s->header->thread[entry];
    struct live_thread *t = &s->thread[entry];
    uint32_t life = atomic_load(&raw->life);

    if (life != RAW_LIVE && life != RAW_ENDED)
        return;
    if (!t->number && !atomic_load(&raw->registered))
        drain_adopt(s, entry);
    if (!t->number)
        return;
    for (unsigned i = 0; i < RAW_BUFFERS && is_full(s, entry); i++) {
        size_t bytes = raw->buffer[t->next_buffer].bytes;
        drain_put(s, t, live_buffer(s, entry, t->next_buffer),
                  (bytes < RAW_BUFFER_BYTES ? bytes : RAW_BUFFER_BYTES) / 8);
        t->next_buffer = (t->next_buffer + 1) % RAW_BUFFERS;
    }
    if (life == RAW_ENDED) {
        close_thread(s, entry);
        free_place(s, entry);
    } else if (atomic_load(&raw->buffer[t->next_buffer].state) == RAW_FILLING) {
        put_filling(s, entry);
    }
}

/* Stops at config.max. Threads are read from the last entry to the first, so that the creation of each is in the trace. */
static void stop_at_max(struct recorder *s, const struct live_thread *last)
{
    bool is_over = s->limit.is_cut || drain_is_alone(last);

    s->limit.is_last = true;
    for (uint32_t i = atomic_load(&s->header->entries_used); !is_over && i-- > 0;)
        if (i < RAW_THREADS)
            drain_gather(s, i);
    if (s->failed)
        return;
    s->ret->stopped = true;
    live_stop(s, 0);
}

bool drain_all(struct recorder *s)
{
    uint32_t places = atomic_load(&s->header->entries_used);
    bool did = workers_commit(s);

    for (uint32_t i = 0; i < places && i < RAW_THREADS; i++) {
        struct raw_thread *raw = &s->header->thread[i];
        struct live_thread *t = &s->thread[i];
        uint32_t life = atomic_load(&raw->life);
        if (life != RAW_LIVE && life != RAW_ENDED)
            continue;
        if (!t->number && !atomic_load(&raw->registered)) {
            drain_adopt(s, i);
            did = true;
        }
        if (t->number && is_full(s, i)) {
            did |= drain_take(s, i);
            if (has_max(s) && !s->limit.is_last && !s->failed)
                stop_at_max(s, t);
        } else if (life == RAW_ENDED && t->pending == 0) {
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

static bool is_alive(struct recorder *s, pid_t pid)
{
    int status;

    return !find_status(s, pid, &status) && (kill(pid, 0) == 0 || errno == EPERM) && !is_zombie(pid);
}

bool drain_is_any_alive(struct recorder *s)
{
    for (uint32_t i = 0; i < RAW_THREADS && i < atomic_load(&s->header->entries_used); i++) {
        const struct raw_thread *raw = &s->header->thread[i];
        pid_t pid = s->thread[i].number                   ? s->thread[i].process->pid
                    : atomic_load(&raw->life) != RAW_FREE ? raw->pid
                                                          : 0;
        if (pid > 0 && is_alive(s, pid))
            return true;
    }
    return false;
}

void drain_rest(struct recorder *s, bool all)
{
    while (drain_all(s) || workers_settle(s))
        ;
    s->limit.is_last = true;
    for (uint32_t i = 0; i < RAW_THREADS; i++) {
        struct live_thread *t = &s->thread[i];
        if (!t->number && atomic_load(&s->header->thread[i].life) == RAW_TAKEN)
            drain_adopt(s, i); /* its process ended before it began */
        if (!t->number || (!all && is_alive(s, t->process->pid)))
            continue;
        struct raw_buffer *b = &s->header->thread[i].buffer[t->next_buffer];
        uint64_t *words = live_buffer(s, i, t->next_buffer);
        if (atomic_load(&b->state) == RAW_FILLING && !s->failed)
            drain_put(s, t, words, whole_words(t, words));
        close_thread(s, i);
        free_place(s, i);
    }
}
