#!/bin/bash
# SPDX-License-Identifier: MIT
# Sharing is by bytes: threads that write neighbouring elements of any size share lines, but no data.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
for type in char short int long; do
    "$peet" cc -O1 -g -DTYPE=$type -o "$TMP/$type" tests/e2e/subjects/neighbours.c -lpthread || exit 1
    "$peet" record -o "$TMP/$type.peet" -- "$TMP/$type" 4 1000 >"$TMP/out" 2>&1 || { cat "$TMP/out"; exit 1; }
done

sum() { # FILE TABLE COLUMN
    sed -n "/^  \"$2\"/,/^  }/p" "$1" | grep -o "\"$3\": *[0-9]*" | awk -F: '{ s += $2 } END { print s + 0 }'
}
verdict "bytes of one line that different threads write are false sharing, whatever the type and the line" "$(
    for type in char short int long; do
        for line in 64 256 4096; do
            "$peet" simulate -m modern --set cache.l1.line=$line --set cache.l2.line=$line --set cache.l3.line=$line \
                --set barrier.kind=wired --format json "$TMP/$type.peet" >"$TMP/json" 2>&1 || cat "$TMP/json"
            true=$(sum "$TMP/json" memory true_sharing) false=$(sum "$TMP/json" memory false_sharing)
            [ "$false" -gt 3000 ] && [ "$true" -lt 20 ] || echo "$type in lines of $line: $true true, $false false"
        done
    done
)"
verdict "peet profile says so of the array" "$(
    for type in char short int long; do
        "$peet" profile -m modern --format csv "$TMP/$type.peet" 2>&1 | grep '^bottlenecks,' | head -n 2 >"$TMP/csv"
        grep -q 'element.*false sharing' "$TMP/csv" || cat "$TMP/csv"
    done
)"
verdict "peet study sharing says that each element belongs to one thread" "$(
    for type in char short int long; do
        "$peet" study sharing --format csv "$TMP/$type.peet" >"$TMP/csv" 2>&1
        grep -qE '^data,element,[^,]*,([0-9]+),\1,0,0,0,' "$TMP/csv" || { echo "$type:"; grep ',element,' "$TMP/csv"; }
    done
)"
exit $status
