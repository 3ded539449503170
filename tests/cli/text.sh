#!/bin/bash
# SPDX-License-Identifier: MIT
# peet dump, peet import and peet check by the command line: to text and back, through files and pipes, and their exit codes.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/lib.sh
peet=${PEET:-${PEET_BUILD:-build}/peet}
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
export LC_ALL=C.UTF-8

cat >"$dir/good.txt" <<'END'
peet text 1
# two threads, a lock, a loop; main calls work, work loops over an array
meta "producer" "tests/cli/text.sh"
process 1 parent 0 program "/bin/two" command "two -p 2"
module process 1 path "/bin/two" build "c0ffee" bias 0
  segment 0x401000 0x2000 offset 0x1000 r-x
  segment 0x404000 0x9000 offset 0x3000 rw-
  symbol 0x401000 0x40 code "main"
  symbol 0x402000 0x40 code "work"
  symbol 0x404040 0x8 data "lock"
range process 1 0x7ff000 0x2000 rw- name "[stack]"
thread 1 process 1 parent 0 ordinal 0 name "main"
thread 2 process 1 parent 1 ordinal 0 name "worker"
block b10
  0x401000 4 plain, store 8 [r0-8]
  0x401004 5 call -> 0x402000, store 8 [r0-16]
  r0 = r0-16
block b11
  0x401009 2 plain
block b20 slots 0
  0x402000 4 plain
block b21
  0x402004 4 fp, load 8 [s0+0x4100]
  0x402008 2 branch -> 0x402004
block b22
  0x40200a 1 return, load 8 [r0]
  r0 = r0+8
loop l1 values 1 counts 1
  repeat c0, step v0 = v0+8
    b21, s0 = v0
  done
1 0 set_register 0 0x800000
1 0 thread_create 2 @0x401000
1 0 b10
1 2 b20
1 3 mutex_lock 0x404040 @0x402000
1 3 l1 0x400000 100
1 203 b22
1 204 mutex_unlock 0x404040
1 204 b11
1 205 thread_join 2
1 205 thread_end 0 0
2 0 thread_start 1
2 0 set_register 0 0x7ffff0
2 0 region_begin "work"
2 0 b20
2 1 l1 0x400000 3
2 7 region_end "work"
2 7 thread_end 0 0
end
END

# NAME CODE COMMAND…: ends with the code; $dir/out and $dir/err are what it said.
ends() {
    local name=$1 want=$2 code
    shift 2
    "$@" >"$dir/out" 2>"$dir/err"
    code=$?
    verdict "$name" "$([ $code = "$want" ] || { echo "$*: exit code $code, expected $want"; head -n 20 "$dir/out" "$dir/err"; })"
}
same() { # NAME FILE FILE
    verdict "$1" "$(diff "$2" "$3" | head -n 20)"
}
says() { # NAME FILE PATTERN…
    local name=$1 file=$2 pattern
    shift 2
    verdict "$name" "$(for pattern; do grep -qE -- "$pattern" "$file" || { echo "no line like: $pattern"; head -n 40 "$file"; }; done)"
}

# ---- to text and back ----

ends "text becomes a trace" 0 "$peet" import --text "$dir/good.txt" -o "$dir/a.peet"
ends "the trace becomes text" 0 "$peet" dump "$dir/a.peet"
cp "$dir/out" "$dir/a.txt"
says "numbers in lines of execution are addresses" "$dir/a.txt" '^1 0 b1 0x7ffff8 0x7ffff0$' '^1 3 b3 0x404100$' '^1 201 b3 0x404418$'
verdict "loops and registers are expanded" "$(grep -E '^loop|set_register' "$dir/a.txt")"
ends "the text becomes a trace again" 0 "$peet" import "$dir/a.txt" -o "$dir/b.peet"
"$peet" dump "$dir/b.peet" >"$dir/b.txt"
same "whose text is the same" "$dir/a.txt" "$dir/b.txt"

"$peet" dump --compact "$dir/a.peet" >"$dir/c.txt"
says "the compact form keeps loops and registers" "$dir/c.txt" '^loop l1 values 1 counts 1$' '^1 3 l1 0x400000 100$' '^1 0 set_register 0 0x800000$'
"$peet" import -o "$dir/c.peet" <"$dir/c.txt"
"$peet" dump --compact "$dir/c.peet" >"$dir/d.txt"
same "the compact form comes back" "$dir/c.txt" "$dir/d.txt"
"$peet" dump "$dir/c.peet" >"$dir/d.txt"
same "and says the same as the expanded one" "$dir/a.txt" "$dir/d.txt"

