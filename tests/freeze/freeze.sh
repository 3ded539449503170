#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: tests/freeze/freeze.sh [update|compare PEET PEET]
#
# Holds what peet prints of recordings to a hash. Every verb that reads a recording runs on each file of tests/freeze/recordings, in
# all formats; verbs that take a machine run on five of them. tests/freeze/hashes has a line for each run: hash, recording, words of
# the command. A commit that changes a hash changes a number, a name or a text, and its message says which.
#
#   update            writes tests/freeze/hashes again; git diff shows which outputs have changed
#   compare OLD NEW   runs two builds of peet, also on programs that run live, and shows how their outputs differ
#
# A live program has other addresses on each system, so its outputs have no hash. Instead, the simulator in the program's process is
# compared with the simulator in a process of its own.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/lib.sh
mode=${1:-check}
recordings=$PWD/tests/freeze/recordings
hashes=$PWD/tests/freeze/hashes
work=$(mktemp -d "${TMP:-/tmp}/freeze.XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
mkdir "$work/in" "$work/in/programs"
cp "$recordings"/*.peet tests/golden/good/everything.peet "$work/in/"
for f in "$recordings"/programs/*.gz; do
    name=${f##*/}
    gzip -d -c "$f" >"$work/in/programs/${name%.gz}" || exit 2
done

# The commands for a recording, one a line.
commands() { # NAME
    local verb format machine
    for format in text json csv html; do
        for verb in "info" "info --counts --events" "dump --symbols --from 500 --count 400" "dump --events" "check" \
            "study graph" "study parallelism" "study sharing" "study allocation" "study intrinsic $1.peet" "advise -m core"; do
            echo "$verb --format $format"
        done
        for machine in core modern memspy-128k sato1999 shallow-bus; do
            echo "simulate -m $machine --format $format"
            echo "profile -m $machine --format $format"
        done
        echo "simulate -m modern --cpus 1,2,3 --seeds 2 --format $format"
        echo "profile -m modern --sample 1/3 --length 2000 --calls 1 --format $format"
        echo "profile -m memspy-16k --sample 1/4 --length 3000 --random --format $format"
        echo "profile -m core --sets 1/4 --source --format $format"
    done
    echo "dump --compact"
    echo "profile -m modern --callgrind - --format csv"
    echo "profile -m modern --stacks - --format csv"
}

# Runs all commands for a recording. The output of the n-th command goes to file OUT/n, without a page's copy of d3: its version is
# Debian's.
run_all() { # PEET NAME OUT
    local n=0 words
    mkdir -p "$3"
    while read -r words; do
        n=$((n + 1))
        # shellcheck disable=SC2086
        (cd "$work/in" && "$1" $words "$2.peet" 2>&1 </dev/null; echo "status $?") | sed '/^\/\*!$/,/^<\/script>/d' >"$3/$n"
    done < <(commands "$2")
}
hashes_of() { # NAME OUT
    local n=0 words hash
    while read -r words; do
        n=$((n + 1))
        hash=$(sha256sum <"$2/$n")
        echo "${hash:0:16} $1 $words"
    done < <(commands "$1")
}
# The commands for programs that run while they are simulated. The seed decides the order of their threads.
live_commands() { # VERB
    local program machine
    for program in "lu-con -n 24 -b 8 -p 2" "mp3d -n 300 -l 8 -s 1 -p 3" "gates -n 64 -c 9 -p 1" "radix -n 2k -p 4"; do
        for machine in core sato1999 modern; do
            echo "$1 -m $machine --format json -- WORKLOADS/$program"
        done
    done
}
run_live() { # PEET VERB OPTION OUT
    local n=0 words
    mkdir -p "$4"
    while read -r words; do
        n=$((n + 1))
        words=${words//WORKLOADS/$workloads}
        # shellcheck disable=SC2086
        (cd "$work/in" && "$1" ${words%% *} $3 ${words#* } 2>&1 </dev/null; echo "status $?") >"$4/$n"
    done < <(live_commands "$2")
}
names() { (cd "$work/in" && ls ./*.peet | sed 's|./\(.*\)\.peet|\1|'); }

case $mode in
check | update)
    peet=$(realpath "${PEET_BUILD:-build}/peet")
    for name in $(names); do
        run_all "$peet" "$name" "$work/$name"
        hashes_of "$name" "$work/$name"
    done >"$work/hashes"
    if [ "$mode" = update ]; then
        cp "$work/hashes" "$hashes"
        exit 0
    fi
    for name in $(names); do
        verdict "what peet prints of the recording $name is frozen" "$(
            diff <(grep " $name " "$hashes") <(grep " $name " "$work/hashes") | sed -n "s/^> [0-9a-f]* \(.*\)/changed: \1/p" | head -n 20
            [ "$(grep -c " $name " "$hashes")" = "$(commands "$name" | wc -l)" ] || echo "tests/freeze/hashes has not a line for each command"
        )"
    done
    property="a program that is simulated in its process and out of it gives the same"
    if [ -f "${PEET_BUILD:-build}/lib/peet/libpeet-machine.so" ]; then
        workloads=$(realpath "${PEET_BUILD:-build}/workloads/peet")
        run_live "$peet" simulate "--seeds 2" "$work/inside"
        run_live "$peet" simulate "--seeds 2 --apart" "$work/outside"
        verdict "$property" "$(diff -r "$work/inside" "$work/outside" | head -n 40)"
    else
        skip "$property" "needs libpeet-machine.so"
    fi
    exit $status
    ;;
compare)
    old=$(realpath "$2") new=$(realpath "$3")
    workloads=$(dirname "$old")/workloads/peet
    for run in "simulate --seeds 2" "simulate --seeds 2 --apart" "profile"; do
        verb=${run%% *}
        rm -rf "$work/old" "$work/new"
        run_live "$old" "$verb" "${run#"$verb"}" "$work/old"
        run_live "$new" "$verb" "${run#"$verb"}" "$work/new"
        diff -r "$work/old" "$work/new" >"$work/diff" && continue
        echo "== live: $run"
        live_commands "$verb" | awk '{ print NR ": " $0 }'
        head -n 60 "$work/diff"
        status=1
    done
    for name in $(names); do
        run_all "$old" "$name" "$work/old/$name"
        run_all "$new" "$name" "$work/new/$name"
        diff -r "$work/old/$name" "$work/new/$name" >"$work/diff" && continue
        echo "== $name"
        commands "$name" | awk '{ print NR ": " $0 }' >"$work/commands"
        grep -oE '^diff .*/[0-9]+$' "$work/diff" | sed 's|.*/||' | while read -r n; do sed -n "${n}p" "$work/commands"; done
        head -n 60 "$work/diff"
        status=1
    done
    exit $status
    ;;
*)
    sed -n '3s/^# //p' "$0" >&2
    exit 2
    ;;
esac
