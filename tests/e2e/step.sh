#!/bin/bash
# SPDX-License-Identifier: MIT
# peet record --step: exact, repeatable, and invisible to the program. Subjects are linked statically where that is
# possible, to be short: a step takes up to 50 microseconds. They get an empty environment, which lies on their stacks.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet helpers=$PEET_BUILD/tests/e2e
cd "${TMP:?}" || exit 2
tree=$OLDPWD

compile() { # NAME SOURCE… [OPTION…]: static if possible
    local name=$1
    shift
    ${CC:-gcc} -std=c17 -D_GNU_SOURCE -O2 -w -I"$tree" -I"$tree/include" -static "$@" -o "$name" -lpthread -lm 2>/dev/null ||
        ${CC:-gcc} -std=c17 -D_GNU_SOURCE -O2 -w -I"$tree" -I"$tree/include" "$@" -o "$name" -lpthread -lm
}
if ! "$peet" record --step --max 10 -o try.peet -- true >try.out 2>&1 && grep -q ptrace try.out; then
    skip "programs can be stepped through" "this system does not allow ptrace"
    exit 0
fi
compile odd "$tree/tests/e2e/subject_odd.c"
for w in fft radix falseshare; do compile $w "$tree/workloads/$w.c" "$tree/workloads/common.c"; done

# An independent count of the instructions, with the same files as a recording has.
count() { # PROGRAM [ARGUMENT…]
    env -i "$helpers/count_steps" "$@" </dev/null 2>&1 >count.out | tail -n 1
}
# Records into NAME.peet; what peet says is in NAME.err, what the program says in NAME.out. The status is the program's.
record() { # NAME [OPTION…] -- PROGRAM [ARGUMENT…]
    local name=$1
    shift
    env -i "$peet" record --step -o "$name.peet" "$@" >"$name.out" 2>"$name.err" </dev/null
}
instructions() { sed -n 's/.* \([0-9]*\) instructions\{0,1\}, .*/\1/p' "$1.err"; }
references() { sed -n 's/.* \([0-9]*\) references\{0,1\}, .*/\1/p' "$1.err"; }
events() { "$peet" dump --events "$1.peet" | sed -n 's/^[0-9][0-9]* [0-9][0-9]* //p'; }
differs() { [ "$1" = "$2" ] || echo "$3: $1; $2 was expected"; }
check() { # NAME: complaints of peet check
    "$peet" check "$1.peet" >"$1.check" 2>&1 || { echo "peet check $1:"; head -n 20 "$1.check"; }
}

# ---- exact ----

record fft -- ./fft -m 4 -p 1
verdict "the result of a stepped program is right" "$(differs $? 0 status; grep -q '^fft: ok:' fft.out || cat fft.out fft.err)"
verdict "the trace of a program with one thread is well-formed" "$(check fft)"
verdict "each executed instruction is recorded once" "$(
    differs "$(instructions fft)" "$(count ./fft -m 4 -p 1)" instructions
)"
cp fft.peet first.peet
record fft -- ./fft -m 4 -p 1
verdict "two recordings of one run are the same" "$(
    "$peet" dump first.peet >first.txt
    "$peet" dump fft.peet | cmp first.txt - 2>&1
    [ -s first.txt ] || echo "the dump is empty"
)"

record radix -- ./radix -n 100 -p 3
verdict "the trace of a program with three threads is well-formed" "$(differs $? 0 status; check radix; grep -q ' 3 threads' radix.err || cat radix.err)"
record falseshare -- ./falseshare -n 50 -p 2
verdict "the trace of a program that shares falsely is well-formed" "$(differs $? 0 status; check falseshare)"
echo 'int puts(const char *); int main(void) { return puts("hello") < 0; }' >hello.c
${CC:-gcc} -O2 -o hello hello.c
record hello -- ./hello
verdict "the trace of a dynamically linked program is well-formed, and names its libraries" "$(
    differs "$(cat hello.out)" hello output
    check hello
    "$peet" info hello.peet | grep -qE '[0-9a-f]{16,} +/.*libc' || echo "no build-id of the C library"
    "$peet" dump --calls --symbols hello.peet | grep -q '[^_a-z]puts' || echo "no call of puts"
)"

property="references are those that valgrind sees, but for repeated and locked instructions"
if needs "$property" valgrind; then
    # valgrind counts each of the 40 elements of one rep movsb twice, load and store, and a locked addition as a load and
    # an update.
    ${CC:-gcc} -O2 -w -DBARE -static -nostdlib -fno-stack-protector -fno-tree-loop-distribute-patterns -o bare \
        "$tree/tests/e2e/subject_bare.c"
    record bare -- ./bare
    verdict "$property" "$(
        differs $? 0 status
        valgrind --tool=lackey --trace-mem=yes --log-file=lackey ./bare >/dev/null 2>&1 || { echo "valgrind failed"; tail -n 3 lackey; }
        differs "$(($(references bare) + 2 * 40 - 2 + 10))" "$(grep -cE '^ [LSM]' lackey)" references
    )"
fi

record values --values -- ./odd strings
verdict "each load brings what was stored there last" "$(
    differs $? 0 status
    "$helpers/replay_values" values.peet >replayed 2>&1 || { echo "replay_values: $?"; cat replayed; }
)"

# ---- invisible ----

