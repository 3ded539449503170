#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs that are simulated while they run: in their own process and in another one, with all that threads do.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
subjects=tests/e2e/subjects
workloads=$PEET_BUILD/workloads/peet
inside=$PEET_BUILD/lib/peet/libpeet-machine.so
for name in lives_on blocks cancel deadlock pool poll; do "$peet" cc -O1 -w -o "$TMP/$name" $subjects/$name.c -lpthread || exit 1; done

simulate() { timeout -k 1 300 "$peet" simulate -m sato1999 "$@"; }
# What the simulation says of a program, without what the program says.
numbers() { simulate --format csv "$@" 2>&1 | sed -n '/^table/,$p'; }

verdict "the machine says the same in the program's process and in another one" "$(
    while read -r name arguments; do
        # shellcheck disable=SC2086
        numbers --cpus 4 -- "$workloads/$name" $arguments >"$TMP/here"
        # shellcheck disable=SC2086
        numbers --cpus 4 --apart -- "$workloads/$name" $arguments >"$TMP/there"
        [ -s "$TMP/here" ] || echo "$name: nothing"
        cmp "$TMP/here" "$TMP/there" 2>&1
    done <<'LIST'
fft -m 10 -p 4
mp3d -n 500 -l 8 -s 2 -p 4
gates -n 200 -c 5 -p 4
minimize -i 6 -o 2 -c 60 -p 4
falseshare -n 5000 -p 4
LIST
)"

verdict "a list of numbers of processors is the same list in the program's process, in any order" "$(
    for cpus in --cpus=4,1,2 '--cpus 4,1,2' '--set jitter=7 --cpus 2,1'; do
        # shellcheck disable=SC2086
        numbers $cpus -- "$workloads/falseshare" -n 500 -p 4 >"$TMP/here"
        # shellcheck disable=SC2086
        numbers $cpus --apart -- "$workloads/falseshare" -n 500 -p 4 >"$TMP/there"
        [ -s "$TMP/here" ] || echo "$cpus: nothing"
        cmp "$TMP/here" "$TMP/there" 2>&1
    done
)"

if [ ! -f "$inside" ]; then
    skip "all that needs the machine in the program" "needs libpeet-machine.so"
    exit $status
fi

# NAME, what the first line must be, status, command
ends() {
    simulate -- "$TMP/lives_on" "$1" >"$TMP/all" 2>&1
    code=$?
    grep -v '^peet: note: child processes' "$TMP/all" >"$TMP/out"
    [ $code = "$2" ] || echo "$1: status $code in place of $2"
    [ "$(head -n 1 "$TMP/out")" = "5 7 5" ] || echo "$1: $(head -n 1 "$TMP/out")"
    grep -q "$3" "$TMP/out" || { echo "$1: no '$3' in:"; cat "$TMP/out"; }
}
verdict "threads exit, fork and are interrupted as ever, and however the process ends there is a result, or a reason why not" "$(
    ends return 9 '^Runs'
    ends return 9 '^destroyed 1, cleaned 1, handled 1'
    ends leave 0 '^destroyed 1, cleaned 1, handled 1'
    ends leave 0 '^Runs'
    ends crash 139 '^Runs'
    ends abort 134 '^Runs'
    ends exec 2 'starts another one by exec'
    ends kill 3 'ended by signal 9'
)"

left() { # [OPTION…]: how the machine looks
    simulate --format csv "$@" >"$TMP/out" 2>&1
    code=$?
    [ $code = 5 ] && grep -q '^done' "$TMP/out" && grep -q '^runs,' "$TMP/out" || { echo "$*: status $code"; cat "$TMP/out"; }
}
verdict "a program that ends takes all threads along, whatever they wait for, and there is a result" "$(
    for how in condition semaphore busy asleep lock; do
        left -- "$TMP/pool" $how
        left --cpus 1 -- "$TMP/pool" $how
    done
    left --set lock.kind=tas -- "$TMP/pool" lock
    left --apart -- "$TMP/pool" condition
    left --apart -- "$TMP/pool" busy
    "$peet" profile -- "$TMP/pool" >"$TMP/out" 2>&1
    [ $? = 5 ] && grep -q '^Summary' "$TMP/out" || { echo "profile:"; cat "$TMP/out"; }
    "$peet" profile -m memspy-16k --sample 1/10 --length 1000 -- "$TMP/pool" >"$TMP/out" 2>&1
    [ $? = 5 ] && grep -q '^Summary' "$TMP/out" || { echo "samples:"; cat "$TMP/out"; }
)"

verdict "a system call that waits lets others go on" "$(
    for cpus in 1 4; do
        simulate --set cpus=$cpus -- "$TMP/blocks" >"$TMP/out" 2>&1 || echo "$cpus processors: status $?"
        [ "$(head -n 1 "$TMP/out" | cut -d ' ' -f 1-3)" = "4000 1 4950" ] || head -n 5 "$TMP/out"
    done
    [ "$(head -n 1 "$TMP/out")" = "4000 1 4950 1 1" ] || head -n 5 "$TMP/out" # with four, nobody has written anything so early
    numbers --cpus 4 -- "$TMP/blocks" >"$TMP/once"
    numbers --cpus 4 -- "$TMP/blocks" >"$TMP/twice"
    cmp "$TMP/once" "$TMP/twice" 2>&1
)"

