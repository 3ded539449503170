#!/bin/bash
# SPDX-License-Identifier: MIT
# The plugin of peet record --system is exact (J01, J06 to J14, J18): a torture program equals single-stepping, instruction for
# instruction, alone and beside others; threads and processes are never taken for others. Needs a QEMU and a kernel, and skips
# without; with PEET_SYSTEM=1 these are downloaded, and other patterns, k and 1,000 threads are tried, too. With PEET_SYSTEM=0 no
# guest is run.
set -u
. tests/lib.sh
tree=$PWD peet=$PEET_BUILD/peet helpers=$PEET_BUILD/tests/e2e get=$PEET_BUILD/lib/peet/get-system
cd "${TMP:?}" || exit 2

offline=--offline
[ "${PEET_SYSTEM:-}" != 1 ] || offline=
property="a recording of a guest equals single-stepping"
if [ "$(uname -m)" != x86_64 ]; then
    skip "$property" "needs x86-64"
    exit 0
fi
if [ "${PEET_SYSTEM:-}" = 0 ] || ! "$get" $offline x86_64 >parts 2>&1; then
    skip "$property" "needs QEMU and a kernel (PEET_SYSTEM=1 gets them)"
    exit 0
fi
compile() { # NAME
    ${CC:-gcc} -std=c17 -D_GNU_SOURCE -O2 -w -static -I"$tree/include" -o "$1" "$tree/tests/e2e/subjects/$1.c" -lpthread
}
compile guest_torture && compile guest_cases || exit 2
record() { # NAME OPTION…
    local name=$1
    shift
    "$peet" record --system --offline --timeout 110 --marked -o "$name.peet" "$@" >"$name.out" 2>"$name.err" ||
        { cat "$name.out" "$name.err"; tail -n 20 "$name.peet.console"; }
}
differs() { # IS EXPECTED WHAT
    [ "$1" = "$2" ] || echo "$3: $1, not $2"
}
# The threads of a program, a line each: its number and its instructions.
threads() { # NAME PROGRAM
    "$peet" info --format csv "$1.peet" | awk -F, -v program="$2" '
        $1 == "processes" { n = split($6, word, "/"); name[$3] = word[n] }
        $1 == "threads" && name[$5] == program { print $3, $7 }'
}
instructions() { threads "$@" | sed 's/.* //'; }
# Coroutines are entered by a return, which nobody but their program can know.
check() { # NAME
    "$peet" check "$1.peet" >"$1.check" 2>&1
    grep -E '^ +(violation|warning) ' "$1.check" | grep -v '^ *violation *return *'"$(threads "$1" case_coroutine | sed 's/ .*//') "
}

"$peet" record --step -o steps.peet -- ./guest_torture >steps.out 2>&1 || { cat steps.out; exit 2; }

# Everything together, on four processors: who is marked, who is not, and who ends badly.
apps=()
for i in 1 2 3; do
    cp guest_torture torture$i
    apps+=(--app ./torture$i)
done
for case in threads small large short fork dies handler coroutine other; do
    cp guest_cases case_$case
    apps+=(--app "./case_$case $case")
done
complaints=$(record crowd --cpus 4 "${apps[@]}" --app './case_other other')
verdict "marked and unmarked programs run together, and are recorded" "$complaints"
verdict "what was recorded is well-formed" "$(check crowd)"
verdict "$property, beside others on four processors" "$(
    for i in 1 2 3; do
        thread=$(threads crowd torture$i | sed 's/ .*//')
        "$helpers/system_same" crowd.peet steps.peet "$thread" >same.out 2>&1 || cat same.out
    done
)"
same_count() { # PROGRAM HOW-MANY
    instructions crowd "$1" >counts
    differs "$(wc -l <counts)" "$2" "threads of $1"
    differs "$(sort -u counts | wc -l)" 1 "different numbers of instructions in threads of $1 ($(sort counts | uniq -c | head -n 5 | tr '\n' ';'))"
}
verdict "threads that do the same have as many instructions, on whatever processors" "$(same_count case_threads 16)"
verdict "so have threads with stacks of 64 KB and of 64 MB" "$(same_count case_small 16; same_count case_large 16)"
verdict "200 short-lived threads in the same place are 200 threads" "$(same_count case_short 200)"
few() { # PROGRAM LEAST MOST
    instructions crowd "$1" | while read -r n; do
        [ "$n" -ge "$2" ] && [ "$n" -le "$3" ] || echo "$1: a thread of $n instructions"
    done
}
verdict "a child that was forked and has no mark is not its parent" "$(few case_fork 10 20000)"
verdict "who dies without an end is not who takes its frames" "$(
    differs "$(instructions crowd case_dies | wc -l)" 10 "threads"
    few case_dies 8000 40000
)"
verdict "a handler on a stack of its own, and a coroutine, belong to their thread" "$(
    few case_handler 150000 400000
    few case_coroutine 100000 400000
)"
verdict "a program without a mark is not there" "$(differs "$(instructions crowd case_other | wc -l)" 0 threads)"

complaints=$(record counted --count --cpus 4 --app ./torture1 --app './case_threads threads' --app ./torture2)
verdict "counts are those of the trace" "$(
    echo "$complaints" | grep .
    instructions crowd torture1 >traced
    instructions crowd case_threads | sort -u >>traced
    sed -n 's/.*"instructions": \([0-9]*\).*/\1/p' counted.peet | sort -n | uniq -c >counted.is
    { echo 2 "$(sed -n 1p traced)"; echo 16 "$(sed -n 2p traced)"; } | sort -n -k2 >counted.expected
    awk '{ print $1, $2 }' counted.is | sort -n -k2 | diff counted.expected - || cat counted.peet
)"
exit $status
