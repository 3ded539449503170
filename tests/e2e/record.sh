#!/bin/sh
# SPDX-License-Identifier: MIT
# Programs built by `peet cc` live and end in many ways while `peet record` looks on: what they do and return stays as it
# was, and the trace is well-formed.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet

if ! "$peet" cc -O2 -g -fno-tree-vectorize -o "$TMP/lives" tests/e2e/subjects/lives.c 2>"$TMP/cc.err"; then
    verdict "peet cc builds the subject" "$(cat "$TMP/cc.err")"
    exit $status
fi
${CC:-gcc} -O2 -o "$TMP/plain" tests/e2e/subjects/lives.c || exit 1

# Records the program as it lives in one WAY; its trace is in $TMP/WAY.peet, its exit code in $code.
record() { # WAY
    timeout 300 "$peet" record -o "$TMP/$1.peet" -- "$TMP/lives" "$1" >"$TMP/out" 2>"$TMP/err"
    code=$?
}

# The events of a trace, "thread event arguments", one a line.
events() { # WAY
    "$peet" dump --events "$TMP/$1.peet" | awk '/^[0-9]/ { $2 = ""; print }'
}

complaints() { # WAY: where the recorded program differs from the plain one, and what the check says
    (timeout 300 "$TMP/plain" "$1" >/dev/null 2>&1)
    expected=$?
    record "$1"
    [ "$code" = "$expected" ] || { echo "exit code $code, expected $expected"; cat "$TMP/err"; }
    "$peet" check "$TMP/$1.peet" >"$TMP/check" 2>&1 || grep -v 'at 0x10 is outside' "$TMP/check" | grep -E '^  (violation|warning)'
}

for way in return exit _exit quick_exit abort crash kill term many cancel left_behind c11 alarm old_signals jump jump_read own_fault fork orphan \
    handler_fork atfork daemon exec system sort; do
    verdict "a program that ends or lives by '$way' is recorded as it is" "$(complaints $way 2>/dev/null)"
done

ends() { # WAY PATTERN: what thread_end has to be in the first thread
    events "$1" | grep -q "^1  *thread_end $2" || { echo "expected: 1 thread_end $2"; events "$1" | tail -n 3; }
}
verdict "thread_end tells the exit status" "$(ends return '1 7'; ends _exit '1 7')"
verdict "thread_end tells the signal that killed" "$(ends kill '2 9'; ends term '2 15'; ends abort '2 6'; ends crash '2 11')"
verdict "thread_end tells of exec, and exec of the program" \
    "$(ends exec '3 0'; events exec | grep -q "exec \"$TMP/lives\"" || echo 'no exec event')"

number() { # WAY EVENT: how often it is there
    events "$1" | awk -v e="$2" '$2 == e { n++ } END { print n + 0 }'
}
equals() { # WAY EVENT NUMBER
    n=$(number "$1" "$2")
    [ "$n" = "$3" ] || echo "$1: $n $2, expected $3"
}
verdict "every thread is created, starts and is joined or detached, each once" \
    "$(equals many thread_create 900; equals many thread_start 900; equals many thread_join 600; equals many thread_detach 300)"
verdict "signal handlers are in the stream, whole" \
    "$(equals alarm signal_exit "$(number alarm signal_enter)"; [ "$(number alarm signal_enter)" -ge 50 ] || echo too few)"

# Recording twice gives the same stream, and as much as the program did: work() makes 200 rounds over 4096 words.
record return
cp "$TMP/return.peet" "$TMP/first.peet"
record return
for t in first return; do "$peet" dump --thread 1 "$TMP/$t.peet" | grep '^1' >"$TMP/$t.txt"; done
verdict "two recordings are the same" "$(cmp "$TMP/first.txt" "$TMP/return.txt" 2>&1)"
updates=$("$peet" dump --format csv "$TMP/return.peet" | awk -F, '$3 == "update" || $3 == "store" { n++ } END { print n }')
verdict "all references of a loop are there" "$([ "$updates" -ge 819200 ] && [ "$updates" -lt 819300 ] || echo "$updates stores")"

# What goes wrong.
"$peet" record -o "$TMP/no.peet" -- "$TMP/plain" return >"$TMP/out" 2>"$TMP/err"
verdict "a program that is not instrumented runs, and the user is told" \
    "$([ $? = 7 ] && grep -q 'not built with peet cc' "$TMP/err" || cat "$TMP/err")"