verdict "who only takes locks and gives them back has turns that end, too" "$(
    for kind in ideal ttas ticket mcs tas; do
        timeout 300 "$peet" profile -m memspy-16k --set lock.kind=$kind -- "$TMP/poll" >"$TMP/out" 2>&1 || echo "$kind: status $?"
        grep -q 'Stopped before its end' "$TMP/out" && echo "$kind: it did not come to its end"
    done
)"

verdict "threads are cancelled where they wait" "$(
    simulate --cpus 4 -- "$TMP/cancel" >"$TMP/out" 2>&1 || echo "status $?"
    [ "$(head -n 1 "$TMP/out")" = "5 5 10" ] || head -n 5 "$TMP/out"
)"

if "$peet" cc -O2 -fopenmp -o "$TMP/teams" $subjects/teams.c 2>"$TMP/err"; then
    verdict "OpenMP's teams run as the machine says, the same each time" "$(
        OMP_NUM_THREADS=4 "$TMP/teams" | head -n 1 >"$TMP/expected"
        for run in 1 2; do
            simulate --cpus 4 --format csv -- "$TMP/teams" >"$TMP/out$run" 2>&1 || echo "status $?"
            head -n 1 "$TMP/out$run" | cmp - "$TMP/expected" 2>&1
        done
        cmp "$TMP/out1" "$TMP/out2" 2>&1
        # no thread takes all chunks of a loop that is dealt out while it runs
        sed -n 2p "$TMP/out1" | awk '{ for (i = 1; i <= 4; i++) if ($i < 64 || $i > 256) print "shares: " $0 }'
    )"
    verdict "OpenMP's threads that wait for the next region end with the program" "$(
        printf 'static int a[8];\nint main(void) {\n#pragma omp parallel num_threads(4)\n  for (volatile int i = 0; i < 5000; i++) a[i & 7]++;\n  return 5; }\n' >"$TMP/region.c"
        "$peet" cc -O2 -fopenmp -o "$TMP/region" "$TMP/region.c"
        for cpus in 1 4; do
            simulate --cpus $cpus -- "$TMP/region" >"$TMP/out" 2>&1
            code=$?; [ $code = 5 ] || { echo "$cpus processors: status $code"; cat "$TMP/out"; }
        done
    )"
else
    skip "OpenMP's teams run as the machine says, the same each time" "needs libgomp"
fi

if "$peet" c++ -O1 -o "$TMP/objects" $subjects/objects.cc -lpthread 2>"$TMP/err"; then
    verdict "C++ keeps its promises: statics, call_once, thread_local, futures" "$(
        simulate --cpus 4 -- "$TMP/objects" >"$TMP/out" 2>&1
        code=$?; [ $code = 3 ] || echo "status $code"
        [ "$(head -n 1 "$TMP/out")" = "1421 1 8" ] || head -n 5 "$TMP/out"
    )"
else
    skip "C++ keeps its promises: statics, call_once, thread_local, futures" "needs g++"
fi

verdict "Ctrl-C ends the simulation, and what it has is shown" "$(
    printf 'static volatile long a[64];\nint main(void) { for (long i = 0;; i++) a[i %% 64]++; }\n' >"$TMP/ever.c"
    "$peet" cc -O1 -o "$TMP/ever" "$TMP/ever.c"
    timeout -s INT -k 20 1 "$peet" simulate -m ideal -- "$TMP/ever" >"$TMP/out" 2>&1
    grep -q 'Stopped before its end' "$TMP/out" || cat "$TMP/out"
    timeout 1 "$peet" record -o "$TMP/ever.peet" -- "$TMP/ever" >/dev/null 2>&1
    timeout -s INT -k 20 0.5 "$peet" simulate --set turn=reference "$TMP/ever.peet" >"$TMP/out" 2>&1
    grep -q 'Stopped before its end\|^Runs' "$TMP/out" || cat "$TMP/out"
)"

verdict "places of threads that have ended are for others" "$(
    printf '#include <pthread.h>\nstatic void *f(void *x) { return x; }\nint main(void) { pthread_t t; for (int i = 0; i < 4200; i++) if (pthread_create(&t, 0, f, 0) || pthread_join(t, 0)) return 1; return 0; }\n' >"$TMP/many.c"
    "$peet" cc -O1 -o "$TMP/many" "$TMP/many.c" -lpthread
    simulate --format csv -- "$TMP/many" 2>&1 | grep -q '^runs,sato1999,[0-9]*,4201,' || echo "not all threads were simulated"
)"

verdict "who is killed takes the program along" "$(
    "$peet" simulate -m ideal -- "$TMP/ever" >/dev/null 2>&1 &
    pid=$!
    sleep 1
    child=$(grep -l "^PPid:[[:space:]]*$pid\$" /proc/[0-9]*/status 2>/dev/null | tr -cd '0-9')
    kill -9 $pid
    wait $pid 2>/dev/null
    sleep 0.3
    [ -n "$child" ] || echo "there was no program"
    case $(sed -n 's/^State:[[:space:]]*//p' "/proc/$child/status" 2>/dev/null) in '' | Z*) ;; *) echo "the program is still there"; kill -9 "$child" ;; esac
)"
exit $status
