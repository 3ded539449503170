#!/bin/bash
# SPDX-License-Identifier: MIT
# peet litmus by the command line: its options and exit codes, its formats, thousands of files, and lists of files.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/lib.sh
peet=${PEET:-${PEET_BUILD:-build}/peet}
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
export LC_ALL=C.UTF-8
golden=tests/golden/litmus

# NAME CODE PATTERN ARGUMENT…: peet litmus ends with the code, and says the pattern on standard output (0, 1) or error (others).
ends() {
    local name=$1 want=$2 pattern=$3 code text
    shift 3
    "$peet" litmus "$@" </dev/null >"$dir/out" 2>"$dir/err"
    code=$?
    if [ "$want" -lt 2 ]; then text=$(cat "$dir/out"); else text=$(cat "$dir/err"); fi
    verdict "$name" "$(
        [ "$code" = "$want" ] || echo "peet litmus $*: exit code $code, expected $want"
        # shellcheck disable=SC2053
        [[ $text == $pattern ]] || printf 'peet litmus %s: expected %s, got:\n%s\n' "$*" "$pattern" "$text"
    )"
}

ends "without files the built-in tests run under all models" 0 "Tests*test*sc*tso*pso*rmo*rcsc*rcpc*SB *forbidden*allowed*Summary*"
verdict "and all of them do" "$([ "$("$peet" litmus --format csv | grep -c '^tests,')" = "$("$peet" litmus --list --format csv | grep -c '^tests,')" ] || cat "$dir/out")"
ends "one file shows outcomes and an execution" 0 "Tests*Outcomes*0:EAX=0*Witness*tso*P0*waits in the store buffer*" "$golden/peterson.litmus"
verdict "a test without release and acquire has four models" "$(grep rcsc "$dir/out")"
ends "one with them has six" 0 "*rcsc*rcpc*" "$golden/release-chain.litmus"
ends "models can be chosen" 0 "*tso*rmo*" --model rmo,tso "$golden/peterson.litmus"
verdict "and no others are explored" "$(grep -E 'sc |pso' "$dir/out")"
ends "several files show no outcomes" 0 "Tests*Summary*" "$golden/peterson.litmus" "$golden/counter.litmus"
verdict "and no executions" "$(grep -E '^(Outcomes|Witness)' "$dir/out")"
ends "unless they are asked for" 0 "*Outcomes*Witness*" --outcomes --witness "$golden/peterson.litmus" "$golden/counter.litmus"
ends "what is claimed and does not hold is exit code 1" 1 "*violated*" -m pso "$golden/peterson+mfence.litmus"
ends "and 0 where it holds" 0 "*forbidden*" -m tso "$golden/peterson+mfence.litmus"
ends "an unknown model is refused" 2 "*pos*pso*" --model pos
ends "a file that is not there is exit code 3" 3 "peet: cannot open $dir/none.litmus: *" "$dir/none.litmus"
ends "a wrong file has its line" 3 "peet: $golden/bad/jump.litmus:5: the instruction 'CMP EAX,\$1' is not supported*" "$golden/bad/jump.litmus"
ends "and does not keep others from running" 3 "peet: 1 of 2 tests could not be read*" "$golden/bad/jump.litmus" "$golden/counter.litmus"
verdict "and they have run" "$(grep -q '^ *counter *exists n=7 *allowed' "$dir/out" || cat "$dir/out")"
ends "a search that is too long is given up" 3 "peet: *more than 10 states under sc" --states 10 "$golden/peterson.litmus"
ends "--list needs no file" 2 "*--list needs no file*" --list x.litmus
ends "--list lists models and tests" 0 "Models*sc *Built-in tests*IRIW *Wx1 | Wy1 | Rx Ry | Ry Rx*" --list
for model in $("$peet" litmus --list --format csv | sed -n 's/^models,\([a-z]*\),.*/\1/p'); do
    verdict "documents have the model $model" "$(
        grep -q "^| \`$model\` |" docs/litmus.md || echo "docs/litmus.md has no row of $model"
        grep -q "^\*.*$model\*" docs/man/peet-litmus.1.scd || echo "docs/man/peet-litmus.1.scd has no $model"
        grep -q "\`$model.c\`" docs/design/orders.md || echo "docs/design/orders.md has no $model.c"
    )"
done
ends "the help has examples" 0 "*peet litmus*--model*SB.litmus*" --help

# Lists of files, relative to their folder, in lists.
mkdir "$dir/suite"
cp "$golden/counter.litmus" "$golden/peterson.litmus" "$dir/suite"
printf 'counter.litmus # a comment\n\n@rest\n' >"$dir/suite/@all"
echo "peterson.litmus" >"$dir/suite/@rest"
ends "a list names files and lists" 0 "*counter*peterson*" "$dir/suite/@all"
echo "@all" >"$dir/suite/@rest"
ends "a list of itself is refused" 3 "peet: *lists lie in each other*" "$dir/suite/@all"

# Thousands of files: the same whatever the number of jobs.
awk -v dir="$dir" 'BEGIN {
    for (i = 0; i < 2000; i++) {
        f = dir "/" i ".litmus"
        printf "X86 t%d\n{ x=%d; }\n P0 | P1 ;\n MOV [x],$1 | MOV [y],$1 ;\n MOV EAX,[y] | MOV EAX,[x] ;\nexists (0:EAX=0 /\\ 1:EAX=%d)\n", i, i, i >f
        close(f)
    }
}'
"$peet" litmus --jobs 1 --format csv "$dir"/*.litmus >"$dir/one"
verdict "2000 files are explored in one call" "$([ "$(grep -c '^tests,.*,forbidden,3,allowed,4,' "$dir/one")" = 1999 ] || tail -n 6 "$dir/one")"
verdict "the number of jobs changes nothing" "$("$peet" litmus --jobs 8 --format csv "$dir"/*.litmus | cmp - "$dir/one" 2>&1)"

name="litmus --format json is JSON"
if needs "$name" python3; then
    "$peet" litmus --format json "$golden/peterson.litmus" >"$dir/json"
    holds "$name" python3 - "$dir/json" <<'END'
import json, sys
t = json.load(open(sys.argv[1], encoding="utf-8"))
assert list(t) == ["tests", "outcomes", "witness", "summary"], list(t)
row = t["tests"]["rows"][0]
assert row["sc"] == "forbidden" and row["tso"] == "allowed" and row["sc_outcomes"] == 7, row
assert all(r["model"] == "tso" for r in t["witness"]["rows"]) and t["witness"]["rows"], t["witness"]
assert sum(r["sc"] == "yes" for r in t["outcomes"]["rows"]) == 7
END
fi
verdict "litmus --format html is a page" "$("$peet" litmus --format html "$golden/peterson.litmus" | grep -q '</html>' || echo "no end")"
exit $status
