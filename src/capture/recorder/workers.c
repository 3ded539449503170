/* SPDX-License-Identifier: MIT */
/* Workers: threads of the recorder that encode full buffers as chunks.
 *
 * Jobs are in a circular array, in the order in which they were taken: jobs to be committed, then jobs with workers, then waiting jobs. A job is
 * done when its chunk is packed; its buffer is returned to the program before, once it was read. There are more jobs than workers, so that a
 * fast worker need not wait for others. */
#include <sched.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "capture/recorder/live.h"

enum { WORKERS = 4, JOBS = 3 * WORKERS };

/* A buffer to be encoded. */
struct live_job {
    struct live_workers *workers;
    struct live_reader reader;
    struct live_buffer buffer;
    uint64_t registers[PEET_REGISTERS]; /* of the trace, at the buffer's beginning */
    uint64_t number;                    /* in the order of taking, from 0 */
    struct peet_part *part;             /* the chunk under construction; NULL: none */
    bool was_read;                      /* its words are read; the buffer was returned */
    bool is_done;                       /* its chunk is complete, or the job has failed */
    int code;                           /* of its error; 0: none */
    struct peet_err err;
};

/* The workers, and their jobs: a circular buffer. */
struct live_workers {
    struct recorder *recorder;
    pthread_t thread[WORKERS];
    unsigned threads, most;                 /* number of workers; number of elements of `job` in use */
    pthread_mutex_t lock;                   /* for the rest */
    pthread_cond_t work;                    /* there is a job, or nothing more to do */
    pthread_cond_t read_grew;               /* `read` has grown */
    bool over;                              /* no further job will be taken */
    uint64_t committed, read, begun, taken; /* numbers of jobs in these states; also the number of the next such job */
    struct live_job job[JOBS];
    struct peet_part *part[JOBS]; /* unused ones, the last used at the end */
    size_t parts;
};

static struct live_job *job_of(struct live_workers *w, uint64_t number)
{
    return &w->job[number % w->most];
}

/* ---- in the workers ---- */

void workers_await_turn(const struct live_job *j)
{
    struct live_workers *w = j->workers;

    pthread_mutex_lock(&w->lock);
    while (w->read < j->number)
        pthread_cond_wait(&w->read_grew, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

/* Call with the lock held. */
static void mark_read(struct live_workers *w, struct live_job *j)
{
    j->was_read = true;
    while (w->read < w->begun && job_of(w, w->read)->was_read)
        w->read++;
    pthread_cond_broadcast(&w->read_grew);
}

static void work_on(struct live_workers *w, struct live_job *j)
{
    const struct peet_names names = live_names(&j->reader);
    const struct live_buffer *b = &j->buffer;
    int r = j->part ? 0 : peet_part_new(w->recorder->writer, &j->part, &j->err);

    if (r == 0) {
        peet_part_begin(j->part, j->reader.thread->stream, j->registers);
        r = peet_part_put_named(j->part, b->words, b->bytes / 8, &names, &j->err);
    }
    pthread_mutex_lock(&w->lock);
    mark_read(w, j);
    pthread_mutex_unlock(&w->lock);
    live_empty(b->raw, b->words, b->bytes);
    atomic_store(b->with_worker, false); /* after the buffer is empty, or the loop would take it again */
    j->code = r < 0 ? r : peet_part_finish(j->part, &j->err);
}

static void *workers_run(void *argument)
{
    struct live_workers *w = argument;

    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->begun == w->taken && !w->over)
            pthread_cond_wait(&w->work, &w->lock);
        if (w->begun == w->taken)
            break;
        struct live_job *j = job_of(w, w->begun++);
        j->part = w->parts ? w->part[--w->parts] : NULL;
        pthread_mutex_unlock(&w->lock);
        work_on(w, j);
        pthread_mutex_lock(&w->lock);
        j->is_done = true;
        pthread_mutex_unlock(&w->lock);
        live_notify(w->recorder);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* ---- in the loop ---- */

static unsigned count_processors(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;

    return n < 1 ? 1 : n > WORKERS ? WORKERS : (unsigned)n;
}

static int workers_start(struct recorder *s, struct peet_err *err)
{
    struct live_workers *w = mem_alloc(1, sizeof *w);
    unsigned wanted = count_processors();
    int r = 0;

    w->recorder = s;
    w->most = 3 * wanted;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->work, NULL);
    pthread_cond_init(&w->read_grew, NULL);
    s->workers = w;
    while (w->threads < wanted && (r = pthread_create(&w->thread[w->threads], NULL, workers_run, w)) == 0)
        w->threads++;
    return w->threads ? 0 : err_sys(err, r, "no thread to encode with");
}

bool workers_are_busy(const struct recorder *s)
{
    const struct live_workers *w = s->workers;

    return w && w->taken - w->committed == w->most;
}

void workers_take(struct recorder *s, struct live_thread *t, const struct live_buffer *b, uint64_t thread_pointer)
{
    int r = s->workers ? 0 : workers_start(s, s->err);

    if (r < 0 || s->failed) {
        live_empty(b->raw, b->words, b->bytes);
        if (r < 0)
            live_stop(s, r);
        return;
    }
    struct live_workers *w = s->workers;
    pthread_mutex_lock(&w->lock);
    struct live_job *j = job_of(w, w->taken);
    *j = (struct live_job){ .workers = w, .reader = t->reader, .buffer = *b, .number = w->taken++ };
    j->reader.job = j;
    j->registers[X86_SP_REGISTER] = b->raw->sp;
    j->registers[X86_FS_REGISTER] = thread_pointer;
    t->pending++;
    atomic_store(b->with_worker, true);
    pthread_cond_signal(&w->work);
    pthread_mutex_unlock(&w->lock);
}

static void workers_commit_job(struct recorder *s, struct live_job *j)
{
    if (s->failed || s->ret->stopped)
        return;
    if (j->code < 0)
        *s->err = j->err;
    live_did_put(s, j->code < 0 ? j->code : peet_part_commit(j->part, s->err));
}

bool workers_commit(struct recorder *s)
{
    struct live_workers *w = s->workers;
    bool did = false;

    if (!w)
        return false;
    pthread_mutex_lock(&w->lock);
    while (w->committed < w->begun && job_of(w, w->committed)->is_done) {
        struct live_job *j = job_of(w, w->committed);
        pthread_mutex_unlock(&w->lock);
        workers_commit_job(s, j);
        j->reader.thread->pending--;
        j->reader.thread->reader.last = j->reader.last;
        did = true;
        pthread_mutex_lock(&w->lock);
        if (j->part)
            w->part[w->parts++] = j->part;
        w->committed++;
    }
    pthread_mutex_unlock(&w->lock);
    return did;
}

bool workers_settle(struct recorder *s)
{
    struct live_workers *w = s->workers;
    bool did = false;

    while (w && w->committed < w->taken) {
        uint32_t count = atomic_load(&s->header->doorbell);
        did = true;
        if (!workers_commit(s))
            live_wait(s, count);
    }
    return did;
}

void workers_release(struct recorder *s)
{
    struct live_workers *w = s->workers;

    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->over = true;
    pthread_cond_broadcast(&w->work);
    pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->threads; i++)
        pthread_join(w->thread[i], NULL);
    for (uint64_t i = w->committed; i < w->taken; i++)
        peet_part_free(job_of(w, i)->part);
    for (size_t i = 0; i < w->parts; i++)
        peet_part_free(w->part[i]);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->work);
    pthread_cond_destroy(&w->read_grew);
    free(w);
    s->workers = NULL;
}
