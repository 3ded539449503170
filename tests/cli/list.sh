#!/bin/bash
# SPDX-License-Identifier: MIT
# peet list: everything that is registered, in every format, by a program that needs no file beside it.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/lib.sh
peet=${PEET:-${PEET_BUILD:-build}/peet}
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
export LC_ALL=C.UTF-8

# NAME CODE PATTERN ARGUMENT…: peet list ends with the code, and says the pattern on standard output (0) or error (others).
ends() {
    local name=$1 want=$2 pattern=$3 code text
    shift 3
    "$peet" list "$@" </dev/null >"$dir/out" 2>"$dir/err"
    code=$?
    text=$(cat "$dir/$([ "$want" = 0 ] && echo out || echo err)")
    verdict "$name" "$(
        [ "$code" = "$want" ] || echo "peet list $*: exit code $code, expected $want"
        # shellcheck disable=SC2053
        [[ $text == $pattern ]] || printf 'peet list %s: expected %s, got:\n%s\n' "$*" "$pattern" "$text"
    )"
}

ends "without operands everything is listed" 0 \
    "Machines*Coherence protocols*Locks*Barriers*Schedulers*Fabrics*Replacements*Settings*seed*"
ends "operands choose" 0 "Locks*ttas*" locks
verdict "and nothing else is listed" "$(grep -E 'Machines|Barriers|Settings' "$dir/out")"
ends "several operands, in the usual order, each once" 0 "Locks*Fabrics*" fabrics locks fabrics
verdict "and nothing twice" "$([ "$(grep -c Fabrics "$dir/out")" = 1 ] || cat "$dir/out")"
ends "an unknown list suggests the nearest" 2 "peet list: there is no list of 'protocol'; did you mean 'protocols'?*" protocol
verdict "and nothing is on standard output" "$(cat "$dir/out")"
ends "one that is near to none suggests none" 2 "peet list: there is no list of 'zebra'
see 'peet help list'" locks zebra
ends "a machine is listed with its parts" 0 "*sato1999 * 4  mesi *Sato*" machines

# What a registry's header lists is what peet lists.
registered() { # HEADER MACRO
    printf '#include "%s"\n#define X(name) here_is name\n%s(X)\n' "$1" "$2" |
        ${CC:-gcc} -x c -std=c17 -D_GNU_SOURCE -E -P -Iinclude -Isrc -I. - | grep -oE 'here_is +[a-z]+' | sed 's/.* //'
}
while read -r list header macro; do
    "$peet" list "$list" --format csv | sed "1d; /^\$/,\$d; s/^$list,//; s/,.*//" >"$dir/listed"
    verdict "$list are those of $macro" "$(
        [ -s "$dir/listed" ] || echo "there are none"
        diff <(registered "$header" "$macro") "$dir/listed"
    )"
    verdict "each of the $list says what it is" "$("$peet" list "$list" --format csv | grep -E ',(""|)$')"
done <<'END'
protocols sim/coherence/protocol.h PROTOCOLS
locks sim/sync/sync.h LOCK_KINDS
barriers sim/sync/sync.h BARRIER_KINDS
schedulers map/sched/sched.h SCHEDULERS
fabrics sim/fabric/fabric.h FABRICS
replacements sim/cache/cache.h REPLACEMENTS
orders sim/order/order.h MEMORY_ORDERS
END
verdict "machines are the files of machines/" "$(
    diff <(for f in machines/*.cfg; do basename "$f" .cfg; done | sort) \
        <("$peet" list machines --format csv | sed '1d; s/,.*//' | sort)
)"
verdict "every machine's file begins with where it comes from" "$(
    for f in machines/*.cfg; do
        head -n 1 "$f" | grep -q '^# ' || echo "$f does not begin with a comment"
    done
)"

name="peet list needs no file of the tree"
cp "$peet" "$dir/peet"
verdict "$name" "$(cd / && env -i "$dir/peet" list machines 2>&1 | grep -q sato1999 || echo "it does")"

name="list --format json is JSON"
if needs "$name" python3; then
    "$peet" list --format json >"$dir/json"
    holds "$name" python3 - "$dir/json" <<'END'
import json, sys
t = json.load(open(sys.argv[1], encoding="utf-8"))
assert list(t) == ["machines", "protocols", "states", "locks", "barriers", "schedulers", "fabrics", "replacements", "orders", "settings"], list(t)
cpus = {m["machine"]: m["cpus"] for m in t["machines"]["rows"]}
assert cpus["sato1999"] == 4 and cpus["ideal"] == 16, cpus
s = {r["setting"]: r for r in t["settings"]["rows"]}
assert s["cpus"]["values"] == "1 to 64" and s["cpus"]["default"] == "1", s["cpus"]
assert s["coherence.protocol"]["values"].split(", ") == [p["name"] for p in t["protocols"]["rows"]]
assert all(r.get("summary") or r["meaning"] for table in t.values() for r in table["rows"])
END
fi
exit $status
