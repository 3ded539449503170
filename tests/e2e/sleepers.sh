#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs that are simulated while they run, with threads that wait in system calls: the others continue, and each call returns what it does
# without a simulation.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
if [ ! -f "$PEET_BUILD/lib/peet/libpeet-machine.so" ]; then
    skip "all that needs the machine in the program" "needs libpeet-machine.so"
    exit 0
fi
"$CC" -O1 -w -o "$TMP/plain" tests/e2e/subjects/sleepers.c -lpthread || exit 1
"$peet" cc -O1 -w -o "$TMP/sleepers" tests/e2e/subjects/sleepers.c -lpthread || exit 1
for call in $("$TMP/plain" list); do
    verdict "a thread that waits in $call lets others run, and is woken" "$(
        timeout 300 "$TMP/plain" "$call" >"$TMP/expected"
        timeout -k 1 300 "$peet" simulate -m sato1999 --format csv -- "$TMP/sleepers" "$call" >"$TMP/out" 2>"$TMP/err" ||
            { echo "exit code $?"; cat "$TMP/err"; }
        head -n 1 "$TMP/out" | cmp "$TMP/expected" - 2>&1)"
done

"$CC" -O1 -w -o "$TMP/plain" tests/e2e/subjects/together.c -lpthread || exit 1
"$peet" cc -O1 -w -o "$TMP/together" tests/e2e/subjects/together.c -lpthread || exit 1
for call in $("$TMP/plain" list) mixed; do
    verdict "four threads that wait at the same time in $call are woken one by one" "$(
        timeout 300 "$TMP/plain" "$call" >"$TMP/expected"
        for cpus in 1 4; do
            timeout -k 1 300 "$peet" simulate -m sato1999 --cpus $cpus --format csv -- "$TMP/together" "$call" >"$TMP/out" 2>"$TMP/err" ||
                { echo "$cpus processors: status $?"; cat "$TMP/err"; }
            sed '/^table/,$d' "$TMP/out" | sed '/^$/d' | diff "$TMP/expected" - 2>&1
        done)"
done

"$peet" cc -O1 -w -o "$TMP/asks" tests/e2e/subjects/asks.c || exit 1
for call in read recv accept; do
    verdict "$call of a descriptor that does not block returns at once" "$(
        timeout -k 1 300 "$peet" simulate -m sato1999 --format csv -- "$TMP/asks" $call 2>&1 | head -n 1 |
            grep -vx "$call -1 EAGAIN")"
done

"$peet" cc -O1 -w -o "$TMP/children" tests/e2e/subjects/children.c || exit 1
for how in system popen spawn fork exec; do
    verdict "a child made by $how runs natively, which is said, while its parent is simulated" "$(
        timeout -k 1 300 "$peet" simulate -m sato1999 --format csv -- "$TMP/children" $how >"$TMP/out" 2>"$TMP/err" ||
            { echo "exit code $?"; cat "$TMP/err"; }
        head -n 1 "$TMP/out" | grep -vx "$how 7"
        grep -c 'child processes are not simulated' "$TMP/err" | grep -vx 1)"
done
exit $status
