#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: tests/e2e/loaded.sh [--strict]
#
# What a thread of a race-free program did does not depend on what else the machine does: recordings with 4 threads, one when
# nobody disturbs, others beside busy loops, at low priority and on one processor, have the same instructions, references and
# events in every thread. The stacks of threads may stand elsewhere, as a whole; with --strict they may not.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet same=$PEET_BUILD/tests/e2e/same
stacks=--stacks
[ "${1:-}" != --strict ] || stacks=

busy=()
stop() {
    [ ${#busy[@]} = 0 ] || kill "${busy[@]}" 2>/dev/null
    wait 2>/dev/null
    busy=()
}
trap stop EXIT
load() { # NUMBER: of loops that do nothing, fast
    local i
    for ((i = 0; i < $1; i++)); do
        (while :; do :; done) &
        busy+=($!)
    done
}

record() { # TRACE NAME [ARGUMENT…], with the words of $how in front
    local trace=$1 name=$2
    shift 2
    # shellcheck disable=SC2086
    timeout 120 $how "$peet" record -o "$TMP/$trace.peet" -- "$PEET_BUILD/workloads/peet/$name" "$@" >"$TMP/out" 2>"$TMP/err" ||
        { echo "$how: status $?"; cat "$TMP/err"; }
    grep -q "^$name: ok: " "$TMP/out" || cat "$TMP/out"
}

while read -r name args; do
    # shellcheck disable=SC2086
    verdict "$name does the same on an idle machine and on a loaded one" "$(
        how=
        record idle "$name" $args -p 4
        load 4
        for how in "" "nice -n 15" "taskset -c 0" "nice -n 15 taskset -c 1"; do
            case $how in
            *"-c 1") [ "$(nproc)" -gt 1 ] || continue ;;
            esac
            record loaded "$name" $args -p 4
            "$same" $stacks "$TMP/idle.peet" "$TMP/loaded.peet" >"$TMP/said" 2>&1 ||
                { echo "loaded${how:+, $how}:"; head -n 12 "$TMP/said"; }
        done
        stop
    )"
done <<'END'
lu-con -n 64
radix -n 16k
shallow -n 32 -m 32 -s 2
END
exit $status
