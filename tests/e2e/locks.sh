#!/bin/bash
# SPDX-License-Identifier: MIT
# Locks are data: what they refer to has its object, its line of code and its causes in a profile, and its name and place in peet simulate.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
source=tests/e2e/subjects/near_lock.c
"$peet" cc -O1 -g -fno-toplevel-reorder -o "$TMP/near" $source -lpthread || exit 1
"$peet" record -o "$TMP/near.peet" -- "$TMP/near" >"$TMP/err" 2>&1 || { cat "$TMP/err"; exit 1; }

line_of() { grep -n "place: $1 " $source | cut -d: -f1; }
at() { printf 'near_lock.c:%s' "$(line_of "$1")"; }
rows() { sed -n "/^$2,/p" "$1"; } # CSV TABLE
how() { # NAME PROGRAM-OR-TRACE…
    local name=$1
    shift
    "$peet" profile --top 0 --format csv -o "$TMP/$name" "$@" >/dev/null 2>"$TMP/err" || cat "$TMP/err"
}
how running -- "$TMP/near"
how recorded "$TMP/near.peet"
how queue --set lock.kind=mcs -- "$TMP/near"

for run in running recorded queue; do
    verdict "a counter beside a lock shares falsely with that, each at its own line ($run)" "$(
        rows "$TMP/$run" sharing >"$TMP/pairs"
        grep -q "^sharing,counter,false,$(at count),mutex,$(at lock)," "$TMP/pairs" || echo "no pair (counter, mutex)"
        grep -q "^sharing,mutex,false,$(at lock),counter,$(at count)," "$TMP/pairs" || echo "no pair (mutex, counter)"
        grep -E '^sharing,[^,]*,true|unknown' "$TMP/pairs"
    )"
done
verdict "what locks refer to is in the tables of data and lines, with place and cause" "$(
    grep -qE "^objects,mutex,.*,variable,pthread_mutex_t,40,$(at mutex)(,|\$)" "$TMP/running" || rows "$TMP/running" objects
    for line in lock unlock; do
        grep -qE "^lines,$(at $line),takes,mutex,[^,]*,false sharing," "$TMP/running" || rows "$TMP/running" lines
    done
)"
verdict "one processor sees the same references of locks" "$(
    how core -m core -- "$TMP/near"
    how modern -m modern --cpus 1 -- "$TMP/near"
    for run in core modern; do
        rows "$TMP/$run" lines | grep ',mutex,' | cut -d, -f2-4,9 | sort >"$TMP/$run.lines"
    done
    [ "$(wc -l <"$TMP/core.lines")" = 2 ] || cat "$TMP/core.lines"
    diff "$TMP/core.lines" "$TMP/modern.lines"
)"
verdict "peet simulate names locks with their place" "$(
    for how in --apart ''; do
        # shellcheck disable=SC2086
        "$peet" simulate $how --format csv -- "$TMP/near" more >"$TMP/csv" 2>"$TMP/err" || cat "$TMP/err"
        for name in "nodes[2].lock at $(at nodes)" "row[1] at $(at row)" "gate at $(at gate)"; do
            grep -qF ",$name," "$TMP/csv" || { echo "no $name"; rows "$TMP/csv" objects; }
        done
    done
    "$peet" simulate --format csv "$TMP/near.peet" 2>&1 | grep -qF ",mutex at $(at mutex)," || echo "not of a trace"
)"
exit $status
