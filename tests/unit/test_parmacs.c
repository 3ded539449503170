/* SPDX-License-Identifier: MIT */
/* A program in PARMACS works as it stands. */
#include "check.h"
#include "peet/parmacs.h"

MAIN_ENV

static struct {
    LOCKDEC(lock)
    ALOCKDEC(locks, 4)
    BARDEC(barrier)
    PAUSEDEC(go)
    int next, sum, slot[4], late;
} shared;

enum { THREADS = 4, ROUNDS = 50 };

static void worker(void)
{
    LOCK(shared.lock);
    int me = shared.next++;
    UNLOCK(shared.lock);
    WAITPAUSE(shared.go);
    for (int i = 0; i < ROUNDS; i++) {
        ALOCK(shared.locks, i % 4);
        shared.slot[i % 4]++;
        AULOCK(shared.locks, i % 4);
        BARRIER(shared.barrier, THREADS);
        if (me == 0) {
            int sum = 0;
            for (int k = 0; k < 4; k++)
                sum += shared.slot[k];
            shared.late += sum != (i + 1) * THREADS; /* a thread had not arrived yet, or has left already */
        }
        BARRIER(shared.barrier, THREADS);
    }
}

static void a_parmacs_program_runs_on_posix_threads(void)
{
    unsigned before, after;

    MAIN_INITENV(, 1000);
    LOCKINIT(shared.lock);
    ALOCKINIT(shared.locks, 4);
    BARINIT(shared.barrier, THREADS);
    PAUSEINIT(shared.go);
    CLOCK(before);
    for (int i = 1; i < THREADS; i++)
        CREATE(worker);
    SETPAUSE(shared.go);
    worker();
    WAIT_FOR_END(THREADS - 1);
    CLOCK(after);
    CHECK_EQ(shared.next, THREADS);
    CHECK_EQ(shared.late, 0);
    CHECK_EQ(shared.slot[0] + shared.slot[1] + shared.slot[2] + shared.slot[3], THREADS * ROUNDS);
    CHECK(after - before < 60000000);
}

int main(void)
{
    RUN(a_parmacs_program_runs_on_posix_threads);
    return check_done();
}
