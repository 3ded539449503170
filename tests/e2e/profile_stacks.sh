#!/bin/bash
# SPDX-License-Identifier: MIT
# Data in stacks belongs to the function whose frame it is, and with DWARF to its variable: in profiles of recordings, of running programs, and of samples.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
# The references to an object, and its kind and bytes; nothing if the profile does not have it.
object() { # CSV NAME
    awk -F, -v name="$2" '$1 == "table" { delete at; for (i = 1; i <= NF; i++) at[$i] = i }
        $1 == "objects" && $at["object"] == name { print $at["references"], $at["kind"], $at["bytes"] }' "$1"
}
stack_of() { # CSV: the functions whose frames have other data with many references
    awk -F, '$1 == "table" { delete at; for (i = 1; i <= NF; i++) at[$i] = i }
        $1 == "objects" && $at["object"] ~ /^stack of/ && $at["references"] >= 400 { print $at["object"] }' "$1"
}
# Each array has its stores, and a few loads more.
has() { # CSV NAME STORES
    local references kind bytes
    read -r references kind bytes < <(object "$1" "$2")
    [ -n "${references:-}" ] && [ "$references" -ge "$3" ] && [ "$references" -le $(($3 + 100)) ] && [ "$kind" = stack ] && [ "$bytes" = 4000 ] ||
        { echo "$2: '${references:-} ${kind:-} ${bytes:-}', not about $3 references to a stack's 4000 bytes"; object "$1" "$2"; }
}
for level in -O1 -O2 '-O1 -fomit-frame-pointer' -O0; do
    # shellcheck disable=SC2086
    "$peet" cc -g $level -o "$TMP/frames" tests/e2e/subjects/frames.c -lpthread
    "$peet" record -o "$TMP/frames.peet" -- "$TMP/frames" >/dev/null 2>&1
    for machine in memspy-16k modern; do # the first one has one core
        for what in "$TMP/frames.peet" "-- $TMP/frames"; do
            verdict "data in a stack is a variable of the function whose frame it is ($level, $machine, ${what%% *})" "$(
                # shellcheck disable=SC2086
                "$peet" profile -m $machine --top 0 --format csv -o "$TMP/csv" $what >/dev/null 2>"$TMP/err" || cat "$TMP/err"
                has "$TMP/csv" 'shared in main' 1000
                has "$TMP/csv" 'cells in first' 10000
                has "$TMP/csv" 'others in second' 10000
                has "$TMP/csv" 'below in deep' 5000
                has "$TMP/csv" 'private_cells in work' 500
                [ "$level" = -O0 ] || stack_of "$TMP/csv"
            )"
        done
    done
done
"$peet" cc -O1 -o "$TMP/frames" tests/e2e/subjects/frames.c -lpthread
"$peet" record -o "$TMP/frames.peet" -- "$TMP/frames" >/dev/null 2>&1
for machine in memspy-16k modern; do
    verdict "without DWARF it is of the function whose frame it is ($machine)" "$(
        "$peet" profile -m $machine --top 0 --format csv "$TMP/frames.peet" >"$TMP/csv" 2>"$TMP/err" || cat "$TMP/err"
        for function in main first second deep work; do
            stack_of "$TMP/csv" | grep -qx "stack of $function" || echo "no stack of $function"
        done
        stack_of "$TMP/csv" | grep -x 'stack of fill'
    )"
done
cat >"$TMP/sampled.c" <<'END'
#include <stdio.h>
enum { CELLS = 1 << 16 };
__attribute__((noinline)) static void fill(volatile long *cells)
{
    for (int i = 0; i < CELLS; i++)
        cells[i] = i;
}
int main(void)
{
    volatile long buffer[CELLS];
    for (int i = 0; i < 20; i++)
        fill(buffer);
    return buffer[7] != 7;
}
END
for level in -O0 -O2; do
    "$peet" cc -g $level -o "$TMP/sampled" "$TMP/sampled.c"
    "$peet" record -o "$TMP/sampled.peet" -- "$TMP/sampled" >/dev/null 2>&1
    for machine in memspy-16k modern; do
        for what in "$TMP/sampled.peet" "-- $TMP/sampled"; do
            verdict "and in samples ($level, $machine, ${what%% *})" "$(
                # shellcheck disable=SC2086
                "$peet" profile -m $machine --sample 1/10 --length 5000 --top 0 --format csv -o "$TMP/csv" $what >/dev/null 2>"$TMP/err" || cat "$TMP/err"
                read -r references _ < <(object "$TMP/csv" 'buffer in main')
                awk -v n="${references:-0}" 'BEGIN { exit !(n > 100000) }' || echo "'buffer in main' has ${references:-no} references"
                stack_of "$TMP/csv" | grep -x 'stack of fill'
            )"
        done
    done
done
exit $status
