#!/bin/bash
# SPDX-License-Identifier: MIT
# peet profile from samples, by the command line: near the full profile and honest about what it does not know.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/lib.sh
build=${PEET_BUILD:-build}
peet=${PEET:-$build/peet}
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
export LC_ALL=C.UTF-8

"$peet" record -o "$dir/a.peet" -- "$build/workloads/peet/mp3d" -p 1 -n 5000 -l 16 -s 20 >"$dir/err" 2>&1 || { cat "$dir/err"; exit 1; }
profile() { # NAME OPTION…
    local name=$1
    shift
    "$peet" profile -m memspy-16k --top 0 --format csv -o "$dir/$name.csv" "$@" "$dir/a.peet" 2>"$dir/err"
}
# A cell of the first row of a table.
cell() { # NAME TABLE COLUMN
    awk -F, -v table="$2" -v column="$3" '$1 == "table" { delete at; for (i = 1; i <= NF; i++) at[$i] = i }
        $1 == table { print $at[column]; exit }' "$dir/$1.csv"
}

holds 'a full profile has no estimates' eval 'profile full && ! grep -q "^estimates," "$dir/full.csv"'
true=$(cell full summary misses)
for case in "tenth --sample 1/10 --length 20k" "random --sample 1/10 --length 20k --random --seed 7" "both --sample 1/4 --length 50k --sets 1/4" "sets --sets 1/8"; do
    read -ra words <<<"$case"
    name=${words[0]}
    profile "${words[@]}"
    verdict "the profile with ${words[*]:1} is near the full one" "$(
        awk -v true="$true" -v is="$(cell "$name" estimates misses)" -v said="$(cell "$name" summary misses)" -v low="$(cell "$name" estimates low)" \
            -v high="$(cell "$name" estimates high)" 'BEGIN {
                if (is < 0.85 * true || is > 1.15 * true) print is " misses were estimated, there are " true
                if (is < low || is > high) print is " is not between " low " and " high
                if (said < 0.999 * is || said > 1.001 * is) print "the summary has " said " misses, the estimates have " is }'
    )"
done
verdict 'references between windows are scaled' "$(
    awk -v a="$(cell full summary references)" -v b="$(cell tenth summary references)" 'BEGIN { if (a < 0.999 * b || a > 1.001 * b) print a, b }'
)"
verdict 'sets alone leave nothing unknown' "$([ "$(cell sets estimates unknown)" = 0 ] || echo "$(cell sets estimates unknown)" are)"
verdict 'data has its name although it was allocated between windows' "$(
    for f in full tenth; do awk -F, '$1 == "objects" && $3 > 0.05 { print $2 }' "$dir/$f.csv" | sort >"$dir/$f"; done
    diff "$dir/full" "$dir/tenth"
)"

refuses() { # PROPERTY PATTERN OPTION…
    local property=$1 pattern=$2
    shift 2
    "$peet" profile -m memspy-16k "$@" "$dir/a.peet" >"$dir/out" 2>&1
    verdict "$property" "$([ $? != 0 ] || echo 'it did not fail'; grep -q -- "$pattern" "$dir/out" || cat "$dir/out")"
}
refuses 'a part that is none is refused' 'a part as 1/10 was expected' --sample 10
refuses 'a run shorter than its first window is told' 'no window in .* take a shorter --length' --sample 1/10 --length 1g
refuses 'no sets can be chosen of too few' 'one in 100000 sets' --sets 1/100000
exit $status
