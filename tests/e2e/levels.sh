#!/bin/bash
# SPDX-License-Identifier: MIT
# Less detail, by how a program is built (peet cc --peet-level) and by what is kept of what it says (peet record --level): what is left
# is what a full recording has there, and well-formed.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
levels="events calls blocks memory"

build() { # LEVEL [OPTION…]
    local level=$1
    shift
    "$peet" cc --peet-level="$level" -O2 -g -Iinclude "$@" -o "$TMP/$level" tests/e2e/subjects/levels.c -lpthread 2>&1
}
verdict "peet cc builds at every level" "$(for level in $levels; do build $level; done)"

record() { # TRACE [OPTION…] -- PROGRAM…: complaints about the recording, and about what peet check says
    local trace=$1
    shift
    timeout 300 "$peet" record -o "$TMP/$trace.peet" "$@" >"$TMP/$trace.out" 2>"$TMP/$trace.err" || cat "$TMP/$trace.err"
    "$peet" check "$TMP/$trace.peet" >"$TMP/check" 2>&1 || grep -E '^  (violation|warning)|^peet' "$TMP/check" | head -n 5
}
field() { # TRACE FIELD: of peet info
    "$peet" info --format json "$TMP/$1.peet" | sed -n "s/.*\"$2\": *\"\{0,1\}\([^\",]*\).*/\1/p" | head -n 1
}
# The events of a trace, thread by thread: thread and kind; the addresses of objects differ between builds.
events() { # TRACE: thread, kind and arguments; the addresses of objects and code differ between builds
    "$peet" dump --events "$TMP/$1.peet" | awk '/^[0-9]/ { print $1, $3 }' | sort -s -k1,1n
}
differ() { # A B FIELD…: fields in which two traces differ
    local a=$1 b=$2 f
    shift 2
    for f in "$@"; do
        [ "$(field "$a" "$f")" = "$(field "$b" "$f")" ] || echo "$f: $(field "$a" "$f") in $a, $(field "$b" "$f") in $b"
    done
}
is() { # WHAT IS EXPECTED
    [ "$2" = "$3" ] || echo "$1 is '$2', expected '$3'"
}

for threads in 1 4; do
    for level in $levels; do
        verdict "built for $level, $threads threads, the recording is well-formed" "$(record "built-$level" -- "$TMP/$level" $threads)"
        verdict "kept to $level, $threads threads, the recording is well-formed" \
            "$(record "kept-$level" --level $level -- "$TMP/memory" $threads)"
        verdict "both ways to $level say the same, with $threads threads" \
            "$(differ "built-$level" "kept-$level" threads instructions references events level)"
        verdict "the trace tells its level, $level, with $threads threads" "$(is level "$(field "kept-$level" level)" $level)"
    done
    verdict "events has no instructions, and all events, with $threads threads" "$(
        is instructions "$(field kept-events instructions)" 0
        diff <(events kept-events) <(events built-memory) | head -n 3
        diff <(events built-events) <(events built-memory) | head -n 3)"
    verdict "blocks has all instructions, and no references, with $threads threads" "$(
        differ kept-blocks built-memory instructions events
        is references "$(field kept-blocks references)" 0)"
    verdict "memory has what there is, with $threads threads" "$(differ kept-memory built-memory instructions references events)"
done

