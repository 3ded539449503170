#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs that give up their user, their root or their descriptors before they make threads: all of them are recorded and simulated.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
open=$(mktemp -d /tmp/peet-rights.XXXXXX) || exit 1 # another user must reach the program
trap 'rm -rf "$open"' EXIT
chmod 755 "$open"
"$peet" cc -O2 -w -o "$open/gives_up" tests/e2e/subjects/gives_up.c -lpthread || exit 1

fact() { "$peet" info --format csv "$TMP/t.peet" | awk -F, -v name="$1" '
    $1 == "table" { for (i = 1; i <= NF; i++) column[i] = $i; next }
    $1 == "summary" { for (i = 1; i <= NF; i++) if (column[i] == name) print $i }'; }
instructions() { fact instructions | awk '{ n += $1 } END { print n + 0 }'; }

"$peet" record -o "$TMP/t.peet" -- "$open/gives_up" nothing >"$TMP/expected" 2>/dev/null
plain=$(instructions)

# Complaints about a recording of the program that gives up WHAT: its instructions are those of one that gives up nothing, but for a few hundred.
recorded() { # WHAT
    "$peet" record -o "$TMP/t.peet" -- "$open/gives_up" "$1" >"$TMP/out" 2>"$TMP/err" || cat "$TMP/err"
    n=$(instructions)
    [ "$n" -ge "$plain" ] && [ "$n" -lt $((plain + 2000)) ] || echo "$n instructions, expected about $plain"
    [ "$(fact whole)" = yes ] || echo "the trace is not whole"
    "$peet" check "$TMP/t.peet" >"$TMP/check" || grep -m 5 -E '^  (violation|warning)' "$TMP/check"
}
simulated() { # WHAT
    timeout -k 1 300 "$peet" simulate -m sato1999 --format csv -- "$open/gives_up" "$1" >"$TMP/out" 2>"$TMP/err"
    code=$?
    [ $code = 0 ] || { echo "exit code $code"; cat "$TMP/err"; }
    cut -d' ' -f1 "$TMP/out" | head -n 1 | cmp - <(cut -d' ' -f1 "$TMP/expected")
    grep -q "^runs," "$TMP/out" || echo "no result"
}

verdict "threads that begin without a free descriptor are recorded" "$(recorded descriptors)"
verdict "threads that begin without a free descriptor are simulated" "$(simulated descriptors)"
if [ "$(id -u)" != 0 ]; then
    skip "programs that change their user or their root" "needs root"
    exit $status
fi
verdict "threads that begin after a change of user are recorded" "$(recorded user)"
verdict "threads that begin behind chroot are recorded" "$(recorded root)"
verdict "a child that begins after a change of user is recorded" "$(recorded child)"
verdict "a program that changes its user is simulated to its end, as that user" "$(simulated user
    cut -d' ' -f2 "$TMP/out" | head -n 1 | grep -qx 65534 || echo "its user is still $(head -n 1 "$TMP/out")")"
verdict "a program that changes its root is simulated to its end" "$(simulated root)"
verdict "a program that cannot reach its recorder says so" "$(
    "$peet" record -o "$TMP/t.peet" -- "$open/gives_up" exec >/dev/null 2>"$TMP/err"
    grep -q '^peet: this program is not recorded' "$TMP/err" || cat "$TMP/err")"
verdict "threads for which there is no address space are told, and the trace is not whole" "$(
    "$peet" cc -O2 -w -o "$TMP/limited" -xc - -lpthread <<'C'
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
static volatile long n;
static void *work(void *a) { for (int i = 0; i < 1000; i++) n += i; return a; }
int main(void)
{
    pthread_t t;
    pthread_attr_t small;
    struct rlimit l = { 1 << 20, 1 << 20 };
    static char stack[1 << 16] __attribute__((aligned(64)));
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    putchar('\n'); /* the C library's heap has begun */
    pthread_attr_init(&small);
    pthread_attr_setstack(&small, stack, sizeof stack);
    setrlimit(RLIMIT_AS, &l);
    return pthread_create(&t, &small, work, 0) || pthread_join(t, 0);
}
C
    "$peet" record -o "$TMP/t.peet" -- "$TMP/limited" >/dev/null 2>"$TMP/err" || cat "$TMP/err"
    grep -q '1 thread was not recorded' "$TMP/err" || cat "$TMP/err"
    [ "$(fact whole)" = no ] || echo "the trace calls itself whole"
    "$peet" check "$TMP/t.peet" | grep -q 'more threads than the trace has' || echo "check is silent")"
exit $status
