#!/bin/bash
# SPDX-License-Identifier: MIT
# What a thread of a race-free program did does not depend on what else the machine does: recordings with 4 threads, one when
# run undisturbed, others beside busy loops, at low priority and on one processor, have the same instructions, references and
# events in every thread.
set -u
. tests/soak/lib.sh

busy=()
stop() {
    [ ${#busy[@]} = 0 ] || kill "${busy[@]}" 2>/dev/null
    wait 2>/dev/null
    busy=()
}
load() { # NUMBER: of loops that do nothing, fast, and not for ever
    local i
    for ((i = 0; i < $1; i++)); do
        timeout 100 bash -c 'while :; do :; done' &
        busy+=($!)
    done
}

record() { # TRACE NAME [ARGUMENT…], with the words of $how in front
    local trace=$1 name=$2
    shift 2
    # shellcheck disable=SC2086
    timeout 300 $how "$peet" record -o "$work/$trace.peet" -- "$build/workloads/peet/$name" "$@" >"$work/out" 2>"$work/err" ||
        { echo "$how: status $?"; cat "$work/err"; }
    grep -q "^$name: ok: " "$work/out" || cat "$work/out"
}

while read -r name args; do
    # shellcheck disable=SC2086
    verdict "$name does the same on an idle machine and on a loaded one" "$(
        trap stop EXIT
        how=
        record idle "$name" $args -p 4
        load 4
        for how in "" "nice -n 15" "taskset -c 0" "nice -n 15 taskset -c 1"; do
            case $how in
            *"-c 1") [ "$(nproc)" -gt 1 ] || continue ;;
            esac
            record loaded "$name" $args -p 4
            "$same" "$work/idle.peet" "$work/loaded.peet" >"$work/said" 2>&1 ||
                { echo "loaded${how:+, $how}:"; head -n 12 "$work/said"; }
        done
    )"
done <<'END'
lu-con -n 64
radix -n 16k
shallow -n 32 -m 32 -s 2
END
exit $status
