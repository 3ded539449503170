#!/bin/bash
# SPDX-License-Identifier: MIT
# peet compare: similarity of threads, matching of threads and of builds, edits, options and exit codes.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
cat >"$TMP/program.c" <<'EOF'
#include <pthread.h>
#include <stdlib.h>
#ifdef NEWER
/* a comment that moves all lines */
#endif
static volatile int sum, flag;
__attribute__((noinline)) static int step(int i) { return i * 7 % 10; }
__attribute__((noinline)) static void wait_here(int turns)
{
    while (turns-- > 0)
        flag++;
}
__attribute__((noinline)) static void work(int n)
{
    for (int i = 0; i < n; i++)
        sum += step(i);
}
static void *worker(void *n)
{
    work((int)(long)n);
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&thread[i], NULL, worker, (void *)(long)(atoi(argv[1]) * (i + 1)));
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
#ifdef NEWER
    sum += step(argc);
#endif
    wait_here(argc > 2 ? atoi(argv[2]) : 0);
    return 0;
}
EOF
build() { "$peet" cc -g -O1 "${@:2}" -o "$TMP/$1" "$TMP/program.c" -lpthread || exit 1; }
record() { "$peet" record -o "$TMP/$1.peet" -- "$TMP/$2" "${@:3}" >"$TMP/err" 2>&1 || { cat "$TMP/err"; exit 1; }; }
build old
cp "$TMP/old" "$TMP/same"
build new -DNEWER
record a old 30
record b old 30 50
record c old 31
record other same 30
record new new 30
column() { # TABLE COLUMN: of the CSV in $TMP/csv
    awk -F, -v table="$1" -v name="$2" '$1 == "table" { for (i = 1; i <= NF; i++) if ($i == name) at = i } $1 == table { print $at }' "$TMP/csv"
}
compare() { "$peet" compare --format csv "$@" >"$TMP/csv" 2>"$TMP/err"; } # its status
is() { [ "$2" = "$3" ] || echo "$1 is '$2', not '$3'"; }

