#!/bin/bash
# SPDX-License-Identifier: MIT
# peet simulate --remap: the machine sees data at other addresses, which --remap's rules say.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/lib.sh
peet=${PEET:-${PEET_BUILD:-build}/peet}
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
export LC_ALL=C.UTF-8

# Two words that have the same place in the cache of 16 KiB, in turns: each reference misses. Heap blocks stand elsewhere.
{
    printf 'peet text 1\nprocess 1 parent 0 program "turns" command "turns"\nthread 1 process 1 parent 0 ordinal 0 name ""\nblock b1\n'
    printf '  0x401000 4 plain, load 4 [0x20000]\n  0x401004 4 plain, load 4 [0x24000]\n'
    printf '1 - malloc 0x30000 64 @0x401000\n1 - malloc 0x34000 64 @0x401000\n'
    for _ in 1 2 3 4 5 6 7 8 9 10; do echo '1 - b1'; done
    printf '1 - thread_end 0 0\nend\n'
} >"$dir/t.text"
"$peet" import -o "$dir/t.peet" "$dir/t.text" || exit 1

misses() { # RULE…: misses of the run
    printf '%s\n' "$@" >"$dir/rules"
    "$peet" simulate -m memspy-16k --remap "$dir/rules" --format csv "$dir/t.peet" 2>"$dir/err" |
        awk -F, '$1 == "table" { for (i = 1; i <= NF; i++) at[$i] = i } $1 == "runs" { print $at["misses"] }'
}
expect() { # MISSES RULE…
    local got
    got=$(misses "${@:2}")
    [ "$got" = "$1" ] || { echo "${*:2}: $got misses; $1 expected"; cat "$dir/err"; }
}

verdict "data that does not move has its place" "$(expect 20 '# no rule')"
verdict "a moved object has another place in the cache" "$(
    expect 2 'move 0x24000+64 to 0x28100'
    expect 2 'spread 0x24000+64 every 64 to 128 at 0x28100'
    expect 2 'split 0x24000+64 every 4 from 0 for 4 at 0x28100'
    expect 20 'move 0x24000+64 to 0x28000'
)"
verdict "rules for several objects hold at once, in any order" "$(
    expect 2 'move 0x24000+64 to 0x28100' 'move 0x20000+64 to 0x28200'
    expect 2 'move 0x20000+64 to 0x28200' 'move 0x24000+64 to 0x28100'
    expect 20 'move 0x20000+64 to 0x28200' 'move 0x24000+64 to 0x2c200'
)"
verdict "an object that does not occur is told" "$(
    expect 20 'move heap:nowhere to 0x28100'
    grep -q "heap:nowhere' did not occur" "$dir/err" || cat "$dir/err"
)"
verdict "what is no rule is refused, with its line" "$(
    printf 'move 0x24000+64 to 0x28100\nmove all\n' >"$dir/rules"
    "$peet" simulate --remap "$dir/rules" "$dir/t.peet" >"$dir/out" 2>&1 && echo "it did not fail"
    grep -q 'rules:2' "$dir/out" || cat "$dir/out"
)"
exit $status
