#!/bin/bash
# SPDX-License-Identifier: MIT
# peet simulate and peet profile count the same: lines found, misses and their causes, upgrades and updates, of every
# workload on several machines. Locks and barriers are ideal here, for their own references belong to the machine and
# not to the program.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
ideal="--set lock.kind=ideal --set barrier.kind=wired"
small="falseshare -n 2000
fft -m 8
fmm -n 50 -s 1
gates -n 64 -c 9
lu-con -n 24
lu-non -n 24
matmat -n 20
minimize -o 2 -i 4 -c 12
mp3d -n 500 -l 8 -s 1
ocean-con -n 16 -s 0
ocean-non -n 16 -s 0
radix -n 2k
shallow -n 32 -m 32 -s 1
tri -g 4 -r 1"

count() { # TABLE COLUMN: the sum over the rows of $TMP/simulated
    sed -n "/^  \"$1\"/,/^  }/p" "$TMP/simulated" | grep -o "\"$2\": *[0-9]*" |
        awk -F: '{ s += $2 } END { print s + 0 }'
}
cause() { # NAME…: how often $TMP/profiled has these causes
    local name
    for name in "$@"; do grep "^causes,$name," "$TMP/profiled"; done | awk -F, '{ s += $5 } END { print s + 0 }'
}
same() { # WHAT SIMULATED PROFILED
    [ "$2" = "$3" ] || echo "$1: $2 by peet simulate, $3 by peet profile"
}
agree() { # TRACE OPTION…: complaints
    local trace=$1 farther upgrades known
    shift
    "$peet" simulate "$@" --format json "$trace" >"$TMP/simulated" 2>"$TMP/err" || cat "$TMP/err"
    "$peet" profile "$@" --top 0 --format csv "$trace" >"$TMP/profiled" 2>"$TMP/err" || cat "$TMP/err"
    known=$(awk -F, '/^table,machine/ { for (i = 1; i <= NF; i++) if ($i == "misses") k = i }
        /^summary/ { print $k }' "$TMP/profiled")
    same misses "$(count memory misses)" "$known"
    same cold "$(count memory cold)" "$(cause cold)"
    same replaced "$(count memory replaced)" "$(cause capacity conflict)"
    same "true sharing" "$(count memory true_sharing)" "$(cause "true sharing")"
    same "false sharing" "$(count memory false_sharing)" "$(cause "false sharing")"
    same upgrades "$(count memory upgrades)" "$(cause upgrade)"
    # A write that finds its line in the second cache is farther, and also an upgrade or an update.
    farther=$(count memory hits_l2)
    upgrades=$(cause upgrade update)
    known=$(cause "in a farther cache")
    [ "$known" -le "$farther" ] && [ $((known + upgrades)) -ge "$farther" ] ||
        echo "$farther in the second cache, of which peet profile knows $known"
    [ "$(count memory misses)" -gt 0 ] || echo "no misses: this proves nothing"
}
while read -r name arguments; do
    # shellcheck disable=SC2086
    "$peet" record -o "$TMP/$name.peet" -- "$PEET_BUILD/workloads/peet/$name" $arguments -p 4 >"$TMP/out" 2>&1 ||
        { cat "$TMP/out"; exit 1; }
done <<<"$small"
"$peet" cc -O1 -g -o "$TMP/packed" tests/e2e/subjects/packed.c &&
    "$peet" record -o "$TMP/packed.peet" -- "$TMP/packed" >"$TMP/out" 2>&1 || { cat "$TMP/out"; exit 1; }
two_levels="--set cache.l1.bytes=1K --set cache.l1.ways=2 --set cache.l2.bytes=4K --set cache.l2.ways=4"
short="--set cache.l1.line=16 --set cache.l2.line=16"
one_level="--set cache.l1.bytes=4K --set cache.l1.ways=0 --set cache.l2.bytes=0 --set cache.l3.bytes=0"
while read -r machine; do
    # shellcheck disable=SC2086
    verdict "simulate and profile count the same on $machine" "$(
        for trace in "$TMP"/*.peet; do
            agree "$trace" -m $machine $ideal | sed "s|^|${trace##*/}: |"
        done
    )"
done <<MACHINES
modern $two_levels --set cache.l3.bytes=16K --set cache.l3.ways=8
modern --cpus 2 $two_levels --set cache.l3.bytes=0 --set coherence.protocol=dragon
modern --cpus 4 $two_levels $short --set cache.l3.bytes=0 --set coherence.protocol=firefly
sato1999 --set cache.l1.bytes=2K
sato1999 --cpus 1 --set scheduler.kind=fcfs --set cache.l1.bytes=2K
shallow-bus --set cache.l1.bytes=1K
core $two_levels --set scheduler.kind=fcfs --set cache.l3.bytes=0
core --set scheduler.kind=fcfs --set coherence.protocol=msi $one_level
ideal --cpus 4 --set cache.l1.bytes=1K
MACHINES

verdict "a reference across two lines has a cause for each, so that a cache of one set has no conflicts" "$(
    for machine in core modern; do
        # shellcheck disable=SC2086
        agree "$TMP/packed.peet" -m $machine --cpus 1 $one_level --set cache.l1.replacement=lru
        [ "$(cause conflict)" = 0 ] || echo "$machine: $(cause conflict) conflicts"
        [ "$(cause capacity)" -ge 8192 ] || echo "$machine: $(cause capacity) for capacity"
    done
)"
verdict "words that are sent to others are updates and no upgrades" "$(
    for protocol in dragon firefly; do
        agree "$TMP/falseshare.peet" -m sato1999 --set coherence.protocol=$protocol
        [ "$(count memory upgrades)" = 0 ] && [ "$(count memory updates)" -gt 1000 ] ||
            echo "$protocol: $(count memory upgrades) upgrades, $(count memory updates) updates"
        [ "$(cause upgrade)" = 0 ] && [ "$(cause update)" -gt 1000 ] ||
            echo "$protocol, profile: $(cause upgrade) upgrades, $(cause update) updates"
    done
)"
headline() { # WANTED OPTION…
    local wanted=$1
    shift
    "$peet" profile "$@" "$TMP/packed.peet" 2>"$TMP/err" | head -n 2 >"$TMP/head"
    grep -q "$wanted" "$TMP/head" || cat "$TMP/head" "$TMP/err"
}
verdict "the head of a profile says why nothing waits, or that there are no caches" "$(
    headline "misses take no time on this machine: there were 1[0-9]*, which is 14.1 % of the references" \
        -m ideal --cpus 1 --set cache.l1.bytes=1K
    headline "waits for .* in main at packed.c:[0-9]*: no cache" -m ideal --set fabric.memory=7 --set cache.l1.bytes=0
    headline "no caches, and memory takes no time" -m ideal --set cache.l1.bytes=0
)"
exit $status