verdict "a recording is equal to itself and to another one of the same code" "$(
    for unit in instructions blocks calls events; do
        for with in a other; do
            compare --$unit "$TMP/a.peet" "$TMP/$with.peet" || echo "$unit $with: status $?"
            is "$unit similarity" "$(column overall edit_similarity) $(column overall lcs_similarity)" "1 1"
            is "$unit edits" "$(column threads edits | tr '\n' ' ')" "0 0 0 "
        done
    done
)"
verdict "indels are those of diff --minimal on the blocks of the trace" "$(
    for with in b c; do
        compare --blocks "$TMP/a.peet" "$TMP/$with.peet"
        for thread in 1 2 3; do
            for side in a $with; do
                "$peet" dump --format csv --thread $thread "$TMP/$side.peet" 2>/dev/null |
                    awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } $at["kind"] == "block" { print $at["addr"] }' >"$TMP/$side.blocks"
                [ -s "$TMP/$side.blocks" ] || echo "no blocks of thread $thread"
            done
            is "thread $thread of $with" "$(column threads indels | sed -n ${thread}p)" "$(diff --minimal "$TMP/a.blocks" "$TMP/$with.blocks" | grep -c '^[<>]')"
        done
    done
)"
verdict "similarities follow from edits and events" "$(
    compare "$TMP/a.peet" "$TMP/c.peet" && echo "status 0"
    paste -d ' ' <(column threads events_a) <(column threads events_b) <(column threads edits) <(column threads indels) \
        <(column threads edit_similarity) <(column threads lcs_similarity) | awk '{
            m = $1 > $2 ? $1 : $2; e = 1 - $3 / m; l = 1 - $4 / ($1 + $2)
            if ((e - $5) ^ 2 > 1e-18 || (l - $6) ^ 2 > 1e-18) print "not " e, l ": " $0
            if (NR > 1 && $3 == 0) print "thread " NR " does not differ" }'
)"
verdict "more turns of a loop are said as such" "$(
    "$peet" compare -e "$TMP/a.peet" "$TMP/b.peet" >"$TMP/out" 2>&1
    grep -qE '50 more turns of the loop in program.c:(10|11)' "$TMP/out" || cat "$TMP/out"
    "$peet" compare -e "$TMP/b.peet" "$TMP/a.peet" >"$TMP/out" 2>&1
    grep -qE '50 fewer turns of the loop in program.c:(10|11)' "$TMP/out" || cat "$TMP/out"
)"
verdict "another build is compared by function and line" "$(
    compare -e "$TMP/a.peet" "$TMP/new.peet" && echo "status 0"
    is code "$(column overall code)" "function and line"
    is "edits of threads without a change" "$(column threads edits | tail -n 2 | tr '\n' ' ')" "0 0 "
    [ "$(column threads edits | head -n 1)" -le 6 ] || column threads edits
    column edits function | grep -qvE '^(main|step)$' && column edits function
    compare --by source "$TMP/a.peet" "$TMP/other.peet" || echo "equal builds differ by source"
    compare --by address "$TMP/a.peet" "$TMP/new.peet"
    awk -v s="$(column overall edit_similarity)" 'BEGIN { if (s > 0.95) print "by address they are as similar as " s }'
)"
verdict "threads are matched by their contents where their order says nothing" "$(
    compare --match content "$TMP/a.peet" "$TMP/a.peet" || echo "status $?"
    compare --thread 2:3 "$TMP/a.peet" "$TMP/a.peet" && echo "two threads are equal"
    is "threads that were named" "$(column threads thread_a):$(column threads thread_b)" 2:3
    compare --thread 2:2,3:3 "$TMP/a.peet" "$TMP/a.peet" || echo "threads are not equal to themselves"
)"
verdict "--from begins at a function and ends where it returns" "$(
    compare --from work "$TMP/a.peet" "$TMP/b.peet"
    is "events of work" "$(column threads edits | tail -n 2 | tr '\n' ' ')" "0 0 "
    compare --from wait_here --thread 1:1 "$TMP/a.peet" "$TMP/b.peet"
    [ "$(column threads events_a)" -lt 10 ] && [ "$(column threads events_b)" -gt 100 ] || cat "$TMP/csv"
    compare --from main "$TMP/a.peet" "$TMP/a.peet" || echo "main differs"
)"
verdict "or after an instruction, and ends before the next one" "$(
    "$peet" dump --format csv --thread 1 "$TMP/a.peet" 2>/dev/null |
        awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next } $at["kind"] == "block" { print $at["addr"] }' >"$TMP/blocks"
    first=$(printf '0x%x' "$(sed -n 3p "$TMP/blocks")") last=$(printf '0x%x' "$(tail -n 1 "$TMP/blocks")")
    compare --thread 1:1 "$TMP/a.peet" "$TMP/a.peet"
    all=$(column threads events_a)
    for unit in instructions calls; do
        compare --$unit --thread 1:1 --from "$first" "$TMP/a.peet" "$TMP/a.peet" || echo "$unit: status $?"
        compare --$unit --thread 1:1 --from "$first,$last" "$TMP/a.peet" "$TMP/a.peet" || echo "$unit: status $?"
    done
    compare --thread 1:1 --from "$first" "$TMP/a.peet" "$TMP/a.peet"
    from=$(column threads events_a)
    compare --thread 1:1 --from "$first,$last" "$TMP/a.peet" "$TMP/a.peet"
    part=$(column threads events_a)
    [ "$part" -lt "$from" ] && [ "$from" -lt "$all" ] && [ "$part" -gt 0 ] || echo "$part, $from, $all events"
)"
verdict "--abstract leaves out code that waits" "$(
    "$peet" compare --from nothing "$TMP/a.peet" "$TMP/b.peet" 2>"$TMP/err" >"$TMP/out"
    is status $? 2
    grep -q "no thread executes it" "$TMP/err" || cat "$TMP/err"
    compare --events --abstract "$TMP/a.peet" "$TMP/a.peet"
    few=$(column overall events_a)
    compare --events "$TMP/a.peet" "$TMP/a.peet"
    [ "$few" -lt "$(column overall events_a)" ] || echo "it leaves out no events: $few"
)"
verdict "bounds hold what is exact, and are called bounds" "$(
    compare "$TMP/a.peet" "$TMP/new.peet" --by address
    exact=$(column threads edits | head -n 1)
    compare --effort 0 --by address "$TMP/a.peet" "$TMP/new.peet"
    is "thread 1" "$(column threads exact | head -n 1)" "$([ "$(column threads edits_at_least | head -n 1)" ] && echo bound || echo exact)"
    [ "$(column threads edits | head -n 1)" -ge "$exact" ] || echo "a bound is below $exact"
)"
verdict "exit codes" "$(
    "$peet" compare --allow 100 "$TMP/a.peet" "$TMP/c.peet" >/dev/null 2>&1 || echo "--allow 100: $?"
    "$peet" compare "$TMP/a.peet" >/dev/null 2>&1; is "one trace" $? 2
    "$peet" compare --calls --blocks "$TMP/a.peet" "$TMP/b.peet" >/dev/null 2>&1; is "two units" $? 2
    "$peet" compare --thread 9:9 "$TMP/a.peet" "$TMP/b.peet" >/dev/null 2>&1; is "no such threads" $? 2
    "$peet" compare --thread x "$TMP/a.peet" "$TMP/b.peet" >/dev/null 2>&1; is "no threads" $? 2
    "$peet" compare --allow much "$TMP/a.peet" "$TMP/b.peet" >/dev/null 2>&1; is "no number" $? 2
    "$peet" compare "$TMP/a.peet" "$TMP/none.peet" >/dev/null 2>&1; is "no file" $? 3
    head -c -100 "$TMP/a.peet" >"$TMP/cut.peet"
    "$peet" compare "$TMP/a.peet" "$TMP/cut.peet" >/dev/null 2>&1; is "a part of a file" $? 4
)"
verdict "all formats show edits side by side" "$(
    for format in text json csv html; do
        "$peet" compare -e --format $format -o "$TMP/out" "$TMP/a.peet" "$TMP/b.peet" 2>"$TMP/err"
        is "$format status" $? 1
        grep -q 'wait_here' "$TMP/out" || { echo "$format:"; head -n 5 "$TMP/out"; }
    done
)"
exit $status
