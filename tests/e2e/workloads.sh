#!/bin/bash
# SPDX-License-Identifier: MIT
# Every workload, as it comes, with 1, 2, 4, 7 and 16 threads: it exits with 0 and says that its result is right. One that
# cannot use that many threads says so with status 2; then the nearest number that it takes counts.
set -u
status=0

# Sets used to the number of threads with which it ran, and answers whether the self-check held.
run() { # NAME THREADS
    local distance n s
    for ((distance = 0; distance < 16; distance++)); do
        for n in $(($2 - distance)) $(($2 + distance)); do
            ((n >= 1)) || continue
            used=$n
            timeout 300 "$PEET_BUILD/workloads/plain/$1" -p "$n" >"$TMP/out" 2>&1
            s=$?
            [ $s = 2 ] && continue
            [ $s = 0 ] && grep -q "^$1: ok: " "$TMP/out" && return
            echo "# $1 -p $n: status $s"
            sed 's/^/# /' "$TMP/out"
            return 1
        done
    done
    echo "# $1 takes no number of threads near $2:"
    sed 's/^/# /' "$TMP/out"
    return 1
}

for source in workloads/*.c; do
    name=${source##*/} name=${name%.c}
    [ "$name" != common ] || continue
    for threads in 1 2 4 7 16; do
        if run "$name" $threads; then verdict=ok; else verdict="not ok" status=1; fi
        note=
        [ "$used" = $threads ] || note=" ($used, the nearest that it takes)"
        echo "$verdict $name is right with $threads threads$note"
    done
done
exit $status
