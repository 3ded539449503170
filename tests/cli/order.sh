#!/bin/bash
# SPDX-License-Identifier: MIT
# Where several threads of one process ran and the trace has no event by which one waits for another, each verb that prints times says so,
# in text and in JSON; elsewhere not.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
cd "${TMP:?}" || exit 2

# Two threads, in one process or in two, with these events before the work of the first.
make_trace() { # NAME PROCESS-OF-THE-SECOND [EVENT…]
    local name=$1 process=$2 event
    shift 2
    {
        printf 'peet text 1\nprocess 1 parent 0 program "/p" command "p"\nprocess 2 parent 0 program "/q" command "q"\n'
        printf 'thread 1 process 1 parent 0 ordinal 0 name "a"\nthread 2 process %s parent 0 ordinal 0 name "b"\n' "$process"
        printf 'block b1 slots 1\n  0x401000 4 plain, store 8 [s0]\n'
        for event in "$@"; do echo "1 0 $event @0x400ff0"; done
        printf '1 0 b1 0x600000\n1 1 thread_end 0 0\n2 0 b1 0x600008\n2 1 thread_end 0 0\nend\n'
    } >"$name.txt"
    "$peet" import "$name.txt" -o "$name.peet" >"$name.made" 2>&1 || cat "$name.made"
}
sentence='this trace has no synchronisation events: threads are taken as independent, so times and speed-ups are at best bounds'
says() { # NAME COMMAND…: the sentence, in both forms
    local name=$1 form
    shift
    for form in text json; do
        "$peet" "$@" --format $form "$name.peet" >said 2>said.err
        tr -s '\n ' ' ' <said | grep -qF "$sentence" && echo "$form of peet $*"
    done
}
make_trace alone 1
make_trace created 1 'thread_create 2'
make_trace locked 1 'mutex_lock 0x700000' 'mutex_unlock 0x700000'
make_trace apart 2
verdict "a trace of threads without synchronisation is said to have none, by every command that is asked for its times" "$(
    for name in alone created; do
        for command in info check 'simulate -m core' 'profile -m core' 'profile -m sato1999' 'advise -m core' 'study parallelism' 'study sharing' 'study graph'; do
            # shellcheck disable=SC2086
            says $name $command >those
            [ "$(wc -l <those)" = 2 ] || { echo "$name: not both forms of peet $command"; cat said.err; }
        done
    done
    "$peet" info --format csv alone.peet | grep -q '^meta,.*,synchronisation,none' || echo "no property in peet info"
)"
verdict "one that has some is not, nor one whose threads belong to different programs" "$(
    for name in locked apart; do
        for command in info check 'simulate -m core' 'profile -m core' 'advise -m core' 'study parallelism'; do
            # shellcheck disable=SC2086
            says $name $command | sed "s/^/$name: /"
        done
    done
)"

printf 'peet text 1\nprocess 1 parent 0 program "/p" command "p"\nthread 1 process 1 parent 0 ordinal 0 name "a"\n1 0 thread_end 0 0\nend\n' >none.txt
printf 'peet text 1\nprocess 1 parent 0 program "/p" command "p"\nthread 1 process 1 parent 0 ordinal 0 name "a"\nblock b1\n  0x401000 4 plain\n1 0 b1\n1 1 thread_end 0 0\nend\n' >computes.txt
for name in none computes; do "$peet" import $name.txt -o $name.peet >$name.made 2>&1 || cat $name.made; done
verdict "of a trace in which nothing was recorded there is no verdict, no advice and no speed-up" "$(
    for machine in core sato1999; do
        "$peet" profile -m $machine none.peet >said 2>&1
        head -n 1 said | grep -q '^Nothing was recorded' || head -n 2 said
        grep 'every reference' said
        "$peet" simulate -m $machine none.peet >said 2>&1
        grep -q 'nothing was recorded' said || echo "simulate -m $machine says nothing"
        grep 'Speed-up' said
    done
    "$peet" advise none.peet | grep -q 'advice *none: no reference was recorded' || echo "peet advise has some"
    "$peet" advise none.peet | grep command
    "$peet" study parallelism none.peet | grep -q 'nothing was recorded' || echo "the study says nothing"
)"
verdict "of a program without references none was found in a cache" "$(
    "$peet" profile -m core computes.peet >said 2>&1
    grep -q 'note: no reference was recorded' said || head -n 3 said
    grep 'every reference' said
)"
exit $status
