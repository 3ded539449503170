#!/bin/bash
# SPDX-License-Identifier: MIT
# peet simulate --order: runs under several memory orders, what they cost against sc, and where.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/lib.sh
peet=${PEET:-${PEET_BUILD:-build}/peet}
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
export LC_ALL=C.UTF-8

# A writer of ten lines in a row, with a fence or without, and an atomic after them.
trace() { # NAME FENCE
    {
        printf 'peet text 1\nprocess 1 parent 0 program "writer" command "writer"\nthread 1 process 1 parent 0 ordinal 0 name ""\nblock b1\n'
        for i in 0 1 2 3 4 5 6 7 8 9; do
            printf '  0x%x 4 plain, store 8 [0x%x]\n' $((0x401000 + 4 * i)) $((0x10000 + 64 * i))
        done
        [ -z "$2" ] || printf '  0x401040 4 fence %s\n' "$2"
        printf '  0x401044 4 plain, load 8 [0x10000]\n  0x401048 4 plain atomic, update 8 [0x20000]\n'
        printf '1 - b1\n1 - thread_end 0 0\nend\n'
    } >"$dir/$1.text"
    "$peet" import -o "$dir/$1.peet" "$dir/$1.text" || exit 1
}
trace plain ""
trace fenced fence_full

# The value of a column in the first row of a table.
value() { # TABLE COLUMN ARGUMENT…
    local table=$1 column=$2
    shift 2
    "$peet" simulate --format json "$@" | python3 -c "
import json, sys
print(next((r['$column'] for r in json.load(sys.stdin).get('$table', {'rows': []})['rows']), 'none'))"
}

if needs "orders are compared with sc" python3; then
    verdict "sc runs first, and each other order has its cost against it" "$(
        "$peet" simulate --order tso,pso --format json "$dir/plain.peet" | python3 -c "
import json, sys
t = json.load(sys.stdin)
runs, orders = t['runs']['rows'], t['orders']['rows']
assert [r['machine'] for r in runs] == ['modern (sc)', 'modern (tso)', 'modern (pso)'], runs
assert [o['order'] for o in orders] == ['tso', 'pso'], orders
for o, r in zip(orders, runs[1:]):
    assert abs(o['against_sc'] - r['cycles'] / runs[0]['cycles']) < 1e-9, (o, runs)
assert orders[1]['cycles'] < orders[0]['cycles'], runs" 2>&1)"
    verdict "sc costs what a machine without the setting costs" "$(
        [ "$(value runs cycles "$dir/fenced.peet")" = "$(value runs cycles --order sc "$dir/fenced.peet")" ] || echo "it does not")"
    verdict "a full fence waits for stores, and has its line" "$(
        [ "$(value orders fence_stall --order pso "$dir/plain.peet")" = 0 ] || echo "without a fence there is a wait"
        [ "$(value orders fence_stall --order pso "$dir/fenced.peet")" -gt 100 ] || echo "the fence does not wait"
        [ "$(value order_locations why --order pso "$dir/fenced.peet")" = fence ] || echo "no fence is named")"
    verdict "a buffer of one store is full more often" "$(
        a=$(value orders full_stall --order tso --set order.stores=1 "$dir/plain.peet")
        b=$(value orders full_stall --order tso --set order.stores=8 "$dir/plain.peet")
        [ "$a" -gt "$b" ] || echo "$a cycles, and with 8 stores $b")"
    verdict "a load reads its bytes from the buffer" "$(
        [ "$(value orders forwarded --order tso "$dir/plain.peet")" = 1 ] || echo "it does not"
        [ "$(value orders forwarded --order tso --set order.forwarding=false "$dir/plain.peet")" = 0 ] || echo "it does without forwarding")"
fi
for words in "--order tso,sc" "--order tso --set order.model=pso" "--order tos"; do
    # shellcheck disable=SC2086
    "$peet" simulate $words "$dir/plain.peet" >"$dir/out" 2>&1
    verdict "a mistake is said: $words" "$([ $? = 2 ] && grep -q order "$dir/out" || cat "$dir/out")"
done
verdict "a profile does not take store buffers, and says so" "$(
    "$peet" profile --set order.model=tso "$dir/plain.peet" >"$dir/out" 2>&1 && echo "it does"
    grep -q 'order.model.*sc was expected' "$dir/out" || cat "$dir/out")"
exit $status
