#!/bin/bash
# SPDX-License-Identifier: MIT
# Threads that leave references out run copies that count, and go over from one to the other: what is recorded then is the whole recording with
# gaps, reference by reference, and the program does what it did.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet sampled=$PEET_BUILD/tests/e2e/sampled
subjects=tests/e2e/subjects

# Complaints where the second file (csv) is not the first with gaps.
with_gaps() {
    awk -F, '
        FNR == 1 { file++ }
        $3 == "signal_enter" { in_handler = 1 } # which may be told a little later
        $3 == "signal_exit" { in_handler = 0 }
        $3 ~ /^(load|store|update|prefetch)$/ && !in_handler {
            line = $3 " " $4 " " $5 " " $6
            if (file == 1) { ref[whole++] = line; next }
            if (ref[at + 0] != line) { print "reference " at + 0 ": " line "; expected: " ref[at + 0]; exit bad = 1 }
            at++
            recorded++
        }
        file == 2 && $3 == "gap" { split($7, g, " "); at += g[2]; gaps++ }
        END {
            if (!bad && at != whole) print at + 0 " references; expected: " whole + 0
            if (!bad && (gaps < 5 || recorded < whole / 50)) print recorded + 0 " references and " gaps + 0 " gaps: too few"
        }' "$1" "$2"
}

# WINDOW OFF PROGRAM…: where a sampled recording differs from a whole one.
differs() {
    local window=$1 off=$2
    shift 2
    timeout 300 "$sampled" 65536 0 "$TMP/whole.peet" "$@" >"$TMP/whole.out" 2>&1 || { cat "$TMP/whole.out"; return; }
    timeout 300 "$sampled" "$window" "$off" "$TMP/part.peet" "$@" >"$TMP/part.out" 2>&1 || { echo "status $?"; tail -n 3 "$TMP/part.out"; return; }
    diff <(grep -v ' references, status ' "$TMP/whole.out") <(grep -v ' references, status ' "$TMP/part.out")
    "$peet" check "$TMP/part.peet" 2>&1 | grep -E '^  violation' | head -n 5
    if [ "${threads:-1}" = 1 ]; then
        "$peet" dump --thread 1 --format csv "$TMP/whole.peet" >"$TMP/whole.csv"
        "$peet" dump --thread 1 --format csv "$TMP/part.peet" >"$TMP/part.csv"
        with_gaps "$TMP/whole.csv" "$TMP/part.csv"
    fi
    "$peet" dump --events "$TMP/part.peet" | awk -v whole="$(sed -n 's/ references, .*//p' "$TMP/whole.out")" \
        -v part="$(sed -n 's/ references, .*//p' "$TMP/part.out")" -v err="${err:-0}" '
        $3 == "gap" { part += $5 }
        END { d = part > whole ? part - whole : whole - part; if (d > err * whole) print part " references; expected: " whole }'
}

for options in -O0 -O2 "-O3 -march=native" "-O2 -fno-pie -no-pie" "-O2 -fPIC" "-O1 -g -fcf-protection -ffunction-sections" "-Os --peet-brute"; do
    for subject in calls loops; do
        # shellcheck disable=SC2086
        verdict "$subject.c, built with $options, is sampled as it is recorded" "$(
            "$peet" cc $options -w -o "$TMP/peet" $subjects/$subject.c -lpthread -lm >"$TMP/cc.out" 2>&1 || cat "$TMP/cc.out"
            differs 4096 1000 "$TMP/peet"
        )"
    done
done
property="exceptions find their way from one copy to the other"
if needs "$property" g++; then
    verdict "$property" "$(
        for options in -O0 -O2; do
            "$peet" c++ $options -w -o "$TMP/peet" $subjects/throws.cc -lpthread 2>&1
            threads=2 differs 4096 300 "$TMP/peet"
        done
    )"
fi
verdict "masked elements count as many as there may be" "$(
    "$peet" cc -O2 -w -o "$TMP/peet" $subjects/masks.c 2>&1
    threads=2 err=0.1 differs 4096 300 "$TMP/peet"
)"
verdict "a library is sampled with its program" "$(
    "$peet" cc -O2 -fPIC -shared -DLIBRARY -o "$TMP/libx.so" $subjects/library.c 2>&1
    "$peet" cc -O2 -o "$TMP/peet" $subjects/library.c -L"$TMP" -lx 2>&1
    LD_LIBRARY_PATH=$TMP "$sampled" 4096 0 "$TMP/whole.peet" "$TMP/peet" >"$TMP/whole.out" 2>&1 || cat "$TMP/whole.out"
    LD_LIBRARY_PATH=$TMP threads=2 differs 4096 100 "$TMP/peet"
)"
for workload in "fft -m 10" "lu-con -n 32" "radix -n 10k"; do
    name=${workload%% *}
    # shellcheck disable=SC2086
    verdict "$workload is sampled as it is recorded" "$(differs 4096 2000 "$PEET_BUILD/workloads/peet/$name" -p 1 ${workload#* })"
    # shellcheck disable=SC2086
    verdict "$workload with four threads leaves out what it says" "$(threads=4 err=0.02 differs 4096 2000 "$PEET_BUILD/workloads/peet/$name" -p 4 ${workload#* })"
done
property="a machine in the program's process has references left out, and is told how many they were"
if [ ! -e "$PEET_BUILD/lib/peet/libpeet-machine.so" ]; then
    skip "$property" "there are no machines in processes with sanitizers"
elif ! grep -q ' fsgsbase' /proc/cpuinfo; then
    skip "$property" "needs a processor with fsgsbase"
else
    verdict "$property" "$(
        gcc -std=c17 -D_GNU_SOURCE -shared -fPIC -fvisibility=hidden -Iinclude -Isrc -I. -Wl,-z,now -o "$TMP/machine.so" $subjects/off_machine.c \
            "$PEET_BUILD/obj/src/capture/control/heap.o" "$PEET_BUILD/obj/librest.a" "$PEET_BUILD/libpeet.a" \
            -lzstd -lxxhash -lZydis -ldw -lelf -lconfig -lpthread -lm 2>&1
        for workload in "fft -m 10" "radix -n 10k" "gates -c 20"; do
            whole=
            for off in 0 1000 20000; do
                # shellcheck disable=SC2086
                read -r seen left_out gaps error < <(timeout 300 "$sampled" --inside 4096 $off "$TMP/machine.so" \
                    "$PEET_BUILD/workloads/peet/${workload%% *}" -p 1 ${workload#* } 2>&1 | tail -n 1)
                whole=${whole:-$seen}
                [ -z "$error" ] || echo "$workload: $error"
                [ "$((seen + left_out))" = "$whole" ] || echo "$workload, $off: $seen seen, $left_out left out; $whole expected"
                [ $off = 0 ] || { [ "$gaps" -gt 5 ] && [ "$left_out" -gt $((whole / 10)) ]; } || echo "$workload, $off: $gaps gaps"
            done
        done
    )"
fi
exit $status
