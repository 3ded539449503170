#!/bin/bash
# SPDX-License-Identifier: MIT
# Time is all of the time, and two tables never disagree about one quantity: every workload on machines of all kinds, as a trace and while it runs.
set -u
. tests/lib.sh
needs "tables add up" python3 || exit 0
peet=$PEET_BUILD/peet

# How both verbs see a trace, or a program, on a machine, and where their tables disagree.
adds_up() { # MACHINE-OPTIONS TRACE | MACHINE-OPTIONS -- PROGRAM…
    local options=$1
    shift
    # shellcheck disable=SC2086
    {
        "$peet" simulate $options --format json -o "$TMP/simulated" "$@" >/dev/null 2>"$TMP/err" || { echo "simulate $options $*:"; cat "$TMP/err"; }
        "$peet" profile $options --top 0 --format json -o "$TMP/profiled" "$@" >/dev/null 2>"$TMP/err" || { echo "profile $options $*:"; cat "$TMP/err"; }
    }
    python3 tests/e2e/adds_up.py "$TMP/simulated" "$TMP/profiled" "$options" 2>&1 | sed "s|^|$options: |"
}

machines=("-m modern" "-m core" "-m sato1999 --cpus 4" "-m shallow-bus --cpus 2" "-m memspy-16k"
    "-m modern --cpus 2 --set contexts=2 --set scheduler.wait=yield"
    "-m modern --cpus 5 --set lock.kind=mcs --set barrier.kind=dissemination --set scheduler.wait=busy --set cache.l1.latency=2"
    "-m sato1999 --cpus 3 --set lock.kind=tas --set barrier.kind=tree --set scheduler.quantum=3000"
    "-m core --set lock.kind=ticket --set barrier.kind=central --set cache.l1.latency=3"
    "-m ideal --cpus 4")
while read -r name arguments; do
    program=$PEET_BUILD/workloads/peet/$name
    # shellcheck disable=SC2086
    "$peet" record -o "$TMP/a.peet" -- "$program" $arguments >"$TMP/err" 2>&1 || cat "$TMP/err"
    verdict "all tables of $name add up on each machine" "$(
        for machine in "${machines[@]}"; do adds_up "$machine" "$TMP/a.peet"; done
    )"
    verdict "so do those of $name while it runs" "$(
        for machine in "-m modern --cpus 3" "-m core" "-m modern --cpus 5 --set scheduler.wait=busy"; do
            # shellcheck disable=SC2086
            adds_up "$machine" -- "$program" $arguments
        done
    )"
    [ "$name" = mp3d ] || continue
    verdict "so they do with the machine in a process of its own" "$(
        for apart in --apart ''; do
            # shellcheck disable=SC2086
            "$peet" simulate --cpus 3 $apart --format json -o "$TMP/simulate$apart" -- "$program" $arguments >/dev/null 2>"$TMP/err" || cat "$TMP/err"
        done
        cmp "$TMP/simulate" "$TMP/simulate--apart" 2>&1
    )"
done <<END
falseshare -n 5k -p 3
fft -m 8 -p 4
fmm -n 64 -s 1 -k 6 -p 4
gates -n 200 -c 9 -p 3
lu-con -n 32 -p 4
lu-non -n 32 -p 3
matmat -n 16 -p 4
minimize -o 4 -i 6 -c 60 -p 4
mp3d -p 4 -n 300 -l 8 -s 2
ocean-con -n 16 -s 0 -p 4
ocean-non -n 16 -s 0 -p 4
radix -n 3k -r 64 -p 4
shallow -n 32 -m 32 -s 1 -p 4
tri -g 6 -r 1 -p 4
END
exit $status
