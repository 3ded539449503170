#!/bin/bash
# SPDX-License-Identifier: MIT
# Data of threads and mapped files have their names in a profile, and names of a program that was built again are not believed.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
column() { # CSV TABLE COLUMN
    awk -F, -v table="$2" -v column="$3" '$1 == "table" { delete at; for (i = 1; i <= NF; i++) at[$i] = i } $1 == table { print $at[column] }' "$1"
}
# A row of the objects: how often they are referred to, of which kind, in which bytes.
object() { # CSV NAME
    awk -F, -v name="$2" '$1 == "table" { delete at; for (i = 1; i <= NF; i++) at[$i] = i }
        $1 == "objects" && $at["object"] == name { print $at["references"], $at["kind"], $at["bytes"], $at["place"] }' "$1"
}
is() { # CSV NAME REFERENCES KIND BYTES PLACE
    local row
    row=$(object "$1" "$2")
    [ "$row" = "$3 $4 $5 $6" ] || { echo "$2: '$row', not '$3 $4 $5 $6'"; column "$1" objects object; }
}
head -c 100000 /dev/zero >"$TMP/book"
place() { echo "own.c:$(grep -n "$1" tests/e2e/subjects/own.c | head -n 1 | cut -d: -f1)"; }
for level in -O0 -O2; do
    for link in "" -static; do
        # shellcheck disable=SC2086
        "$peet" cc -g $level $link -o "$TMP/own" tests/e2e/subjects/own.c -lpthread 2>"$TMP/err" || { skip "data of threads ($level $link)" "does not link"; continue; }
        "$peet" profile -m memspy-16k --cpus 2 --top 0 --format csv --trace "$TMP/own.peet" -- "$TMP/own" "$TMP/book" >"$TMP/csv" 2>"$TMP/err"
        updates=36864 # at -O2 a count is one reference, at -O0 two
        [ $level = -O2 ] || updates=73728
        verdict "data of threads has its name ($level${link:+ $link})" "$(
            is "$TMP/csv" scratch 73728 thread-local 32768 "$(place 'scratch\[CELLS\]')"
            is "$TMP/csv" work::history $updates thread-local 262144 "$(place 'history\[CELLS\]')"
            [ $level = -O2 ] || is "$TMP/csv" rounds 19 thread-local 4 "$(place '__thread int rounds')"
        )"
        verdict "a mapped file has the name of what it is assigned to ($level${link:+ $link})" "$(
            is "$TMP/csv" book 6250 mapped 100000 "$(place 'book = mmap')"
        )"
    done
done
"$peet" cc -g -O1 -o "$TMP/late" tests/e2e/subjects/late.c -lpthread
verdict "data that is used before its allocation in the replay has the name of its allocation" "$(
    "$peet" record -o "$TMP/late.peet" -- "$TMP/late" >/dev/null 2>"$TMP/err" || cat "$TMP/err"
    place() { echo "late.c:$(grep -n "$1" tests/e2e/subjects/late.c | cut -d: -f1)"; }
    "$peet" profile -m modern --top 0 --format csv "$TMP/late.peet" >"$TMP/csv" 2>"$TMP/err" || cat "$TMP/err"
    column "$TMP/csv" objects object | grep -x -e unknown -e heap -e mapped
    for what in index_of=get_memory table=calloc; do
        where=$(place "${what%=*} = ${what#*=}")
        is "$TMP/csv" "${what%=*} ($where)" 32768 heap 131072 "$where"
    done
)"
cat >"$TMP/indexed.c" <<'END'
static __thread int cells[1024];

int main(int argc, char **argv)
{
    (void)argv;
    for (int i = 0; i < 10000 * argc; i++)
        cells[i * 7 & 1023] += i;
    return cells[argc] < 0;
}
END
verdict "data of threads that is only referred to by an index has its name" "$(
    "$peet" cc -O2 -g -o "$TMP/indexed" "$TMP/indexed.c"
    "$peet" record -o "$TMP/indexed.peet" -- "$TMP/indexed" >/dev/null 2>&1
    for machine in memspy-16k modern; do
        for what in "$TMP/indexed.peet" "-- $TMP/indexed"; do
            # shellcheck disable=SC2086
            "$peet" profile -m $machine --top 0 --format csv $what >"$TMP/csv" 2>"$TMP/err" || cat "$TMP/err"
            is "$TMP/csv" cells 10001 thread-local 4096 indexed.c:1
        done
    done
)"
for level in '-O1 -fno-inline' -O2; do
    # shellcheck disable=SC2086
    "$peet" cc -g $level -o "$TMP/for" tests/e2e/subjects/for_whom.c
    verdict "--calls tells data apart by whom they are made for ($level)" "$(
        for calls in 0 1 2; do
            "$peet" profile -m memspy-128k --calls $calls --top 0 --format csv -o "$TMP/csv.$calls" -- "$TMP/for" >/dev/null 2>"$TMP/err" || cat "$TMP/err"
            column "$TMP/csv.$calls" objects object | grep 'list->value' | sort | paste -sd, >"$TMP/values.$calls"
            column "$TMP/csv.$calls" summary misses >>"$TMP/misses"
        done
        [ "$(cat "$TMP/values.0")" = 'list->value' ] || cat "$TMP/values.0"
        [ "$(cat "$TMP/values.1")" = 'list->value for customers,list->value for orders' ] || cat "$TMP/values.1"
        [ "$(cat "$TMP/values.2")" = 'list->value for customers < main,list->value for orders < main' ] || cat "$TMP/values.2"
        [ "$(sort -u "$TMP/misses" | wc -l)" = 1 ] || cat "$TMP/misses"
        rm "$TMP/misses"
    )"
