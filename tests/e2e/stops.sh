#!/bin/bash
# SPDX-License-Identifier: MIT
# A signal ends peet and the program that it simulates, whatever that program does.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
LIMIT=30 # seconds, on a machine that has much else to do
if [ ! -f "$PEET_BUILD/lib/peet/libpeet-machine.so" ]; then
    skip "programs in whose process the machine is" "needs libpeet-machine.so"
    exit 0
fi
"$peet" cc -O1 -w -fno-builtin -o "$TMP/stuck" tests/e2e/subjects/stuck.c || exit 1

# Complaints where SIGTERM does not end both; what peet said is then in $TMP/out and $TMP/err.
stop() { # ARGUMENT OF THE PROGRAM
    "$peet" simulate -m sato1999 -- "$TMP/stuck" "$1" >"$TMP/out" 2>"$TMP/err" &
    pid=$!
    for ((i = 0; i < LIMIT * 10; i++)); do
        grep -q begun "$TMP/out" && break
        sleep 0.1
    done
    program=$(cat "/proc/$pid/task/$pid/children")
    sleep 1
    kill -TERM $pid
    for ((i = 0; i < LIMIT * 10; i++)); do
        kill -0 $pid 2>/dev/null || break
        sleep 0.1
    done
    if kill -0 $pid 2>/dev/null; then
        echo "peet goes on"
        kill -KILL $pid
    fi
    wait $pid 2>/dev/null
    for p in $program; do
        kill -0 "$p" 2>/dev/null && echo "the program goes on" && kill -KILL "$p"
    done
}

verdict "a program that ignores the signal is simulated up to there" "$(stop ignoring
    grep -q '^Runs' "$TMP/out" || { echo "no report"; cat "$TMP/err"; })"
verdict "a program that is stuck in code that was not recorded is killed, which is said" "$(stop outside
    grep -q 'stuck: killed, for it did not come to an end' "$TMP/err" || cat "$TMP/err")"
exit $status
