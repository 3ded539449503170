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

# Where data lie, and with it which lines conflict, depends on the environment: here it is the same for all.
record() { # NAME ARGUMENT…
    env -i PATH=/usr/bin:/bin "$peet" record -o "$dir/$1.peet" -- "$build/workloads/peet/mp3d" "${@:2}" >"$dir/err" 2>&1 || { cat "$dir/err"; exit 1; }
}
record a -p 1 -n 5000 -l 16 -s 20
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
    # Which sets have the conflicts depends on the addresses of the data, and so on the environment. Then only the interval can be relied on.
    near=0.15
    [[ $case == *--sets* ]] && near=inf
    verdict "the profile with ${words[*]:1} is near the full one" "$(
        awk -v true="$true" -v near="$near" -v is="$(cell "$name" estimates misses)" -v said="$(cell "$name" summary misses)" -v from="$(cell "$name" estimates from)" \
            -v to="$(cell "$name" estimates to)" 'BEGIN {
                if (near != "inf" && (is < (1 - near) * true || is > (1 + near) * true)) print is " misses were estimated, there are " true
                if (true < from || true > to) print true " is not between " from " and " to
                if (said < 0.999 * is || said > 1.001 * is) print "the summary has " said " misses, the estimates have " is }'
    )"
done
headline() { # OPTION…
    "$peet" profile -m memspy-16k --sample 1/10 "$@" "$dir/a.peet" 2>&1 | head -n 1
}
verdict 'the headline says it when the sample cannot say how many misses there are' "$(
    for length in 20k 400k; do
        profile short --sample 1/10 --length $length
        said=yes
        headline --length $length | grep -q '; the sample cannot say how many misses there are$' && said=no
        echo "$(cell short estimates says) $said"
    done | diff - <(echo 'yes yes'; echo 'no no')
)"
verdict 'a miss whose cause is unknown is blamed on no line' "$(
    "$peet" profile -m memspy-16k --sample 1/10 --length 1000 --top 0 "$dir/a.peet" 2>&1 | sed -n '/: unknown/p; /^  .*  unknown  /p' >"$dir/out"
    [ -s "$dir/out" ] || echo 'there is none'
    grep 'written at' "$dir/out"
)"
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
refuses '--steady needs --sample auto' 'goes with --sample auto' --steady

# As many samples as are needed: what it says is what the full profile says, in the same order.
record long -p 1 -s 6
order() { awk -F, '$1 == "objects" && $3 > 0.1 { print $2 }' "$dir/$1.csv"; }
automatic() { "$peet" profile -m memspy-16k --top 0 --format csv -o "$dir/$1.csv" "${@:2}" "$dir/long.peet" 2>"$dir/err"; }
automatic whole && automatic auto --sample auto && automatic steady --sample auto --steady
verdict 'auto takes samples of a long trace, and finds the order of the data' "$(
    grep -q '^estimates,' "$dir/auto.csv" || echo 'no samples were taken'
    [ "$(order whole)" = "$(order auto)" ] || { order whole; echo; order auto; }
)"
looked_at() { cell "$1" estimates seen; }
verdict 'of a steady program fewer references are looked at' "$([ "$(looked_at steady)" -lt "$(looked_at auto)" ] || echo "$(looked_at steady), $(looked_at auto)")"
profile short --sample auto
verdict 'auto looks at all of a short trace' "$(grep '^estimates,' "$dir/short.csv")"

head -c $(($(stat -c %s "$dir/long.peet") * 9 / 10)) "$dir/long.peet" >"$dir/cut.peet"
"$peet" profile -m memspy-16k --sample auto "$dir/cut.peet" >"$dir/out" 2>"$dir/err"
code=$?
verdict 'auto reports what is there of a damaged trace, and says once what is not' "$(
    [ $code = 4 ] || { echo "status $code"; cat "$dir/err"; }
    grep -q 'of the time waits for' "$dir/out" || cat "$dir/out"
    sort "$dir/err" | uniq -d
)"

# peet advise
"$peet" advise -m memspy-16k --format csv "$dir/a.peet" >"$dir/few.csv" 2>"$dir/err" || cat "$dir/err"
"$peet" advise -m memspy-16k --format csv "$dir/long.peet" >"$dir/moderate.csv" 2>"$dir/err" || cat "$dir/err"
verdict 'advise finds the place of a trace in Table 7' "$(
    grep -q '^table,high,"profile, without sampling (here)"' "$dir/few.csv" || cat "$dir/few.csv"
    grep -q '^table,high,"profile, without sampling","profile, with sampling (here)"' "$dir/moderate.csv" || cat "$dir/moderate.csv"
)"
cp "$dir/a.peet" "$dir/it's one.peet"
verdict 'the command that advise shows can be run' "$(
    "$peet" advise -m memspy-16k --set fabric.memory=30 --cpus 1 --format csv "$dir/it's one.peet" 2>/dev/null | sed -n 's/^advice,.*,//p' >"$dir/command"
    grep -q -e '--set fabric.memory=30 --cpus 1' "$dir/command" || cat "$dir/command"
    PATH=${peet%/*}:$PATH bash -c "$(cat "$dir/command")" >"$dir/out" 2>&1 || cat "$dir/out"
    grep -q 'of the time waits for' "$dir/out" || cat "$dir/out"
)"
"$peet" advise >"$dir/out" 2>&1
verdict 'advise without a trace says so' "$([ $? = 2 ] && grep -q 'no trace given' "$dir/out" || cat "$dir/out")"
exit $status
