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
    "$peet" record --system --offline --timeout 300 --marked -o "$name.peet" "$@" >"$name.out" 2>"$name.err" ||
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
# Coroutines are entered by a return, which only their program can know.
check() { # NAME
    "$peet" check "$1.peet" >"$1.check" 2>&1
    grep -E '^ +(violation|warning) ' "$1.check" | grep -v '^ *violation *return *'"$(threads "$1" case_coroutine | sed 's/ .*//') "
}

"$peet" record --step -o steps.peet -- ./guest_torture >steps.out 2>&1 || { cat steps.out; exit 2; }

# Everything together, on four processors: marked threads, unmarked ones, and threads that end badly.
apps=()
for i in 1 2 3; do
    cp guest_torture torture$i
    apps+=(--app "./torture$i")
done
for case in threads small large short fork vfork spawn dies handler coroutine other; do
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
# The program has asked the kernel where its pages are; the trace's last word on each page has to be the same.
verdict "physical addresses are those that the guest's kernel knows" "$(
    thread=$(threads crowd torture1 | sed 's/ .*//')
    sed -n 's/^1: page/page/p' crowd.out | sort >asked
    differs "$(wc -l <asked)" 64 "pages that the program told"
    "$peet" dump --events crowd.peet | awk -v thread="$thread" '$1 == thread && $3 == "page" { last[$4] = $5 } END { for (p in last) print "page", p, last[p] }' |
        sort >told
    comm -23 asked told
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
verdict "nor is one that has its parent's stack while that sleeps" "$(few case_vfork 10 20000; few case_spawn 10 20000)"
verdict "who dies without an end is not who takes its frames" "$(
    differs "$(instructions crowd case_dies | wc -l)" 10 "threads"
    few case_dies 8000 40000
)"
verdict "a handler on a stack of its own, and a coroutine, belong to their thread" "$(
    few case_handler 150000 400000
    few case_coroutine 100000 400000
)"
verdict "a program without a mark is not there" "$(differs "$(instructions crowd case_other | wc -l)" 0 threads)"

# Targets come upon translations for others now and then; here upon nothing else.
complaints=$(PEET_TEST_FOREIGN=1 record foreign --cpus 2 --app ./torture1 --app './case_threads threads')
thread=$(threads foreign torture1 | sed 's/ .*//')
verdict "references that QEMU was not asked for are computed" "$(
    echo "$complaints" | grep .
    "$helpers/system_same" foreign.peet steps.peet "${thread:-0}" >same.out 2>&1 || cat same.out
    differs "$(instructions foreign case_threads | sort -u)" "$(instructions crowd case_threads | sort -u)" "instructions in threads"
)"

complaints=$(record kernel --include-kernel --cpus 2 --app ./torture1 --app './case_threads threads')
thread=$(threads kernel torture1 | sed 's/ .*//')
verdict "with the kernel, a thread's own instructions are the same, and the kernel's are labelled" "$(
    echo "$complaints" | grep .
    "$helpers/system_same" kernel.peet steps.peet "${thread:-0}" >same.out 2>&1 || cat same.out
    check kernel
    [ "$(instructions kernel torture1)" -gt 300000 ] || echo "2,000 system calls in $(instructions kernel torture1) instructions"
)"

complaints=$(record counted --count --cpus 4 --app ./torture1 --app './case_threads threads' --app ./torture2)
verdict "counts are those of the trace" "$(
    echo "$complaints" | grep .
    instructions crowd torture1 >traced
    instructions crowd case_threads | sort -u >>traced
    sed -n 's/.*"instructions": \([0-9]*\).*/\1/p' counted.peet | sort -n | uniq -c >counted.is
    { echo 2 "$(sed -n 1p traced)"; echo 16 "$(sed -n 2p traced)"; } | sort -n -k2 >counted.expected
    awk '{ print $1, $2 }' counted.is | sort -n -k2 | diff counted.expected - || cat counted.peet
)"
[ "${PEET_SYSTEM:-}" = 1 ] || exit $status

# ---- what takes longer ----

