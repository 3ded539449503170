#!/bin/bash
# SPDX-License-Identifier: MIT
# The front door: what holds for every verb of peet, and peet info. Every verb is asked, by `peet help --list`.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/lib.sh
peet=${PEET:-${PEET_BUILD:-build}/peet}
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
export LC_ALL=C.UTF-8
if [ ! -x "$peet" ]; then
    echo "not ok there is no $peet"
    exit 1
fi

# Runs peet; $out, $err and $code are what it did.
run() {
    "$peet" "$@" </dev/null >"$dir/out" 2>"$dir/err"
    code=$? out=$(cat "$dir/out") err=$(cat "$dir/err")
}

# NAME CODE PATTERN ARGUMENT…: peet ends with the code, and says the pattern on standard output (0) or error (others).
ends() {
    local name=$1 want=$2 pattern=$3 text
    shift 3
    run "$@"
    if [ "$want" = 0 ]; then text=$out; else text=$err; fi
    verdict "$name" "$(
        [ "$code" = "$want" ] || echo "peet $*: exit code $code, expected $want"
        # shellcheck disable=SC2053
        [[ $text == $pattern ]] || printf 'peet %s: expected %s, got:\n%s\n' "$*" "$pattern" "$text"
        [ "$want" = 0 ] || [ -z "$out" ] || printf 'peet %s: on standard output:\n%s\n' "$*" "$out"
    )"
}

# ---- help and version ----

ends "--version tells both versions" 0 "peet [0-9]*.[0-9]*.[0-9]* (trace format [0-9]*)" --version
ends "--help lists the verbs" 0 "*usage: peet VERB*info *help *" --help
ends "no arguments is wrong usage, with help on standard error" 2 "*usage: peet VERB*"

run help --list
verbs=$out
verdict "help --list names the verbs" "$(for v in info help; do grep -qx $v <<<"$verbs" || echo "not $v"; done)"
for verb in $verbs; do
    ends "peet $verb --help has usage, options and exit codes" 0 \
        "peet $verb: *usage: peet $verb*options:*--help*exit codes:*" "$verb" --help
    first=$out
    run help "$verb"
    verdict "peet help $verb says the same" "$([ "$code$out" = "0$first" ] || echo "it does not")"
    verdict "peet help $verb: lines fit into 120 columns" "$(awk 'length > 120' <<<"$out")"
    run help --complete "$verb"
    verdict "completion of peet $verb knows what its help knows" "$(
        diff <(grep -oE '^--[a-z-]+' <<<"$out" | sort) \
            <(sed -nE 's/^  (-.|  )[, ] (--[a-z-]+).*/\2/p' <<<"$first" | sort)
    )"
    # Those that stand in for other programs leave options to them.
    case $verb in cc | c++ | fortran | as) continue ;; esac
    ends "peet $verb refuses an option that it does not know" 2 \
        "peet $verb: unknown option '--zebra'*peet help $verb*" "$verb" --zebra
    ends "peet $verb suggests --help" 2 "*did you mean '--help'?*" "$verb" --hlep
done

# ---- mistakes ----

ends "an unknown verb suggests the nearest" 2 "*unknown verb 'inof'; did you mean 'info'?*" inof
ends "an unknown verb that is near to none suggests none" 2 "peet: unknown verb 'zebra'
see 'peet help'" zebra
ends "help suggests a verb, too" 2 "*did you mean 'info'?*" help ifno
ends "an unknown option suggests the nearest" 2 "*unknown option '--cuonts'; did you mean '--counts'?*" info --cuonts x
ends "an option of peet itself, too" 2 "*'--versoin'; did you mean '--version'?*" --versoin
ends "an unknown format suggests the nearest" 2 "*did you mean 'json'?*" info --format jsno x
ends "a missing value is told" 2 "*'--format' needs a value*" info --format
ends "info without a trace is wrong usage" 2 "*no trace given*" info
ends "info of a file that is not there fails" 3 "peet: $dir/none*No such file*" info "$dir/none"
echo 'this is not a trace' >"$dir/text"
ends "info of a file that is no trace fails" 3 "peet: $dir/text*" info "$dir/text"
: >"$dir/empty"
ends "info of an empty file fails" 3 "peet: $dir/empty*" info "$dir/empty"
ends "info of a folder fails" 3 "peet: $dir*" info "$dir"
ends "control characters in messages are made visible" 3 '*\\x1b\[31m*' info $'\e[31m'

# ---- output that cannot be written ----

# A pipe without a reader, and a parent that ignores SIGPIPE.
mkfifo "$dir/pipe"
exec 5<>"$dir/pipe" 6>"$dir/pipe" 5<&-
(trap '' PIPE; exec "$peet" help >&6 2>"$dir/err")
code=$?
exec 6>&-
verdict "output to a closed pipe ends quietly" \
    "$([ $code = 141 ] && [ ! -s "$dir/err" ] || { echo "exit code $code"; cat "$dir/err"; })"
if [ -c /dev/full ]; then
    "$peet" help >/dev/full 2>"$dir/err"
    code=$?
    verdict "a full disk is told" "$([ $code = 3 ] && grep -q 'No space' "$dir/err" || echo "exit code $code")"
