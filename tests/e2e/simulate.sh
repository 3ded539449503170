#!/bin/bash
# SPDX-License-Identifier: MIT
# The machine controls the program, and its results are those of the program's trace.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
subjects=tests/e2e/subjects
workloads=$PEET_BUILD/workloads/peet
for name in order waits deadlock pool; do "$peet" cc -O1 -w -o "$TMP/$name" $subjects/$name.c -lpthread || exit 1; done

# A number of a table of the JSON in FILE: the sum of a column.
sum() { # FILE TABLE COLUMN
    sed -n "/^  \"$2\"/,/^  }/p" "$1" | grep -o "\"$3\": *[0-9.e+-]*" | awk -F: '{ s += $2 } END { printf "%.0f\n", s }'
}

grants() { "$peet" simulate -m sato1999 --set cpus=8 --set lock.kind=ideal --set lock.grant="$1" --format csv -- "$TMP/order" 2>&1 | head -n 1; }
verdict "who gets a lock is the machine's choice: first come, last come, most urgent" "$(
    expect() { [ "$2" = "$3" ] || echo "$1: '$2' in place of '$3'"; }
    for run in first second; do
        expect "fifo, $run" "$(grants fifo)" "2 4 1 3"
        expect "lifo, $run" "$(grants lifo)" "3 1 4 2"
        expect "priority, $run" "$(grants priority)" "4 3 2 1"
    done
)"

verdict "threads wait for conditions, semaphores, readers and each other as they should" "$(
    gcc -O1 -w -o "$TMP/plain" $subjects/waits.c -lpthread && "$TMP/plain" >"$TMP/expected"
    for machine in sato1999 modern; do
        timeout 300 "$peet" simulate -m $machine -- "$TMP/waits" >"$TMP/out" 2>&1 || echo "status $?"
        head -n 1 "$TMP/out" | cmp - "$TMP/expected" 2>&1
    done
)"

verdict "more threads than processors take turns" "$(
    timeout 300 "$peet" simulate -m sato1999 --set cpus=2 --set scheduler.kind=robin --set scheduler.quantum=1000 -- "$TMP/waits" >"$TMP/out" 2>&1 || echo "status $?"
    head -n 1 "$TMP/out" | cmp - "$TMP/expected" 2>&1
)"

verdict "a deadlock is told, with who waits for what" "$(
    timeout 300 "$peet" simulate -- "$TMP/deadlock" >"$TMP/out" 2>&1
    [ $? = 3 ] || echo "status $?"
    grep -q 'deadlock.*thread 1 waits for lock 0x[0-9a-f]*, which thread 2 holds; thread 2 waits for lock 0x[0-9a-f]*, which thread 1 holds' "$TMP/out" || cat "$TMP/out"
)"

# Two threads: the second takes a lock and ends so, the first takes it later.
cut_off() { # LOCK UNLOCK HOW
    printf 'peet text 1\nprocess 1 parent 0 program "a" command "a"\n'
    printf 'thread 1 process 1 parent 0 ordinal 0 name ""\nthread 2 process 1 parent 1 ordinal 0 name ""\n'
    printf 'block b1\n  0x401000 4 plain\nloop l1 values 1 counts 1\n  repeat c0, step v0 = v0+1\n    b1\n  done\n'
    printf '2 - thread_start 1\n2 - %s 4096\n2 - thread_end %s 0\n' "$1" "$3"
    printf '1 - thread_create 2\n1 - l1 0 1000\n1 - %s 4096\n1 - %s 4096\n1 - thread_end 1 0\nend\n' "$1" "$2"
}
verdict "a recorded thread that was cut off keeps no lock, and one that ended by itself does" "$(
    for kind in mutex_lock:mutex_unlock spin_lock:spin_unlock rwlock_wrlock:rwlock_unlock; do
        for how in 0 1 2 4; do
            cut_off "${kind%:*}" "${kind#*:}" $how >"$TMP/cut.txt"
            "$peet" import -o "$TMP/cut.peet" "$TMP/cut.txt"
            for lock in ideal ttas mcs; do
                timeout 300 "$peet" simulate -m sato1999 --cpus 2 --set lock.kind=$lock "$TMP/cut.peet" >"$TMP/out" 2>&1
                code=$?
                [ $code = $((how ? 0 : 3)) ] || { echo "$kind, $lock, end $how: status $code"; cat "$TMP/out"; }
            done
        done
    done
    "$peet" record -o "$TMP/pool.peet" -- "$TMP/pool" >"$TMP/out" 2>&1
    "$peet" check "$TMP/pool.peet" >"$TMP/out" 2>&1 || cat "$TMP/out"
    for cpus in 1 4; do
        "$peet" simulate -m sato1999 --cpus $cpus "$TMP/pool.peet" >"$TMP/out" 2>&1 || cat "$TMP/out"
    done
    "$peet" profile "$TMP/pool.peet" >"$TMP/out" 2>&1 || cat "$TMP/out"
)"

