#!/bin/bash
# SPDX-License-Identifier: MIT
# What `peet cc` makes does what the plain compiler's does, at every level and in every model of code; its recording is
# well-formed, and the addresses that follow from its slots are those that --peet-brute records one by one.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
subjects=tests/e2e/subjects

# Complaints where a program behaves otherwise than the plain one, alone or recorded.
differs() { # PLAIN INSTRUMENTED
    timeout 300 "$1" all >"$TMP/expected" 2>&1
    timeout 300 "$2" all >"$TMP/got" 2>&1 || echo "status $?"
    cmp "$TMP/expected" "$TMP/got" 2>&1
    timeout 300 "$1" >"$TMP/expected" 2>&1
    timeout 300 "$peet" record -o "$TMP/t.peet" -- "$2" >"$TMP/got" 2>"$TMP/err" || { echo "recorded: status $?"; cat "$TMP/err"; }
    cmp "$TMP/expected" "$TMP/got" 2>&1
    "$peet" check "$TMP/t.peet" >"$TMP/check" 2>&1 || grep -E '^  (violation|warning)|^peet' "$TMP/check" | head -n 5
}

for options in -O0 -O2 "-O3 -march=native" -Os "-O2 -fno-pie -no-pie" "-O2 -fPIC" "-O1 -g -fcf-protection -ffunction-sections"; do
    # shellcheck disable=SC2086
    verdict "C built with $options does what it should" "$(
        gcc $options -w -o "$TMP/plain" $subjects/calls.c -lpthread 2>&1 | grep -v 'executable stack'
        "$peet" cc $options -w -o "$TMP/peet" $subjects/calls.c -lpthread 2>&1 | grep -vE 'executable stack|decl|removed in a future'
        differs "$TMP/plain" "$TMP/peet"
    )"
done

# Its indirect tail jumps into the C library look to peet check like jumps that stay: no recording here.
verdict "code without a procedure linkage table does what it should" "$(
    gcc -O2 -w -o "$TMP/plain" $subjects/calls.c -lpthread 2>&1 | grep -v 'executable stack'
    "$peet" cc -O2 -fPIC -fno-plt -w -o "$TMP/peet" $subjects/calls.c -lpthread >/dev/null 2>&1
    "$TMP/plain" all >"$TMP/expected"
    "$TMP/peet" all | cmp - "$TMP/expected" 2>&1
)"

property="C++ with exceptions does what it should"
if needs "$property" g++; then
    verdict "$property" "$(
        for options in -O0 -O2; do
            g++ $options -w -o "$TMP/plain" $subjects/throws.cc -lpthread
            "$peet" c++ $options -w -o "$TMP/peet" $subjects/throws.cc -lpthread 2>&1
            differs "$TMP/plain" "$TMP/peet"
        done
    )"
fi

verdict "a shared library takes the executable's runtime, and works in one that is not instrumented" "$(
    mkdir "$TMP/plain-lib" "$TMP/peet-lib"
    gcc -O2 -fPIC -shared -DLIBRARY -o "$TMP/plain-lib/libx.so" $subjects/library.c
    gcc -O2 -o "$TMP/plain" $subjects/library.c -L"$TMP/plain-lib" -lx
    "$peet" cc -O2 -fPIC -shared -DLIBRARY -o "$TMP/peet-lib/libx.so" $subjects/library.c 2>&1
    "$peet" cc -O2 -o "$TMP/peet" $subjects/library.c -L"$TMP/peet-lib" -lx 2>&1
    for with in plain peet; do
        LD_LIBRARY_PATH=$TMP/plain-lib "$TMP/plain" >"$TMP/expected"
        LD_LIBRARY_PATH=$TMP/$with-lib "$TMP/peet" 2>&1 | cmp - "$TMP/expected" 2>&1
    done
)"

