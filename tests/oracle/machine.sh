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
protocols=$("$peet" list protocols --format csv | sed -n "2,\$s/,.*//p")
random="random machines count what the second simulator counts"
recorded="recorded programs do so, too"
if ! command -v python3 >/dev/null; then
    skip "$random" "needs python3"
    skip "$recorded" "needs python3"
    exit 0
fi
: >"$dir/plain.cfg" # the defaults of docs/machine-config.md

# Complains where both differ about a trace on a machine.
differences() { # TRACE RECORDS SETTING…
    local trace=$1 records=$2 set
    shift 2
    options=()
    for set in "$@"; do options+=(--set "$set"); done
    "$peet" simulate -m "$dir/plain.cfg" "${options[@]}" --format json "$trace" >"$dir/simulated" 2>"$dir/err" ||
        cat "$dir/err"
    $second compare docs/protocols.md "$dir/simulated" "$records" "$@" >"$dir/differences" 2>&1 ||
        { echo "$*:"; cat "$dir/differences"; }
}

for threads in 1 2 3 4; do
    $second random $threads $threads 4096 1 >"$dir/text" && "$peet" import -o "$dir/$threads.peet" "$dir/text" &&
        "$peet" dump --format json "$dir/$threads.peet" >"$dir/$threads.json" || exit 1
done
[ "$(echo "$protocols" | wc -w)" -ge 6 ] || verdict "there are six protocols" "$protocols"
for protocol in $protocols; do
    verdict "$random: $protocol" "$(
        for threads in 1 2 3 4; do
            for ((i = 1; i <= machines; i++)); do
                # shellcheck disable=SC2046
                differences "$dir/$threads.peet" "$dir/$threads.json" cpus=$threads coherence.protocol="$protocol" \
                    $($second settings $((i * 10 + threads)))
            done
        done
    )"
done

while read -r name arguments; do
    # shellcheck disable=SC2086
    "$peet" record -o "$dir/$name.peet" -- "${peet%/*}/workloads/peet/$name" $arguments -p 4 >"$dir/out" 2>&1 ||
        cat "$dir/out"
    "$peet" dump --format json "$dir/$name.peet" >"$dir/$name.json"
done <<'LIST'
falseshare -n 2000
fft -m 6
LIST
verdict "$recorded" "$(
    for name in falseshare fft; do
        for protocol in mesi dragon; do
            for turn in block reference; do
                differences "$dir/$name.peet" "$dir/$name.json" cpus=4 coherence.protocol=$protocol turn=$turn \
                    cache.l1.bytes=1K barrier.kind=wired scheduler.wait=busy
            done
        done
    done
)"
exit $status
