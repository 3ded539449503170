#!/bin/sh
# SPDX-License-Identifier: MIT
# What threads do to each other is in the trace, whatever the means: POSIX, C11, OpenMP, a program's own; in dynamic and
# in static programs.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
subjects=tests/e2e/subjects

# Records a program, which has to say and return what the plain one does; complaints where it does not, or where the trace is
# not well-formed. Its events are then in $TMP/events, one a line: thread, event, arguments.
complaints() { # PLAIN RECORDED [ARGUMENT]
    (timeout 300 "$1" ${3+"$3"} >"$TMP/expected" 2>/dev/null)
    expected=$?
    timeout 300 "$peet" record -o "$TMP/t.peet" -- "$2" ${3+"$3"} >"$TMP/out" 2>"$TMP/err"
    code=$?
    [ $code = $expected ] || { echo "exit code $code, expected $expected"; cat "$TMP/err"; }
    cmp "$TMP/expected" "$TMP/out" 2>&1
    "$peet" check "$TMP/t.peet" >"$TMP/check" 2>&1 || grep -E '^  (violation|warning)|^peet' "$TMP/check" | head -n 5
    "$peet" dump --events "$TMP/t.peet" | awk '/^[0-9]/ { $2 = ""; print }' >"$TMP/events"
}

# Complaints where there are not as many events of some kinds as there should be.
has() { # EVENT NUMBER [EVENT NUMBER…]
    while [ $# -gt 0 ]; do
        n=$(awk -v e="$1" '$2 == e { n++ } END { print n + 0 }' "$TMP/events")
        [ "$n" = "$2" ] || echo "$n $1, expected $2"
        shift 2
    done
}

build() { # NAME LANGUAGE OPTIONS…: the plain and the recorded program
    name=$1 verb=$2
    shift 2
    case $verb in cc) plain=gcc ;; c++) plain=g++ ;; *) plain=gfortran ;; esac
    $plain -w -Iinclude -o "$TMP/$name.plain" "$@" 2>&1 | grep -vE 'dlopen|in function'
    "$peet" "$verb" -w -Iinclude -o "$TMP/$name" "$@" 2>&1 | grep -vE 'dlopen|in function'
}

# ---- threads ----

for kind in "" -static -static-pie; do
    # shellcheck disable=SC2086
    built=$(build sync cc -O2 $kind $subjects/sync.c -lpthread)
    in=${kind:+ in a program that is $kind}
    verdict "the ways in which threads meet can be built$in" "$built"
    sync() { complaints "$TMP/sync.plain" "$TMP/sync" "$1"; }
    verdict "C11's threads, mutexes, conditions and call_once are events$in" "$(sync c11
        has thread_create 2 thread_join 2 mutex_init 2 mutex_destroy 2 mutex_trylock 4 once 2 cond_broadcast 2
        [ "$(grep -c "mutex_lock $(awk '$2 == "mutex_init" { print $3; exit }' "$TMP/events")" "$TMP/events")" = 2 ] || echo 'a lock is missing'
        [ "$(grep -c 'once 0x[0-9a-f]* 1 ' "$TMP/events")" = 1 ] || echo 'nobody ran it, or several did')"
    verdict "thrd_exit ends a thread$in" "$(sync c11_exit; grep -q '^2  thread_exit 7' "$TMP/events" || grep thread_exit "$TMP/events")"
    if [ -w /dev/shm ]; then
        verdict "semaphores with and without names are events$in" "$(sync semaphores; has sem_init 1 sem_wait 20 sem_trywait 22 sem_post 40)"
    else
        skip "semaphores with and without names are events$in" "needs /dev/shm"
    fi
    verdict "locks for readers and writers are events$in" "$(sync rwlocks; has rwlock_rdlock 20 rwlock_wrlock 20 rwlock_tryrdlock 40 rwlock_trywrlock 40)"
    verdict "spin locks are events$in" "$(sync spin_locks; has spin_lock 20 spin_trylock 20)"
    verdict "barriers are events$in" "$(sync barriers; has barrier_init 1 barrier_wait 40 barrier_destroy 1)"
    verdict "waiting with a limit is an event$in" "$(sync limits; has mutex_trylock 6 cond_timedwait 6 thread_join 3)"
    verdict "a thread that is cancelled while it waits goes on making events$in" "$(sync cancelled; has thread_join 1)"
    verdict "a program's own locks and flags are what it says they are$in" "$(sync own_locks; has spin_lock 20 spin_trylock 20 spin_wait 2)"
    verdict "a thread that is born detached is told to be$in" "$(sync detached; has thread_create 1 thread_detach 1)"
done

echo '#include "peet/mark.h"
int f(int *lock) { PEET_SPIN_LOCK(lock); PEET_SPIN_TRYLOCK(lock, 0); PEET_SPIN_UNLOCK(lock); PEET_SPIN_WAIT(lock++); return *lock; }' >"$TMP/mark.c"
verdict "what a program says of itself is nothing for another compiler" "$(gcc -O0 -Iinclude -c -o "$TMP/mark.o" "$TMP/mark.c" 2>&1
    nm -u "$TMP/mark.o"; objdump -d "$TMP/mark.o" | grep -E 'call|add|inc')"

