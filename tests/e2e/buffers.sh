#!/bin/bash
# SPDX-License-Identifier: MIT
# A recording of many buffers, which several workers encode at the same time, is the one that the program made: each buffer begins
# where the one before ended, stack pointer included, and nothing depends on which buffer was first.
set -u
. tests/soak/lib.sh

make_program() { # LEVEL FOLDER [OPTION…]
    local level=$1 folder=$work/$2
    shift 2
    mkdir -p "$folder"
    "$peet" cc "$level" -g "$@" -no-pie -Wl,-Tdata=0x10000000 -o "$folder/stack" tests/e2e/subjects/stack.c 2>&1
}
record() { # FOLDER TRACE ROUNDS [OPTION…]
    local folder=$1 trace=$2 rounds=$3
    shift 3
    timeout 300 "$peet" record "$@" -o "$work/$trace.peet" -- "$work/$folder/stack" "$rounds" >"$work/$trace.out" 2>"$work/$trace.err" ||
        { echo "status $?"; cat "$work/$trace.err"; }
}

for level in -O0 -O1 -O2; do
    verdict "a program at $level that moves its stack all the time is recorded as when every address is" "$(
        make_program $level norm
        make_program $level brut --peet-brute
        record norm norm 3000
        record brut brut 3000
        cmp "$work/norm.out" "$work/brut.out"
        "$peet" check "$work/norm.peet" >"$work/said" 2>&1 || head -n 12 "$work/said"
        "$same" --moved "$work/norm.peet" "$work/brut.peet" >"$work/said" 2>&1 || head -n 12 "$work/said"
    )"
done

# Items are numbered in the order in which the program reaches them.
verdict "two recordings have the same items with the same numbers" "$(
    for t in one two; do
        record norm $t 300
        "$peet" dump --thread 1 "$work/$t.peet" | grep '^1' >"$work/$t.txt"
    done
    cmp "$work/one.txt" "$work/two.txt" 2>&1
)"

verdict "--max ends two recordings at the same place" "$(
    for t in one two; do record norm $t 3000 --max 5m; done
    "$same" --prefix "$work/one.peet" "$work/norm.peet" >"$work/said" 2>&1 || head -n 12 "$work/said"
    "$same" "$work/one.peet" "$work/two.peet" >"$work/said" 2>&1 || head -n 12 "$work/said"
)"

# One processor has one worker, and slow threads are waited for.
verdict "on one processor the recording is the same" "$(
    timeout 300 taskset -c 0 "$peet" record -o "$work/one.peet" -- "$work/norm/stack" 3000 >"$work/out" 2>&1 || cat "$work/out"
    "$same" "$work/one.peet" "$work/norm.peet" >"$work/said" 2>&1 || head -n 12 "$work/said"
)"
exit $status
