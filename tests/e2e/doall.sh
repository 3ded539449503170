#!/bin/bash
# SPDX-License-Identifier: MIT
# Loops that ran one iteration after another run side by side on the machine, from a trace and live.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
subjects=tests/e2e/subjects
"$peet" cc -O1 -Iinclude -o "$TMP/doall" $subjects/doall.c || exit 1
"$peet" record -o "$TMP/doall.peet" -- "$TMP/doall" >"$TMP/log" 2>&1 || { cat "$TMP/log"; exit 1; }
"$peet" record -o "$TMP/across.peet" -- "$TMP/doall" across >"$TMP/log" 2>&1 || { cat "$TMP/log"; exit 1; }

# A column of the table of runs, one number for each.
column() { # COLUMN OPTION…
    local name=$1
    shift
    "$peet" simulate -m sato1999 --format json "$@" 2>"$TMP/err" | sed -n '/^  "runs"/,/^  }/p' |
        grep -o "\"$name\": *[0-9.e+-]*" | sed 's/.*: *//' | tr '\n' ' '
}
is() { awk "BEGIN { exit !($1) }" || echo "not so: $1"; }

verdict "more processors make a doall faster, nearly as many times as there are" "$(
    read -r one two four <<<"$(column speed_up --cpus 1,2,4 "$TMP/doall.peet")"
    is "$one == 1 && $two > 1.7 && $two <= 2 && $four > 3 && $four <= 4"
)"
verdict "kept as it was recorded, it is not" "$(
    read -r one four <<<"$(column speed_up --doall keep --cpus 1,4 "$TMP/doall.peet")"
    is "$one == 1 && $four == 1"
)"
verdict "on one processor it takes as long dealt out as kept, but for the loop's control" "$(
    kept=$(column cycles --doall keep --set cpus=1 "$TMP/doall.peet") split=$(column cycles --set cpus=1 "$TMP/doall.peet")
    is "$split < $kept && $split > 0.98 * $kept"
)"
verdict "a doacross gains as much as its halves that need nobody allow" "$(
    read -r one two four <<<"$(column speed_up --cpus 1,2,4 "$TMP/across.peet")"
    is "$one == 1 && $two > 1.5 && $four > $two * 0.99 && $four < 2.2"
)"
verdict "a program that runs is dealt out as its trace is" "$(
    for way in "" across; do
        # shellcheck disable=SC2086
        read -r l1 l4 <<<"$(column speed_up --cpus 1,4 -- "$TMP/doall" $way)"
        read -r _ t4 <<<"$(column speed_up --cpus 1,4 "$TMP/${way:-doall}.peet")"
        is "$l1 == 1 && $l4 > 0.97 * $t4 && $l4 < 1.03 * $t4"
    done
)"
verdict "what a program says does not depend on the machine" "$(
    "$TMP/doall" >"$TMP/expected"
    for cpus in 1 4; do "$peet" simulate --set cpus=$cpus -- "$TMP/doall" 2>&1 | head -n 1 | cmp - "$TMP/expected" 2>&1; done
)"

verdict "iterations that are too long to be kept are told" "$(
    "$peet" simulate -m sato1999 --set cpus=4 --doall-records 1 "$TMP/doall.peet" >/dev/null 2>"$TMP/err"
    code=$?
    [ $code = 3 ] || echo "status $code"
    grep -q 'iteration 0 of a parallel loop.*--doall-records' "$TMP/err" || cat "$TMP/err"
    "$peet" simulate --doall-open 5000 "$TMP/doall.peet" >/dev/null 2>"$TMP/err"
    code=$?
    [ $code = 2 ] || echo "--doall-open 5000: status $code"
)"

# Two processors, each the maximum of a part of an array: one instruction and one miss after the other, and nothing of the loop.
cat >"$TMP/max.txt" <<'END'
peet text 1
process 1 parent 0 program "max" command "max"
thread 1 process 1 parent 0 ordinal 0 name "main"
block b1
  0x401000 4 plain
block b2 slots 1
  0x401010 4 plain, load 8 [s0]
1 - doall_fork 2
1 - doall_start 0
1 - b2 0x500000
1 - b2 0x500008
1 - b2 0x500010
1 - doall_finish 0
1 - b1
1 - b1
1 - doall_start 1
1 - b2 0x510000
1 - b2 0x510008
1 - b2 0x510010
1 - doall_finish 1
1 - b1
1 - b1
1 - doall_join 0
1 - b2 0x500000
1 - thread_end 0 0
end
END
"$peet" import -o "$TMP/max.peet" "$TMP/max.txt" || exit 1
verdict "the maximum of an array by two processors takes what the longer half takes, and the rest" "$(
    "$peet" simulate -m ideal --set cpus=2 --format csv "$TMP/max.peet" >"$TMP/out"
    grep -q '^runs,ideal,2,3,4,1,7,7,' "$TMP/out" || cat "$TMP/out"
    "$peet" simulate -m ideal --set cpus=2 --doall keep --format csv "$TMP/max.peet" >"$TMP/out"
    grep -q '^runs,ideal,2,1,11,1,11,7,' "$TMP/out" || cat "$TMP/out"
)"

property="a loop that OpenMP has shared among threads stays as it is"
if echo 'int main(void) { return 0; }' | gcc -fopenmp -x c -o "$TMP/probe" - 2>/dev/null; then
    "$peet" cc -O1 -fopenmp -w -Iinclude -o "$TMP/openmp" $subjects/openmp.c &&
        OMP_NUM_THREADS=4 "$peet" record -o "$TMP/openmp.peet" -- "$TMP/openmp" >"$TMP/log" 2>&1
    verdict "$property" "$(
        "$peet" simulate -m sato1999 --format json "$TMP/openmp.peet" >"$TMP/split.json" 2>&1
        "$peet" simulate -m sato1999 --doall keep --format json "$TMP/openmp.peet" >"$TMP/keep.json" 2>&1
        grep -q '"cycles"' "$TMP/keep.json" || cat "$TMP/keep.json"
        cmp "$TMP/split.json" "$TMP/keep.json" 2>&1
    )"
else
    skip "$property" "needs OpenMP"
fi
exit $status
