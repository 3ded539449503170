#!/bin/bash
# SPDX-License-Identifier: MIT
# Whether what threads do depends on the interleaving: of programs of which we know, live and from traces.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
"$peet" cc -O1 -w -o "$TMP/tickets" tests/e2e/subjects/tickets.c -lpthread || exit 1

# CODE ARGUMENT…: the study ends with the code; its JSON is in $TMP/out.
study() {
    local want=$1 code
    shift
    "$peet" study intrinsic --format json -o "$TMP/out" "$@" >"$TMP/said" 2>"$TMP/err"
    code=$?
    [ $code = "$want" ] || { echo "peet study intrinsic $*: exit code $code, expected $want"; cat "$TMP/err"; }
}
has() { grep -q "$1" "$TMP/out" || { echo "no $1 in:"; cat "$TMP/out"; }; }
count() { [ "$(grep -o "$2" "$TMP/out" | wc -l)" = "$1" ] || { echo "not $1 times $2:"; cat "$TMP/out"; }; }

verdict "threads that have their own work do the same under every schedule" "$(
    study 0 --seeds 5 -- "$TMP/tickets" own
    has '"intrinsic": "yes'
    count 4 '"stream": "same"'
)"
verdict "threads that draw numbers under a lock do not: addresses change, in the function that uses them" "$(
    study 1 --seeds 5 -- "$TMP/tickets" lock
    has '"intrinsic": "no"'
    count 3 '"stream": "address"'
    count 3 '"place": "fill+0x'
    count 1 '"stream": "same"'
)"
verdict "what is found of a program is found again" "$(
    cp "$TMP/out" "$TMP/before" 2>/dev/null
    study 1 --seeds 5 -- "$TMP/tickets" lock
    cmp "$TMP/before" "$TMP/out" 2>&1
)"
verdict "a program that was run writes all that it has to write" "$(
    printf '#include <stdio.h>\nint main(void) { return puts("written at its end") < 0; }\n' >"$TMP/writes.c"
    "$peet" cc -o "$TMP/writes" "$TMP/writes.c"
    "$peet" study intrinsic --seeds 5 -- "$TMP/writes" >"$TMP/log" 2>&1 || cat "$TMP/log"
    n=$(grep -c '^written at its end' "$TMP/log")
    [ "$n" = 5 ] || echo "$n times in place of 5"
)"
for way in own lock race; do
    for n in 1 2; do "$peet" record -o "$TMP/$way$n.peet" -- "$TMP/tickets" $way >"$TMP/log" 2>&1 || cat "$TMP/log"; done
done
verdict "recordings of threads that have their own work are the same, and nothing is read unordered" "$(
    study 0 "$TMP/own1.peet" "$TMP/own2.peet"
    has '"intrinsic": "yes: nothing'
    count 4 '"stream": "same"'
)"
verdict "a single recording shows what is read unordered: under a lock, or in a race" "$(
    study 0 "$TMP/lock1.peet"
    has '"intrinsic": "not known'
    count 3 '"cause": "locks or atomics", "data": "number", "read_in": "fill'
    study 0 "$TMP/race1.peet"
    count 3 '"cause": "data race", "data": "number", "read_in": "fill'
    study 0 "$TMP/own1.peet"
    count 4 '"cause": "nothing"'
)"
verdict "recordings of programs that differ are told apart" "$(
    study 1 "$TMP/own1.peet" "$TMP/lock1.peet" "$TMP/own2.peet"
    has '"differs": 1, "other": "[^"]*lock1.peet"'
    count 3 '"stream": "event"'
)"

usage() { # PATTERN ARGUMENT…
    local pattern=$1 code
    shift
    "$peet" study "$@" >/dev/null 2>"$TMP/err"
    code=$?
    [ $code = 2 ] || echo "peet study $*: exit code $code"
    grep -q -- "$pattern" "$TMP/err" || cat "$TMP/err"
}
verdict "what makes no sense is told" "$(
    usage 'at least 2' intrinsic --seeds 1 -- "$TMP/tickets"
    usage "study 'intrinsic' of a program" intrinsic --seeds 3 "$TMP/own1.peet"
    usage "--seeds is for the study 'intrinsic'" sharing --seeds 3 "$TMP/own1.peet"
    usage 'no machine' intrinsic -m moderm -- "$TMP/tickets"
    usage 'peet cc' intrinsic -- /bin/true
    # shellcheck disable=SC2002
    cat "$TMP/own1.peet" | "$peet" study intrinsic - 2>&1 | grep -q 'save it in a file' || echo "a pipe is taken"
)"
exit $status
