#!/bin/bash
# SPDX-License-Identifier: MIT
# peet record --system with real guests: programs run in them, together, and what becomes of them comes back. Needs a QEMU and a
# kernel, and skips without. With PEET_SYSTEM=1 these are downloaded if they are not here, and all of it is run: guests of other
# architectures and deterministic ones, too, which take a minute more. With PEET_SYSTEM=0 no guest is run.
set -u
. tests/lib.sh
tree=$PWD peet=$PEET_BUILD/peet get=$PEET_BUILD/lib/peet/get-system
own=$(uname -m)
cd "${TMP:?}" || exit 2

# Nothing of a guest is needed for these.
refuses() { # PROPERTY STATUS TEXT ARGUMENT…
    local property=$1 status=$2 text=$3
    shift 3
    "$peet" record "$@" >refused.out 2>&1
    local was=$?
    verdict "$property" "$(
        [ $was = "$status" ] || echo "status $was"
        grep -qF -- "$text" refused.out || cat refused.out
        [ ! -e guest.peet ] || echo "a trace is left"
    )"
}
refuses "options of guests need --system" 2 'needs --system' --cpus 2 -o guest.peet -- true
refuses "a guest needs something to run" 2 "nothing to run: --app" --system -o guest.peet
refuses "several processors are not deterministic" 2 'leave out --cpus' --system --deterministic --cpus 2 --app true -o guest.peet
refuses "a guest cannot have two kinds of programs" 2 'cannot be put into it' --system --image disk --app true -o guest.peet
refuses "files cannot be put into a system of the user's own" 2 '--file cannot be put into it' --system --image disk --file strict.c -o guest.peet
refuses "nor libraries of another place" 2 '--sysroot' --system --image disk --sysroot . -o guest.peet
refuses "a disk that is not there is named" 3 '--image disk: cannot be read' --system --image disk -o guest.peet
refuses "a program that is not here is an error" 3 './nothing: there is no such program' --system --app ./nothing -o guest.peet
refuses "a quote that is not closed is an error" 2 '--app "echo '\''x": a quote is never closed' --system --app "echo 'x" -o guest.peet
refuses "an unknown architecture is an error" 2 'aarch64' --system --arch arm64 --app true -o guest.peet

cat >strict.c <<'C'
#include <peet/mark.h>
int main(void) { PEET_THREAD_BEGIN(1); PEET_THREAD_END(); return 0; }
C
cp strict.c strict.cc
verdict "peet/mark.h compiles in strict modes of the language, and what it makes runs outside of guests" "$(
    for mode in c99 c11 c17 gnu17; do
        ${CC:-gcc} -std=$mode -pedantic -Wall -Wextra -Werror -I"$tree/include" -o strict strict.c -lpthread 2>&1 && ./strict || echo "$mode: status $?"
    done
    if command -v g++ >/dev/null; then
        g++ -std=c++11 -Wall -Wextra -Werror -I"$tree/include" -o strict strict.cc -lpthread 2>&1 && ./strict || echo "C++: status $?"
    fi
)"

# A machine without QEMU, kernels, or apt.
mkdir empty bin
for tool in sh sed sort head uname printf command; do
    where=$(command -v $tool) && [ -x "$where" ] && ln -s "$where" bin/
done
property="what is not here is named, and what to do"
verdict "$property" "$(
    env -i PATH="$PWD/bin" HOME="$PWD/empty" "$get" --offline "$own" >answer 2>&1
    [ $? = 1 ] || echo "status"
    grep -q "^error=no QEMU.*peet record --system --get --arch $own.*PEET_QEMU" answer || cat answer
    env -i PATH="$PWD/bin" HOME="$PWD/empty" "$get" "$own" >answer 2>&1
    grep -q "^error=this is not Debian.*install QEMU" answer || cat answer
    env -i PATH="$PWD/bin" HOME="$PWD/empty" PEET_QEMU=./none "$get" "$own" >answer 2>&1
    grep -q "^error=PEET_QEMU is ./none" answer || cat answer
)"
printf '#!/bin/sh\necho "QEMU emulator version 7.2.1"\n' >"bin/qemu-system-$own"
chmod +x "bin/qemu-system-$own"
verdict "a QEMU that is too old is not taken" "$(
    env -i PATH="$PWD/bin" HOME="$PWD/empty" "$get" --offline "$own" >answer 2>&1
    grep -q "^error=no QEMU .*is older" answer || cat answer
)"

# ---- guests ----

at_hand() { # ARCH: whether its guests can be run here
    local offline=--offline
    [ "${PEET_SYSTEM:-}" != 1 ] || offline=
    [ "${PEET_SYSTEM:-}" != 0 ] && [ -x "$PEET_BUILD/lib/peet/$1/init" ] && "$get" $offline "$1" >parts 2>&1
}
reason="needs QEMU and a kernel (PEET_SYSTEM=1 gets them)"
if ! at_hand "$own"; then
    skip "programs run in a guest" "$reason"
    exit $status
