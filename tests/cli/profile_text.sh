#!/bin/bash
# SPDX-License-Identifier: MIT
# peet profile on a terminal and in a pipe: colours and bars where they belong, columns that are aligned and fit, and what --top, --sort and
# --focus show.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
"$peet" record -o "$TMP/a.peet" -- "$PEET_BUILD/workloads/peet/mp3d" -p 1 -n 1000 -l 8 -s 3 >"$TMP/err" 2>&1 || { cat "$TMP/err"; exit 1; }
profile() { "$peet" profile -m memspy-16k "$@" "$TMP/a.peet"; }
escapes() { LC_ALL=C grep -c "$(printf '\033')" "$1"; }
bars() { grep -c '[▏▎▍▌▋▊▉█▁▂▃▄▅▆▇]' "$1"; }
# COLOURS and BARS: none or some.
has() { # FILE COLOURS BARS
    local colours bars
    colours=$(escapes "$1") bars=$(bars "$1")
    [ "$2" = some ] && [ "$colours" = 0 ] && echo "no colours"
    [ "$2" = none ] && [ "$colours" != 0 ] && echo "$colours lines with colours"
    [ "$3" = some ] && [ "$bars" = 0 ] && echo "no bars"
    [ "$3" = none ] && [ "$bars" != 0 ] && echo "$bars lines with bars"
}

profile >"$TMP/pipe" 2>&1
verdict "in a pipe there are no colours and no bars" "$(has "$TMP/pipe" none none)"
profile --color always >"$TMP/always" 2>&1
verdict "--color always has both in a pipe, and the same text" "$(
    has "$TMP/always" some some
    NO_COLOR=1 profile --color always >"$TMP/asked" 2>&1
    has "$TMP/asked" some some
    sed 's/\x1b\[[0-9]*m//g; s/[▏▎▍▌▋▊▉█▁▂▃▄▅▆▇]//g' "$TMP/always" | tr -s ' \n' '\n' | diff - <(tr -s ' \n' '\n' <"$TMP/pipe")
)"
verdict "a file has neither, whatever is asked for" "$(
    profile --color always -o "$TMP/file" 2>&1
    diff "$TMP/file" "$TMP/pipe"
)"
verdict "the first line is the verdict" "$(
    head -n 1 "$TMP/pipe" | grep -qE '^[0-9]+ % of the time waits for .+ in .+ at mp3d\.c:[0-9]+: [a-z ]+(, [^;]+)?(; [0-9]+ % computes)?$' || head -n 3 "$TMP/pipe"
)"
verdict "columns are aligned" "$(
    # In a table of data, each row has its first per cent where the others have it.
    sed -n '/^Data$/,/^$/p' "$TMP/pipe" | grep '%' | awk '{ at = index($0, "%"); if (first == "") first = at; if (at != first) print at " in place of " first ": " $0 }'
    [ "$(sed -n '/^Data$/,/^$/p' "$TMP/pipe" | grep -c '%')" -ge 2 ] || echo "there are no two rows"
)"
verdict "many rows over time are one line" "$(sed -n '/^Over time$/,$p' "$TMP/pipe" | grep -qE '^  Miss rate from .* % to .* %; all [0-9]+ rows' || tail -n 5 "$TMP/pipe")"

