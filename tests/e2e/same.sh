#!/bin/bash
# SPDX-License-Identifier: MIT
# What tests/e2e/same takes for the same, and what it finds: the other tests trust it.
set -u
. tests/soak/lib.sh

# One trace in two groupings: four instructions as two blocks, and as a loop over one with a branch inside.
cat >"$work/a.txt" <<'END'
peet text 1
process 1 parent 0 program "/bin/two" command "two"
module process 1 path "/bin/two" build "" bias 0
segment 0x401000 0x1000 offset 0 r-x
segment 0x402000 0x1000 offset 0x1000 r--
symbol 0x401000 0x40 code "work"
symbol 0x401040 0x40 code "rest"
thread 1 process 1 parent 1 ordinal 0 name ""
thread 7 process 1 parent 1 ordinal 0 name ""
block b1
  0x401000 4 plain, load 8 [s0], store 8 [s0+8]
  0x401004 2 branch -> 0x401020
block b2
  0x401006 4 plain, load 4 [s0]
  0x40100a 2 branch -> 0x401000
block b3
  0x401040 4 plain, load 4 [0x402010]
1 - thread_create 7 @0x401080
1 - b1 0x7000
1 - b2 0x7100
1 - b1 0x7010
1 - b2 0x7108
1 - mutex_lock 0x9000 @0x401084
1 - b3
1 - thread_end 1 0
7 - thread_start 1
7 - b1 0x8000
7 - thread_end 0 0
end
END
sed -e 's/^thread 7 /thread 3 /' -e 's/^7 /3 /' -e 's/thread_create 7/thread_create 3/' -e '/^block b1$/,/^block b3$/d' \
    -e '/^  0x401040/i block b3' "$work/a.txt" >"$work/b.txt"
sed -i -e '/^block b3$/i block b4\n  0x401000 4 plain, load 8 [s0], store 8 [s0+8]\n  0x401004 2 branch -> 0x401020\n  0x401006 4 plain, load 4 [s1]\n  0x40100a 2 branch -> 0x401000\nblock b5\n  0x401000 4 plain, load 8 [s0], store 8 [s0+8]\n  0x401004 2 branch -> 0x401020\nloop l1 values 2 counts 1\n  repeat c0, step v0 = v0+16, step v1 = v1+8\n    b4, s0 = v0, s1 = v1\n  done' \
    -e '/^1 - b2/d' -e '/^1 - b1 0x7010/d' -e 's/^1 - b1 0x7000/1 - l1 0x7000 0x7100 2/' -e 's/^3 - b1/3 - b5/' "$work/b.txt"
compare() { # [OPTION…] A.txt B.txt: what same says; the status is its own
    local n=$#
    "$peet" import -o "$work/x.peet" "${!n}" >"$work/out" 2>&1 || { cat "$work/out"; return 3; }
    n=$((n - 1))
    "$peet" import -o "$work/y.peet" "${!n}" >"$work/out" 2>&1 || { cat "$work/out"; return 3; }
    "$same" "${@:1:n-1}" "$work/y.peet" "$work/x.peet" 2>&1
}
# The property holds when they are the same.
equal() { # PROPERTY [OPTION…] A B
    local property=$1 text
    shift
    text=$(compare "$@") && text=
    verdict "$property" "$text"
}
# The property holds when a copy of a.txt that sed has changed is found to differ, in words that match.
finds() { # PROPERTY SED PATTERN [OPTION…]
    local property=$1 text code
    sed -e "$2" "$work/a.txt" >"$work/c.txt"
    text=$(compare "${@:4}" "$work/c.txt" "$work/b.txt")
    code=$?
    if [ $code = 1 ] && grep -qE "$3" <<<"$text"; then text=; else text="status $code; expected '$3' in: $text"; fi
    verdict "$property" "$text"
}

equal "blocks, loops and numbers of threads do not count" "$work/a.txt" "$work/b.txt"
finds "another address is found" 's/^1 - b1 0x7010/1 - b1 0x7018/' '^thread 1: references differ'
finds "and where it is" 's/^1 - b1 0x7010/1 - b1 0x7018/' 'goes on, behind 4 instructions and 3 references'
finds "another kind is found" 's/store 8 \[s0+8\]/update 8 [s0+8]/' '^thread 1: references differ'
finds "another size is found" 's/load 4 \[s0\]/load 2 [s0]/' '^thread 1: references differ'
finds "a reference that is missing is found" 's/, load 4 \[s0\]/, load 4*s1 [s0]/; s/^1 - b2 0x7108/1 - b2 0x7108 0/; s/^1 - b2 0x7100/1 - b2 0x7100 1/' \
    '^thread 1: a reference is only in the second'
finds "an instruction that is missing is found" '/^1 - b2 0x7108/d' '^thread 1: one is at something else'
finds "another instruction is found" 's/^  0x401006 4 plain/  0x401016 4 plain/; s/0x401004 2 branch/0x401014 2 branch/' '^thread 1: instructions differ'
finds "another event is found" 's/mutex_lock 0x9000/mutex_lock 0x9008/' '^thread 1: events differ'
finds "another place of an event is found" 's/@0x401084/@0x401088/' '^thread 1: events differ'
finds "a thread that is missing is found" '/^thread 7/d; /^7 /d; /thread_create/d' '^thread 1.0 is only in'
finds "what differs in a later thread is found" 's/^7 - b1 0x8000/7 - b1 0x8008/' '^thread 1.0: references differ'
finds "an end that is missing is found" '/^1 - b3/d; /^1 - thread_end/d' '^thread 1: one is at something else'

sed -e '/^1 - b3/d; /^1 - thread_end/d' "$work/a.txt" >"$work/c.txt"
equal "a beginning is a prefix" --prefix "$work/c.txt" "$work/b.txt"
finds "a prefix that is another one is found" '/^1 - b3/d; /^1 - thread_end/d; s/0x7108/0x7100/' '^thread 1: references differ' --prefix

# The same program, built so that code and constants stand elsewhere.
move='s/0x4010\([0-9a-f]*\) \([0-9]\)/0x4018\1 \2/; s/@0x4010/@0x4018/; s/symbol 0x4010/symbol 0x4018/; s/-> 0x4010/-> 0x4018/; s/0x402010/0x402030/'
sed -e "$move" "$work/a.txt" >"$work/c.txt"
sed -i 's/^segment 0x401800/segment 0x401000/' "$work/c.txt"
equal "code and constants may have moved" --moved "$work/c.txt" "$work/b.txt"
keep='s/^segment 0x401800/segment 0x401000/'
finds "moved code does not count unless it is asked for" "$move; $keep" 'events differ|instructions differ'
finds "of moved programs, an address elsewhere may not differ" "$move; $keep; s/0x7108/0x7110/" '^thread 1: references differ' --moved
finds "of moved programs, functions have to be the same" "$move; $keep; s/\"rest\"/\"other\"/" '^thread 1: instructions differ' --moved
finds "of moved programs, classes of instructions have to be the same" "$move; $keep; s/0x401840 4 plain/0x401840 4 fp/" \
    '^thread 1: instructions differ' --moved
exit $status