fi
# Guests boot without the plugin, too.
first_of() { # FILE…
    local f
    for f; do [ ! -e "$f" ] || { echo "$f"; return; }; done
}
plugin=$(first_of "$PEET_BUILD/libpeet-qemu.so" "$PEET_BUILD/lib/peet/libpeet-qemu.so")
mark=$(first_of "$PEET_BUILD"/libpeet-mark.so "$PEET_BUILD/$own/libpeet-mark.so" "$PEET_BUILD/lib/peet/$own/libpeet-mark.so")
marked=
[ -n "$plugin" ] || export PEET_PLUGIN=none
[ -n "$plugin" ] && [ -n "$mark" ] || marked=--marked

record() { # NAME ARGUMENT…: yields its status; NAME.out, NAME.err
    local name=$1
    shift
    # shellcheck disable=SC2086
    "$peet" record --system --offline --timeout 300 $marked -o "$name.peet" "$@" >"$name.out" 2>"$name.err"
}
differs() { # IS EXPECTED WHAT
    [ "$1" = "$2" ] || echo "$3 is $1, not $2"
}

cat >subject.c <<'C'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *thread(void *p) { return p; }
int main(int argc, char **argv)
{
    pthread_t t;
    char line[100] = "", here[1000];
    FILE *f = argc > 1 ? fopen(argv[1], "r") : NULL;

    pthread_create(&t, NULL, thread, NULL);
    pthread_join(t, NULL);
    if (f && !fgets(line, sizeof line, f))
        return 9;
    printf("%d %s %s %s%s\n", argc, argc > 2 ? argv[2] : "-", getenv("WORD") ? getenv("WORD") : "-", line, getcwd(here, sizeof here));
    printf("no newline");
    fflush(stdout);
    if (argc > 3)
        abort();
    return 7;
}
C
${CC:-gcc} -O1 -o subject subject.c -lpthread || exit 2
echo 'a file' >input

TIMEFORMAT='%U %S' # not by the clock, for others run beside us
{ time record one --file input --app "WORD='x y' ./subject input 'b  c'"; } 2>seconds
code=$?
verdict "a program runs in a guest as it does here, and its status is ours" "$(
    differs $code 7 status
    differs "$(cat one.out)" "3 b  c x y a file
$PWD
no newline" output
    grep -q 'peet: exit 1 7' one.peet.console || cat one.peet.console one.err
)"
verdict "that takes less than 30 s" "$(awk '$1 + $2 >= 30 { print $1 + $2, "s" } END { if (!NR) print "no time" }' seconds)"

record three --cpus 3 --file input --file subject:/other/place --app './subject' --app './subject input x y' \
    --app "sh -c 'echo from a shell; echo 1 >/dev/shm/x && cd /other && echo *;
        while read -r a b; do case \$a in processor) echo cpu;; esac; done </proc/cpuinfo'"
code=$?
verdict "several programs run together, and each says what it has to say" "$(
    differs $code 7 status
    grep -q '^1: 1 - - ' three.out && grep -q '^2: 4 x - a file' three.out && grep -q '^3: from a shell' three.out &&
        grep -q '^3: place' three.out || cat three.out
    grep -q 'application 2, ./subject, was ended by signal 6' three.err || cat three.err
    grep -q 'application 1, ./subject, ended with status 7' three.err || cat three.err
)"
verdict "a guest has as many processors as it was given" "$(differs "$(grep -c '^3: cpu' three.out)" 3 processors)"

"$peet" record --system --offline $marked --timeout 8 -o late.peet --app 'sleep 1000' >late.out 2>late.err
code=$?
verdict "time-outs end the guest, and say so" "$(
    differs $code 3 status
    grep -q 'time is up: the guest was ended after 8 seconds' late.err || cat late.err
    [ -e late.peet.console ] || echo "no console"
)"

property="Ctrl-C ends the guest and keeps what was recorded"
env --default-signal=INT "$peet" record --system --offline $marked -o stop.peet --app 'sleep 1000' >stop.out 2>stop.err &
pid=$!
for ((i = 0; i < 300; i++)); do
    grep -qs 'peet: start' stop.peet.console && break
    sleep 0.1
done
kill -INT $pid
wait $pid
code=$?
# The signal may come before or after the program's first thread is marked.
verdict "$property" "$(differs $code 130 status; grep -Eq 'interrupted; (nothing|what) was recorded until then' stop.err || cat stop.err)"

record none --append 'rdinit=/nothing' --app true
code=$?
verdict "a guest whose kernel gives up is an error that says where to look" "$(
    differs $code 3 status
    grep -q 'stopped before its programs ended; see none.peet.console' none.err || cat none.err
)"

# ---- other processors ----

