#!/bin/bash
# SPDX-License-Identifier: MIT
# A recording that lacks most of a program's work says where that work was done.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
cat >"$TMP/library.c" <<'C'
volatile long sum;
void work(long n) { for (long i = 0; i < n; i++) sum += i; }
C
cat >"$TMP/main.c" <<'C'
void work(long n);
int main(void) { work(1000000000); return 0; }
C
"$CC" -O1 -shared -fPIC -o "$TMP/libplain.so" "$TMP/library.c" && "$peet" cc -O1 -shared -fPIC -o "$TMP/librecorded.so" "$TMP/library.c" &&
    "$peet" cc -O1 -o "$TMP/plain" "$TMP/main.c" "$TMP/libplain.so" && "$peet" cc -O1 -o "$TMP/recorded" "$TMP/main.c" "$TMP/librecorded.so" || exit 1

verdict "work in a library that was not recorded is told with its name" "$(
    "$peet" record -o "$TMP/t.peet" -- "$TMP/plain" 2>"$TMP/err"
    grep -q 'in code that was not recorded, perhaps of libplain.so: build it' "$TMP/err" || cat "$TMP/err")"
verdict "a program that was recorded as a whole has no such warning" "$(
    "$peet" record -o "$TMP/t.peet" -- "$TMP/recorded" 2>"$TMP/err"
    grep 'not recorded' "$TMP/err")"
exit $status
