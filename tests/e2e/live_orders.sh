#!/bin/bash
# SPDX-License-Identifier: MIT
# A program under a memory order reads what its domain holds: outcomes that the order forbids do not occur, those that delayed stores can
# produce do; algorithms that need a stronger order break, at the lines that are named; race-free ones do not.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/lib.sh
peet=${PEET:-${PEET_BUILD:-build}/peet}
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
export LC_ALL=C.UTF-8
"$peet" cc --peet-order -O1 -g -o "$dir/orders" tests/e2e/subjects/memory_orders.c -lpthread 2>"$dir/err" || {
    verdict "a program with stops at accesses is built" "$(cat "$dir/err")"
    exit 1
}
rounds=${PEET_ROUNDS:-1500}

# What the program says under an order.
says() { # ORDER NAME ROUNDS [OPTION…]
    local order=$1 name=$2 n=$3
    shift 3
    timeout 200 "$peet" simulate --set order.model="$order" --set order.grain=access --set order.drain=random --set jitter=20 \
        "$@" -- "$dir/orders" "$name" "$n" 2>"$dir/err" >"$dir/out"
    grep "^$name:" "$dir/out" || cat "$dir/err"
}
is() { # TEXT ORDER NAME ROUNDS [OPTION…]
    local text=$1 said
    shift
    said=$(says "$@")
    [ "$said" = "$text" ] || echo "$*: '$said', expected '$text'"
}

verdict "store buffering is seen under tso and weaker orders alone" "$(
    is "sb: 01 10 11" sc sb "$rounds"
    for order in tso pso rmo rcsc rcpc; do is "sb: 00 01 10 11" $order sb "$rounds"; done)"
verdict "full fences exclude it" "$(
    for order in tso pso rmo; do is "sb-fences: 01 10 11" $order sb-fences "$rounds"; done)"
verdict "message passing breaks under pso and weaker orders alone" "$(
    for order in sc tso; do is "mp: 00 01 11" $order mp "$rounds"; done
    for order in pso rmo; do is "mp: 00 01 10 11" $order mp "$rounds"; done)"
verdict "a fence between stores excludes that" "$(is "mp-fence: 00 01 11" pso mp-fence "$rounds")"
verdict "a live load returns at once, so load buffering is never seen" "$(
    for order in sc tso pso rmo; do is "lb: 00 01 10" $order lb "$rounds"; done)"
verdict "race-free threads have the same result under every order" "$(
    for order in sc tso pso rmo rcsc rcpc; do is "locked: broken no" $order locked 200; done)"
verdict "Dekker's and Peterson's algorithms break under tso, and not under sc" "$(
    for name in dekker peterson; do
        is "$name: broken no" sc $name "$rounds"
        is "$name: broken yes" tso $name "$rounds"
    done)"
verdict "double-checked locking and a queue without locks break under pso, and not under tso" "$(
    for name in checked queue; do
        is "$name: broken no" tso $name "$rounds" --set jitter=300
        is "$name: broken yes" pso $name "$rounds" --set jitter=300
    done)"
line() { grep -n "$1" tests/e2e/subjects/memory_orders.c | head -n 1 | cut -d: -f1; }
verdict "the report names the lines: the store that is late, and the load that does not see it" "$(
    says pso queue "$rounds" >/dev/null
    grep -q "load before a pending store .*queue, memory_orders.c:$(line 'broken += ring')" "$dir/out" || echo "the load is not named"
    grep -q "store after another's load .*queue, memory_orders.c:$(line 'ring\[tail.v % 4\].v = i')" "$dir/out" || echo "the store is not named"
    grep "pending store\|another's" "$dir/out" >"$dir/lines" || cat "$dir/out")"
verdict "the simulator in a process of its own gives the same outcomes, cycles and stops" "$(
    for order in sc tso pso; do
        says $order sb 200 --apart >/dev/null; cp "$dir/out" "$dir/apart"
        says $order sb 200 >/dev/null
        cmp "$dir/out" "$dir/apart" 2>&1
    done)"
verdict "threads of one core share a store buffer, and one of a group" "$(
    is "sb: 01 10 11" tso sb "$rounds" --set order.domain=group --set order.group=4)"
verdict "the same seed gives the same schedule, and another one another" "$(
    a=$(says tso sb 50 --set seed=7 >/dev/null; cat "$dir/out") b=$(says tso sb 50 --set seed=7 >/dev/null; cat "$dir/out")
    c=$(says tso sb 50 --set seed=8 >/dev/null; cat "$dir/out")
    [ "$a" = "$b" ] || echo "seed 7 differs from itself"
    [ "$a" != "$c" ] || echo "seeds 7 and 8 agree")"
exit $status