"$peet" dump "$dir/a.peet" | "$peet" import -o - | "$peet" dump - >"$dir/d.txt"
same "all through pipes" "$dir/a.txt" "$dir/d.txt"

# ---- parts ----

for part in --calls --events "--thread 2" "--from 50 --count 20" "--calls --compact" "--compact --from 204" "--symbols --thread=1,2"; do
    # shellcheck disable=SC2086
    "$peet" dump $part "$dir/a.peet" >"$dir/part.txt"
    ends "dump $part can be read back" 0 "$peet" import "$dir/part.txt" -o "$dir/part.peet"
done
"$peet" dump --calls --symbols "$dir/a.peet" >"$dir/part.txt"
says "--calls shows calls, returns and events" "$dir/part.txt" '^1 0 b1 .*# main\+0x0 -> work\+0x0$' '^1 203 b2 0x7ffff0' '^1 3 mutex_lock 0x404040 @0x402000  # work\+0x0$'
verdict "and nothing else" "$(grep -E '^[12] [0-9]+ b[^12]' "$dir/part.txt")"
"$peet" dump --events "$dir/a.peet" >"$dir/part.txt"
verdict "--events shows no blocks" "$(grep -E '^block|^[12] [0-9]+ b[0-9]' "$dir/part.txt")"
"$peet" dump --from 50 --count 4 --thread 1 "$dir/a.peet" | grep -E '^[12] ' >"$dir/part.txt"
grep -E '^1 (49|51|53) ' "$dir/a.txt" | sed 's/ b3 / b1 /' >"$dir/expected"
same "--from and --count take instructions of the thread" "$dir/expected" "$dir/part.txt"
"$peet" dump --count 1 --thread 1 "$dir/a.peet" >"$dir/part.txt"
verdict "with --count modules have the symbols that are referred to, and no others" "$(
    grep -c '^  symbol' "$dir/a.txt" | grep -vx 3
    grep '^  symbol' "$dir/part.txt" | diff - <(grep '^  symbol.*"\(main\|work\)"' "$dir/a.txt"))"

# ---- mistakes ----

ends "a thread that there is not is wrong usage" 2 "$peet" dump --thread 7 "$dir/a.peet"
ends "what is no number is no thread" 2 "$peet" dump --thread main "$dir/a.peet"
ends "dump needs a trace" 2 "$peet" dump
ends "dump of a file that is not there fails" 3 "$peet" dump "$dir/none"
ends "import needs an output" 2 "$peet" import "$dir/a.txt"
ends "import of a file that is not there fails" 3 "$peet" import "$dir/none" -o "$dir/new.peet"
verdict "and leaves nothing behind" "$(ls "$dir/new.peet" 2>/dev/null)"
sed 's/mutex_lock/mutex_lokc/' "$dir/good.txt" >"$dir/bad.txt"
ends "import of text with a mistake fails" 3 "$peet" import "$dir/bad.txt" -o "$dir/new.peet"
says "says file, line, what was found and what was expected" "$dir/err" "^peet: $dir/bad.txt:[0-9]+: 'mutex_lokc' found, .* expected$"
verdict "and leaves nothing behind, either" "$(ls "$dir/new.peet" 2>/dev/null)"
head -n 30 "$dir/good.txt" >"$dir/cut.txt"
ends "import of half a text fails" 3 "$peet" import "$dir/cut.txt" -o "$dir/new.peet"
"$peet" import -o - "$dir/cut.txt" 2>/dev/null >"$dir/cut.peet"
ends "what a failed import has put into a pipe is no whole trace" 4 "$peet" info "$dir/cut.peet"
ends "text cannot become itself" 2 "$peet" import "$dir/a.txt" -o "$dir/a.txt"
same "and is still there" "$dir/a.txt" "$dir/b.txt"
ends "output to a full disk is told" 3 bash -c "'$peet' dump '$dir/a.peet' >/dev/full"

# ---- rows ----

"$peet" dump --format csv "$dir/a.peet" | tail -n +2 | awk -F, '{ print $1, $2, $3, $4 }' >"$dir/csv"
"$peet" dump --format json "$dir/a.peet" |
    sed 's/^{"thread":\([0-9]*\),"position":\([0-9]*\),"kind":"\([a-z_]*\)","pc":\([0-9]*\)[,}].*/\1 \2 \3 \4/' >"$dir/json"
