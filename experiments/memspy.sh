# SPDX-License-Identifier: MIT
# For the scripts memspy-table1 to memspy-fig10, which source it: options, the five programs that stand for MemSpy's, what is measured of them (once, kept in
# the build folder for all of the scripts), and how claims and bars are told.
#
# Martonosi, Gupta and Anderson, "Effectiveness of Trace Sampling for Performance Debugging Tools", SIGMETRICS 1993.
# shellcheck shell=bash
set -u
me=${0##*/}
cd "$(dirname "$0")/.." || exit 2
build=${PEET_BUILD:-$PWD/build} out=experiments/out quick=
while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=-quick ;;
    --out) [ $# -gt 1 ] || { echo "$me: --out: a folder was expected" >&2; exit 2; }; out=$2; shift ;;
    -h | --help) sed -n '3,/^[^#]/{/shellcheck/d;s/^# \{0,1\}//p}' "experiments/$me"; exit 0 ;;
    *) echo "$me: '$1' is unknown; --quick or --out DIR were expected" >&2; exit 2 ;;
    esac
    shift
done
peet=$build/peet kept=$build/experiments/memspy-kept$quick
programs="mp3d matmat tri minimize gates"
[ -x "$peet" ] && [ -x "$build/experiments/memspy" ] ||
    { echo "$me: $peet and $build/experiments/memspy were expected: run make everything" >&2; exit 2; }
mkdir -p "$out" "$kept" || exit 2
failed() { cat "$kept/err" >&2; echo "$me: failed: $*" >&2; exit 1; }

# Sizes at which the miss rates are near the paper's (workloads/README.md), long enough for samples of 8 M references.
size_of() { # PROGRAM
    case $1$quick in
    mp3d) echo "-s 20" ;; mp3d-quick) echo "-s 5" ;;
    tri) echo "-r 28" ;; tri-quick) echo "-r 5" ;;
    minimize-quick) echo "-o 3" ;;
    gates) echo "-c 450" ;; gates-quick) echo "-c 120" ;;
    esac
}

# CPU time of a command, into the variable `seconds`; what it says goes to FILE.
timed() { # FILE COMMAND…
    local file=$1 TIMEFORMAT='%U %S'
    shift
    { time "$@" >"$file" 2>"$kept/err"; } 2>"$kept/time" || failed "$*"
    seconds=$(awk '{ printf "%.3f", $1 + $2 }' "$kept/time")
}

is_fresh() { # FILE
    [ -s "$1" ] && [ "$1" -nt "$peet" ] && [ "$1" -nt "$build/experiments/memspy" ]
}

# The trace of a program, as $kept/PROGRAM.peet.
recorded() { # PROGRAM
    local size
    read -ra size <<<"-p 1 $(size_of "$1")"
    is_fresh "$kept/$1.peet" && return
    timed "$kept/said" "$peet" record -o "$kept/$1.peet" -- "$build/workloads/peet/$1" "${size[@]}"
}

# What memspy.c says of all programs, with their names in front, as $kept/all; misses over time as $kept/PROGRAM.series.
measured() {
    local p
    for p in $programs; do
        recorded "$p"
        is_fresh "$kept/$p.out" ||
            "$build/experiments/memspy" "$kept/$p.peet" "$kept/$p.series" >"$kept/$p.out" 2>"$kept/err" || failed "memspy $p"
        sed "s/^/$p /" "$kept/$p.out"
    done >"$kept/all"
}

# The tables of peet profile on the 128 KB cache, of the trace, as $kept/PROGRAM.NAME.csv.
profiled() { # PROGRAM NAME OPTION…
    local p=$1 name=$2
    shift 2
    recorded "$p"
    is_fresh "$kept/$p.$name.csv" && [ "$kept/$p.$name.csv" -nt "$kept/$p.peet" ] && return
    timed "$kept/said" "$peet" profile -m memspy-128k --top 0 --format csv -o "$kept/$p.$name.csv" "$@" "$kept/$p.peet"
}

# CPU time of a program, the least of three runs, and of peet profile while it runs, as NAME SECONDS in $kept/PROGRAM.ran.
least() { # COMMAND…
    local i best=
    for i in 1 2 3; do
        timed "$kept/said" "$@"
        best=$(awk -v a="${best:-$seconds}" -v b="$seconds" 'BEGIN { print (a < b ? a : b) }')
    done
    seconds=$best
}
ran() { # PROGRAM NAME COMMAND…: the program's own arguments are put behind it
    local p=$1 name=$2 size
    shift 2
    is_fresh "$kept/$p.ran" || : >"$kept/$p.ran"
    grep -q "^$name " "$kept/$p.ran" && return
    read -ra size <<<"-p 1 $(size_of "$p")"
    least "$@" "${size[@]}"
    echo "$name $seconds" >>"$kept/$p.ran"
}
ran_plain() { ran "$1" plain "$build/workloads/plain/$1"; } # PROGRAM
ran_profiled() {                                             # PROGRAM NAME OPTION…
    local p=$1 name=$2
    shift 2
    ran "$p" "$name" "$peet" profile -m memspy-128k "$@" -- "$build/workloads/peet/$p"
}

# awk over what was measured, in these arrays; i is a sampling: program, cache, length, every. Rates are in percent.
prelude='
function claim(number, text, ok) { print number (ok ? " met: " : " not met: ") text }
function bar(text, ok) { print "bar " (ok ? "holds: " : "fails: ") text; if (!ok) bad = 1 }
function abs(x) { return x < 0 ? -x : x }
function most(a, b) { return a > b ? a : b }
function tenth(p, cache) { return p SUBSEP cache SUBSEP 500000 SUBSEP 5000000 }
function row(p, length_) { return p SUBSEP "1m" SUBSEP length_ SUBSEP length_ }
function actual(i) { return n[i] ? 100 * t[i] / n[i] : 0 }
function with_mu(i, mu) { return n[i] ? 100 * (k[i] + mu * u[i]) / n[i] : 0 }
function off(a, b) { return b ? 100 * (a / b - 1) : 0 }
BEGIN {
    split("mp3d matmat tri minimize gates", program)
    split("MP3D MATMAT TRI ESPRESSO PTHOR", word); for (j in word) paper[program[j]] = word[j]
    lines["16k"] = 1024; lines["128k"] = 4096; lines["1m"] = 16384
}
$2 == "run" { refs[$1] = $3; bytes[$1] = $4 }
$2 == "cache" { misses[$1, $3] = $5; mu_all[$1, $3] = $7 ? $6 / $7 : 0 }
$2 == "sample" {
    i = $1 SUBSEP $3 SUBSEP $4 SUBSEP $5
    samples[i] = $6; n[i] = $7; t[i] = $8; k[i] = $9; u[i] = $10; mu[i] = $10 ? $11 / $10 : 0
    generation[i] = $13; age[i] = $14; touched[i] = $15; outside[i] = $16; g[i] = $6 ? $12 / ($6 * lines[$3]) : 0
}
'
analyse() { # PROGRAM-OF-AWK
    awk "$prelude$1" "$kept/all"
}

plot() { # NAME, and commands of gnuplot from standard input
    if command -v gnuplot >/dev/null; then
        { echo "set terminal svg size 760,440 dynamic background 'white'; set output '$out/memspy-$1.svg'; set grid"; cat; } | gnuplot ||
            { echo "$me: gnuplot failed" >&2; exit 1; }
        echo "plot: $out/memspy-$1.svg"
    else
        cat >/dev/null
        echo "plot left out: it needs gnuplot (make deps)"
    fi
}
