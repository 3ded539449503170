#!/bin/bash
# SPDX-License-Identifier: MIT
# peet profile names the data, the line and the cause, where these are known; everything adds up; other tools read what it writes.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
source=tests/e2e/subjects/culprits.c
"$peet" cc -O1 -g -o "$TMP/culprits" $source -lpthread || exit 1

line_of() { grep -n "blame: $1 " $source | cut -d: -f1; }
first() { # MACHINE WHAT OPTION…
    local machine=$1 what=$2
    shift 2
    "$peet" profile -m "$machine" "$@" -- "$TMP/culprits" "$what" 2>"$TMP/err" | grep -v '^[0-9]*$' | head -n 1
}
names() { # FIRST-LINE DATA LINE CAUSE
    case $1 in
    *"waits for $2 in"*"culprits.c:$3:"*"$4"*) ;;
    *) echo "first line: $1"; head -n 3 "$TMP/err" ;;
    esac
}
verdict "columns of a matrix: capacity" "$(names "$(first memspy-128k columns)" matrix "$(line_of matrix)" capacity)"
verdict "two arrays that collide: conflict" "$(names "$(first memspy-128k collide)" pair "$(line_of pair)" conflict)"
verdict "neighbours in a line: false sharing" "$(names "$(first sato1999 share --cpus 2)" counters "$(line_of counters)" "false sharing")"
verdict "a list in no order: capacity" "$(names "$(first memspy-128k list)" nodes "$(line_of nodes)" capacity)"

"$peet" record -o "$TMP/columns.peet" -- "$TMP/culprits" columns >/dev/null 2>&1
"$peet" profile -m memspy-128k --top 0 --format json "$TMP/columns.peet" >"$TMP/json" 2>"$TMP/err"
sum() { # TABLE COLUMN
    sed -n "/^  \"$1\"/,/^  }/p" "$TMP/json" | grep -o "\"$2\": *[0-9]*" | sed 's/.*: *//' | awk '{ s += $1 } END { print s + 0 }'
}
verdict "references, misses and stall of all tables add up to the same" "$(
    for column in references misses stall; do
        want=$(sum summary $column)
        [ "$want" -gt 0 ] || echo "no $column"
        for table in objects objects_by_procedure lines procedures; do
            [ "$(sum $table $column)" = "$want" ] || echo "$table: $column $(sum $table $column), not $want"
        done
    done
)"
verdict "they are those of peet simulate" "$(
    "$peet" simulate -m memspy-128k --format json "$TMP/columns.peet" >"$TMP/simulated"
    for column in references misses cycles; do
        a=$(grep -o "\"$column\": *[0-9]*" "$TMP/simulated" | head -n 1 | sed 's/.*: *//')
        [ "$a" = "$(sum summary $column)" ] || echo "$column: $a, not $(sum summary $column)"
    done
)"
verdict "compute and both stalls are all cycles of a program with one thread" "$(
    for machine in memspy-128k modern; do
        "$peet" profile -m $machine --top 0 --format json "$TMP/columns.peet" >"$TMP/json" 2>"$TMP/err"
        all=$(($(sum summary compute) + $(sum summary stall) + $(sum summary fetch)))
        [ "$all" = "$(sum summary cycles)" ] || echo "$machine: $all, not $(sum summary cycles)"
        [ "$(sum procedures compute)" = "$(sum summary compute)" ] || echo "$machine: procedures: $(sum procedures compute), not $(sum summary compute)"
    done
)"
verdict "so are they if it is sampled, but for what is rounded" "$(
    for machine in memspy-128k modern; do
        "$peet" profile -m $machine --sample 1/5 --length 2000 --top 0 --format json "$TMP/columns.peet" >"$TMP/json" 2>"$TMP/err"
        off=$(($(sum summary compute) + $(sum summary stall) + $(sum summary fetch) - $(sum summary cycles)))
        [ "${off#-}" -le 10 ] || echo "$machine: $(sum summary cycles) cycles, and $off more in their parts"
    done
)"
verdict "how much windows differ does not hang on processors that do nothing" "$(
    for cpus in 1 2 8; do
        "$peet" profile -m memspy-128k --cpus $cpus --sample 1/5 --length 2000 --format json "$TMP/columns.peet" >"$TMP/json" 2>"$TMP/err"
        sum estimates error >"$TMP/error.$cpus"
        grep 'too few windows' "$TMP/json"
    done
    [ "$(cat "$TMP/error.1")" -gt 0 ] || echo "they do not differ"
    diff "$TMP/error.1" "$TMP/error.2"
    diff "$TMP/error.1" "$TMP/error.8"
)"
"$peet" profile -m memspy-128k --top 0 --format json "$TMP/columns.peet" >"$TMP/json" 2>"$TMP/err"
"$peet" profile -m memspy-128k --callgrind "$TMP/callgrind.out" --stacks "$TMP/stacks" "$TMP/columns.peet" >/dev/null 2>"$TMP/err" || cat "$TMP/err"
property="callgrind_annotate reads what --callgrind writes, and adds it up to the same"
if needs "$property" callgrind_annotate; then
    verdict "$property" "$(
        callgrind_annotate --threshold=100 "$TMP/callgrind.out" >"$TMP/annotated" 2>"$TMP/err" || echo "status $?"
        cat "$TMP/err"
        grep -q 'walk_columns' "$TMP/annotated" || { echo "no walk_columns:"; head -n 20 "$TMP/annotated"; }
        totals=$(sed -n 's/ *([^)]*)//g; s/ PROGRAM TOTALS//p' "$TMP/annotated" | tr -d ',' | tr -s ' ' | sed 's/ $//')
        want="$(sum summary cycles) $(sum summary stall) $(sum summary wait) $(sum summary misses) $(sum summary references)"
        [ "$totals" = "$want" ] || echo "totals: $totals, not $want"
        grep -qE "^ *[0-9,]+ \(.*sum \+= matrix" "$TMP/annotated" || echo "the line is not annotated"
    )"
    verdict "calls have inclusive costs: main has all of them" "$(
        callgrind_annotate --inclusive=yes --tree=calling "$TMP/callgrind.out" >"$TMP/annotated" 2>&1 || echo "status $?"
        grep -qE '^ *[0-9,]+ \((100\.0|99\.9[0-9]?)%\).* \* +.*culprits\.c:main' "$TMP/annotated" || { echo "main:"; grep ':main' "$TMP/annotated"; }
        grep -qE '> +.*culprits\.c:walk_columns \(1x\)' "$TMP/annotated" || { echo "no call of walk_columns:"; cat "$TMP/annotated"; }
    )"