same "CSV and JSON have the same rows" "$dir/csv" "$dir/json"
rows() { awk -v k="$1" '$3 ~ k' "$dir/csv" | wc -l; }
"$peet" info --counts --format csv "$dir/a.peet" >"$dir/info"
says "as many references as info counts" "$dir/info" "(^|,)$(rows '^(load|store|update|prefetch)$')(,|\$)"
"$peet" dump --format csv "$dir/a.peet" >"$dir/csv"
says "rows of events have their arguments, and no address or size" "$dir/csv" '^1,3,mutex_lock,4202496,,,4210752$' '^1,205,thread_end,0,,,0 0$'
says "and names in full" "$dir/csv" '^2,0,region_begin,0,,,work$' '^2,7,region_end,0,,,work$'
cat >"$dir/names.txt" <<'END'
peet text 1
process 1 parent 0 program "a" command "a"
thread 1 process 1 parent 0 ordinal 0 name ""
1 - name_data "matrix" 0x1000 64
1 - mark "a step" 7
1 - region_begin "one, \"two\""
1 - region_end ""
1 - exec "/bin/b"
1 - thread_end 3 0
end
END
"$peet" import "$dir/names.txt" -o "$dir/names.peet"
"$peet" dump --format csv "$dir/names.peet" | cut -d, -f3,5- >"$dir/names.csv"
cat >"$dir/expected" <<'END'
kind,addr,size,arguments
name_data,,,matrix 4096 64
mark,,,a step 7
region_begin,,,"one, ""two"""
region_end,,,""
exec,,,/bin/b
thread_end,,,3 0
END
same "names that are not for CSV are in quotes" "$dir/expected" "$dir/names.csv"
ends "what is for text only is refused" 2 "$peet" dump --format csv --compact "$dir/a.peet"

# ---- check ----

ends "check of a good trace ends with 0" 0 "$peet" check "$dir/a.peet"
ends "also of the one that came from expanded text" 0 "$peet" check "$dir/b.peet"
ends "also through a pipe" 0 bash -c "cat '$dir/a.peet' | '$peet' check -"
ends "also of calls alone" 0 bash -c "'$peet' dump --calls '$dir/a.peet' | '$peet' import -o - | '$peet' check -"
sed 's/^1 204 mutex_unlock 0x404040/1 204 mutex_unlock 0x404048/' "$dir/good.txt" | "$peet" import -o "$dir/bad.peet"
ends "check of a trace with a violation ends with 1" 1 "$peet" check "$dir/bad.peet"
says "and says thread, position and address" "$dir/out" '^ +violation +lock +1 +204 +0x404048 '
ends "the same as CSV" 1 "$peet" check --format csv "$dir/bad.peet"
says "has all columns" "$dir/out" '^findings,violation,lock,1,204,0x404048,"?the mutex'
ends "the same with nothing listed" 1 "$peet" check --most 0 "$dir/bad.peet"
says "has the totals" "$dir/out" '^ +lock +1 +0 '
head -c $(($(wc -c <"$dir/a.peet") * 2 / 3)) "$dir/a.peet" >"$dir/short.peet"
ends "check of a trace that is cut off ends with 4" 4 "$peet" check "$dir/short.peet"
ends "check of something else ends with 3" 3 "$peet" check "$dir/good.txt"
ends "check --list lists the rules" 0 "$peet" check --list
says "by name and summary" "$dir/out" '^ +flow +a block begins' '^ +mapped +references'
# A store of 64 bytes under a mask, as memset of glibc 2.41 has it: with an address for each it needs more slots than a block may have.
{
    printf 'peet text 1\nprocess 1 parent 0 program "p" command "p"\nthread 1 process 1 parent 0 ordinal 0 name ""\nblock b1\n  0x401000 6 vector'
    for ((i = 0; i < 64; i++)); do printf ', store 1 [s0+%d] if s1.%d' $i $i; done
    printf '\n1 - b1 0x20000 0x8000000000000005\n1 - thread_end 0 0\nend\n'
} | sed 's/\[s0+0\]/[s0]/' >"$dir/masked.text"
verdict "an instruction of 64 references under a mask is written, and read again" "$(
    "$peet" import -o "$dir/masked.peet" "$dir/masked.text" 2>&1
    "$peet" dump "$dir/masked.peet" 2>&1 >"$dir/again.text"
    "$peet" import -o "$dir/again.peet" "$dir/again.text" 2>&1
    for f in masked again; do
        "$peet" dump --format csv "$dir/$f.peet" | awk -F, '$3 == "store" { print $5, $6 }' | paste -sd ' '
    done | sort | uniq -c | grep -v '^ *2 131072 1 131074 1 131135 1$'
)"
exit $status
