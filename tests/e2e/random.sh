#!/bin/bash
# SPDX-License-Identifier: MIT
# Some seeds of tests/soak/random_runs: programs of random threads, locks, signals, calls that block, changes of user and forks.
set -u
. tests/lib.sh
if ! command -v python3 >/dev/null; then
    skip "random programs lose no thread and do not hang, recorded and live" "needs python3"
elif [ -f "$PEET_BUILD/lib/peet/libpeet-machine.so" ]; then
    verdict "random programs lose no thread and do not hang, recorded and live" "$(
        TMPDIR=$TMP tests/soak/random_runs --runs 8 --first 100 >"$TMP/out" 2>&1 || cat "$TMP/out")"
else
    skip "random programs lose no thread and do not hang, recorded and live" "needs libpeet-machine.so"
fi
exit $status