fi
verdict "--stacks writes paths from main on, each once" "$(
    grep -q '^main;walk_columns;\[memory\] [0-9]*$' "$TMP/stacks" || head "$TMP/stacks"
    cycles=$(awk '{ s += $NF } END { print s }' "$TMP/stacks")
    [ "$cycles" = $(($(sum summary compute) + $(sum summary stall))) ] || echo "$cycles cycles"
    grep -vE '^main(;[^;]+)* [1-9][0-9]*$' "$TMP/stacks"
    sed 's/ [0-9]*$//' "$TMP/stacks" | sort | uniq -d
)"
cat >"$TMP/early.c" <<'END'
#include <string.h>

char early[100000];

__attribute__((constructor)) static void begin(void)
{
    memset(early, 1, sizeof early);
}
END
verdict "so is what libraries do before main" "$(
    echo 'extern char early[]; int main(void) { return early[5] - 1; }' >"$TMP/late.c"
    gcc -O1 -fno-builtin -c -o "$TMP/early.o" "$TMP/early.c" && "$peet" cc -O1 -g -o "$TMP/late" "$TMP/late.c" "$TMP/early.o" || echo "status $?"
    for machine in memspy-128k modern; do
        "$peet" profile -m $machine --stacks "$TMP/stacks" --format json -- "$TMP/late" >"$TMP/json" 2>"$TMP/err" || cat "$TMP/err"
        cycles=$(awk '{ s += $NF } END { print s }' "$TMP/stacks")
        [ "$cycles" = $(($(sum summary compute) + $(sum summary stall) + $(sum summary fetch))) ] || echo "$machine: $cycles cycles"
        grep -q '^\[library\];\[memory\] [0-9]*$' "$TMP/stacks" || cat "$TMP/stacks"
    done
)"
"$peet" profile -m memspy-128k --top 0 --format json "$TMP/columns.peet" >"$TMP/json" 2>"$TMP/err"
verdict "--focus shows one of them" "$(
    "$peet" profile -m memspy-128k --focus walk_columns --format csv "$TMP/columns.peet" >"$TMP/csv" 2>"$TMP/err"
    grep -q walk_columns "$TMP/csv" || cat "$TMP/err"
    grep -q ',main,' "$TMP/csv" && echo "main is there"
)"
verdict "a typo and a missing file are told" "$(
    "$peet" profile --sort stal "$TMP/columns.peet" >/dev/null 2>"$TMP/err" && echo "went on"
    grep -q "stall" "$TMP/err" || cat "$TMP/err"
    "$peet" profile "$TMP/nothing.peet" >/dev/null 2>"$TMP/err" && echo "went on"
    grep -q "nothing.peet" "$TMP/err" || cat "$TMP/err"
)"

