#!/bin/bash
# SPDX-License-Identifier: MIT
# peet record --system without Linux: a kernel of our own (tests/e2e/subjects/guest_bare.c), with threads that mark themselves through
# peet/mark_bare.h, is recorded exactly, and needs no wrapper around QEMU. A boot takes less than a second. Needs QEMU and
# gcc for x86-64, but no other kernel.
set -u
. tests/lib.sh
tree=$PWD peet=$PEET_BUILD/peet
cd "${TMP:?}" || exit 2

property="a guest without an operating system is recorded exactly"
if [ "$(uname -m)" != x86_64 ] || ! command -v "${PEET_QEMU:-qemu-system-x86_64}" >/dev/null || [ "${PEET_SYSTEM:-}" = 0 ]; then
    skip "$property" "needs x86-64, QEMU and a kernel"
    exit 0
fi
compile() { # NAME OPTION…
    local name=$1
    shift
    gcc -std=c17 -O1 -g -Wall -Wextra -Werror -ffreestanding -fno-pic -no-pie -nostdlib -static -mno-red-zone -mgeneral-regs-only \
        -fno-stack-protector -fcf-protection=none -Wl,-Ttext-segment=0x100000 -Wl,--build-id=none -Wl,-e,start \
        -I"$tree/include" "$@" -o "$name" "$tree/tests/e2e/subjects/guest_bare.c"
}
compile bare && compile fails -DFAIL && compile hangs -DHANG && compile spins -DSPIN || exit 2
record() { # NAME OPTION…
    local name=$1
    shift
    "$peet" record --system --offline --arch x86_64 -o "$name.peet" "$@" >"$name.out" 2>"$name.err"
}
differs() { # IS EXPECTED WHAT
    [ "$1" = "$2" ] || echo "$3: $1, not $2"
}
# What each thread has beyond the thread with one round, as the guest counts it: number, instructions, references.
told() { # NAME
    sed -n 's/^thread \([0-9]*\) .* instructions \([0-9]*\) references \([0-9]*\).*/\1 \2 \3/p' "$1.peet.console" | tr -d '\r'
}
recorded() { # NAME
    "$peet" info --format csv "$1.peet" | awk -F, '
        $1 == "threads" { sub(/tid /, "", $4); instructions[$4] = $7; references[$4] = $8 }
        END { for (n = 0; n in instructions; n++) print n, instructions[n] - instructions[0], references[n] - references[0] }'
}

record bare --kernel ./bare --symbols ./bare --timeout 300
code=$?
verdict "$property: its counts are those that it computes itself" "$(
    differs $code 0 status
    differs "$(told bare | wc -l)" 3 "threads that the guest told of"
    differs "$(recorded bare)" "$(told bare)" "instructions and references beyond one round, by thread"
    "$peet" info --format csv bare.peet | awk -F, '$1 == "threads" && $4 == "tid 0" && ($7 > 100 || $7 < 4) { print $7 " instructions for one round" }'
    awk '/^end/ { if ($2 < 3) print "the timer switched threads " $2 " times" }' bare.peet.console
    "$peet" check bare.peet >check.out 2>&1 || cat check.out
)"
verdict "what is recorded of it was told without a warning" "$(grep warning bare.err)"
verdict "its physical addresses are its virtual ones, as its page table says" "$(
    "$peet" dump --events bare.peet | awk '$3 == "page" { n++; if ($4 != $5) print } END { if (n < 3) print n + 0, "pages" }' | head
)"
verdict "--symbols names the functions of a program that no kernel tells of" "$(
    "$peet" dump --symbols bare.peet >named
    grep -q '# thread_main+0x' named && grep -q '# work+0x0' named || head -n 40 named
)"
verdict "a kernel that is not Linux gets no command line" "$(
    grep -q '^command line: .\?$' bare.peet.console || head -n 1 bare.peet.console
)"
record given --kernel ./bare --append 'one two' --timeout 300
verdict "but what --append gives it" "$(
    grep -q '^command line: one two' given.peet.console || head -n 1 given.peet.console
)"

record fails --kernel ./fails --qemu-arg '-device isa-debug-exit,iobase=0xf4,iosize=4' --timeout 300
code=$?
verdict "--qemu-arg goes to QEMU, and the status that such a guest ends with is ours" "$(
    differs $code 7 status
    differs "$(recorded fails)" "$(told fails)" "instructions and references"
)"
record counted --count --kernel ./bare --timeout 300
verdict "so are counts without a trace" "$(
    grep -o '"tid": [0-9]*\|"instructions": [0-9]*' counted.peet | awk '{ v[NR] = $2 } END { for (i = 1; i < NR; i += 2) print v[i], v[i + 1] }' | sort >counts
    awk 'NR == 1 { base = $2 } { print $1, $2 - base }' counts >are
    told counted | awk '{ print $1, $2 }' | diff - are
)"

record hangs --kernel ./hangs --timeout 4
code=$?
verdict "a time-out says what was recorded" "$(
    differs $code 3 status
    grep -q 'time is up: .*4 seconds.*kept: 3 threads, [0-9]* instructions' hangs.err || cat hangs.err
    differs "$(recorded hangs)" "$(told hangs)" "instructions and references"
)"
# On one processor buffers wait for the thread that writes them.
taskset -c 0 "$peet" record --system --offline --arch x86_64 -o spins.peet --kernel ./spins --timeout 2 >spins.out 2>spins.err
verdict "a time-out of threads that still work counts all that is in the trace" "$(
    said=$(sed -n 's/.*kept: 3 threads, \([0-9]*\) instructions.*/\1/p' spins.err)
    differs "$said" "$("$peet" info --format csv spins.peet | awk -F, '$1 == "threads" { n += $7 } END { print n + 0 }')" instructions
    "$peet" check spins.peet | grep '^Findings: [1-9]'
)"
env --default-signal=INT "$peet" record --system --offline --kernel ./hangs -o stop.peet >stop.out 2>stop.err &
pid=$!
for ((i = 0; i < 300; i++)); do
    grep -qs '^end' stop.peet.console && break
    sleep 0.1
done
kill -INT $pid
wait $pid
code=$?
verdict "Ctrl-C keeps what was recorded of it" "$(
    differs $code 130 status
    grep -q 'interrupted; .*3 threads' stop.err || cat stop.err
    differs "$(recorded stop)" "$(told stop)" "instructions and references"
)"

refuses() { # PROPERTY TEXT OPTION…
    local property=$1 text=$2
    shift 2
    "$peet" record --system --offline -o refused.peet "$@" >refused.out 2>&1
    local was=$?
    verdict "$property" "$(
        [ $was = 2 ] || [ $was = 3 ] || echo "status $was"
        grep -qF -- "$text" refused.out || cat refused.out
        [ ! -e refused.peet ] || echo "a trace is left"
    )"
}
refuses "programs cannot be put into it" '--app cannot be put into it' --kernel ./bare --app true
refuses "nor files" '--file cannot be put into it' --kernel ./bare --file bare
refuses "a kernel that is not there is named" '--kernel ./none: cannot be read' --kernel ./none
refuses "so are symbols" '--symbols ./none: cannot be read' --kernel ./bare --symbols ./none
refuses "a quote that --qemu-arg does not close is an error" '--qemu-arg "'\''x": a quote is never closed' --kernel ./bare --qemu-arg "'x"
exit $status
