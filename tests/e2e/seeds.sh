#!/bin/bash
# SPDX-License-Identifier: MIT
# Many schedules of one machine: what varies with a seed, and the means and intervals that are reported.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
workloads=$PEET_BUILD/workloads/peet
"$peet" record -o "$TMP/mp3d.peet" -- "$workloads/mp3d" -n 300 -s 2 -p 4 >/dev/null 2>&1 || exit 1

seeds() { # FILE OPTION…: peet simulate as JSON
    local to=$1
    shift
    "$peet" simulate -m sato1999 --format json "$@" >"$to" 2>"$TMP/err" || { echo "status $?"; cat "$TMP/err"; }
}

# The table of means must follow from the table of single runs, by sums that are written down here once more.
cat >"$TMP/check.py" <<'END'
import json, math, sys
T95 = {1: 12.706205, 2: 4.302653, 3: 3.182446, 4: 2.776445, 5: 2.570582}
tables = json.load(open(sys.argv[1]))
runs, single = tables["runs"]["rows"], tables["seeds"]["rows"]
per = int(sys.argv[2])
if len(single) != per * len(runs):
    print(f"{len(single)} single runs for {len(runs)} means of {per}")
for i, run in enumerate(runs):
    mine = single[i * per : (i + 1) * per]
    if [r["seed"] for r in mine] != list(range(1, per + 1)):
        print("seeds are", [r["seed"] for r in mine])
    for key in ["cycles", "speed_up", "instructions", "references", "misses", "miss_rate", "utilisation"]:
        x = [r[key] for r in mine]
        mean = sum(x) / per
        error = T95[per - 1] * math.sqrt(sum((v - mean) ** 2 for v in x) / (per - 1) / per)
        slack = 0.51 if key in ("cycles", "instructions", "references", "misses") else 1e-5
        if abs(run[key] - mean) > slack:
            print(f"{key}: mean {run[key]}, expected {mean}")
        if not error - 1e-5 * error - 1e-7 <= run[key + "_error"] <= error * 1.0001 + 2 * slack:
            print(f"{key}: error {run[key + '_error']}, expected {error}")
    for r, first in zip(mine, single[:per]):
        if abs(r["speed_up"] - first["cycles"] / r["cycles"]) > 1e-5:
            print(f"seed {r['seed']}: speed-up {r['speed_up']}, but {first['cycles']} / {r['cycles']} cycles")
if len({r["cycles"] for r in single}) < len(single) * 2 // 3:
    print("seeds hardly matter:", [r["cycles"] for r in single])
END

property="means and intervals are those of the single runs"
if needs "$property" python3; then
    verdict "$property" "$(
        seeds "$TMP/a.json" --seeds 5 --cpus 1,2,4 "$TMP/mp3d.peet"
        python3 "$TMP/check.py" "$TMP/a.json" 5 2>&1
    )"
    verdict "so they are for a program that runs" "$(
        "$peet" simulate -m sato1999 --format json --seeds 3 --cpus 2,4 -- "$workloads/mp3d" -n 300 -s 2 -p 4 2>&1 | sed -n '/^{/,$p' >"$TMP/live.json"
        python3 "$TMP/check.py" "$TMP/live.json" 3 2>&1
    )"
fi

verdict "seeds are the same again" "$(
    seeds "$TMP/a.json" --seeds 3 "$TMP/mp3d.peet"
    seeds "$TMP/b.json" --seeds 3 "$TMP/mp3d.peet"
    cmp "$TMP/a.json" "$TMP/b.json" 2>&1
)"
verdict "one of them is what the machine with that seed and that jitter does" "$(
    seeds "$TMP/a.json" --seeds 3 "$TMP/mp3d.peet"
    seeds "$TMP/b.json" --set seed=3 --set jitter=100 "$TMP/mp3d.peet"
    diff <(sed -n '/^  "times"/,$p' "$TMP/a.json") <(sed -n '/^  "times"/,$p' "$TMP/b.json")
)"
errors() { grep -o '"cycles_error": *[^,]*' "$1"; }
verdict "a machine without anything random has no error" "$(
    seeds "$TMP/a.json" --seeds 3 --set jitter=0 "$TMP/mp3d.peet"
    [ "$(errors "$TMP/a.json")" = '"cycles_error": 0' ] || errors "$TMP/a.json"
)"
for set in cache.l1.replacement=random "scheduler.kind=random --set cpus=2" "lock.grant=random --set lock.kind=ideal --set cpus=2 --set scheduler.quantum=200"; do
    verdict "a seed is enough for ${set%% *}" "$(
        # shellcheck disable=SC2086
        seeds "$TMP/a.json" --seeds 3 --set jitter=0 --set $set "$TMP/mp3d.peet"
        [ "$(errors "$TMP/a.json")" != '"cycles_error": 0' ] || errors "$TMP/a.json"
    )"
done
verdict "a single seed has no error bar" "$(
    seeds "$TMP/a.json" --seeds 1 "$TMP/mp3d.peet"
    [ "$(errors "$TMP/a.json")" = '"cycles_error": null' ] || errors "$TMP/a.json"
)"
verdict "a seed beside seeds is a mistake" "$(
    "$peet" simulate --seeds 2 --set seed=7 "$TMP/mp3d.peet" >/dev/null 2>"$TMP/err"
    code=$?
    [ $code = 2 ] || echo "status $code"
    grep -q 'leave out' "$TMP/err" || cat "$TMP/err"
)"
exit $status
