#!/bin/bash
# SPDX-License-Identifier: MIT
# peet study by the command line: its options and exit codes, its formats, and what must hold for a real program.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/lib.sh
peet=${PEET:-${PEET_BUILD:-build}/peet}
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
export LC_ALL=C.UTF-8

# NAME CODE PATTERN ARGUMENT…: peet study ends with the code, and says the pattern on standard output (0) or error (others).
ends() {
    local name=$1 want=$2 pattern=$3 code text
    shift 3
    "$peet" study "$@" </dev/null >"$dir/out" 2>"$dir/err"
    code=$?
    if [ "$want" = 0 ]; then text=$(cat "$dir/out"); else text=$(cat "$dir/err"); fi
    verdict "$name" "$(
        [ "$code" = "$want" ] || echo "peet study $*: exit code $code, expected $want"
        # shellcheck disable=SC2053
        [[ $text == $pattern ]] || printf 'peet study %s: expected %s, got:\n%s\n' "$*" "$pattern" "$text"
    )"
}

# Thread 1 writes, creates thread 2, which reads; both meet at a barrier; thread 1 is the slower one.
cat >"$dir/two.txt" <<'END'
peet text 1
process 1 parent 0 program "two" command "two"
module process 1 path "/bin/two" build "" bias 0
  segment 0x401000 0x1000 offset 0 r-x
  symbol 0x401000 0x20 code "fill \"it\""
  symbol 0x404000 0x40 data "data"
thread 1 process 1 parent 0 ordinal 0 name "main"
thread 2 process 1 parent 1 ordinal 0 name "worker"
block b1 slots 1
  0x401000 4 plain, store 8 [s0]
block b2 slots 1
  0x401004 4 plain, load 8 [s0]
1 - b1 0x404000
1 - b1 0x404008
1 - thread_create 2
1 - b1 0x404020
1 - b1 0x404020
1 - b1 0x404020
1 - barrier_wait 0x405000 2 @0x401008
1 - thread_join 2
1 - thread_end 0 0
2 - thread_start 1
2 - b2 0x404000
2 - barrier_wait 0x405000 2 @0x401008
2 - b2 0x404020
2 - thread_exit 0
2 - thread_end 0 0
end
END
"$peet" import -o "$dir/two.peet" "$dir/two.txt" || exit 1
two=$dir/two.peet

ends "parallelism tells work and span" 0 "*work *7*span *6*Critical path*Barriers*" parallelism "$two"
ends "what a barrier costs is told by its place" 0 $'*\nbarriers,"fill ""it""+0x8",0x401008,1,1,2,2,2,*' parallelism --format csv "$two"
ends "sharing tells who read from whom" 0 $'*\npairs,1,2,16,0\n*' sharing --format csv "$two"
# Thread 1 allocates five times: two it frees, after two and no references, two thread 2 frees, one of them before it is given out again; one stays.
cat >"$dir/heap.txt" <<'END'
peet text 1
process 1 parent 0 program "heap" command "heap"
module process 1 path "/bin/heap" build "" bias 0
  segment 0x401000 0x1000 offset 0 r-x
  symbol 0x401000 0x20 code "make"
thread 1 process 1 parent 0 ordinal 0 name "main"
thread 2 process 1 parent 1 ordinal 0 name "worker"
block b1 slots 1
  0x401000 4 plain, store 8 [s0]
1 - malloc 0x5000 100 @0x401008
1 - b1 0x5000
1 - b1 0x9000
1 - free 0x5000
1 - malloc 0x5000 16 @0x401008
1 - free 0x5000
1 - thread_create 2
1 - calloc 0x6000 3 10 @0x401010
1 - malloc 0x6000 40 @0x401010
1 - malloc 0x7000 1 @0x401010
1 - b1 0x9008
1 - b1 0x9010
1 - thread_join 2
1 - thread_end 0 0
2 - thread_start 1
2 - free 0x6000
2 - free 0x6000
2 - thread_exit 0
2 - thread_end 0 0
end
END
"$peet" import -o "$dir/heap.peet" "$dir/heap.txt" || exit 1
ends "allocation tells who frees what, and how long it lived" 0 $'*\nsites,1,0x401008,make,2,116,2,0,0,1\nsites,1,0x401010,make,3,71,2,2,1,' allocation --format csv "$dir/heap.peet"
ends "allocation tells where and when memory is referred to" 0 $'*\ndisplay,1,0x9000,0xa000,4096,3,*               1               1*\n*' allocation --format csv "$dir/heap.peet"
ends "a page of an allocation study keeps the blanks of what happened over time" 0 $'*\n.code {*white-space: pre;*class="code">*               1               1*' \
    allocation --format html "$dir/heap.peet"
ends "the granule can be chosen" 0 $'*\npairs,1,2,64,0\n*' sharing --format csv --grain 32 "$two"
ends "the graph is a drawing" 0 '*digraph run {*fill \\"it\\"*n0 -> n*\[label="thread_create"*}' graph "$two"
ends "the graph as tables" 0 '*"nodes": {*"kind": "barrier"*"arcs": {*"event": "thread_join", "kind": "certain"*' graph --format json "$two"
ends "a study without PNML says so" 2 "*the study 'sharing' has no format 'pnml'*" sharing --format pnml "$two"
for recording in conditions events forks gates guest mp3d openmp stepped; do
    needs "the tokens of a Petri net reach each part of $recording once" python3 || break
    verdict "the tokens of a Petri net reach each part of $recording once" "$(
        trace=tests/freeze/recordings/$recording.peet
        "$peet" study graph --format pnml "$trace" >"$dir/net" 2>/dev/null
        total=$("$peet" info --format json "$trace" 2>/dev/null | sed -n 's/.*"instructions": \([0-9]*\).*/\1/p' | head -1)
        python3 tests/cli/petri.py "$dir/net" "$total" | grep -v 'transitions, '
    )"
