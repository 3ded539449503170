#!/bin/bash
# SPDX-License-Identifier: MIT
# Samples of a program that runs are those of its recording: between windows it runs by itself, and what it did then is counted, but not looked at.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet workloads=$PEET_BUILD/workloads/peet
subjects=tests/e2e/subjects
export LC_ALL=C.UTF-8

if [ ! -e "$PEET_BUILD/lib/peet/libpeet-machine.so" ]; then
    skip "samples of programs that run" "there are no machines in processes with sanitizers"
    exit 0
elif ! grep -q ' fsgsbase' /proc/cpuinfo; then
    skip "samples of programs that run" "needs a processor with fsgsbase"
    exit 0
fi

# A cell of the first row of a table.
cell() { # FILE TABLE COLUMN
    awk -F, -v table="$2" -v column="$3" '$1 == "table" { delete at; for (i = 1; i <= NF; i++) at[$i] = i }
        $1 == table { print $at[column]; exit }' "$TMP/$1.csv"
}
# What it looked at, and how many references there were in all.
sampled() { sed -n 's/.*sampled: \([0-9]*\) of \([0-9]*\) references in \([0-9]*\) windows.*/\1 \2 \3/p' "$TMP/$1.txt"; }
# live, recorded, whole: the same program with the same options.
profile_all() { # CPUS PROGRAM… -- OPTION…
    local cpus=$1 program=()
    shift
    while [ "$1" != -- ]; do program+=("$1") && shift; done
    shift
    # There is no room for a recording where one would be made.
    TMPDIR=/nonexistent "$peet" profile --cpus "$cpus" --top 0 --format csv "$@" -- "${program[@]}" >"$TMP/live.csv" 2>"$TMP/err" || { cat "$TMP/err"; return; }
    "$peet" profile --cpus "$cpus" --top 1 "$@" -- "${program[@]}" >"$TMP/live.txt" 2>"$TMP/err" || cat "$TMP/err"
    "$peet" profile --cpus "$cpus" --top 0 --format csv "$@" --trace "$TMP/a.peet" -- "${program[@]}" >"$TMP/recorded.csv" 2>"$TMP/err" || cat "$TMP/err"
    "$peet" profile --cpus "$cpus" --top 1 "$@" "$TMP/a.peet" >"$TMP/recorded.txt" 2>"$TMP/err" || cat "$TMP/err"
    "$peet" profile --cpus "$cpus" --top 0 --format csv "${@:1:2}" -- "${program[@]}" >"$TMP/whole.csv" 2>"$TMP/err" || cat "$TMP/err"
}
# Where the live one differs from the others. mp3d's work depends on the order of threads, so that several threads of it do not do the same twice.
differs() { # EXACT
    read -r _ all windows < <(sampled live)
    whole=$(awk -F, '$1 == "cells" || $1 == "objects" { next } $1 == "summary" { print $10 - $15; exit }' "$TMP/whole.csv")
    if [ "$1" = exact ]; then
        [ "$all" = "$whole" ] || echo "$all references in windows and between them; $whole expected"
        read -r _ _ other < <(sampled recorded)
        [ "$((windows > other ? windows - other : other - windows))" -le 2 ] || echo "$windows windows; $other expected"
    fi
    awk -v a="$(cell live estimates misses)" -v ea="$(cell live estimates error)" -v b="$(cell recorded estimates misses)" \
        -v eb="$(cell recorded estimates error)" -v from="$(cell live estimates from)" -v to="$(cell live estimates to)" 'BEGIN {
            d = a > b ? a - b : b - a
            if (d > 0.05 * b && d > ea + eb) print a " ± " ea " misses live, " b " ± " eb " of the recording"
            if (a < from || a > to) print a " misses are not between " from " and " to }'
    # What has a tenth of the misses in one, whatever its error, can have as many in the other.
    for f in live recorded; do
        awk -F, '$1 == "table" { for (i = 1; i <= NF; i++) at[$i] = i } $1 == "estimates" && $at["object"] != "all" { print $at["misses"], $at["error"], $at["object"] }' "$TMP/$f.csv" >"$TMP/$f.rows"
        for part in top near; do
            awk -v part=$part '{ n = $1 + (part == "near" ? $2 : -$2); sum += $1; sub(/^[^ ]* [^ ]* /, ""); row[NR] = $0; at[NR] = n }
                END { for (i = 1; i <= NR; i++) if (at[i] > sum / 10) print row[i] }' "$TMP/$f.rows" | sort >"$TMP/$f.$part"
        done
    done
    comm -23 "$TMP/recorded.top" "$TMP/live.near" | sed 's/^/a tenth of the misses of the recording, not so live: /'
    comm -23 "$TMP/live.top" "$TMP/recorded.near" | sed 's/^/a tenth of the misses live, not so of the recording: /'
}