# Instruction by instruction, of the same program; at one thread, so that nothing depends on the order of threads.
record full -- "$TMP/memory" 1 >"$TMP/complaints"
record blocks --level blocks -- "$TMP/memory" 1 >>"$TMP/complaints"
record calls --level calls -- "$TMP/memory" 1 >>"$TMP/complaints"
expanded() { "$peet" dump "$TMP/$1.peet" | awk '
    /^block / { block = $2; n[block] = 0; next }
    /^  0x/ { sub(/,.*/, ""); code[block, n[block]++] = $1 " " $3; next }
    $3 ~ /^b[0-9]/ { for (i = 0; i < n[$3]; i++) print code[$3, i]; next }
    /^[0-9]/ { print $3 }'; }
expanded full >"$TMP/full.txt"
verdict "blocks are the same instructions in the same order" "$(cat "$TMP/complaints"; [ -s "$TMP/full.txt" ] || echo none; expanded blocks | cmp - "$TMP/full.txt" 2>&1)"
grep -E ' (call|call_indirect|return)$' "$TMP/full.txt" >"$TMP/full-calls.txt"
verdict "calls are all calls and returns, in the same order" \
    "$([ -s "$TMP/full-calls.txt" ] || echo none; expanded calls | grep -E ' (call|call_indirect|return)$' | cmp - "$TMP/full-calls.txt" 2>&1)"
verdict "and the entries of functions: each comes to its return" "$(
    entries=$(expanded calls | grep '^0x' | grep -vcE ' (call|call_indirect|return)$')
    returns=$(expanded calls | grep -c ' return$')
    [ "$entries" = "$returns" ] || echo "$entries entries, $returns returns"
)"

# ---- built for one level, asked for another ----

says() { # TRACE PATTERN
    grep -q "$2" "$TMP/$1.err" || { echo "expected: $2"; cat "$TMP/$1.err"; }
}
verdict "a program that says less than is asked for is recorded, with a warning" "$(
    record less --level memory -- "$TMP/blocks" 1
    says less 'the program was built with --peet-level=blocks'
    is level "$(field less level)" blocks
    record none --level calls -- "$TMP/events" 1
    says none 'the program was built with --peet-level=events')"
verdict "without --level there is no warning" "$(record asbuilt -- "$TMP/calls" 1; grep warning "$TMP/asbuilt.err")"
verdict "a program of several levels has them all" "$(
    echo 'int twice(int x) { return x * 2; }' >"$TMP/a.c"
    echo 'int twice(int); int main(void) { int s = 0; for (int i = 0; i < 9; i++) s += twice(i); return s != 72; }' >"$TMP/b.c"
    "$peet" cc --peet-level=blocks -c -o "$TMP/a.o" "$TMP/a.c" 2>&1
    PEET_LEVEL=memory "$peet" cc -c -o "$TMP/b.o" "$TMP/b.c" 2>&1
    "$peet" cc -o "$TMP/mixed" "$TMP/a.o" "$TMP/b.o" 2>&1
    record mixed -- "$TMP/mixed"
    "$peet" info "$TMP/mixed.peet" | grep -q 'level  *blocks, memory' || echo 'levels are not told'
    record asked --level memory -- "$TMP/mixed"
    says asked 'parts of the program were built with --peet-level=blocks'
    record cut --level blocks -- "$TMP/mixed"
    is references "$(field cut references)" 0
    differ cut mixed instructions)"

# ---- parts of the execution ----

# The rows of a trace without positions and gaps; of the full one, those that a filter keeps: an awk condition for rows that are no events,
# with `inside` counting the open regions called "solve".
kept() { # TRACE CONDITION
    "$peet" dump --format csv "$TMP/$1.peet" | awk -F, -v OFS=, 'NR > 1 {
        if ($3 == "region_end" && $7 == "solve") inside[$1]--
        is_event = $3 !~ /^(block|load|store|update|prefetch)$/
        if ($3 ~ /^(malloc|calloc|free)$/) $5 = $7 = "" # those of the C library, as threads come and go
        if ($3 != "gap" && (is_event || ('"$2"'))) { $2 = ""; print }
        if ($3 == "region_begin" && $7 == "solve") inside[$1]++ }' | sort -s -t, -k1,1n
}
# Whether all that is missing in a trace is in its gaps.
gaps() { # TRACE FULL
    "$peet" dump --format csv "$TMP/$1.peet" | awk -F, '$3 == "gap" { split($7, n, " "); i += n[1]; r += n[2] } END { print i + 0, r + 0 }' >"$TMP/gaps"
    read -r instructions references <"$TMP/gaps"
    is instructions $((instructions + $(field "$1" instructions))) "$(field "$2" instructions)"
    is references $((references + $(field "$1" references))) "$(field "$2" references)"
}
for threads in 1 4; do
    record all -- "$TMP/memory" $threads >"$TMP/complaints"
    record solve --region solve -- "$TMP/memory" $threads >>"$TMP/complaints"
    verdict "a region is recorded as in the whole, and events elsewhere, with $threads threads" "$(
        cat "$TMP/complaints"
        [ "$(field solve instructions)" -gt 100000 ] || echo "too little: $(field solve instructions)"
        cmp <(kept solve 1) <(kept all 'inside[$1] > 0') 2>&1)"
    verdict "gaps tell how much was left out, with $threads threads" "$(gaps solve all)"