odd="strings gather bits code jumps stack memory"
# shellcheck disable=SC2086
record odd -- ./odd $odd
verdict "a program cannot tell that it is recorded: $odd" "$(differs $? 0 status; cat odd.out; check odd)"
# shellcheck disable=SC2086
verdict "odd instructions are recorded once, too" "$(differs "$(instructions odd)" "$(count ./odd $odd)" instructions)"
for what in flags signals timers threads processes exec_in_thread; do
    record $what -- ./odd $what
    verdict "a program cannot tell that it is recorded: $what" "$(differs $? 0 status; cat $what.out; check $what)"
done
verdict "code that was written anew is another block" "$(
    differs "$("$peet" dump odd.peet | awk '/^block/ { b = 1 } b && / plain$/ && ($2 == 5 || $2 == 7) && $1 ~ /0x7f/ { n[$1 " " $2]++ }
        END { for (i in n) k++; print k + 0 }')" 2 "versions of one instruction"
)"
verdict "strings are one reference, upwards and downwards" "$(
    "$peet" dump --format csv odd.peet | awk -F, '$6 == 600 { up[$3]++ } $6 == 240 { down[$3]++ }
        END { if (up["load"] != 1 || up["store"] != 1 || down["load"] != 1 || down["store"] != 1) print "not found" }'
)"
verdict "a gather refers to the elements of its mask" "$(
    differs "$("$peet" dump --format csv odd.peet | awk -F, '$3 == "load" && $6 == 4 { n[$4]++ } END { for (i in n) if (n[i] == 5) print n[i] }' |
        sort -u)" "$(grep -qw avx2 /proc/cpuinfo && echo 5)" elements
)"
verdict "handlers begin and end in the trace" "$(
    differs "$(events signals | grep -cE '^signal_enter')" 8 "handlers that begin"
    differs "$(events signals | grep -cE '^signal_exit')" 6 "handlers that end"
    differs "$(events signals | grep -cE '^signal_enter 11$')" 3 "faults"
)"
verdict "threads have makers, and all begin and end" "$(
    differs "$(events threads | grep -cE '^thread_create')" 6 thread_create
    differs "$(events threads | grep -cE '^thread_start')" 6 thread_start
    differs "$(events threads | grep -cE '^thread_end 0 ')" 6 "threads that end by themselves"
)"
verdict "processes that fork and exec are followed" "$(
    differs "$(events processes | grep -cE '^fork')" 2 fork
    differs "$(events processes | grep -cE '^exec')" 1 exec
    differs "$(events exec_in_thread | grep -cE '^thread_end 3 ')" 2 "threads that end by exec, at least"
    grep -q '4 processes' processes.err || cat processes.err
)"

# ---- how it ends ----

ends() { # WHAT STATUS END
    record "$1" -- ./odd "$1"
    verdict "peet ends as its program did, and so does the trace: $1" "$(
        differs $? "$2" status
        check "$1"
        differs "$(events "$1" | grep '^thread_end')" "thread_end $3" end
    )"
}
ends seven 7 '1 7'
ends killed 143 '2 15'
ends crash 139 '2 11'

verdict "standard input and output are the program's" "$(
    differs "$(echo hello | env -i "$peet" record --step -o input.peet -- ./odd input 2>/dev/null)" hello output
)"
verdict "what a terminal sends reaches the program, and the trace is whole" "$(
    # an own process group, in which nothing ignores the signal
    setsid env -i --default-signal=INT "$peet" record --step -o sleeper.peet -- ./odd sleeper >sleeper.out 2>sleeper.err &
    group=$!
    for ((i = 0; i < 600; i++)); do
        grep -q ready sleeper.out && break
        sleep 0.1
    done
    sleep 0.2
    kill -INT -- "-$group"
    wait $group
    differs $? 130 status
    check sleeper
    differs "$(events sleeper | grep '^thread_end')" "thread_end 2 2" end
)"

record most --max 5000 -- ./odd seven
verdict "--max ends the recording, not the program" "$(
    differs $? 7 status
    check most
    differs "$(instructions most)" 5000 instructions
    differs "$(events most | grep '^thread_end')" "thread_end 4 0" end
)"
record most --max 14000 -- ./odd threads
verdict "--max lets all threads go" "$(differs $? 0 status; check most; differs "$(instructions most)" 14000 instructions)"

verdict "a trace that cannot be written does not keep the program from its end" "$(
    (ulimit -f 2; record full -- ./odd bits; differs $? 3 status; record full -- ./odd seven; differs $? 7 status)
    grep -q 'full.peet: cannot write' full.err || cat full.err
)"

# ---- what cannot be done ----

refuses() { # PROPERTY STATUS TEXT FILE ARGUMENT…
    local property=$1 status=$2 text=$3 file=$4
    shift 4
    rm -f "$file"
    "$peet" record "$@" >refused.out 2>&1
    verdict "$property" "$(
        differs $? "$status" status
        grep -qF -- "$text" refused.out || cat refused.out
        [ ! -e "$file" ] || echo "$file is left"
    )"
}
refuses "a program that is not there is an error" 3 'nothing: cannot be run' nothing.peet --step -- ./nothing
refuses "a program that is no program is an error" 3 'hello.c: cannot be run' hello.c.peet --step -- ./hello.c
refuses "a trace that cannot be made is an error" 3 'cannot create' odd.peet --step -o no/such/folder.peet -- ./odd seven
refuses "a trace does not go where the program writes" 2 "standard output" odd.peet --step -o - -- ./odd seven
echo kept >old.peet
"$peet" record --step -o old.peet -- ./nothing 2>/dev/null
verdict "a program that is not there does not cost an older trace" "$(differs "$(cat old.peet)" kept content)"
exit $status