for workload in "fft -m 14" "radix -n 200k" "tri -r 4" "shallow -s 4" "gates -c 60" "mp3d -n 5000 -l 16 -s 20"; do
    name=${workload%% *}
    for cpus in 1 4; do
        exact=exact
        [ "$name $cpus" = "mp3d 4" ] && exact=
        # shellcheck disable=SC2086
        verdict "$workload with $cpus threads is sampled as its recording is" "$(
            profile_all $cpus "$workloads/$name" -p $cpus ${workload#* } -- -m memspy-16k --sample 1/5 --length 20k
            differs "$exact"
        )"
    done
done
verdict 'two levels of caches are sampled as those of a recording are' "$(
    profile_all 1 "$workloads/fft" -p 1 -m 14 -- -m bench/two-level.cfg --sample 1/4 --length 200k
    differs exact
)"
verdict 'windows at random places are seen, too' "$(
    profile_all 1 "$workloads/radix" -p 1 -n 200k -- -m memspy-16k --sample 1/5 --length 20k --random --seed 3
    differs exact
)"
verdict 'of a program that runs, sets can be chosen' "$(
    profile_all 1 "$workloads/radix" -p 1 -n 200k -- -m memspy-16k --sample 1/4 --length 50k --sets 1/4
    differs exact
)"
# The machine that counts, and the one that looks at each reference.
verdict 'windows say the same whoever looks at them' "$(
    for turn in block reference; do
        "$peet" profile -m memspy-16k --set turn=$turn --top 0 --format csv --sample 1/5 --length 20k -- "$workloads/tri" -p 1 -r 4 2>&1 |
            awk -F, '$1 == "estimates" && $4 != "" { print $2, $3, $8, $9, $10, $11 }' >"$TMP/$turn"
    done
    [ -s "$TMP/block" ] || echo "nothing"
    paste -d ' ' "$TMP/block" "$TMP/reference" | awk '
        NR == 1 { # all: misses, at least, at most, references, unknown
            for (i = 2; i <= 6; i++) { d = $i - $(i + 6); if (d < 0) d = -d; if (d > 0.02 * $i + 2) print $1 ": " $i ", and " $(i + 6) } }'
)"

# ---- loops ----

for options in -O1 -O2 -O3; do
    "$peet" cc $options -g -w -o "$TMP/nest" $subjects/nest.c
    for shape in "a nest of loops" "a nest of long loops" "one long loop after the other"; do
        verdict "of $shape, built with $options, as much is seen as was asked for" "$(
            "$peet" profile -m memspy-16k --sample 1/10 --length 50000 -- "$TMP/nest" "$shape" >"$TMP/live.txt" 2>&1 || cat "$TMP/live.txt"
            read -r seen all windows < <(sampled live)
            [ "${all:-0}" -gt 10000000 ] || echo "$all references"
            [ "$((seen * 10))" -gt $((all * 9 / 10)) ] && [ "$((seen * 10))" -le $((all * 102 / 100)) ] || echo "$seen of $all references in $windows windows"
        )"
    done
done
"$peet" cc -O1 -g -w -o "$TMP/nest" $subjects/nest.c
verdict 'a loop in which windows were missed is told, and how long' "$(
    "$peet" profile -m memspy-16k --sample 1/10 --length 10k -- "$TMP/nest" "few long loops" >"$TMP/out" 2>&1
    grep -q '[0-9]* % of the references of windows were left out: .* up to [0-9]* references late' "$TMP/out" || cat "$TMP/out"
)"
verdict 'one in which all of them were missed, too' "$(
    "$peet" profile -m memspy-16k --sample 1/10 --length 10k -- "$TMP/nest" "one loop" >"$TMP/out" 2>&1 && echo "it did not fail"
    grep -q 'no window in .* ended up to [0-9]* references later' "$TMP/out" || cat "$TMP/out"
)"

