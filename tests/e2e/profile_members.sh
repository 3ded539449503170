#!/bin/bash
# SPDX-License-Identifier: MIT
# Members of types: which of them cost most, of heap blocks, variables and data of threads; they add up to their objects.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
"$peet" profile -m memspy-16k --top 0 --format csv --trace "$TMP/a.peet" -- "$PEET_BUILD/workloads/peet/mp3d" -p 1 -n 2000 -l 16 -s 3 2>"$TMP/err" |
    sed -n '/^table/,$p' >"$TMP/csv"
rows() { # CSV TABLE COLUMN…
    awk -F, -v table="$2" -v columns="${*:3}" 'BEGIN { n = split(columns, want, " ") }
        $1 == "table" { delete at; for (i = 1; i <= NF; i++) at[$i] = i }
        $1 == table { line = ""; for (i = 1; i <= n; i++) line = line (i > 1 ? " " : "") $at[want[i]]; print line }' "$1"
}
verdict "members of blocks have their names and places" "$(
    rows "$TMP/csv" members object member offset >"$TMP/members"
    for want in "t->molecule [].speed[] 12" "t->molecule [].at[] 0" "t->molecule [].cell 24" "t->cell [].population 4"; do
        grep -qxF "$want" "$TMP/members" || { echo "no $want among"; cat "$TMP/members"; }
    done
)"
verdict "misses of members are those of their data" "$(
    for object in 't->molecule' 't->cell'; do
        sum=$(rows "$TMP/csv" members object misses | awk -v o="$object" '$1 == o { s += $2 } END { print s }')
        all=$(rows "$TMP/csv" objects object misses | awk -v o="$object" '$1 == o { print $2 }')
        [ -n "$all" ] && [ "$sum" -ge $((all - 5)) ] && [ "$sum" -le $((all + 5)) ] || echo "$object: $sum, not $all"
    done
)"
"$peet" cc -g -O2 -o "$TMP/own" tests/e2e/subjects/own.c -lpthread || exit 1
verdict "a thread's data has members, too" "$(
    "$peet" profile -m memspy-16k --cpus 2 --top 0 --format csv -- "$TMP/own" 2>"$TMP/err" | sed -n '/^table/,$p' >"$TMP/own.csv"
    rows "$TMP/own.csv" members object member object_share | grep -qx 'work::history \[\].seen 1' || { rows "$TMP/own.csv" members object member object_share; cat "$TMP/err"; }
)"
exit $status