done
for level in -O0 -O2; do
    property="what is called behind an exception or longjmp is called from where that led ($level)"
    needs "$property" g++ || continue
    "$peet" c++ -g $level -o "$TMP/back" tests/e2e/subjects/goes_back.cc
    "$peet" record -o "$TMP/back.peet" -- "$TMP/back" >/dev/null 2>&1
    verdict "$property" "$(
        for subject in "-- $TMP/back" "$TMP/back.peet"; do
            # shellcheck disable=SC2086
            "$peet" profile -m memspy-16k --stacks "$TMP/stacks" $subject >"$TMP/out" 2>"$TMP/err" || cat "$TMP/err"
            awk '/;work/ && !/^main;after;work/ || /;main|;leap.*;fall|;fall.*;leap/' "$TMP/stacks"
            awk '/^main;after;work [0-9]/ { n = $2 } END { if (n < 40000) print "work has " n " cycles" }' "$TMP/stacks"
        done
    )"
done
"$peet" cc -g -O1 -shared -fPIC -DTABLE=first -o "$TMP/first.so" tests/e2e/subjects/plugins.c
"$peet" cc -g -O1 -shared -fPIC -DTABLE=second -o "$TMP/second.so" tests/e2e/subjects/plugins.c
"$peet" cc -g -O1 -o "$TMP/plugins" tests/e2e/subjects/plugins.c
verdict "libraries that a program loads and lets go again have names" "$(
    run=("$TMP/plugins" "$TMP/first.so" "$TMP/second.so")
    "${run[@]}" >"$TMP/alone"
    "$peet" record -o "$TMP/plugins.peet" -- "${run[@]}" >"$TMP/recorded" 2>"$TMP/err" || cat "$TMP/err"
    cmp "$TMP/alone" "$TMP/recorded"
    "$peet" profile -m memspy-16k --top 0 --format csv "$TMP/plugins.peet" >"$TMP/csv.0" 2>"$TMP/err" || cat "$TMP/err"
    "$peet" profile -m memspy-16k --top 0 --format csv -o "$TMP/csv.1" -- "${run[@]}" >"$TMP/running" 2>"$TMP/err" || cat "$TMP/err"
    cmp "$TMP/alone" "$TMP/running"
    for csv in "$TMP/csv.0" "$TMP/csv.1"; do
        for name in first second; do # each was somewhere else each time, and has 5 times as many loads and stores
            awk -F, -v name="$name" '$1 == "table" { delete at; for (i = 1; i <= NF; i++) at[$i] = i }
                $1 == "objects" && $at["object"] ~ "^" name { sum += $at["references"] }
                END { if (sum < 300000 || sum > 620000) print name " has " sum + 0 " references" }' "$csv"
        done
        column "$csv" lines place | grep -q '^plugins\.c:' || echo "no lines of the library"
    done
)"
verdict "a program that was built again is told, and the profile goes on without its lines" "$(
    "$peet" cc -g -O1 -o "$TMP/own" tests/e2e/subjects/own.c -lpthread
    "$peet" record -o "$TMP/own.peet" -- "$TMP/own" >/dev/null 2>&1
    "$peet" profile "$TMP/own.peet" >"$TMP/out" 2>"$TMP/err"
    grep 'built anew' "$TMP/err"
    head -n 1 "$TMP/out" | grep -q 'own\.c:' || head -n 1 "$TMP/out"
    "$peet" cc -g -O2 -o "$TMP/own" tests/e2e/subjects/own.c -lpthread
    "$peet" profile "$TMP/own.peet" >"$TMP/out" 2>"$TMP/err" || echo "status $?"
    grep -q "warning: $TMP/own was built anew since this was recorded.*record it again" "$TMP/err" || { echo "no warning:"; cat "$TMP/err"; }
    grep 'own\.c:' "$TMP/out"
    grep -q '% of the time waits for .* in work' "$TMP/out" || head -n 3 "$TMP/out"
)"
exit $status
