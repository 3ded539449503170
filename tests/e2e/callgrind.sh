#!/bin/bash
# SPDX-License-Identifier: MIT
# What readers of callgrind's format add up of what --callgrind writes.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet

# NAME CYCLES of each function with all that it calls, as readers add them up: its lines, and its calls; and of all, as "all".
inclusive() { # FILE
    awk '
        function name_of(text, number) {
            number = substr(text, index(text, "=") + 1)
            sub(/\).*/, ")", number)
            if (text ~ /\) /) { sub(/^[^)]*\) /, "", text); known[number] = text }
            return known[number]
        }
        /^fn=/ { f = name_of($0) }
        /^cfn=/ { name_of($0) }
        /^[0-9]/ && f != "" { sum[f] += $2 }
        /^totals: / { print "all", $2 }
        END { for (f in sum) print f, sum[f] }' "$1"
}
# Complains about functions with more than all, or of which the cost is not that of the calls from main.
adds_up() { # FILE FUNCTION…
    inclusive "$1" >"$TMP/inclusive"
    awk 'NR == 1 { all = $NF } $NF > all { print "more than all (" all "): " $0 }' "$TMP/inclusive"
    local f
    for f in "${@:2}"; do
        awk -v f="$f" '
            NR == FNR { if ($1 == f) cost = $NF; next }
            /^fn=/ { in_main = $0 ~ / main$/ || (main != "" && index($0, main) == 1) }
            /^c?fn=.* main$/ { main = substr($0, index($0, "("), index($0, ")") - index($0, "(") + 1); main = "fn=" main }
            /^c?fn=/ { number = $0; sub(/^[^(]*/, "", number); sub(/\).*/, ")", number); if ($0 ~ / /) { text = $0; sub(/^[^)]*\) /, "", text); name[number] = text } }
            /^cfn=/ { callee = name[number] }
            /^calls=/ { getline; if (in_main && callee == f) called += $2 }
            END { if (cost == 0 || cost != called) print f " costs " cost ", and main has called it for " called }' "$TMP/inclusive" "$1"
    done
}

"$peet" cc -O1 -g -o "$TMP/recursive" tests/e2e/subjects/recursive.c || exit 1
verdict "what is spent in a function that calls itself, by others or not, counts once" "$(
    "$peet" profile -m core --callgrind "$TMP/out" -- "$TMP/recursive" >/dev/null 2>"$TMP/err" || cat "$TMP/err"
    adds_up "$TMP/out" deep even
)"
property="what is spent in functions of one name, of which one calls the other, counts once"
if needs "$property" g++; then
    "$peet" c++ -O1 -g -o "$TMP/overloads" tests/e2e/subjects/overloads.cc || exit 1
    verdict "$property" "$(
        "$peet" profile -m core --callgrind "$TMP/out" -- "$TMP/overloads" >/dev/null 2>"$TMP/err" || cat "$TMP/err"
        adds_up "$TMP/out" total
    )"
fi
exit $status