# The references of the first thread, without addresses of code and constants: those differ.
references() { "$peet" dump --thread 1 --format csv "$1" | awk -F, '$3 ~ /^(load|store|update|prefetch)$/ { print $3, $5 < 268435456 ? 0 : $5, $6 }'; }
# SUBJECT OPTIONS: where the recording of every address and the other one differ.
differ_from_brute() {
    for brute in "" --peet-brute; do
        # shellcheck disable=SC2086
        "$peet" cc $2 $brute -w -no-pie -Wl,-Tdata=0x10000000 -o "$TMP/same$brute" "$subjects/$1" -lpthread -lm >/dev/null 2>&1
        mv "$TMP/same$brute" "$TMP/same" # programs of other names have other stacks
        "$peet" record -o "$TMP/same$brute.peet" -- "$TMP/same" >"$TMP/same$brute.out" 2>&1
        references "$TMP/same$brute.peet" >"$TMP/same$brute.txt"
    done
    [ -s "$TMP/same.txt" ] || echo "there are none"
    cmp "$TMP/same.txt" "$TMP/same--peet-brute.txt" 2>&1
}
verdict "slots say the same addresses as recording each" "$(differ_from_brute calls.c -O2)"
for options in -O0 "-O3 -march=native"; do
    # shellcheck disable=SC2086
    verdict "gathers and masked moves, built with $options, do what they should" "$(
        gcc $options -w -o "$TMP/plain" $subjects/masks.c
        "$peet" cc $options -w -o "$TMP/peet" $subjects/masks.c 2>&1
        differs "$TMP/plain" "$TMP/peet"
    )"
    verdict "they say the same addresses as recording each, with $options" "$(differ_from_brute masks.c "$options")"
done
property="they are recorded as they are stepped through"
if "$peet" record --step --max 10 -o "$TMP/try.peet" -- true >"$TMP/err" 2>&1; then
    verdict "$property" "$(
        "$peet" record -o "$TMP/live.peet" -- "$peet" record --step -o "$TMP/step.peet" -- "$TMP/peet" 4 >"$TMP/out" 2>&1 || cat "$TMP/out"
        "$PEET_BUILD/tests/e2e/same" --within --functions "$TMP/step.peet" "$TMP/live.peet" >"$TMP/out" 2>&1 || cat "$TMP/out"
    )"
else
    skip "$property" "this system does not allow ptrace"
fi
for options in -O0 -O1 -O2 "-O3 -march=native" "-O2 -funroll-loops" "-Os -fno-ivopts"; do
    verdict "loops of all kinds, built with $options, say the same addresses as recording each" "$(differ_from_brute loops.c "$options")"
    verdict "their recording is well-formed, with $options" "$("$peet" check "$TMP/same.peet" 2>&1 | grep -E '^  (violation|warning)' | head -n 5)"
done

# ---- the command line ----

says() { # PATTERN COMMAND…
    local pattern=$1 text
    shift
    text=$("$@" 2>&1)
    # shellcheck disable=SC2053
    [[ $text == $pattern ]] || printf '%s\nsays: %s\nexpected: %s\n' "$*" "$text" "$pattern"
}
echo 'int main(void) { return 0; }' >"$TMP/m.c"
echo '.globl f
f: ret' >"$TMP/f.s"
echo "-O1 -c -o \"$TMP/m.o\" $TMP/m.c" >"$TMP/list"
verdict "options reach the compiler: -E, -S, -c, -M, --version, @file, -pipe" "$(
    says "*int main*" "$peet" cc -E "$TMP/m.c"
    "$peet" cc -S -o - "$TMP/m.c" | grep -q 'main:' || echo no assembly
    says "m.o: *m.c*" "$peet" cc -M "$TMP/m.c"
    says "$(gcc --version)" "$peet" cc --version
    "$peet" cc "@$TMP/list" 2>&1 && readelf -SW "$TMP/m.o" | grep -q peet.schema || echo "no schema from @file"
    "$peet" cc -pipe -c -o "$TMP/p.o" "$TMP/m.c" 2>&1 && readelf -SW "$TMP/p.o" | grep -q peet.schema || echo "no schema with -pipe"
)"
verdict "what cannot be recorded is told" "$(
    says "*warning: *f.s: not recorded: GCC did not write it" "$peet" cc -c -o "$TMP/f.o" "$TMP/f.s"
    says "*warning: -flto is left out*" "$peet" cc -flto -c -o "$TMP/l.o" "$TMP/m.c"
    says "*Clang*" env PEET_CC=clang "$peet" cc -c "$TMP/m.c"
    says "*cannot run*" env PEET_CC=no-such-compiler "$peet" cc -c "$TMP/m.c"
    echo 'int f(int x) { __asm__("movl %0, %%r14d" :: "r"(x) : "r14"); return x; }' >"$TMP/r.c"
    says "*uses %r14 or %r15*" "$peet" cc -c -o "$TMP/r.o" "$TMP/r.c"
)"
exit $status
