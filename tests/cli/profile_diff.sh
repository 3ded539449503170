#!/bin/bash
# SPDX-License-Identifier: MIT
# peet profile diff: what got better or worse, exactly, and from samples beyond their errors only.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
mp3d=$PEET_BUILD/workloads/peet/mp3d
record() { "$peet" record -o "$TMP/$1.peet" -- "$mp3d" -p 1 -l 16 -s 10 -n "$2" >"$TMP/err" 2>&1 || { cat "$TMP/err"; exit 1; }; }
record a 5000
record b 5050
record c 9000
compare() { # FILE BEFORE AFTER OPTION…
    local file=$1 before=$2 after=$3
    shift 3
    "$peet" profile -m memspy-16k --top 0 --allow 0 "$@" diff "$TMP/$before.peet" "$TMP/$after.peet" >"$TMP/$file" 2>"$TMP/err" || cat "$TMP/err"
}
verdicts() { # CSV TABLE
    awk -F, -v table="$2" '$1 == "table" { delete at; for (i = 1; i <= NF; i++) at[$i] = i } $1 == table { print $at["verdict"] }' "$1" | grep . | sort -u
}
first() { head -n 1 "$TMP/$1"; }

verdict "a recording is as good as itself" "$(
    compare same a a
    [ "$(first same)" = "Same: as much memory stall as before" ] || first same
    compare same.csv a a --format csv
    [ "$(verdicts "$TMP/same.csv" changes)" = same ] || verdicts "$TMP/same.csv" changes
    compare same.csv a a --format csv --sample 1/10 --length 10k
    verdicts "$TMP/same.csv" objects | grep -v '^same$'
)"
verdict "exact profiles differ by whatever they differ" "$(
    compare exact a c
    first exact | grep -qE '^Worse: [0-9.]+ % more memory stall, most of it for t->molecule in ' || first exact
    compare exact c a
    first exact | grep -qE '^Better: [0-9.]+ % less memory stall, most of it for t->molecule in ' || first exact
    compare exact.csv a b --format csv
    verdicts "$TMP/exact.csv" objects | grep '±'
    grep -q 'every number is exact' "$TMP/exact" || echo "it does not say that it is exact"
)"
verdict "from samples, a small change is within the errors, and a large one beyond" "$(
    compare small a b --sample 1/10 --length 10k
    first small | grep -qE '^Within the errors of the samples: memory stall changes by [-+][0-9.]+ % ± [0-9.]+ %$' || first small
    compare large a c --sample 1/4 --length 40k
    first large | grep -q '^Worse: ' || first large
    compare large.csv a c --format csv --sample 1/4 --length 40k
    [ "$(verdicts "$TMP/large.csv" summary)" = worse ] || verdicts "$TMP/large.csv" summary
    verdicts "$TMP/large.csv" changes | grep -qx 'within ±' || echo "no row is within its error"
)"
verdict "the error is that of both, as the profiles say it" "$(
    for side in a c; do
        "$peet" profile -m memspy-16k --sample 1/4 --length 40k --format csv "$TMP/$side.peet" 2>/dev/null |
            awk -F, '$1 == "table" { delete at; for (i = 1; i <= NF; i++) at[$i] = i } $1 == "estimates" && $at["object"] == "all" { print $at["misses"], $at["error"] }'
    done | tr '\n' ' ' >"$TMP/errors"
    read -r before error_before _ error_after <"$TMP/errors"
    awk -F, -v b="$before" -v eb="$error_before" -v ea="$error_after" '$1 == "table" { delete at; for (i = 1; i <= NF; i++) at[$i] = i }
        $1 == "summary" && $at["what"] == "misses" { want = sqrt(eb * eb + ea * ea) / b; is = $at["error"]; found = 1
            if (is < 0.98 * want || is > 1.02 * want) print is ", not " want }
        END { if (!found || want == 0) print "no error" }' "$TMP/large.csv"
)"
verdict "what changes by no more than is allowed is the same, and more that is worse ends with 1" "$(
    allowed() { # PERCENT BEFORE AFTER STATUS FIRST LINE
        "$peet" profile -m memspy-16k --allow "$1" diff "$TMP/$2.peet" "$TMP/$3.peet" >"$TMP/allowed" 2>"$TMP/err"
        local was=$?
        [ $was = "$4" ] || { echo "$2 to $3, $1 % allowed: status $was"; cat "$TMP/err"; }
        grep -qE "$5" <<<"$(first allowed)" || first allowed
    }
    allowed 0 a a 0 '^Same: as much'
    allowed 0 a b 1 '^Worse: '
    allowed 50 a b 0 '^Same: memory stall changes by [+].* %, which is allowed$'
    allowed 1 a c 1 '^Worse: '
    allowed 1 c a 0 '^Better: '
    allowed 1000 a c 0 '^Same: '
    "$peet" profile -m memspy-16k --allow 50 --top 0 --format csv diff "$TMP/a.peet" "$TMP/b.peet" >"$TMP/allowed.csv"
    awk -F, '$1 == "table" { delete at; for (i = 1; i <= NF; i++) at[$i] = i; next }
        $1 == "objects" && ($at["verdict"] == "same") != ($at["stall_after"] <= 1.5 * $at["stall_before"] && $at["stall_after"] >= 0.5 * $at["stall_before"])' "$TMP/allowed.csv"
    "$peet" profile --allow much diff "$TMP/a.peet" "$TMP/b.peet" >/dev/null 2>&1
    [ $? = 2 ] || echo "a percentage that is none is taken"
    "$peet" profile --allow 1 "$TMP/a.peet" >/dev/null 2>&1
    [ $? = 2 ] || echo "--allow is taken without diff"
)"
verdict "--focus takes one of them" "$(
    compare focused.csv a c --format csv --focus record
    awk -F, '$1 == "changes" && $3 != "record"' "$TMP/focused.csv"
    grep -q '^changes,t->cell,record,' "$TMP/focused.csv" || cat "$TMP/focused.csv"
)"
exit $status