# ---- names and paths ----

"$peet" cc -O2 -g -w -o "$TMP/grow" $subjects/grow.c
verdict 'data that is allocated between windows has its name' "$(
    profile_all 1 "$TMP/grow" -- -m memspy-16k --sample 1/10 --length 5k
    differs exact
    for name in left right; do grep -q "^objects,$name," "$TMP/live.csv" || echo "no $name"; done
)"
verdict 'windows begin on the path on which they are' "$(
    "$peet" profile -m memspy-16k --sample 1/10 --length 5k --stacks "$TMP/stacks" -- "$TMP/grow" >"$TMP/out" 2>&1 || cat "$TMP/out"
    grep '\[unknown\]' "$TMP/stacks"
    for path in 'main;fill;walk ' 'main;sum;walk '; do grep -q "^$path" "$TMP/stacks" || { echo "no $path"; cat "$TMP/stacks"; }; done
)"
echo 'char big[1 << 22]; int main(void) { for (int r = 0; r < 3 << 10; r++) for (int i = 0; i < 4096; i += 64) big[(r & 1023) * 4096 + i]++; }' >"$TMP/once.c"
"$peet" cc -O1 -g -o "$TMP/once" "$TMP/once.c"
verdict 'what unknown references are taken to wait is on their paths' "$(
    for machine in memspy-16k modern; do
        for length in 100 2k; do # of which short ones know no miss at all
            "$peet" profile -m $machine --sample 1/10 --length $length --stacks "$TMP/stacks" --format csv -o "$TMP/stacks.csv" -- "$TMP/once" >"$TMP/out" 2>&1 || cat "$TMP/out"
            stall=$(cell stacks summary stall)
            awk -v want="$stall" -v what="$machine, $length: " '/\[memory\]/ { s += $NF } END { if (want == 0 || s < want - 10 || s > want + 10) print what s + 0 ", not " want }' "$TMP/stacks"
        done
    done
)"
verdict 'what may be cold is not called so' "$(
    grep '^causes,cold,' "$TMP/live.csv"
    grep -q 'of lines to which no window had referred before, may be cold' "$TMP/live.txt" || echo "nothing is said of it"
    grep -q '^causes,unknown,' "$TMP/live.csv" || echo "and nothing is unknown"
    grep 'may be cold' "$TMP/recorded.txt"
)"
"$peet" profile -m memspy-16k --sample 1/10 --length 1g -- "$TMP/grow" >"$TMP/out" 2>&1
code=$?
verdict 'a program shorter than its first window is told' "$([ $code != 0 ] || echo 'it did not fail'; grep -q 'no window in .* take a shorter --length' "$TMP/out" || cat "$TMP/out")"

# As many samples as are needed, of a program that is not recorded: its windows grow.
automatic() { # FILE OPTION…
    TMPDIR=/nonexistent "$peet" profile -m memspy-16k --top 0 --format csv -o "$TMP/$1.csv" "${@:2}" -- "$workloads/mp3d" -p 1 -s 6 >"$TMP/out" 2>&1 || cat "$TMP/out"
}
order() { awk -F, '$1 == "objects" && $3 > 0.1 { print $2 }' "$TMP/$1.csv"; }
automatic all && automatic auto --sample auto && automatic steady --sample auto --steady
verdict 'auto takes samples of a program that runs, and finds the order of the data' "$(
    [ "$(order all)" = "$(order auto)" ] || { order all; echo; order auto; }
    awk -v all="$(cell all summary references)" -v seen="$(cell auto estimates seen)" 'BEGIN { if (seen < all / 12 || seen > all / 9) print seen " of " all " references were looked at" }'
    grep -q 'the order is certain' "$TMP/auto.csv" || grep '^#' "$TMP/auto.csv"
)"
verdict 'of a steady program fewer references are looked at' "$([ "$(cell steady estimates seen)" -lt $(($(cell auto estimates seen) / 4)) ] || cell steady estimates seen)"
"$peet" profile -m memspy-16k --sample auto -- "$workloads/mp3d" -p 1 -n 500 -l 8 -s 1 >"$TMP/out" 2>"$TMP/err"
verdict 'of a short program, auto says that it need not be sampled' "$(grep -q 'few references: .*without sampling' "$TMP/out" || cat "$TMP/err" "$TMP/out")"
exit $status
