/* SPDX-License-Identifier: MIT */
#include "litmus/batch.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

enum { BATCH_LISTS = 8 }; /* lists that may lie in each other */

static struct batch_entry *batch_append(struct litmus_batch *b)
{
    b->entry = mem_room(b->entry, b->entries, sizeof *b->entry);
    b->entry[b->entries] = (struct batch_entry){ 0 };
    return &b->entry[b->entries++];
}

void batch_add_builtins(struct litmus_batch *b)
{
    for (const struct litmus_builtin *t = litmus_builtins; t->name; t++) {
        struct batch_entry *e = batch_append(b);
        e->err.code = litmus_parse_short(t->name, t->program, t->condition, &e->test, &e->err);
    }
}

static int batch_add_path(struct litmus_batch *b, const char *path, unsigned depth, struct peet_err *err);

static int batch_add_list(struct litmus_batch *b, const char *path, unsigned depth, struct peet_err *err)
{
    const char *slash = strrchr(path, '/');
    FILE *in = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;
    int r = 0;

    if (!in)
        return err_sys(err, errno, "cannot open %s", path);
    if (depth == BATCH_LISTS)
        r = err_set(err, PEET_ERR_FORMAT, "%s: lists lie in each other, more than %d", path, BATCH_LISTS);
    while (r == 0 && getline(&line, &size, in) >= 0) {
        line[strcspn(line, "#\r\n")] = '\0';
        char *name = line + strspn(line, " \t");
        for (size_t n = strlen(name); n && strchr(" \t", name[n - 1]);)
            name[--n] = '\0';
        if (!*name)
            continue;
        char *full = mem_format("%.*s%s", *name == '/' || !slash ? 0 : (int)(slash - path + 1), path, name);
        r = batch_add_path(b, full, depth + 1, err);
        free(full);
    }
    if (r == 0 && ferror(in))
        r = err_sys(err, errno, "cannot read %s", path);
    free(line);
    fclose(in);
    return r;
}

static int batch_add_path(struct litmus_batch *b, const char *path, unsigned depth, struct peet_err *err)
{
    const char *slash = strrchr(path, '/');

    if ((slash ? slash[1] : path[0]) == '@')
        return batch_add_list(b, path, depth, err);
    struct batch_entry *e = batch_append(b);
    e->path = mem_string(path);
    e->err.code = litmus_read(path, &e->test, &e->err);
    return 0;
}

int batch_add(struct litmus_batch *b, const char *path, struct peet_err *err)
{
    return batch_add_path(b, path, 0, err);
}

static void batch_explore(const struct litmus_batch *b, struct batch_entry *e)
{
    e->outcome = mem_alloc(b->orders, sizeof *e->outcome);
    for (size_t i = 0; e->test && i < b->orders; i++) {
        struct explore_config config = { .order = b->order[i], .most_states = b->most_states };
        struct peet_err err;
        if (litmus_explore(e->test, &config, &e->outcome[i], &err) < 0 && !e->err.code)
            e->err = err;
    }
}

/* Workers that explore the entries of a batch. */
struct batch_pool {
    const struct litmus_batch *batch;
    pthread_mutex_t lock;   /* protects next and done */
    pthread_cond_t changed; /* done has changed */
    size_t next, done;      /* entry to be taken next; entries that are explored */
};

static void *batch_work(void *context)
{
    struct batch_pool *p = context;

    pthread_mutex_lock(&p->lock);
    while (p->next < p->batch->entries) {
        struct batch_entry *e = &p->batch->entry[p->next++];
        pthread_mutex_unlock(&p->lock);
        batch_explore(p->batch, e);
        pthread_mutex_lock(&p->lock);
        p->done++;
        pthread_cond_signal(&p->changed);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void batch_run(struct litmus_batch *b)
{
    struct batch_pool pool = { .batch = b, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
    pthread_t *worker = mem_alloc(b->jobs, sizeof *worker);
    unsigned workers = 0;

    while (workers < b->jobs && workers < b->entries && pthread_create(&worker[workers], NULL, batch_work, &pool) == 0)
        workers++;
    if (!workers)
        batch_work(&pool);
    pthread_mutex_lock(&pool.lock);
    while (pool.done < b->entries) {
        pthread_cond_wait(&pool.changed, &pool.lock);
        if (b->progress)
            progress_at(b->progress, pool.done);
    }
    pthread_mutex_unlock(&pool.lock);
    for (unsigned i = 0; i < workers; i++)
        pthread_join(worker[i], NULL);
    free(worker);
}

void batch_release(struct litmus_batch *b)
{
    for (size_t i = 0; i < b->entries; i++) {
        struct batch_entry *e = &b->entry[i];
        for (size_t j = 0; e->outcome && j < b->orders; j++)
            litmus_outcomes_release(&e->outcome[j]);
        free(e->outcome);
        litmus_free(e->test);
        free(e->path);
    }
    free(b->entry);
    b->entry = NULL;
    b->entries = 0;
}
