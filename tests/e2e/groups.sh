#!/bin/bash
# SPDX-License-Identifier: MIT
# A signal to the process group reaches both peet and the program, and peet forwards it: the program's handler runs once.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
"$peet" cc -O1 -w -o "$TMP/signalled" tests/e2e/subjects/signalled.c || exit 1

# What the program counts of SIGHUP, SIGINT, SIGQUIT and SIGTERM. TO: group, peet, or program; each SIGNAL is sent there, 400 ms apart.
# MS: how long the program continues after the first signal; a simulated program is ended after 700 ms.
counts() { # MS TO "SIGNAL…" COMMAND…
    local ms=$1 to=$2 signals=$3 pid signal program
    shift 3
    rm -f "$TMP/out"
    setsid "$@" "$TMP/signalled" "$ms" >"$TMP/out" 2>"$TMP/err" &
    pid=$! # setsid does not fork: a background process of a script leads no group
    for ((i = 0; i < 300; i++)); do
        grep -qs begun "$TMP/out" && break
        sleep 0.1
    done
    program=$(cut -d ' ' -f 1 "/proc/$pid/task/$pid/children")
    for signal in $signals; do
        case $to in
        group) kill -"$signal" -- -$pid ;;
        peet) kill -"$signal" $pid ;;
        program) kill -"$signal" "$program" ;;
        esac
        sleep 0.4
    done
    wait $pid
    sed -n 2p "$TMP/out"
}
check() { # EXPECTED MS TO "SIGNAL…" COMMAND…
    local expected=$1 found
    shift
    found=$(counts "$@")
    [ "$found" = "$expected" ] || { echo "$2 $3: $found in place of $expected"; cat "$TMP/err"; }
}

verdict "a signal to the process group reaches the handler of a recorded program once" "$(
    check "1 1 1 1" 3000 group "HUP INT QUIT TERM" "$peet" record -o "$TMP/t.peet" --
    check "0 0 0 2" 2000 group "TERM TERM" "$peet" record -o "$TMP/t.peet" --
    check "0 1 0 1" 2000 peet "INT TERM" "$peet" record -o "$TMP/t.peet" --
    check "0 2 0 0" 2000 program "INT INT" "$peet" record -o "$TMP/t.peet" --)"

if [ -f "$PEET_BUILD/lib/peet/libpeet-machine.so" ]; then
    verdict "a signal to the process group reaches the handler of a simulated program once" "$(
        check "0 0 0 1" 250 group TERM "$peet" simulate -m ideal --
        check "0 1 0 0" 250 group INT "$peet" simulate -m ideal --
        check "0 1 0 0" 250 peet INT "$peet" simulate -m ideal --
        check "0 0 0 1" 250 group TERM "$peet" simulate --apart -m ideal --)"
else
    skip "a signal to the process group reaches the handler of a simulated program once" "needs libpeet-machine.so"
fi
exit $status
