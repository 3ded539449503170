#!/bin/bash
# SPDX-License-Identifier: MIT
# What is skipped is never lost: tests/skips says what lets it run, and .ci/run fails where it need not have been skipped.
set -u
. tests/lib.sh
cd "${TMP:?}" || exit 2
tree=$OLDPWD

verdict "every program that a test needs stands in tests/skips" "$(
    cd "$tree" || exit
    grep -rhoE 'needs "[^"]*" [a-z0-9$+_-]+' tests --include='*.sh' --include=headers --include=install --include=pages |
        sed 's/.* //; s/^\$compiler$/clang/; s/^\$arch/riscv64/' | sort -u | sed 's/.*/skip this: needs &/' >"$TMP/needs"
    [ "$(wc -l <"$TMP/needs")" -ge 8 ] || cat "$TMP/needs"
    tests/skips <"$TMP/needs" | grep 'nothing that'
)"
verdict "the summary says what lets skipped tests run, and how many there are" "$(
    printf 'ok a\nskip b: needs g++\nskip c: d: needs python3\nskip e: needs scdoc\n' | "$tree/tests/skips" >out || echo "status $?"
    cmp out - <<'END'
Skipped, and what lets it run:
     2  make deps FOR=test
     1  make deps, then make
END
)"
verdict "without skips there is no summary" "$(echo "ok a" | "$tree/tests/skips")"
verdict "a skip whose reason is unknown is shown as it is" "$(
    echo "skip a: the moon is full" | "$tree/tests/skips" >out
    grep -q '1  nothing that .*: skip a: the moon is full' out || cat out
)"

# A tree of which only .ci/run and tests/skips are real: make prints what the leg's file says.
mkdir -p tree/.ci tree/tests bin
cp "$tree/.ci/run" tree/.ci/ && cp "$tree/tests/skips" tree/tests/
cat >bin/make <<'END'
#!/bin/sh
echo "$*" >>"$MADE"
case "$*" in
deps*) exit 0 ;;
lint) cat "$LEGS/lint" 2>/dev/null; exit 0 ;;
test-unit*) leg=unit ;;
*CC=clang*) leg=clang ;;
*SAN=*) leg=san ;;
*) leg=plain ;;
esac
cat "$LEGS/$leg" 2>/dev/null || echo "3 passed, 0 failed"
! grep -q '^not ok' "$LEGS/$leg" 2>/dev/null
END
chmod +x bin/make
ci_says() { # LAST LINE, STATUS; the legs' output is in legs/
    rm -f made
    PATH=$PWD/bin:$PATH LEGS=$PWD/legs MADE=$PWD/made tree/.ci/run >out 2>&1
    local was=$?
    [ $was = "$2" ] || echo "status $was"
    [ "$(tail -n 1 out)" = "$1" ] || tail -n 4 out
    rm -rf legs
    mkdir legs
}
mkdir legs
verdict "CI adds up the tests, the quick tests with clang and with sanitizers of both compilers, and lint" "$(
    ci_says "13 passed, 0 failed" 0
    grep -qx 'test' made || echo "not the command of README.md"
    grep -q '^test .*CC=clang.* ONLY=unit/ cli/ golden/' made && grep -q '^test SAN=address,undefined' made && grep -q '^test-unit CC=clang SAN=address,undefined' made && grep -qx lint made || cat made
    grep -q '^deps FOR=.*test.*system' made || cat made
)"
verdict "a skip that the list allows is counted as one" "$(
    printf 'skip a: takes a while (PEET_SYSTEM=1 runs it)\n3 passed, 0 failed, 1 skipped\n' >legs/plain
    ci_says "13 passed, 0 failed, 1 skipped" 0
)"
verdict "a skip that the list does not allow in CI fails" "$(
    printf 'skip a: needs chromium\nskip b: the moon is full\n3 passed, 0 failed, 2 skipped\n' >legs/plain
    ci_says "13 passed, 2 failed" 1
)"
verdict "what sanitizers forbid may be skipped only with them" "$(
    printf 'skip a: needs libpeet-machine.so\n3 passed, 0 failed, 1 skipped\n' | tee legs/san >legs/plain
    ci_says "13 passed, 1 failed, 1 skipped" 1
)"
verdict "lint may not leave anything out" "$(
    echo "skip scripts are clean: needs shellcheck" >legs/lint
    ci_says "13 passed, 1 failed" 1
)"
verdict "a leg that ends without its counts fails" "$(
    echo "gcc: error" >legs/clang
    ci_says "10 passed, 1 failed" 1
)"

verdict "one command names all packages that building, tests, lint and fuzzing use" "$(
    for tool in sh sed awk sort tr id uname cat grep; do ln -sf "$(command -v $tool)" "bin/$tool"; done
    rm bin/make
    HOME=$TMP/none PATH=$PWD/bin "$tree/scripts/deps" all >out 2>&1
    for package in gcc g++ gfortran python3 valgrind chromium-headless-shell clang-format libclang-rt gcc-riscv64-linux-gnu; do
        grep -q "^  $package" out || echo "$package is not among them"
    done
    "$tree/scripts/deps" everything >out 2>&1
    [ $? = 2 ] || echo "a word that it does not know is taken"
)"
exit $status