for arch in x86_64 aarch64 riscv64; do
    [ $arch != "$own" ] || continue
    property="programs for $arch run in its guests, with the libraries of its compiler"
    needs "$property" $arch-linux-gnu-gcc || continue
    [ "${PEET_SYSTEM:-}" = 1 ] || { skip "$property" "takes a while (PEET_SYSTEM=1 runs it)"; continue; }
    at_hand $arch || { skip "$property" "$reason"; continue; }
    $arch-linux-gnu-gcc -O1 -o subject-$arch subject.c -lpthread || exit 2
    record $arch --arch $arch --cpus 2 --app "./subject-$arch"
    code=$?
    verdict "$property" "$(
        differs $code 7 status
        grep -q '^1 - - ' $arch.out || cat $arch.out $arch.err
    )"
    refuses "a program for another machine is refused: $arch" 2 "the guest is $arch" --system --offline --arch $arch --app ./subject \
        -o guest.peet
done

# ---- traces ----

info() { # NAME KEY
    "$peet" info --format json "$1.peet" 2>/dev/null | tr ',{}[]' '\n' | sed -n "s/^ *\"$2\": *\"*\([^\"]*\)\"*$/\1/p" | head -n 1
}
[ -n "$plugin" ] || { skip "every thread that marks itself has its stream" "needs libpeet-qemu.so"; exit $status; }
cat >marked.c <<'C'
#include <peet/mark.h>
#include <stdio.h>
static void *thread(void *p)
{
    volatile long sum = 0;

    PEET_THREAD_BEGIN((long)p);
    for (long i = 0; i < 10000; i++)
        sum += i;
    return NULL;
}
int main(void)
{
    pthread_t t[2];

    PEET_THREAD_BEGIN(1);
    for (long i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, thread, (void *)(i + 2));
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    return 0;
}
C
${CC:-gcc} -O1 -static -I"$tree/include" -o marked marked.c -lpthread || exit 2
${CC:-gcc} -O1 -I"$tree/include" -o marked-dynamic marked.c -lpthread || exit 2
record threads --cpus 2 --app ./marked --app ./marked-dynamic
code=$?
verdict "every thread that marks itself has its stream, and only one, in every program" "$(
    differs $code 0 status
    differs "$(info threads threads)" 6 threads
    differs "$(info threads processes)" 2 processes
    "$peet" check threads.peet >check.out 2>&1 || cat check.out
    grep -q '6 threads' threads.err || cat threads.err
)"
property="programs need no change to be recorded"
if [ -z "$mark" ]; then
    skip "$property" "needs libpeet-mark.so"
else
    verdict "$property" "$(
        differs "$(info one threads)" 2 threads
        "$peet" check one.peet >check.out 2>&1 || cat check.out
    )"
    verdict "functions have names, in programs and in their libraries" "$(
        "$peet" dump --symbols one.peet >named
        grep -q '# main+0x0' named && grep -q '# thread+0x0' named && grep -q '# pthread_create.*+0x0' named || head -n 40 named
        "$peet" info --format csv one.peet | grep -q '^modules,.*/libc\.so\.6' || "$peet" info one.peet
        "$peet" dump --symbols threads.peet | grep -q '# main+0x' || echo "no main in a static program"
    )"
fi

# The guest is busy with code that QEMU has translated long ago, and then a program wants to be recorded.
cat >late.c <<'C'
#include <peet/mark.h>
#include <stdio.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
__attribute__((noipa)) static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(int argc, char **argv)
{
    double begin = now();
    if (argc > 1) { while (now() < begin + 4) fib(20); return 0; }
    nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
    PEET_THREAD_BEGIN(1);
    int n = fib(10);
    PEET_THREAD_END();
    return n != 55;
}
C
${CC:-gcc} -O1 -static -w -I"$tree/include" -o late late.c -lpthread && cp late spin || exit 2
record late --marked --app ./late --app './spin on'
code=$?
verdict "who marks itself late, in a guest that is busy, is recorded from there on" "$(
    differs $code 0 status
    differs "$(info late threads)" 1 threads
    awk -v n="$(info late instructions)" 'BEGIN { if (n < 1500 || n > 6000) print n " instructions" }'
    grep -q 'peet: ask' late.peet.console || cat late.peet.console
)"

property="deterministic recordings are the same, byte by byte"
[ "${PEET_SYSTEM:-}" = 1 ] || { skip "$property" "takes a while (PEET_SYSTEM=1 runs it)"; exit $status; }
record same1 --marked --deterministic --app ./marked
record same2 --marked --deterministic --app ./marked
verdict "$property" "$(cmp same1.peet same2.peet 2>&1 || cat same1.err)"
"$peet" record --system --offline --marked --deterministic --count -o count.json --app ./marked >count.out 2>count.err
verdict "counts are those of the trace" "$(
    differs "$(grep -o '"instructions": [0-9]*' count.json | awk '{ n += $2 } END { print n }')" "$(info same1 instructions)" instructions
)"
exit $status