fi
"$peet" help >&- 2>"$dir/err"
code=$?
verdict "closed standard output is told" "$([ $code = 3 ] && [ -s "$dir/err" ] || echo "exit code $code")"

# ---- info ----

cat >"$dir/t.txt" <<'END'
peet text 1
meta "producer" "by hand"
meta "host" "bell \x07, \"quoted\""
process 1 parent 0 program "/bin/demo" command "demo -p 2, \"x\""
module process 1 path "/bin/demo" build "00ff" bias 0x0
  segment 0x400000 0x1000 offset 0x0 r-x
  symbol 0x400000 0x40 code "main"
thread 1 process 1 parent 0 ordinal 0 name "main"
thread 2 process 1 parent 1 ordinal 0 name "worker"
block b1 slots 2
  0x400000 4 plain, load 8 [s0]
  0x400004 4 plain, store 8 [s1]
  0x400008 2 branch -> 0x400000
1 0 b1 0x1000 0x2000
1 3 b1 0x1008 0x2008
1 6 thread_end 0 0
2 0 mutex_lock 0x3000 @0x400004
2 0 b1 0x1010 0x2010
2 3 thread_end 2 11
end
END
trace=$dir/t.peet
holds "a trace can be made from text" "$peet" import --text "$dir/t.txt" -o "$trace"

ends "info tells the totals" 0 "*instructions  *9*references  *6*events  *3*whole  *yes*" info "$trace"
verdict "info of a whole trace has nothing to say on standard error" "$err"
ends "info --counts splits the references" 0 "*references *6*loads *3*stores *3*updates *0*signal 11*" \
    info --counts "$trace"
ends "info --events counts the kinds of events" 0 "*Events*thread_end *2*mutex_lock *1*" info --events "$trace"
"$peet" info --counts --events "$trace" | sed 's|^  file .*|  file standard input|' >"$dir/file"
# shellcheck disable=SC2002
cat "$trace" | "$peet" info --counts --events - | sed 's|^  file .*|  file standard input|' >"$dir/piped"
verdict "info of a pipe says the same as of the file" "$(diff "$dir/file" "$dir/piped")"
run info "$dir/none" "$trace"
verdict "info shows the traces that it can read, and ends as failed" \
    "$([ "$code" = 3 ] && [[ $out == *instructions* ]] || echo "exit code $code")"

head -c $(($(stat -c %s "$trace") * 2 / 3)) "$trace" >"$dir/cut.peet"
run info "$dir/cut.peet"
verdict "info of a trace that lacks its end shows what is there, warns, and ends with 4" \
    "$([ "$code" = 4 ] && [[ $out == *whole*no* && $err == "peet: warning: $dir/cut.peet: "* ]] ||
        echo "exit code $code: $err")"

for options in "" "--counts --events"; do
    name="info${options:+ $options} --format json is JSON"
    if needs "$name" python3; then
        # shellcheck disable=SC2086
        "$peet" info $options --format json "$trace" "$dir/cut.peet" >"$dir/json" 2>/dev/null
        holds "$name" python3 - "$dir/json" <<'END'
import json, sys
tables = json.load(open(sys.argv[1], encoding="utf-8"))
for table in tables.values():
    assert list(table) == ["notes", "rows"], table
    assert all(list(row) == list(table["rows"][0]) for row in table["rows"])
whole = tables["summary"]["rows"][0]
assert (whole["instructions"], whole["references"], whole["events"], whole["whole"]) == (9, 6, 3, "yes"), whole
assert whole["command"] == 'demo -p 2, "x"', whole
assert tables["modules"]["rows"][0]["address"] == "0x400000"
assert tables["meta"]["rows"][0]["value"] == 'bell \a, "quoted"'
END
    fi
done
name="info --format csv is CSV"
if needs "$name" python3; then
    "$peet" info --format csv "$trace" >"$dir/csv"
    holds "$name" python3 - "$dir/csv" <<'END'
import csv, sys
header, tables = None, set()
for row in csv.reader(open(sys.argv[1], encoding="utf-8", newline="")):
    if not row:
        header = None
    elif header is None:
        header = row
        assert header[:2] == ["table", "file"], header
    else:
        assert len(row) == len(header), row
        tables.add(row[0])
        if row[0] == "summary":
            assert row[header.index("command")] == 'demo -p 2, "x"', row
assert tables == {"summary", "processes", "threads", "modules", "meta"}, tables
END
fi

# ---- completion ----

complete_line() { # WORD…: what bash would offer for the last one
    bash -c 'peet() { "$real" "$@"; }; real=$1; shift; source cli/completion.bash
        COMP_WORDS=(peet "$@") COMP_CWORD=$#; _peet; echo "${COMPREPLY[*]}"' bash "$peet" "$@"
}
offers() { # NAME EXPECTED WORD…
    local name=$1 want=$2 got
    shift 2
    got=$(complete_line "$@" 2>&1)
    verdict "$name" "$([ "$got" = "$want" ] || echo "peet $*: offers '$got', expected '$want'")"
}
offers "completion offers verbs" "help" hel
offers "completion offers options" "--counts" info --cou
offers "completion offers the values of a choice" "json" info --format j
offers "completion offers the values of a choice behind =" "json" info --format = j
offers "completion leaves operands to file names" "" info x

exit $status