# ---- functions that _FORTIFY_SOURCE checks ----

for kind in "" -static; do
    # shellcheck disable=SC2086
    build fortify cc -O2 -D_GNU_SOURCE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 $kind $subjects/fortify.c >"$TMP/built"
    verdict "checked functions are events, and checked jumps arrive${kind:+ in a program that is $kind}" "$(cat "$TMP/built"
        complaints "$TMP/fortify.plain" "$TMP/fortify"
        nm "$TMP/fortify" | grep -q longjmp_chk || echo 'longjmp is not checked'
        grep -q 'range_write 0x[0-9a-f]* 99 ' "$TMP/events" || echo 'no memset'
        [ "$(grep -c 'range_copy 0x[0-9a-f]* 0x[0-9a-f]* 100 ' "$TMP/events")" -ge 7 ] || echo 'no memcpy'
        grep -q 'range_copy 0x[0-9a-f]* 0x[0-9a-f]* 10 ' "$TMP/events" || echo 'no strncat'
        has jump 5)"
done
verdict "a check that fails ends the program as ever" "$("$TMP/fortify" much >"$TMP/out" 2>&1; [ $? = 134 ] && grep -q 'buffer overflow detected' "$TMP/out" || cat "$TMP/out")"

# ---- OpenMP ----

for kind in "cc" "c++" "cc -static"; do
    property="OpenMP's regions, loops, locks and barriers are events (${kind})"
    command -v g++ >/dev/null || [ "$kind" != c++ ] || { skip "$property" "needs g++"; continue; }
    # shellcheck disable=SC2086
    set -- $kind
    source=$subjects/openmp.c
    [ "$1" = cc ] || { cp $subjects/openmp.c "$TMP/openmp.cc"; source=$TMP/openmp.cc; }
    verdict "$property" "$(build openmp "$1" -O2 -fopenmp ${2:+"$2"} "$source"
        complaints "$TMP/openmp.plain" "$TMP/openmp"
        # two regions of four threads and one of three; 100 chunks, 10 ordered ones, 2 sections, and those of the guided loop
        has doall_fork 3 doall_join 3 once 4 wait 9 post 10 mutex_init 2
        [ "$(grep -cE 'mutex_lock 0x' "$TMP/events")" -ge 20 ] || echo 'too few locks'
        # at the beginnings and ends of the regions; after for, barrier, ordered for, sections
        has barrier_wait $((4 * (2 + 4) + 3 * 2 + 4 * 2))
        [ "$(grep -c 'doall_fork 4' "$TMP/events")" = 2 ] || echo 'not four threads'
        grep -q 'doall_start 990' "$TMP/events" || echo 'no chunk from 990 on')"
    verdict "the threads of OpenMP's library are children of the program's first ($kind)" "$(
        awk '$2 == "thread_create" && $1 != 1 || $2 == "thread_start" && $3 != 1 { print }' "$TMP/events" | head -n 3
        [ "$(awk '$2 == "thread_start"' "$TMP/events" | wc -l)" -ge 3 ] || echo 'too few')"
done
property="OpenMP in Fortran makes the same events"
if needs "$property" gfortran; then
    verdict "$property" "$(build openmp fortran -O2 -fopenmp $subjects/openmp.f90
        complaints "$TMP/openmp.plain" "$TMP/openmp"
        has doall_fork 2 doall_join 2 once 4 mutex_init 1 barrier_wait $((4 * (2 + 3) + 4 * 2))
        lock=$(awk '$2 == "mutex_init" { print $3 }' "$TMP/events")
        [ "$(grep -cE "mutex_(un)?lock $lock" "$TMP/events")" = 8 ] || echo "the lock is not taken and given four times"
        grep -q 'doall_start 991' "$TMP/events" || echo 'no chunk from 991 on')"
fi

# ---- programs with the runtime's functions redefined ----

cat >"$TMP/own.c" <<'EOF'
#include <stdlib.h>
#include <string.h>
static char heap[4096];
static size_t used;
void *malloc(size_t n) { void *p = heap + used; used += (n + 15) & ~15ul; return used <= sizeof heap ? p : 0; }
void free(void *p) { (void)p; }
void *calloc(size_t a, size_t b) { return memset(malloc(a * b), 0, a * b); }
void *realloc(void *p, size_t n) { void *q = malloc(n); return p && q ? memcpy(q, p, n) : q; }
char *strcpy(char *to, const char *from) { char *p = to; while ((*p++ = *from++)); return to; }
int main(void) { char *p = malloc(100); strcpy(p, "x"); return p == heap || used > 0 ? 7 + (*p != 'x') : 1; }
EOF
verdict "a program keeps functions of its own where the runtime has one" "$(
    build own cc -O1 -fno-builtin "$TMP/own.c"
    complaints "$TMP/own.plain" "$TMP/own"
    has malloc 0)"
exit $status
