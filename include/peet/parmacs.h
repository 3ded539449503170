/* SPDX-License-Identifier: MIT */
/* The PARMACS (Argonne macros) that older parallel programs are written in, on POSIX threads, without a macro processor:
 * include this header where the expansion stood. One file has MAIN_ENV at file scope, all others EXTERN_ENV.
 *
 * Every primitive is the POSIX one, so that a tracer sees it as the abstract event that it is; a barrier may be met by
 * different numbers of threads from one time to the next, as PARMACS has it, so it is a lock and a condition.
 * Left out: shared address ranges (G_MALLOC is malloc: threads share all memory), ASKFOR monitors. */
#ifndef PEET_PARMACS_H
#define PEET_PARMACS_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { PEET_PARMACS_THREADS = 1024 };

/* The threads that a program has created. */
struct peet_parmacs {
    pthread_t thread[PEET_PARMACS_THREADS];
    int threads; /* elements of `thread` in use */
};

/* A barrier for a number of threads that each arrival gives. */
struct peet_parmacs_barrier {
    pthread_mutex_t lock;
    pthread_cond_t all_here;
    int waiting;    /* threads of this round that have arrived */
    unsigned round; /* openings so far */
};

/* A flag that threads can wait for, PARMACS' pause. */
struct peet_parmacs_pause {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int set; /* 1: the flag is set */
};

static inline void peet_parmacs_barrier_init(struct peet_parmacs_barrier *b)
{
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->all_here, NULL);
    b->waiting = 0;
    b->round = 0;
}

static inline void peet_parmacs_barrier_wait(struct peet_parmacs_barrier *b, int n)
{
    pthread_mutex_lock(&b->lock);
    unsigned round = b->round;
    if (++b->waiting >= n) {
        b->waiting = 0;
        b->round++;
        pthread_cond_broadcast(&b->all_here);
    } else {
        while (round == b->round)
            pthread_cond_wait(&b->all_here, &b->lock);
    }
    pthread_mutex_unlock(&b->lock);
}

static inline void peet_parmacs_pause_init(struct peet_parmacs_pause *p)
{
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    p->set = 0;
}

static inline void peet_parmacs_pause_set(struct peet_parmacs_pause *p, int set)
{
    pthread_mutex_lock(&p->lock);
    p->set = set;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static inline void peet_parmacs_pause_wait(struct peet_parmacs_pause *p, int set)
{
    pthread_mutex_lock(&p->lock);
    while (p->set != set)
        pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

static inline void *peet_parmacs_run(void *function)
{
    union {
        void *data;
        void (*code)(void);
    } f = { function };

    f.code();
    return NULL;
}

static inline void peet_parmacs_create(struct peet_parmacs *p, void (*function)(void))
{
    union {
        void (*code)(void);
        void *data;
    } f = { function };

    if (p->threads == PEET_PARMACS_THREADS
        || pthread_create(&p->thread[p->threads], NULL, peet_parmacs_run, f.data) != 0) {
        fprintf(stderr, "CREATE: cannot start thread %d\n", p->threads + 1);
        exit(1);
    }
    p->threads++;
}

static inline void peet_parmacs_join(struct peet_parmacs *p)
{
    for (int i = 0; i < p->threads; i++)
        pthread_join(p->thread[i], NULL);
    p->threads = 0;
}

static inline unsigned peet_parmacs_clock(void)
{
    struct timespec t;

    timespec_get(&t, TIME_UTC);
    return (unsigned)((unsigned long long)t.tv_sec * 1000000u + (unsigned long long)t.tv_nsec / 1000u);
}

#define MAIN_ENV struct peet_parmacs peet_parmacs;
#define EXTERN_ENV extern struct peet_parmacs peet_parmacs;
#define MAIN_INITENV(...) ((void)(peet_parmacs.threads = 0))
#define MAIN_END exit(0)

#define CREATE(function) peet_parmacs_create(&peet_parmacs, function)
#define WAIT_FOR_END(n) ((void)(n), peet_parmacs_join(&peet_parmacs))

#define LOCKDEC(lock) pthread_mutex_t lock;
#define LOCKINIT(lock) pthread_mutex_init(&(lock), NULL)
#define LOCK(lock) pthread_mutex_lock(&(lock))
#define UNLOCK(lock) pthread_mutex_unlock(&(lock))

#define ALOCKDEC(lock, n) pthread_mutex_t lock[n];
#define ALOCKINIT(lock, n) \
    do { \
        for (int peet_i = 0; peet_i < (n); peet_i++) \
            pthread_mutex_init(&(lock)[peet_i], NULL); \
    } while (0)
#define ALOCK(lock, i) pthread_mutex_lock(&(lock)[i])
#define AULOCK(lock, i) pthread_mutex_unlock(&(lock)[i])

#define BARDEC(barrier) struct peet_parmacs_barrier barrier;
#define BARINIT(barrier, ...) peet_parmacs_barrier_init(&(barrier))
#define BARRIER(barrier, n) peet_parmacs_barrier_wait(&(barrier), n)

#define PAUSEDEC(pause) struct peet_parmacs_pause pause;
#define PAUSEINIT(pause) peet_parmacs_pause_init(&(pause))
#define SETPAUSE(pause) peet_parmacs_pause_set(&(pause), 1)
#define CLEARPAUSE(pause) peet_parmacs_pause_set(&(pause), 0)
#define WAITPAUSE(pause) peet_parmacs_pause_wait(&(pause), 1)

#define G_MALLOC(bytes) malloc(bytes)
#define G_FREE(pointer) free(pointer)
#define CLOCK(t) ((t) = peet_parmacs_clock())

#endif