done
verdict "regions nest, and several may be asked for" "$(
    record both --region inner --region solve -- "$TMP/memory" 4
    differ both solve instructions references
    record inner --region inner -- "$TMP/memory" 4
    [ "$(field inner instructions)" -lt "$(field solve instructions)" ] || echo "inner is not less than solve")"
verdict "a region of less detail is both" "$(
    record thin --region solve --level blocks -- "$TMP/memory" 4
    differ thin solve instructions events
    is references "$(field thin references)" 0)"
verdict "a region that does not occur is told, with those that do" "$(
    record wrong --region sovle -- "$TMP/memory" 1
    says wrong "no region 'sovle'; those that were: solve, inner"
    is instructions "$(field wrong instructions)" 0)"

# The address range of a function at run time, as an awk condition on a row of the dump.
in_function() { # TRACE FUNCTION…
    local trace=$1 f
    shift
    for f in "$@"; do
        "$peet" dump --events "$TMP/$trace.peet" | awk -v f="\"$f\"" '$1 == "symbol" && $5 == f { print $2, $3; exit }' |
            while read -r start size; do printf '($4 >= %d && $4 < %d) || ' "$start" $((start + size)); done
    done
    echo 0
}
for threads in 1 4; do
    record all -- "$TMP/memory" $threads >"$TMP/complaints"
    record only --only solve_row,chase -- "$TMP/memory" $threads >>"$TMP/complaints"
    record skip --skip 'tree' --skip 'fi*' -- "$TMP/memory" $threads >>"$TMP/complaints"
    verdict "functions are recorded as in the whole, and events elsewhere, with $threads threads" "$(
        cat "$TMP/complaints"
        [ "$(field only instructions)" -gt 10000 ] || echo "too little: $(field only instructions)"
        cmp <(kept only 1) <(kept all "$(in_function all solve_row chase)") 2>&1
        gaps only all)"
    verdict "functions that are skipped are not there, all else is, with $threads threads" "$(
        cmp <(kept skip 1) <(kept all "!($(in_function all tree fill))") 2>&1
        gaps skip all)"
done
verdict "functions and regions together are both" "$(
    record two --region inner --only tree -- "$TMP/memory" 1
    record tree --only tree -- "$TMP/memory" 1
    [ "$(field two instructions)" -gt 0 ] && [ "$(field two instructions)" -lt "$(field tree instructions)" ] || echo "$(field two instructions)")"

# Control enters a cold part, and back from it, in the middle of a function: there the stack pointer is where the block before left it.
cat >"$TMP/cold.c" <<'END'
__attribute__((cold, noinline)) void rare(long *p) { *p += 3; }
__attribute__((noinline)) long often(long n, volatile long *row)
{
    long s = 0;
    for (long i = 0; i < n; i++) {
        if (__builtin_expect(i % 100 == 99, 0)) { long x = i; rare(&x); s += x; }
        s += row[i % 8];
    }
    return s;
}
int main(void) { long row[8] = { 1, 2, 3 }; return often(1000, row) == 0; }
END
verdict "a block behind a gap finds the stack pointer" "$(
    "$peet" cc -O2 -o "$TMP/cold" "$TMP/cold.c" 2>&1
    nm "$TMP/cold" | grep -q 'often.cold' || echo 'there is no cold part'
    record all -- "$TMP/cold"
    record warm --skip 'often.cold' -- "$TMP/cold"
    cmp <(kept warm 1) <(kept all "!($(in_function all often.cold))") 2>&1
    gaps warm all
    [ "$(field warm instructions)" -lt "$(field all instructions)" ] || echo 'nothing was skipped'
    record chill --only 'often.cold' -- "$TMP/cold"
    [ "$(field chill references)" -gt 0 ] || echo 'the cold part is not there'
    cmp <(kept chill 1) <(kept all "$(in_function all often.cold)") 2>&1
    gaps chill all)"
