#!/bin/bash
# SPDX-License-Identifier: MIT
# A machine with several processors counts what its documents say: a second simulator (machine.py), made from
# docs/protocols.md and docs/machine-config.md, counts the same for every protocol, with 1 to 4 processors, on random
# machines and random traces.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/lib.sh
peet=${PEET_BUILD:-build}/peet
second="python3 tests/oracle/machine.py"
dir=$(mktemp -d "${TMP:-/tmp}/machine.XXXXXX") || exit 2
trap 'rm -rf "$dir"' EXIT
machines=${PEET_MACHINES:-4} # for each protocol and each number of processors
protocols=$("$peet" list protocols --format csv | sed -n "s/^protocols,\\([a-z]*\\),.*/\\1/p")
random="random machines count what the second simulator counts"
processes="two processes of two threads each share nothing, and each has its own misses"
recorded="recorded programs do so, too"
if ! command -v python3 >/dev/null; then
    skip "$random" "needs python3"
    skip "$processes" "needs python3"
    skip "$recorded" "needs python3"
    exit 0
fi
: >"$dir/plain.cfg" # the defaults of docs/machine-config.md

# For the second simulator: NAME.peet as text.
tell() { # NAME
    "$peet" dump --format json "$dir/$1.peet" >"$dir/$1.json" && "$peet" info --format json "$dir/$1.peet" >"$dir/$1.info"
}
import() { # NAME SEED THREADS PROCESSES
    $second random "$2" "$3" 4096 "$4" >"$dir/text" && "$peet" import -o "$dir/$1.peet" "$dir/text" && tell "$1"
}
# Complains where both differ about NAME.peet on a machine.
differences() { # NAME SETTING…
    local name=$1 set
    shift
    options=()
    for set in "$@"; do [ "${set%%=*}" = marks ] || options+=(--set "$set"); done
    "$peet" simulate -m "$dir/plain.cfg" "${options[@]}" --format json "$dir/$name.peet" >"$dir/simulated" 2>"$dir/err" ||
        cat "$dir/err"
    $second compare docs/protocols.md "$dir/simulated" "$dir/$name.info" "$dir/$name.json" "$@" >"$dir/differences" 2>&1 ||
        { echo "$*:"; cat "$dir/differences"; }
}

for threads in 1 2 3 4; do
    import $threads $threads $threads 1 || exit 1
done
[ "$(echo "$protocols" | wc -w)" -ge 6 ] || verdict "there are six protocols" "$protocols"
for protocol in $protocols; do
    verdict "$random: $protocol" "$(
        for threads in 1 2 3 4; do
            for ((i = 1; i <= machines; i++)); do
                # shellcheck disable=SC2046
                differences $threads cpus=$threads coherence.protocol="$protocol" \
                    $($second settings $((i * 10 + threads)))
            done
        done
    )"
done

ordered="random store buffers take the cycles that the second simulator counts"
for threads in 1 2 3 4; do
    $second ordered $threads $threads 4096 1 >"$dir/o$threads.text" &&
        "$peet" import -o "$dir/o$threads.peet" "$dir/o$threads.text" && tell "o$threads" || exit 1
done
for order in $("$peet" list orders --format csv | sed "1d; s/,.*//"); do
    verdict "$ordered: $order" "$(
        for threads in 1 2 3 4; do
            for ((i = 1; i <= machines; i++)); do
                # shellcheck disable=SC2046
                differences "o$threads" cpus=$threads order.model="$order" marks="$dir/o$threads.text" \
                    $($second orders $((i * 10 + threads))) $($second settings $((i * 10 + threads)))
            done
        done
    )"
done

import processes 5 4 2 || exit 1
verdict "$processes" "$(
    for protocol in $protocols; do
        for ((i = 101; i <= 100 + machines; i++)); do
            # shellcheck disable=SC2046
            differences processes cpus=4 coherence.protocol="$protocol" $($second settings $i)
        done
    done
)"

while read -r name arguments; do
    # shellcheck disable=SC2086
    "$peet" record -o "$dir/$name.peet" -- "${peet%/*}/workloads/peet/$name" $arguments -p 4 >"$dir/out" 2>&1 ||
        cat "$dir/out"
    tell "$name" || exit 1
done <<'LIST'
falseshare -n 2000
fft -m 6
LIST
verdict "$recorded" "$(
    for name in falseshare fft; do
        for protocol in mesi dragon; do
            for turn in block reference; do
                differences "$name" cpus=4 coherence.protocol="$protocol" turn=$turn \
                    cache.l1.bytes=1K barrier.kind=wired scheduler.wait=busy
            done
        done
    done
)"
exit $status
