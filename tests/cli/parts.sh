#!/bin/sh
# SPDX-License-Identifier: MIT
# Traces that hold a part of a run only: threads whose creators are missing, barriers to which not all come.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/lib.sh
peet=${PEET:-${PEET_BUILD:-build}/peet}
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
export LC_ALL=C.UTF-8

cat >"$dir/head.txt" <<'END'
peet text 1
process 1 parent 0 program "/bin/a" command "a"
thread 1 process 1 parent 1 ordinal 0 name ""
thread 2 process 1 parent 1 ordinal 0 name ""
thread 3 process 1 parent 1 ordinal 1 name ""
block b1
  0x401000 4 plain
block b2 slots 1
  0x401010 4 plain, load 8 [s0]
loop l1 values 1 counts 1
  repeat c0, step v0 = v0+1
    b1
  done
END
cat >"$dir/creates.txt" <<'END'
1 - l1 0 100
1 - thread_create 2
1 - thread_create 3
END
cat >"$dir/rest.txt" <<'END'
1 - barrier_wait 0x6000 3
1 - thread_join 2
1 - thread_join 3
1 - thread_end 0 0
2 - thread_start 1
2 - l1 0 40
2 - b2 0x7000
2 - barrier_wait 0x6000 3
2 - l1 0 30
2 - thread_end 0 0
3 - thread_start 1
3 - l1 0 20
3 - barrier_wait 0x6000 3
3 - thread_end 0 0
end
END
cat "$dir/head.txt" "$dir/creates.txt" "$dir/rest.txt" | "$peet" import -o "$dir/all.peet" || exit 2

# TRACE THREADS INSTRUCTIONS: THREADS threads are simulated, and all of their instructions.
simulates() {
    "$peet" simulate --cpus 4 --format csv "$1" >"$dir/out" 2>"$dir/err" || [ $? = 4 ] || { cat "$dir/err"; return; }
    got=$(awk -F, '/^runs,/ { print $4, $7 }' "$dir/out")
    [ "$got" = "$2 $3" ] || echo "threads and instructions are $got, not $2 $3"
}

verdict "all of a whole trace is simulated" "$(simulates "$dir/all.peet" 3 191)"
verdict "a thread alone is simulated, though nobody creates it, and nobody comes to its barrier" "$(
    "$peet" dump --thread 2 "$dir/all.peet" >"$dir/two.txt"
    grep -E '^thread [13]' "$dir/two.txt"
    "$peet" import -o "$dir/two.peet" "$dir/two.txt"
    simulates "$dir/two.peet" 1 71
    "$peet" simulate "$dir/two.peet" | grep -q '1 waits had to be ended' || echo "nothing is said of its barrier"
)"
verdict "peet check knows that it is a part" "$(
    "$peet" check "$dir/two.peet" >"$dir/out" 2>&1
    grep '^  violation  [bt]' "$dir/out"
    grep -q 'parts of the trace are missing' "$dir/out" || cat "$dir/out"
)"
verdict "advice is from the references of a thread that nobody creates" "$(
    "$peet" advise --format csv "$dir/two.peet" >"$dir/out" 2>&1
    grep -q '^advice,.*,modern,1,1,' "$dir/out" || cat "$dir/out"
)"
verdict "threads are simulated whose creator is there, but not where it creates them" "$(
    cat "$dir/head.txt" "$dir/rest.txt" | "$peet" import -o "$dir/uncreated.peet"
    simulates "$dir/uncreated.peet" 3 91
)"
verdict "and those whose creator has no records" "$(
    { cat "$dir/head.txt"; grep -v '^1 ' "$dir/rest.txt"; } | "$peet" import -o "$dir/empty.peet"
    simulates "$dir/empty.peet" 3 91
)"
verdict "every kind of barrier opens for those that have come" "$(
    for kind in ideal wired central tree dissemination; do
        for wait in yield busy; do
            "$peet" simulate --cpus 2 --set barrier.kind=$kind --set scheduler.wait=$wait --format csv "$dir/empty.peet" 2>/dev/null | grep -q '^runs.*,91,' ||
                echo "$kind, $wait"
        done
    done
)"
verdict "threads that are created do not begin before" "$(
    whole=$("$peet" simulate --cpus 4 --format csv "$dir/all.peet" 2>/dev/null | awk -F, '/^runs,/ { print $5 }')
    part=$("$peet" simulate --cpus 4 --format csv "$dir/uncreated.peet" 2>/dev/null | awk -F, '/^runs,/ { print $5 }')
    [ "$((whole - part))" -ge 100 ] || echo "$whole cycles, and $part without 100 instructions before"
)"
exit $status