cat >paper.c <<'C'
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#define PATTERN(tid) __asm__ volatile("mov %0, %%eax\n\tadd $0, %%eax\n\tadd $0, %%eax" : : "r"(tid) : "eax")
__attribute__((noipa)) static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static void *thread(void *p) { PATTERN((int)(uintptr_t)p); fib(20); return 0; }
__attribute__((noipa)) static void deep(void) { volatile char frame[10240]; frame[0] = 1; PATTERN(9); frame[1] = 2; }
int main(int argc, char **argv)
{
    pthread_t t[4];
    (void)argv;
    if (argc > 1) { deep(); fib(20); return 0; }
    for (uintptr_t i = 0; i < 4; i++) pthread_create(&t[i], 0, thread, (void *)(i + 1));
    for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
    return 0;
}
C
${CC:-gcc} -O2 -static -w -o paper paper.c -lpthread && cp paper paper_deep
complaints=$(record paper --cpus 2 --pattern ji --stack 8m --app ./paper)
verdict "the paper's pattern marks threads (J03, J15)" "$(
    echo "$complaints" | grep .
    differs "$("$peet" info --format csv paper.peet | awk -F, '$1 == "threads" { print $4 }' | sort | tr '\n' ' ')" 'tid 1 tid 2 tid 3 tid 4 ' threads
    "$peet" info --format csv paper.peet | awk -F, '$1 == "threads" && ($7 < 170000 || $7 > 260000)'
)"
complaints=$(record given --cpus 2 --pattern hex:83c00083c000 --app ./paper)
verdict "any other pattern does" "$(
    echo "$complaints" | grep .
    differs "$("$peet" info --format csv given.peet | grep -c ^threads,)" 4 threads
)"
complaints=$(record shallow --pattern ji --k 1 --app './paper_deep deep'
    record deep --pattern ji --k 4 --app './paper_deep deep')
verdict "a first frame of 10 KB is recorded with k=4, and with k=1 by its thread pointer (J11)" "$(
    echo "$complaints" | grep .
    for name in shallow deep; do "$peet" info --format csv $name.peet | awk -F, '$1 == "threads" { print $7 }'; done >counts
    differs "$(wc -l <counts)" 2 threads
    differs "$(uniq counts | wc -l)" 1 "different numbers of instructions"
    awk '$1 < 170000' counts
)"
complaints=$(export PEET_TEST_STACK_ONLY=1
    record shallow --pattern ji --k 1 --app './paper_deep deep'
    record deep --pattern ji --k 4 --app './paper_deep deep')
verdict "known by its stack alone, as in the paper, it fails with k=1, which is said, and works with k=4 (J11)" "$(
    echo "$complaints" | grep .
    awk '$1 < 170000' counts | grep .
    "$peet" info --format csv shallow.peet | awk -F, '$1 == "threads" && $7 > 100000 { print $7 " instructions with k=1" }'
    "$peet" info --format csv deep.peet | awk -F, '$1 == "threads" && $7 < 170000 { print $7 " instructions with k=4" }'
    grep -q 'just beyond the window.*larger k' shallow.err || cat shallow.err
    ! grep -q 'just beyond' deep.err || cat deep.err
)"

cp guest_cases case_many
complaints=$(record many --cpus 4 --memory 2g --app './case_many many')
verdict "1,000 threads at a time are 1,000 threads" "$(
    echo "$complaints" | grep .
    differs "$(instructions many case_many | wc -l)" 1000 threads
    differs "$(instructions many case_many | sort -u | wc -l)" 1 "different numbers of instructions"
)"

for arch in aarch64 riscv64; do
    property="guests of $arch are as exact"
    needs "$property" $arch-linux-gnu-gcc || continue
    "$get" $arch >parts 2>&1 || { skip "$property" "needs QEMU and a kernel"; continue; }
    for case in threads short fork vfork spawn dies handler coroutine; do
        $arch-linux-gnu-gcc -std=c17 -D_GNU_SOURCE -O2 -w -static -I"$tree/include" -o case_$case "$tree/tests/e2e/subjects/guest_cases.c" -lpthread
    done
    complaints=$(record crowd --arch $arch --cpus 2 --app './case_threads threads' --app './case_short short' --app './case_fork fork' \
        --app './case_vfork vfork' --app './case_spawn spawn' \
        --app './case_dies dies' --app './case_handler handler' --app './case_coroutine coroutine')
    verdict "$property" "$(
        echo "$complaints" | grep .
        check crowd
        same_count case_threads 16
        same_count case_short 200
        few case_fork 10 20000
        few case_vfork 10 20000
        few case_spawn 10 20000
        differs "$(instructions crowd case_dies | wc -l)" 10 threads
        few case_dies 8000 40000
        few case_handler 150000 400000
        few case_coroutine 100000 400000
    )"
done
exit $status
