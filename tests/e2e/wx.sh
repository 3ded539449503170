#!/bin/bash
# SPDX-License-Identifier: MIT
# Generated code is mapped twice, and never writable where it runs; without it there are the same results.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
forbid=$PEET_BUILD/tests/e2e/forbid
"$peet" cc -O1 -w -o "$TMP/own_maps" tests/e2e/subjects/own_maps.c || exit 1
fft=$PEET_BUILD/workloads/peet/fft
"$peet" record -o "$TMP/t.peet" -- "$fft" -m 8 -p 2 >"$TMP/out" 2>&1 || { cat "$TMP/out"; exit 1; }

if [ "$(uname -m)" != x86_64 ]; then
    skip "generated code is written at one address and executed at another" "needs x86-64"
    exit $status
fi
# What the program has in memory: each of the two mappings of generated code once, and nothing writable and executable.
if [ -f "$PEET_BUILD/lib/peet/libpeet-machine.so" ]; then
    verdict "in a program that is profiled, generated code is written at one address and executed at another" "$(
        "$peet" profile -m core -- "$TMP/own_maps" >"$TMP/maps" 2>"$TMP/err" || cat "$TMP/err"
        grep -E '^[0-9a-f-]+ .wx' "$TMP/maps"
        for access in rw-s r-xs; do
            [ "$(grep -cE "^[0-9a-f-]+ $access .*/memfd:peet-code" "$TMP/maps")" = 1 ] ||
                echo "not one mapping $access of peet-code"
        done
    )"
fi

"$forbid" both true
if [ $? = 77 ]; then
    skip "no memory is writable and executable at once, ever" "needs seccomp"
    exit $status
fi
# What the commands say is the same under the filter.
same() { # FILTER
    while read -r command; do
        # shellcheck disable=SC2086
        "$forbid" nothing "$peet" $command >"$TMP/free" 2>&1
        # shellcheck disable=SC2086
        "$forbid" "$1" "$peet" $command >"$TMP/filtered" 2>&1
        [ -s "$TMP/free" ] || echo "$command: nothing"
        cmp "$TMP/free" "$TMP/filtered" 2>&1 || { echo "$command:"; head -n 5 "$TMP/filtered"; }
    done <<LIST
simulate -m core $TMP/t.peet
profile -m core --format csv $TMP/t.peet
profile -m core --format csv -- $fft -m 8 -p 1
simulate -m sato1999 --cpus 2 --format csv -- $fft -m 8 -p 2
LIST
}
verdict "no memory is ever made writable and executable at once, in peet and in the program" "$(same both)"
verdict "where executable memory is refused, results are the same" "$(same executable)"
exit $status
