#!/bin/bash
# SPDX-License-Identifier: MIT
# A program of `peet cc` that is not recorded runs as the compiler wrote it, but for padding: every function has a plain copy. Programs are static, to be
# short: they are stepped through.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet helpers=$PEET_BUILD/tests/e2e
subject=tests/e2e/subjects/plain.c

build() { # OPTIONS: plain, with the same registers, and peet
    # shellcheck disable=SC2086
    gcc -static -ffixed-r14 -ffixed-r15 -g $1 -o "$TMP/plain" $subject
    # shellcheck disable=SC2086
    "$peet" cc -static -g $1 -o "$TMP/peet" $subject 2>&1
}

# Instructions that ROUNDS more rounds take.
rounds() { # PROGRAM
    local few many
    few=$("$helpers/count_steps" -p "$1" 10 2>&1 >"$TMP/few" | tail -n 1)
    many=$("$helpers/count_steps" -p "$1" 60 2>&1 >"$TMP/many" | tail -n 1)
    echo "$((many - few)) instructions, $(cat "$TMP/few" "$TMP/many")"
}
if "$helpers/count_steps" /bin/true >"$TMP/out" 2>&1; then
    for options in -O0 -O2 "-O2 -fno-pie -no-pie" "-O2 -fPIC" "-Os -ffunction-sections -fcf-protection"; do
        verdict "built with $options, it executes what the compiler wrote" "$(
            build "$options"
            expected=$(rounds "$TMP/plain") got=$(rounds "$TMP/peet")
            [ "$got" = "$expected" ] || echo "$got; expected: $expected"
        )"
    done
    # A call of a function in another file tests the caller's kind: six instructions, and at most nine in a library.
    for kind in "6 -O2" "9 -O2 -fPIC"; do
        most=${kind%% *} options=${kind#* }
        verdict "a call of another file's function takes up to $most instructions more, with $options" "$(
            # shellcheck disable=SC2086
            gcc -static -ffixed-r14 -ffixed-r15 $options -DCALLS_FAR -o "$TMP/plain" $subject -x c <(echo '#define FAR'; cat $subject) 2>&1
            # shellcheck disable=SC2086
            "$peet" cc -static $options -DCALLS_FAR -o "$TMP/peet" $subject -x c <(echo '#define FAR'; cat $subject) 2>&1
            expected=$(rounds "$TMP/plain") got=$(rounds "$TMP/peet")
            more=$((${got%% *} - ${expected%% *}))
            [ "${got#*,}" = "${expected#*,}" ] || echo "$got; expected: $expected"
            ((more > 0 && more <= most * 50)) || echo "$more instructions more in 50 calls"
        )"
    done
else
    skip "it executes what the compiler wrote" "this system does not allow ptrace"
fi

# Every instruction of a function, in both copies: its name, and a line of it.
verdict "debuggers find function and line of both copies" "$(
    build -O2
    for f in choose climb; do
        read -r start size < <(nm -S "$TMP/peet" | awk -v f=$f '$4 == f { print $1, $2 }')
        objdump -d --start-address="0x$start" --stop-address="$((16#$start + 16#$size))" "$TMP/peet" |
            sed -n 's/^ *\([0-9a-f]*\):\t[^\t]*\t\([a-z]*\).*/\1 \2/p' >"$TMP/code"
        grep -c ' ret' "$TMP/code" >"$TMP/returns"
        plain=$(objdump -d "$TMP/plain" | sed -n "/^[0-9a-f]* <$f>:/,/^\$/p" | grep -c $'\tret')
        [ "$(cat "$TMP/returns")" -ge $((2 * plain)) ] || echo "$f: $(cat "$TMP/returns") returns, the plain one has $plain"
        awk '$2 !~ /^(nop|cs|data)/ { print "0x" $1 }' "$TMP/code" | addr2line -f -e "$TMP/peet" | paste - - |
            grep -vE "^$f.*plain.c:[0-9]+" | sort | uniq -c | head -n 3
    done
)"
exit $status