# A program while it runs. Lines of 16 bytes that may be anywhere: then it does not matter where its data lie.
anywhere="-m memspy-16k --set cache.l1.line=16 --set cache.l1.bytes=4096 --set cache.l1.ways=256"
verdict "a program is profiled while it runs as its trace is" "$(
    for what in columns list collide; do
        "$peet" record -o "$TMP/same.peet" -- "$TMP/culprits" $what >/dev/null 2>&1
        # shellcheck disable=SC2086
        {
            "$peet" profile $anywhere --top 0 --format csv "$TMP/same.peet" >"$TMP/recorded" 2>"$TMP/err" || cat "$TMP/err"
            "$peet" profile $anywhere --top 0 --format csv -o "$TMP/running" -- "$TMP/culprits" $what >/dev/null 2>"$TMP/err" || cat "$TMP/err"
        }
        grep -q '^objects,' "$TMP/recorded" || echo "$what: no objects"
        diff "$TMP/recorded" "$TMP/running" | head -n 5
    done
)"
verdict "a cache of one set is one of as many ways" "$(
    for how in '' '--set cache.l1.replacement=fifo' '--sample 1/3 --length 500'; do
        for ways in 0 256; do
            # shellcheck disable=SC2086
            "$peet" profile $anywhere --set cache.l1.ways=$ways $how --format csv "$TMP/columns.peet" >"$TMP/ways.$ways" 2>"$TMP/err" || cat "$TMP/err"
        done
        grep -q '^objects,' "$TMP/ways.0" || echo "no objects"
        diff "$TMP/ways.0" "$TMP/ways.256" | head -n 5
    done
)"
lines_of() { grep -E "^lines,${1%-con}\\.[ch]:" "$2" | cut -d , -f 1-4,6-; } # NAME FILE: but for shares of the whole, in which arguments lie somewhere else
verdict "so are the lines of programs with loops of all kinds" "$(
    while read -r name arguments; do
        # shellcheck disable=SC2086
        {
            "$peet" record -o "$TMP/same.peet" -- "$PEET_BUILD/workloads/peet/$name" -p 1 $arguments >/dev/null 2>&1
            "$peet" profile $anywhere --top 0 --format csv "$TMP/same.peet" >"$TMP/csv" 2>"$TMP/err" || cat "$TMP/err"
            lines_of "$name" "$TMP/csv" >"$TMP/recorded"
            "$peet" profile $anywhere --top 0 --format csv -o "$TMP/csv" -- "$PEET_BUILD/workloads/peet/$name" -p 1 $arguments >/dev/null 2>"$TMP/err" || cat "$TMP/err"
        }
        lines_of "$name" "$TMP/csv" >"$TMP/running"
        [ "$(wc -l <"$TMP/recorded")" -gt 30 ] || echo "$name: $(wc -l <"$TMP/recorded") rows"
        diff "$TMP/recorded" "$TMP/running" | head -n 3
    done <<END
fft -m 8
matmat -n 32
lu-con -n 48
shallow -s 1
radix -n 20k
END
)"
cat >"$TMP/ends.c" <<'END'
#include <signal.h>
#include <string.h>

static volatile long table[1 << 18];

int main(int argc, char **argv)
{
    do
        for (int i = 0; i < 4096; i++)
            table[i]++;
    while (argc > 1 && !strcmp(argv[1], "never"));
    for (int round = 1; argc > 1 && !strcmp(argv[1], "loops"); round++)
        for (int i = 0; i < 1 << 18; i++)
            table[i] += round;
    if (argc > 1 && !strcmp(argv[1], "crash"))
        raise(SIGSEGV);
    if (argc > 1 && !strcmp(argv[1], "divide"))
        table[0] /= table[1] - table[1];
    if (argc > 1 && !strcmp(argv[1], "trap"))
        __builtin_trap();
    return 3;
}
END
"$peet" cc -O1 -g -o "$TMP/ends" "$TMP/ends.c" || exit 1
tells() { # STATUS: whether there is a report, and why it is what it is
    grep -q 'waits for table in main' "$TMP/out" || { echo "no report:"; head -n 3 "$TMP/out"; }
    grep -q "ended with status $1: this is the profile of what it did" "$TMP/err" || { echo "not told:"; cat "$TMP/err"; }
}
verdict "a program that fails has a profile, too" "$(
    "$peet" profile -m memspy-16k -- "$TMP/ends" >"$TMP/out" 2>"$TMP/err"
    tells 3
)"
verdict "so has one that crashes" "$(
    "$peet" profile -m memspy-16k -- "$TMP/ends" crash >"$TMP/out" 2>"$TMP/err"
    tells 139
    "$peet" profile -m memspy-16k -- "$TMP/ends" divide >"$TMP/out" 2>"$TMP/err"
    tells 136
    "$peet" profile -m memspy-16k -- "$TMP/ends" trap >"$TMP/out" 2>"$TMP/err"
    tells 132
)"
verdict "Ctrl-C keeps what was profiled so far" "$(
    for how in never loops; do
        timeout -s INT -k 20 2 "$peet" profile -m memspy-16k -- "$TMP/ends" $how >"$TMP/out" 2>"$TMP/err"
        tells 130
    done
)"
exit $status
