#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs whose work and span are known by a formula: what is studied in a recording, what a recording and what the running program take on an ideal
# machine agree with it, whether or not threads had to wait when they were recorded.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet

number() { # NAME: the first number of that name in JSON on standard input
    sed -n "s/.*\"$1\": *\([0-9.e+]*\).*/\1/p" | head -n 1
}
about() { # WHAT IS EXPECTED: a complaint, unless both are within 2 %
    awk -v is="${2:-0}" -v expected="$3" -v what="$1" 'BEGIN {
        if (is < expected * 0.98 || is > expected * 1.02) print what ": " is ", expected " expected }'
}
of_machine() { # TRACE | -- PROGRAM…: instructions for each cycle on an ideal machine
    "$peet" simulate -m ideal --format json -o "$TMP/result.json" "$@" >"$TMP/out" 2>"$TMP/err" || cat "$TMP/err" >&2
    awk -v i="$(number instructions <"$TMP/result.json")" -v c="$(number cycles <"$TMP/result.json")" 'BEGIN { print i / c }'
}
record() { # [sleeps]
    timeout 300 "$peet" record -o "$TMP/t.peet" -- "$TMP/orders" "$kind" 4 10000 "$@" >"$TMP/out" 2>"$TMP/err" || cat "$TMP/err"
    "$peet" check "$TMP/t.peet" >"$TMP/check" 2>&1 || head -n 5 "$TMP/check"
    "$peet" study parallelism --format json "$TMP/t.peet" >"$TMP/study.json"
    about "the study" "$(number parallelism <"$TMP/study.json")" "$expected"
    about "the recording on a machine" "$(of_machine "$TMP/t.peet")" "$expected"
    awk -v least="$(number span_least <"$TMP/study.json")" -v most="$(number span_most <"$TMP/study.json")" \
        -v span="$(awk -v w="$(number work <"$TMP/study.json")" -v p="$expected" 'BEGIN { print w / p }')" 'BEGIN {
        if (least > span * 1.02 || most < span * 0.98) print "the span with locks is " least " to " most ", which lacks " span }'
}

verdict "the program is built" "$("$peet" cc -O2 -g -o "$TMP/orders" tests/e2e/subjects/orders.c -lpthread 2>&1)"
# Parallelism of 4 threads, 20 items: work / span, as tests/e2e/subjects/orders.c says.
while read -r kind expected; do
    verdict "$kind has its parallelism in a recording" "$(record)"
    verdict "$kind has its parallelism in a recording of threads that come one after the other" "$(record sleeps)"
    verdict "$kind has its parallelism when it runs on the machine" \
        "$(about "the program" "$(of_machine -- "$TMP/orders" "$kind" 4 10000)" "$expected")"
done <<'END'
join 2.5
tree 2.3333
pipeline 3.4783
rounds 2.5
queue 1.9048
gate 2
count 1.75
END
exit $status