verdict "a function that is not there is told, before the program runs where that can be known" "$(
    rm -f "$TMP/early.peet"
    timeout 300 "$peet" record -o "$TMP/early.peet" --only slove_row -- "$TMP/memory" 1 >"$TMP/early.out" 2>"$TMP/early.err" && echo 'no error'
    says early "no function 'slove_row'; did you mean 'solve_row'?"
    [ ! -s "$TMP/early.out" ] && [ ! -e "$TMP/early.peet" ] || echo 'it ran'
    record late --only solve_row --only tre --skip 'chas' -- "$TMP/memory" 1
    says late "only: the program has no function 'tre'; did you mean 'tree'?"
    says late "skip: the program has no function 'chas'; did you mean 'chase'?")"

# ---- stepping ----

cat >"$TMP/tiny.c" <<'END'
static long a[8];
static __attribute__((noinline)) long f(long i) { return a[i] += i; }
int main(void) { long s = 0; for (long i = 0; i < 8; i++) s += f(i); return s != 28; }
END
gcc -O1 -static -o "$TMP/tiny" "$TMP/tiny.c"
for level in events calls blocks memory all; do
    verdict "--step keeps to $level" "$(record step-$level --step --level $level -- "$TMP/tiny"; is level "$(field step-$level level)" $level)"
done
verdict "--step: all levels have the same events, those that have instructions the same" "$(
    for level in events calls blocks all; do differ step-$level step-memory events; done
    differ step-blocks step-memory instructions
    differ step-all step-memory instructions references
    is references "$(field step-blocks references)" 0
    is instructions "$(field step-events instructions)" 0)"

# ---- wrong usage ----

fails() { # PATTERN COMMAND…
    local pattern=$1 text
    shift
    text=$("$@" 2>&1) && echo "succeeded: $*"
    grep -q -- "$pattern" <<<"$text" || printf '%s\nsays: %s\nexpected: %s\n' "$*" "$text" "$pattern"
}
verdict "what cannot be is refused" "$(
    fails 'values need --step' "$peet" record --level all -o "$TMP/x.peet" -- "$TMP/memory" 1
    fails '--values is --level all' "$peet" record --step --values --level calls -o "$TMP/x.peet" -- "$TMP/memory" 1
    fails "did you mean 'blocks'" "$peet" record --level block -o "$TMP/x.peet" -- "$TMP/memory" 1
    fails 'not for --step' "$peet" record --step --only tree -o "$TMP/x.peet" -- "$TMP/memory" 1
    fails 'not for --step' "$peet" record --step --region solve -o "$TMP/x.peet" -- "$TMP/memory" 1
    fails "no level 'much'" "$peet" cc --peet-level=much -c "$TMP/a.c"
    fails "PEET_LEVEL: there is no level 'much'" env PEET_LEVEL=much "$peet" cc -c "$TMP/a.c"
    fails 'values cannot be recorded' "$peet" cc --peet-level=all -c "$TMP/a.c"
    [ ! -e "$TMP/x.peet" ] || echo 'a trace was written')"
verdict "temporary files go where TMPDIR says" "$(
    gcc -S -ffixed-r14 -ffixed-r15 -o "$TMP/a.s" "$TMP/a.c"
    fails 'nowhere/peet-as-' env TMPDIR="$TMP/nowhere" "$peet" as -o "$TMP/a2.o" "$TMP/a.s")"
exit $status