done

ends "no study is wrong usage" 2 "*no study given*"
ends "an unknown study is wrong usage, with the nearest one" 2 "*did you mean 'sharing'*" sharin "$two"
ends "no trace is wrong usage" 2 "*no trace given*" graph
ends "two traces are wrong usage" 2 "*only one trace*" graph "$two" "$two"
ends "an option of another study is wrong usage" 2 "*--collapse is for the study 'graph'*" sharing --collapse "$two"
ends "a granule of 12 bytes is wrong usage" 2 "*power of two*" sharing --grain 12 "$two"
ends "a trace that is not there fails" 3 "*" graph "$dir/none.peet"
ends "an output that cannot be written fails" 3 "*none/x*" graph -o "$dir/none/x" "$two"

verdict "-o writes what would have been printed" "$(
    "$peet" study graph -o "$dir/two.dot" "$two"
    "$peet" study graph "$two" | cmp - "$dir/two.dot" 2>&1
)"
# shellcheck disable=SC2002
verdict "a pipe can be studied where one reading is enough" "$(
    cat "$two" | "$peet" study parallelism --format csv - 2>&1 | sed 's|^summary,[^,]*|summary|' >"$dir/pipe"
    "$peet" study parallelism --format csv "$two" | sed 's|^summary,[^,]*|summary|' | diff - "$dir/pipe"
)"
# shellcheck disable=SC2002
verdict "sharing says what to do with a pipe" "$(
    cat "$two" | "$peet" study sharing - 2>&1 >"$dir/out" | grep -q 'save it in a file' || echo "it does not"
)"

head -c $(($(stat -c %s "$two") - 40)) "$two" >"$dir/cut.peet"
ends "a trace that lacks its end is studied, and that is said" 4 "*warning*" parallelism "$dir/cut.peet"

# ---- a real program ----

property="the sums of a real program add up"
workload=$PEET_BUILD/workloads/peet/lu-con
if [ ! -x "$workload" ]; then
    skip "$property" "needs $workload"
elif needs "$property" python3; then
    "$peet" record -o "$dir/lu.peet" -- "$workload" -p 4 -n 128 >"$dir/log" 2>&1 || cat "$dir/log"
    for study in graph parallelism sharing; do
        "$peet" study $study --format json -o "$dir/$study.json" "$dir/lu.peet"
    done
    steps() { # [OPTION…]: of the time line as text
        "$peet" study parallelism "$@" "$dir/lu.peet" | awk '/^Time line/ { on = 1 } on && /^ +[0-9]/ { n++ } END { print n + 0 }'
    }
    verdict "as text a time line has at most 32 steps, or as many as are asked for" "$(
        [ "$(steps)" -le 32 ] || echo "$(steps) steps"
        [ "$(steps --rows 5)" -le 5 ] || echo "$(steps --rows 5) steps of 5"
        [ "$(steps --rows 512)" -gt 32 ] || echo "$(steps --rows 512) steps of 512"
        "$peet" study parallelism "$dir/lu.peet" | grep -q 'rows N shows up to N steps' || echo "nothing says how to see more"
    )"
    "$peet" info --format json "$dir/lu.peet" >"$dir/info.json"
    verdict "$property" "$(python3 - "$dir" 2>&1 <<'END'
import json, sys

def load(name):
    return {k: v["rows"] for k, v in json.load(open(f"{sys.argv[1]}/{name}.json")).items()}

def same(what, a, b):
    if a != b:
        print(f"{what}: {a} is not {b}")

info, graph, par, share = load("info"), load("graph"), load("parallelism"), load("sharing")
whole, p, s = info["summary"][0], par["summary"][0], share["summary"][0]
def total(table, column):
    return sum(r[column] for r in table)

same("work", p["work"], whole["instructions"])
same("references", p["references"], whole["references"])
same("references of sharing", s["references"], whole["references"])
same("nodes", total(graph["nodes"], "instructions"), whole["instructions"])
same("references of nodes", total(graph["nodes"], "references"), whole["references"])
same("span and the last node", p["span"], max(n["finish"] for n in graph["nodes"]))
same("span and critical path", p["span"], total(par["critical"], "instructions"))
same("span and functions", p["span"], total(par["functions"], "instructions"))
same("span and profile", p["span"], total(par["profile"], "time"))
same("lost", p["lost"], total(par["barriers"], "lost"))
same("rounds", p["rounds"], total(par["barriers"], "rounds"))
same("waits", 4 * p["rounds"], total(par["barriers"], "waits"))
same("time line", len(par["timeline"]) <= 512 and len(par["timeline"]) > 32, True)
same("order of bounds", 1 <= p["parallelism_least"] <= p["parallelism_most"] <= p["parallelism"] <= 4, True)
same("threads", {n["thread"] for n in graph["nodes"]} - {None}, {1, 2, 3, 4})
for t in info["threads"]:
    same(f"thread {t['thread']}", sum(n["instructions"] for n in graph["nodes"] if n["thread"] == t["thread"]), t["instructions"])
for c in ("bytes", "private", "read_only", "shared", "many", "ordered", "unordered"):
    same(f"{c} of data", total(share["data"], c), s[c])
same("private of threads", total(share["threads"], "private"), s["private"])
same("ordered of pairs", total(share["pairs"], "ordered"), s["ordered"])
same("kinds", s["private"] + s["read_only"] + s["shared"], s["bytes"])
# The matrix is 128 x 128 words of 8 bytes, each of them read by the thread that checks the result.
same("the matrix is shared", s["shared"] >= 128 * 128 * 8 // 2, True)
same("epochs", s["epochs"] >= p["rounds"], True)
END
    )"
fi
exit $status
