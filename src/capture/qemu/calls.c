/* SPDX-License-Identifier: MIT */
#include "capture/qemu/calls.h"

#include <string.h>

#include "peet/record.h"

#define BEFORE(function, event, words) \
    { \
#function, PEET_EV_##event, CALL_BEFORE, words \
    }
#define NO_RETURN(function, event, words) \
    { \
#function, PEET_EV_##event, CALL_NO_RETURN, words \
    }
#define SUCCESS(function, event, words) \
    { \
#function, PEET_EV_##event, CALL_SUCCESS, words \
    }
#define RESULT(function, event, words) \
    { \
#function, PEET_EV_##event, CALL_RESULT, words \
    }
#define POINTER(function, event, words) \
    { \
#function, PEET_EV_##event, CALL_POINTER, words \
    }
#define SITE(function, event) \
    { \
#function, PEET_EV_##event, CALL_SITE, "" \
    }

/* By name, in the order of strcmp. */
/* clang-format off */
const struct call_rule CALL_RULES[] = {
    BEFORE(_ZdaPv,                       free,             "0"),
    BEFORE(_ZdaPvm,                      free,             "0"),
    BEFORE(_ZdlPv,                       free,             "0"),
    BEFORE(_ZdlPvm,                      free,             "0"),
    POINTER(_Znam,                       malloc,           "p0"),
    POINTER(_ZnamSt11align_val_t,        memalign,         "p10"),
    POINTER(_Znwm,                       malloc,           "p0"),
    POINTER(_ZnwmSt11align_val_t,        memalign,         "p10"),
    POINTER(aligned_alloc,               memalign,         "p01"),
    POINTER(calloc,                      calloc,           "p01"),
    BEFORE(cnd_broadcast,                cond_broadcast,   "0"),
    BEFORE(cnd_signal,                   cond_signal,      "0"),
    RESULT(cnd_timedwait,                cond_timedwait,   "01r"),
    SUCCESS(cnd_wait,                    cond_wait,        "01"),
    BEFORE(free,                         free,             "0"),
    POINTER(malloc,                      malloc,           "p0"),
    POINTER(memalign,                    memalign,         "p01"),
    SITE(mmap,                           map),
    SITE(mmap64,                         map),
    SITE(mremap,                         map),
    BEFORE(mtx_destroy,                  mutex_destroy,    "0"),
    SUCCESS(mtx_init,                    mutex_init,       "0"),
    SUCCESS(mtx_lock,                    mutex_lock,       "0"),
    RESULT(mtx_timedlock,                mutex_trylock,    "0r"),
    RESULT(mtx_trylock,                  mutex_trylock,    "0r"),
    BEFORE(mtx_unlock,                   mutex_unlock,     "0"),
    SITE(munmap,                         unmap),
    SUCCESS(posix_memalign,              memalign,         "*12"),
    BEFORE(pthread_barrier_destroy,      barrier_destroy,  "0"),
    SUCCESS(pthread_barrier_init,        barrier_init,     "0n"),
    SUCCESS(pthread_barrier_wait,        barrier_wait,     "0b"),
    BEFORE(pthread_cond_broadcast,       cond_broadcast,   "0"),
    RESULT(pthread_cond_clockwait,       cond_timedwait,   "01r"),
    BEFORE(pthread_cond_signal,          cond_signal,      "0"),
    RESULT(pthread_cond_timedwait,       cond_timedwait,   "01r"),
    SUCCESS(pthread_cond_wait,           cond_wait,        "01"),
    SUCCESS(pthread_create,              thread_create,    "c"),
    SUCCESS(pthread_detach,              thread_detach,    "t"),
    NO_RETURN(pthread_exit,              thread_exit,      "0"),
    SUCCESS(pthread_join,                thread_join,      "t"),
    RESULT(pthread_mutex_clocklock,      mutex_trylock,    "0r"),
    BEFORE(pthread_mutex_destroy,        mutex_destroy,    "0"),
    SUCCESS(pthread_mutex_init,          mutex_init,       "0"),
    SUCCESS(pthread_mutex_lock,          mutex_lock,       "0"),
    RESULT(pthread_mutex_timedlock,      mutex_trylock,    "0r"),
    RESULT(pthread_mutex_trylock,        mutex_trylock,    "0r"),
    BEFORE(pthread_mutex_unlock,         mutex_unlock,     "0"),
    RESULT(pthread_rwlock_clockrdlock,   rwlock_tryrdlock, "0r"),
    RESULT(pthread_rwlock_clockwrlock,   rwlock_trywrlock, "0r"),
    SUCCESS(pthread_rwlock_rdlock,       rwlock_rdlock,    "0"),
    RESULT(pthread_rwlock_timedrdlock,   rwlock_tryrdlock, "0r"),
    RESULT(pthread_rwlock_timedwrlock,   rwlock_trywrlock, "0r"),
    RESULT(pthread_rwlock_tryrdlock,     rwlock_tryrdlock, "0r"),
    RESULT(pthread_rwlock_trywrlock,     rwlock_trywrlock, "0r"),
    BEFORE(pthread_rwlock_unlock,        rwlock_unlock,    "0"),
    SUCCESS(pthread_rwlock_wrlock,       rwlock_wrlock,    "0"),
    SUCCESS(pthread_spin_lock,           spin_lock,        "0"),
    RESULT(pthread_spin_trylock,         spin_trylock,     "0r"),
    BEFORE(pthread_spin_unlock,          spin_unlock,      "0"),
    SUCCESS(pthread_timedjoin_np,        thread_join,      "t"),
    SUCCESS(pthread_tryjoin_np,          thread_join,      "t"),
    POINTER(realloc,                     realloc,          "p01"),
    RESULT(sem_clockwait,                sem_trywait,      "0r"),
    SUCCESS(sem_init,                    sem_init,         "0n"),
    BEFORE(sem_post,                     sem_post,         "0"),
    RESULT(sem_timedwait,                sem_trywait,      "0r"),
    RESULT(sem_trywait,                  sem_trywait,      "0r"),
    SUCCESS(sem_wait,                    sem_wait,         "0"),
    SUCCESS(thrd_create,                 thread_create,    "c"),
    SUCCESS(thrd_detach,                 thread_detach,    "t"),
    NO_RETURN(thrd_exit,                 thread_exit,      "0"),
    SUCCESS(thrd_join,                   thread_join,      "t"),
};
/* clang-format on */

const size_t CALL_RULE_COUNT = sizeof CALL_RULES / sizeof *CALL_RULES;

const struct call_rule *call_rule_find(const char *function)
{
    size_t low = 0, high = CALL_RULE_COUNT;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(CALL_RULES[middle].function, function);
        if (order == 0)
            return &CALL_RULES[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