on_terminal() { # FILE VARIABLE=VALUE… -- OPTION…
    local file=$1 vars=()
    shift
    while [ "$1" != -- ]; do vars+=("$1") && shift; done
    shift
    env TERM=xterm "${vars[@]}" script -qec "'$peet' profile -m memspy-16k $* '$TMP/a.peet'" /dev/null </dev/null 2>&1 | tr -d '\r' >"$file"
}
property="on a terminal there are colours and bars, as far as they are wanted"
if needs "$property" script; then
    verdict "$property" "$(
        on_terminal "$TMP/t" COLUMNS=200 --
        has "$TMP/t" some some
        on_terminal "$TMP/t" COLUMNS=200 NO_COLOR=1 --
        has "$TMP/t" none some
        on_terminal "$TMP/t" COLUMNS=200 TERM=dumb --
        has "$TMP/t" none none
        on_terminal "$TMP/t" COLUMNS=200 -- --color never
        has "$TMP/t" none none
    )"
    verdict "so it is with the profile of a program that runs" "$(
        run="'$peet' profile -m memspy-16k -- '$PEET_BUILD/workloads/peet/mp3d' -p 1 -n 500 -l 8 -s 1"
        TERM=xterm COLUMNS=200 script -qec "$run" /dev/null </dev/null >"$TMP/t" 2>&1
        has "$TMP/t" some some
        TERM=xterm COLUMNS=200 NO_COLOR=1 script -qec "$run" /dev/null </dev/null >"$TMP/t" 2>&1
        has "$TMP/t" none some
        eval "$run" >"$TMP/t" 2>&1
        has "$TMP/t" none none
    )"
    verdict "tables fit, and what is left out is said" "$(
        for columns in 60 80 100 140; do
            on_terminal "$TMP/t" COLUMNS=$columns --
            widest=$(sed 's/\x1b\[[0-9]*m//g' "$TMP/t" | grep -vE '^  note: |^[^ ]|too narrow for|^  Miss rate from' | wc -L)
            [ "$widest" -le $columns ] || echo "$widest wide on $columns"
        done
        on_terminal "$TMP/t" COLUMNS=60 --
        grep -q 'too narrow for: ' "$TMP/t" || echo "nothing is said"
    )"
fi

column() { awk -F, -v table="$2" -v column="$3" '$1 == "table" { delete at; for (i = 1; i <= NF; i++) at[$i] = i } $1 == table { print $at[column] }' "$1"; }
verdict "--top says how many rows, and --sort which come first" "$(
    for sort in stall misses references; do
        profile --top 3 --sort $sort --format csv >"$TMP/csv" 2>&1
        for table in objects objects_by_procedure lines; do
            [ "$(column "$TMP/csv" $table $sort | wc -l)" = 3 ] || echo "$table: not three rows by $sort"
            column "$TMP/csv" $table $sort | sort -nrc 2>&1 | head -n 1
        done
    done
    profile --top 0 --format csv >"$TMP/all" 2>&1
    profile --top 1 --sort references --format csv >"$TMP/csv" 2>&1
    [ "$(column "$TMP/csv" lines references)" = "$(column "$TMP/all" lines references | sort -nr | head -n 1)" ] || echo "the line with the most references is not first"
)"
verdict "--focus shows what is called so, or has it in its name" "$(
    profile --focus record --format csv >"$TMP/csv" 2>&1
    [ "$(column "$TMP/csv" procedures function)" = record ] || echo "procedures: $(column "$TMP/csv" procedures function)"
    column "$TMP/csv" objects_by_procedure function | grep -vx record
    grep -q '^objects,' "$TMP/csv" && echo "there are objects"
    profile --focus molecule >"$TMP/out" 2>&1
    head -n 1 "$TMP/out" | grep -q 'waits for t->molecule in ' || head -n 1 "$TMP/out"
    profile --focus nonsense >"$TMP/out" 2>&1
    head -n 1 "$TMP/out" | grep -q "No data object and no function has 'nonsense' in its name" || head -n 1 "$TMP/out"
)"
says() { # STATUS TEXT ARGUMENT…
    local want=$1 text=$2 is=0
    shift 2
    "$peet" profile "$@" >"$TMP/out" 2>"$TMP/err" || is=$?
    [ $is = "$want" ] || echo "$*: status $is"
    [ -s "$TMP/out" ] && echo "$*: something was done"
    grep -q -e "$text" "$TMP/err" || { echo "$*: not told:"; cat "$TMP/err"; }
}
verdict "what cannot be done is told before anything is done" "$(
    says 2 'diff takes two traces' diff "$TMP/a.peet"
    says 2 "'peet profile diff' compares two" "$TMP/a.peet" "$TMP/a.peet"
    says 2 '--length goes with --sample' --length 1000 "$TMP/a.peet"
    says 2 '--random goes with --sample' --random "$TMP/a.peet"
    says 2 '--stacks is not for diff' --stacks "$TMP/s" diff "$TMP/a.peet" "$TMP/a.peet"
    says 2 '--trace is for programs' --trace "$TMP/b.peet" "$TMP/a.peet"
    says 2 '--calls: at most 15' --calls 16 "$TMP/a.peet"
    says 3 'nowhere/x: cannot be written: No such file' --stacks "$TMP/nowhere/x" -- "$PEET_BUILD/workloads/peet/fft" -m 4
    says 3 'cannot be written: Is a directory' -o "$TMP" "$TMP/a.peet"
)"
exit $status
