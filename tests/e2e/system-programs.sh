#!/bin/bash
# SPDX-License-Identifier: MIT
# Two static programs in one guest: they lie at the same addresses, share nothing, and have different functions. Needs a QEMU, a kernel and libpeet-mark.a, and
# skips without.
set -u
. tests/lib.sh
tree=$PWD peet=$PEET_BUILD/peet get=$PEET_BUILD/lib/peet/get-system
own=$(uname -m)
cd "${TMP:?}" || exit 2

property="two programs in a guest have address spaces of their own"
first_of() { # FILE…
    local f
    for f; do [ ! -e "$f" ] || { echo "$f"; return; }; done
}
mark=$(first_of "$PEET_BUILD/libpeet-mark.a" "$PEET_BUILD/$own/libpeet-mark.a" "$PEET_BUILD/lib/peet/$own/libpeet-mark.a")
plugin=$(first_of "$PEET_BUILD/libpeet-qemu.so" "$PEET_BUILD/lib/peet/libpeet-qemu.so")
offline=--offline
[ "${PEET_SYSTEM:-}" != 1 ] || offline=
if [ "${PEET_SYSTEM:-}" = 0 ] || [ -z "$mark" ] || [ -z "$plugin" ] || [ ! -x "$PEET_BUILD/lib/peet/$own/init" ] || ! "$get" $offline "$own" >parts 2>&1; then
    skip "$property" "needs QEMU and a kernel (PEET_SYSTEM=1 gets them)"
    exit 0
fi

for name in only_in_a only_in_b; do
    "${CC:-gcc}" -O1 -g -static -DNAME=$name -o $name "$tree/tests/e2e/subjects/apart.c" \
        -Wl,--wrap=main,--wrap=pthread_create,--wrap=thrd_create -Wl,--whole-archive "$mark" -Wl,--no-whole-archive -lpthread || exit 2
done
"$peet" record --system --offline --timeout 300 --cpus 2 --app ./only_in_a --app ./only_in_b -o both.peet >both.out 2>&1 || { cat both.out; exit 2; }
"$peet" record --system --offline --timeout 300 --app ./only_in_a -o alone.peet >alone.out 2>&1 || { cat alone.out; exit 2; }

column() { # FILE TABLE COLUMN
    sed -n "/^  \"$2\"/,/^  }/p" "$1" | grep -o "\"$3\": *\(\"[^\"]*\"\|[0-9.e+-]*\)" | sed 's/^"[^"]*": *//; s/"//g'
}
sum() { column "$@" | awk '{ s += $1 } END { printf "%.0f\n", s }'; }
for name in both alone; do "$peet" simulate -m modern --cpus 2 --format json $name.peet >$name.json || exit 2; done
verdict "$property" "$(
    both=$(sum both.json memory misses) alone=$(sum alone.json memory misses)
    awk -v both="$both" -v alone="$alone" 'BEGIN { if (alone < 1024 || both < 1.9 * alone || both > 2.1 * alone) print both " misses, alone " alone }'
    [ "$(sum both.json memory true_sharing)" -lt 20 ] || echo "$(sum both.json memory true_sharing) misses by true sharing"
    column both.json programs addresses | sort -u | grep -qx physical || sed -n '/"programs"/,/^  }/p' both.json
    [ "$(column both.json programs program | sort | paste -sd' ')" = "only_in_a only_in_b" ] || column both.json programs program
)"
"$peet" profile -m modern --format json --top 0 --callgrind both.callgrind --stacks both.stacks both.peet >both-profile.json || exit 2
verdict "functions of two programs in a guest have their own names in profiles, stacks and callgrind files" "$(
    for name in only_in_a only_in_b; do
        grep -q "\"function\": \"$name\".*\"program\": \"$name\"" both-profile.json || echo "no $name in the profile"
        grep -q "^$name;.*;$name " both.stacks || echo "no $name in the stacks"
        grep -q "fn=([0-9]*) $name\$" both.callgrind || echo "no $name in the callgrind file"
    done
)"
exit $status