"$peet" record -o /dev/full -- "$TMP/lives" sort >"$TMP/out" 2>"$TMP/err"
code=$?
verdict "a full disk does not stop the program" "$([ $code = 7 ] || [ $code = 3 ] || echo "exit code $code"; \
    grep -q 'No space left' "$TMP/err" || cat "$TMP/err")"
"$peet" record --max 1m -o "$TMP/max.peet" -- "$TMP/lives" sort >"$TMP/out" 2>"$TMP/err"
verdict "--max stops recording, not the program" \
    "$([ $? = 7 ] || echo 'exit code'; "$peet" check "$TMP/max.peet" >"$TMP/check" || cat "$TMP/check"; ends max '4 0')"

stopped() { # TRACE: what it says of that
    "$peet" info --format csv "$1" | awk -F, '$1 == "summary" { print $(NF - 1), $NF }'
}
workloads=$PEET_BUILD/workloads/peet
verdict "--max is exact in a program of one thread" "$(
    "$peet" record --max 1000 -o "$TMP/max.peet" -- "$workloads/fft" -m 10 -p 1 >"$TMP/out" 2>&1
    said=$(stopped "$TMP/max.peet")
    case $said in "after 10"[0-4]?" instructions no") ;; *) echo "it says: $said" ;; esac
)"
"$peet" record -o "$TMP/whole.peet" -- "$workloads/fft" -m 14 -p 4 >"$TMP/out" 2>&1
for max in 100 1000000 4000000; do
    verdict "what --max $max records is the beginning of every thread" "$(
        "$peet" record --max $max -o "$TMP/max.peet" -- "$workloads/fft" -m 14 -p 4 >"$TMP/out" 2>&1
        "$PEET_BUILD/tests/e2e/same" --stacks --prefix "$TMP/max.peet" "$TMP/whole.peet" >"$TMP/said" 2>&1 || cat "$TMP/said"
        "$peet" check "$TMP/max.peet" >"$TMP/check" || cat "$TMP/check"
        [ $max = 100 ] || "$peet" dump --thread 1 --events "$TMP/max.peet" | grep -q ' thread_create ' || echo "who creates threads is missing"
        "$peet" simulate --format csv "$TMP/max.peet" >"$TMP/simulated" || echo "it cannot be simulated"
        recorded=$(sed -n 's/.*threads*, \([0-9]*\) instructions.*/\1/p' "$TMP/out")
        simulated=$(awk -F, '/^runs,/ { print $7 }' "$TMP/simulated")
        [ "$recorded" -ge $max ] && [ "$recorded" -lt $((2 * max + 200000)) ] || echo "$recorded instructions"
        [ "$recorded" = "$simulated" ] || echo "$simulated instructions of $recorded are simulated"
    )"
done
verdict "--max counts what is not left out" "$(
    for level in blocks calls; do
        "$peet" record --max 2000 --level $level -o "$TMP/max.peet" -- "$workloads/fft" -m 10 -p 1 >"$TMP/out" 2>&1
        grep -qE 'after 20[0-4][0-9] instructions' "$TMP/out" || { echo "$level:"; cat "$TMP/out"; }
    done
)"
"$peet" record --max 0 -o "$TMP/none.peet" -- "$workloads/fft" >"$TMP/out" 2>&1
verdict "--max 0 is wrong usage" "$([ $? = 2 ] && [ ! -e "$TMP/none.peet" ] || cat "$TMP/out")"

# The recorder is killed: the program continues.
("$peet" record -o "$TMP/killed.peet" -- sh -c 'for i in 1 2 3 4 5 6 7 8; do "$0" many; done; echo $? >"$1"' "$TMP/lives" "$TMP/status" & echo $! >"$TMP/pid"; wait) \
    >/dev/null 2>&1 &
sleep 0.5
kill -9 "$(cat "$TMP/pid")"
waited=0
while [ ! -s "$TMP/status" ] && [ $waited -lt 20 ]; do
    sleep 1
    waited=$((waited + 1))
done
verdict "a program outlives its recorder" "$([ "$(cat "$TMP/status" 2>&1)" = 7 ] || cat "$TMP/status" 2>&1)"
exit $status