verdict "the program's output and exit status are its own" "$(
    printf 'int main(void) { return 7; }\n' >"$TMP/seven.c"
    "$peet" cc -o "$TMP/seven" "$TMP/seven.c"
    "$peet" simulate -m ideal -- "$TMP/seven" >/dev/null 2>&1
    [ $? = 7 ] || echo "another status"
    "$peet" simulate -m ideal -- /bin/true >"$TMP/out" 2>&1
    code=$?; [ $code = 2 ] || echo "a program that is not instrumented: status $code"
    grep -q 'peet cc' "$TMP/out" || cat "$TMP/out"
    "$peet" cc -static -o "$TMP/static" "$TMP/seven.c"
    timeout 300 "$peet" simulate -m ideal -- "$TMP/static" >"$TMP/out" 2>&1
    code=$?
    [ $code = 2 ] || echo "a static program: status $code"
    grep -q 'static' "$TMP/out" || cat "$TMP/out"
)"

# On an idle machine and on one that is busy: bit for bit.
same_again() { # [ARGUMENT…]: a machine and a program
    "$peet" simulate --format json "$@" >"$TMP/first.json" 2>&1
    timeout 20 sh -c 'while :; do :; done' &
    first=$!
    timeout 20 sh -c 'while :; do :; done' &
    second=$!
    "$peet" simulate --format json "$@" >"$TMP/second.json" 2>&1
    kill $first $second
    wait $first $second 2>/dev/null
    cmp "$TMP/first.json" "$TMP/second.json" 2>&1
}
verdict "a live run is the same again, also when the machine is busy" "$(
    same_again -m sato1999 -- "$workloads/mp3d" -n 1000 -s 3 -p 4
    same_again -m modern -- "$TMP/order" 1 1
    same_again -m modern -- "$TMP/order" 2 64
)"

verdict "false sharing live is as from the trace, and padding in the machine's eyes as padding" "$(
    "$peet" record -o "$TMP/near.peet" -- "$workloads/falseshare" -n 20000 -p 2 >/dev/null 2>&1
    "$peet" record -o "$TMP/far.peet" -- "$workloads/falseshare" -n 20000 -p 2 -s 64 >/dev/null 2>&1
    echo 'spread heap:wl_alloc every 8 to 64 # counters' >"$TMP/rules"
    "$peet" simulate -m sato1999 --format json "$TMP/near.peet" >"$TMP/near.json"
    "$peet" simulate -m sato1999 --format json "$TMP/far.peet" >"$TMP/far.json"
    "$peet" simulate -m sato1999 --remap "$TMP/rules" --format json "$TMP/near.peet" >"$TMP/moved.json"
    "$peet" simulate -m sato1999 --format json -- "$workloads/falseshare" -n 20000 -p 2 >"$TMP/live.json"
    for ahead in 4k 1m; do # however far a thread runs before it is stopped
        "$peet" simulate -m sato1999 --ahead $ahead --format json -- "$workloads/falseshare" -n 20000 -p 2 | cmp - "$TMP/live.json" 2>&1
    done
    near=$(sum "$TMP/near.json" memory invalidations) live=$(sum "$TMP/live.json" memory invalidations)
    [ "$near" -gt 10000 ] || echo "the trace: $near invalidations"
    awk -v a="$near" -v b="$live" 'BEGIN { if (b < 0.95 * a || b > 1.05 * a) print "live " b ", from the trace " a }'
    for kind in invalidations misses upgrades; do
        far=$(sum "$TMP/far.json" memory $kind) moved=$(sum "$TMP/moved.json" memory $kind)
        awk -v a="$far" -v b="$moved" -v kind=$kind 'BEGIN { if (b < a - 10 || b > a + 10) print kind ": padded " a ", in the machine'"'"'s eyes " b }'
    done
)"

verdict "what each processor's cycles went into adds up to the run" "$(
    "$peet" record -o "$TMP/mp3d.peet" -- "$workloads/mp3d" -n 500 -s 3 -p 6 >/dev/null 2>&1
    for set in scheduler.wait=yield scheduler.wait=busy contexts=2 "turn=reference"; do
        "$peet" simulate -m sato1999 --set "$set" --format json "$TMP/mp3d.peet" >"$TMP/all.json" || echo "status $?"
        cycles=$(sum "$TMP/all.json" runs cycles) all=0 places=$(grep -c '"switches"' "$TMP/all.json")
        for kind in compute stall bus fetch issue lock barrier other change idle; do all=$((all + $(sum "$TMP/all.json" times $kind))); done
        [ "$all" -gt 0 ] && [ "$all" = $((cycles * places)) ] || echo "$set: $all in place of $cycles times $places"
    done
)"
exit $status
