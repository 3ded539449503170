#!/bin/bash
# SPDX-License-Identifier: MIT
# What a recording of a guest knows beyond instructions: how its threads wait for each other, which thread created which, what they allocate,
# whose stacks there are, and which --app a process is. One boot, for all programs together. Needs QEMU and a kernel.
set -u
. tests/lib.sh
tree=$PWD peet=$PEET_BUILD/peet get=$PEET_BUILD/lib/peet/get-system own=$(uname -m)
cd "${TMP:?}" || exit 2

property="calls of POSIX and C11 threads are events of a guest's trace"
offline=--offline
[ "${PEET_SYSTEM:-}" != 1 ] || offline=
if [ "${PEET_SYSTEM:-}" = 0 ] || [ ! -x "$PEET_BUILD/lib/peet/$own/init" ] || ! "$get" $offline "$own" >parts 2>&1; then
    skip "$property" "needs QEMU and a kernel (PEET_SYSTEM=1 gets them)"
    exit 0
fi
mark=$PEET_BUILD/$own/libpeet-mark
if [ ! -e "$mark.so" ] || [ ! -e "$mark.a" ]; then
    skip "$property" "needs libpeet-mark.so"
    exit 0
fi
wrap="-Wl,--wrap=main,--wrap=pthread_create,--wrap=thrd_create -Wl,--whole-archive $mark.a -Wl,--no-whole-archive"
compile() { # NAME SUBJECT OPTION…
    local name=$1 subject=$2
    shift 2
    "${CC:-gcc}" -std=gnu17 -g -O1 -Wall -Wextra -Werror -I"$tree/include" -o "$name" "$tree/tests/e2e/subjects/$subject.c" -lpthread "$@"
}
# shellcheck disable=SC2086
compile dynamic guest_sync && compile static guest_sync -static $wrap && compile twice guest_twice -static || exit 2
# shellcheck disable=SC2086
compile bare_names guest_sync -static $wrap -s || exit 2
"$peet" record --system --offline --timeout 300 --cpus 2 -o all.peet --app ./dynamic --app ./static --app ./twice --app ./bare_names \
    >all.out 2>all.err || { cat all.out all.err; tail -n 20 all.peet.console; }
differs() { # IS EXPECTED WHAT
    [ "$1" = "$2" ] || echo "$3: $1, not $2"
}
"$peet" info --format csv all.peet >info
"$peet" dump --events --symbols all.peet | grep '^[0-9]' >events
threads() { awk -F, -v p="$1" '$1 == "threads" && $5 == p { print $3 }' info; } # PROCESS
# Times of each event of a process that come from its own functions, or, as beginnings do, from no call.
seen() { # PROCESS
    awk -v threads="$(threads "$1" | tr '\n' ' ')" '
        BEGIN { n = split(threads, t, " "); for (i = 1; i <= n; i++) own[t[i]] = 1 }
        $1 in own && ($3 == "thread_start" || / # (main|meet|work|__wrap_[a-z_]*)\+0x/) { count[$3]++ }
        END { for (e in count) print e, count[e] }' events | sort
}
said() { sed -n "s/^$1: \([a-z0-9_]* [0-9]*\)$/\1/p" all.out | grep -v ' 0$' | sort; } # APPLICATION

for app in 1 2; do
    name=$(sed -n "${app}p" <<<$'dynamic\nstatic')
    verdict "$property: a $name program's are those that it says" "$(
        differs "$(said $app | wc -l)" 20 "kinds of events that the program tells"
        seen $app | grep -v 'alloc\|^free\|barrier_destroy\|map\|thread_exit' >is
        said $app | diff - is
    )"
done
verdict "they are well-formed: created, started and joined once, locks held when they are given back" "$(
    "$peet" check all.peet >check.out 2>&1 || cat check.out
)"
verdict "process N of a guest is the N-th --app" "$(
    awk -F, '$1 == "processes" { n = split($6, word, "/"); print $3, word[n] }' info | sort >is
    printf '%s\n' '1 dynamic' '2 static' '3 twice' '4 bare_names' '5 twice' | diff - is
    "$peet" info all.peet | tr -s '\n ' ' ' | grep -q 'process N is the first process of the N-th --app, for N up to 4' ||
        echo "peet info does not say so"
)"
verdict "a thread that marks itself twice, or again behind an end, is one thread" "$(
    differs "$(threads 3 | wc -l) $(threads 5 | wc -l)" "1 1" "threads of the program and of its child"
    awk -F, '$1 == "threads" && $5 == 3 && ($7 < 40000 || $7 > 400000) { print $7 " instructions" }' info
    differs "$(awk -v t="$(threads 3)" '$1 == t && $3 == "gap"' events | wc -l)" 1 gaps
)"
verdict "a program without symbols has instructions, and no such events" "$(
    differs "$(threads 4 | wc -l)" 5 threads
    awk -v threads="$(threads 4 | tr '\n' ' ')" '
        BEGIN { n = split(threads, t, " "); for (i = 1; i <= n; i++) own[t[i]] = 1 }
        $1 in own && $3 ~ /lock|join|wait|alloc/' events
)"
"$peet" record --system --offline --timeout 300 --cpus 2 -o one.peet --app ./static >one.out 2>one.err || cat one.err
"$peet" record --system --offline --timeout 300 --cpus 2 -o none.peet --app ./bare_names >none.out 2>none.err || cat none.err
no_order='this trace has no synchronisation events'
verdict "only of the latter a simulation says that its speed-ups are at best bounds" "$(
    "$peet" simulate -m core --cpus 1,2 none.peet | grep -q "$no_order" || echo "nothing is said of a trace without events"
    "$peet" simulate -m core --cpus 1,2 one.peet | grep "$no_order"
)"
verdict "what was allocated, and stacks, have names" "$(
    "$peet" profile --format csv one.peet >profile.csv 2>profile.err || cat profile.err
    grep -q '[,"]large[,"]' profile.csv || echo "no 'large' in the profile"
    grep -q '[,"]pages[,"]' profile.csv || echo "no 'pages' in the profile"
    grep -q '[,"]block[,"]' profile.csv || echo "no 'block' in the profile"
    grep -q '[,"]stack of main[,"]' profile.csv || echo "no stack of main in the profile"
    "$peet" study sharing --format csv one.peet >sharing.csv
    grep '[,"]\(large\|block\|pages\)[^,"]* #' profile.csv
    awk -F, '$1 == "objects" && $2 == "unknown" && $5 > 0.05 * 131072 { print $5 " references to unknown data" }' profile.csv
    "$peet" profile --top 0 --format csv all.peet >all.csv 2>profile.err || cat profile.err
    differs "$(grep -c '^objects,"\?pages ' all.csv)" 2 "programs with 'pages', of which one has a shared library for mmap"
    grep -q 'stack of thread 0' sharing.csv || echo "no stack of a thread in the study of sharing"
)"
exit $status
