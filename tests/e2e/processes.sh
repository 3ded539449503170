#!/bin/bash
# SPDX-License-Identifier: MIT
# Processes have address spaces: equal addresses of two of them are two places in memory, and code has the names of the process.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet

# A column of a table of a result in JSON, row by row.
column() { # FILE TABLE COLUMN
    sed -n "/^  \"$2\"/,/^  }/p" "$1" | grep -o "\"$3\": *\(\"[^\"]*\"\|[0-9.e+-]*\)" | sed 's/^"[^"]*": *//; s/"//g'
}
sum() { column "$@" | awk '{ s += $1 } END { printf "%.0f\n", s }'; }
differs() { # IS EXPECTED WHAT
    [ "$1" = "$2" ] || echo "$3 is '$1', not '$2'"
}

# ---- fork ----

"$peet" cc -O1 -g -o "$TMP/forks" tests/e2e/subjects/forks.c && "$peet" record -o "$TMP/forks.peet" "$TMP/forks" 2>"$TMP/err" || exit 1
for machine in modern sato1999; do
    "$peet" simulate -m $machine --format json "$TMP/forks.peet" >"$TMP/$machine.json" || exit 1
done
verdict "a process and its child share no lines" "$(
    for machine in modern sato1999; do
        for cause in true_sharing false_sharing; do
            differs "$(sum "$TMP/$machine.json" memory $cause)" 0 "$machine: $cause"
        done
        differs "$(sum "$TMP/$machine.json" memory misses)" "$(sum "$TMP/$machine.json" memory cold)" "$machine: misses"
        # The table alone has 256 lines of 64 bytes, or 1,024 of 16.
        awk -v n="$(sum "$TMP/$machine.json" memory misses)" -v m=$machine 'BEGIN {
            least = m == "modern" ? 512 : 2048; if (n < least || n > least + 40) print m ": " n " misses" }'
    done
)"
verdict "simulate has a row for each process: its misses, time, and when it ended" "$(
    differs "$(column "$TMP/modern.json" programs program)" $'forks (process 1)\nforks (process 2)' programs
    differs "$(column "$TMP/modern.json" programs addresses | sort -u)" "by process" addresses
    for what in misses cold compute stall instructions; do
        from=memory
        [[ $what != compute && $what != stall && $what != instructions ]] || from="times"
        differs "$(sum "$TMP/modern.json" programs $what)" "$(sum "$TMP/modern.json" $from $what)" "$what of programs"
    done
    differs "$(column "$TMP/modern.json" programs finished | sort -n | tail -n 1)" "$(column "$TMP/modern.json" runs cycles)" "the end"
)"
for machine in modern core; do
    "$peet" profile -m $machine --top 0 --format json "$TMP/forks.peet" >"$TMP/profile-$machine.json" || exit 1
done
verdict "profile has a row for each process, on one processor and on several" "$(
    for machine in modern core; do
        of=$TMP/profile-$machine.json
        differs "$(column "$of" programs program)" $'forks (process 1)\nforks (process 2)' programs
        for what in misses references compute stall; do
            differs "$(sum "$of" programs $what)" "$(sum "$of" summary $what)" "$machine: $what of programs"
            differs "$(sum "$of" procedures $what)" "$(sum "$of" summary $what)" "$machine: $what of procedures"
        done
        differs "$(column "$of" sharing misses)" "" "$machine: lines taken away"
    done
)"

# ---- equal addresses, different symbols ----

# Two programs whose code and data lie at the same addresses; the first executes 100 trips, the second 200, on one line after the other.
programs() { # EXTRA LINES…
    printf 'peet text 1\n'
    printf 'process 1 parent 1 program "/bin/first" command "first"\nprocess 2 parent 2 program "/bin/second" command "second"\n'
    for i in 1 2; do
        name=$([ $i = 1 ] && echo first || echo second)
        printf 'module process %s path "/bin/%s" build "" bias 0\n  segment 0x401000 0x1000 offset 0 r-x\n' $i $name
        printf '  segment 0x500000 0x10000 offset 0x1000 rw-\n'
        printf '  symbol 0x401000 0x10 code "main_of_%s"\n  symbol 0x401010 0x20 code "work_of_%s"\n' $name $name
        printf '  symbol 0x500000 0x10000 data "data_of_%s"\n' $name
    done
    printf 'thread 1 process 1 parent 1 ordinal 0 name ""\nthread 2 process 2 parent 2 ordinal 0 name ""\n'
    printf 'block b1\n  0x401000 5 call\nblock b2 slots 1\n  0x401010 4 plain, update 8 [s0]\nblock b3\n  0x401014 1 return\n'
    printf 'block b4\n  0x401005 4 plain\n'
    printf '%s\n' "$@"
    for i in 1 2; do
        printf '%s - b1\n' $i
        for ((k = 0; k < 100 * i; k++)); do printf '%s - b2 %d\n' $i $((5242880 + 64 * k)); done
        printf '%s - b3\n%s - b4\n%s - thread_end 0 0\n' $i $i $i
    done
    printf 'end\n'
}
programs >"$TMP/two.txt" && "$peet" import -o "$TMP/two.peet" "$TMP/two.txt" || exit 1
"$peet" profile -m core --top 0 --format json --callgrind "$TMP/two.callgrind" --stacks "$TMP/two.stacks" "$TMP/two.peet" >"$TMP/two.json" || exit 1
"$peet" profile -m modern --top 0 --format json --callgrind "$TMP/many.callgrind" --stacks "$TMP/many.stacks" "$TMP/two.peet" >"$TMP/many.json" || exit 1
"$peet" profile -m modern --format html -o "$TMP/two.html" "$TMP/two.peet" || exit 1
verdict "functions and data of two programs at equal addresses have the names of their own" "$(
    for of in two many; do
        differs "$(column "$TMP/$of.json" procedures function | sort)" $'main_of_first\nmain_of_second\nwork_of_first\nwork_of_second' "functions"
        # After each function its program.
        for name in first second; do
            grep -q "\"function\": \"work_of_$name\".*\"program\": \"$name\"" "$TMP/$of.json" || echo "$of: work_of_$name is not of $name"
            grep -q "\"object\": \"data_of_$name.*\"function\": \"work_of_$name\"" "$TMP/$of.json" || echo "$of: data of $name"
        done
        differs "$(column "$TMP/$of.json" programs references)" $'100\n200' references
        differs "$(column "$TMP/$of.json" programs misses)" $'100\n200' misses
    done
)"
verdict "so they have in stacks, callgrind files and pages" "$(
    for of in two many; do
        differs "$(sed 's/ [0-9]*$//; s/;\[memory\]//' "$TMP/$of.stacks" | sort -u)" \
            $'first;main_of_first\nfirst;main_of_first;work_of_first\nsecond;main_of_second\nsecond;main_of_second;work_of_second' "stacks of $of"
        for name in main_of_first work_of_first main_of_second work_of_second; do
            grep -q "^fn=([0-9]*) $name$" "$TMP/$of.callgrind" || grep -q "^cfn=([0-9]*) $name$" "$TMP/$of.callgrind" || echo "$of: no $name"
        done
        differs "$(grep '^ob=' "$TMP/$of.callgrind" | sort -u)" $'ob=first\nob=second' "object files of $of"
    done
    for name in work_of_first work_of_second; do grep -q "$name" "$TMP/two.html" || echo "no $name on the page"; done
)"

# ---- frames ----

pages() { # THREAD FRAME: 4 pages from 0x500 on
    for ((i = 0; i < 4; i++)); do printf '%s - page %d %d\n' "$1" $((1280 + i)) $(($2 + i)); done
}
mapfile -t apart < <(pages 1 4096; pages 2 8192)
mapfile -t together < <(pages 1 4096; pages 2 4096)
programs "${apart[@]}" >"$TMP/apart.txt" && "$peet" import -o "$TMP/apart.peet" "$TMP/apart.txt" || exit 1
programs "${together[@]}" >"$TMP/together.txt" && "$peet" import -o "$TMP/together.peet" "$TMP/together.txt" || exit 1
for of in apart together; do
    "$peet" simulate -m modern --format json "$TMP/$of.peet" >"$TMP/$of.json" || exit 1
    "$peet" profile -m modern --top 0 --format json "$TMP/$of.peet" >"$TMP/$of-profile.json" || exit 1
done
verdict "processes share the frames that both have, and nothing else, and the report says what caches see" "$(
    for of in apart together; do
        differs "$(column "$TMP/$of.json" programs addresses | sort -u)" physical "addresses of $of"
        differs "$(column "$TMP/$of-profile.json" programs addresses | sort -u)" physical "addresses of $of, profiled"
    done
    differs "$(sum "$TMP/apart.json" memory misses)" 300 misses
    differs "$(sum "$TMP/apart.json" memory from_caches)" 0 "lines from caches"
    differs "$(sum "$TMP/apart.json" memory invalidations)" 0 "lines taken away"
    # Both write to the first 100 lines of the second one's 200.
    [ "$(sum "$TMP/together.json" memory invalidations)" -ge 100 ] || echo "$(sum "$TMP/together.json" memory invalidations) lines taken away"
)"
"$peet" simulate -m modern --cpus 1 --set cache.l1.bytes=4K --set cache.l1.ways=1 --set cache.l2.bytes=4K --set cache.l2.ways=1 \
    --format json "$TMP/two.peet" >"$TMP/small.json" || exit 1
verdict "whose lines programs evict is told by both programs" "$(
    grep -q '"by": "second", "of": "first", "private": [1-9]' "$TMP/small.json" || sed -n '/"evictions"/,/^  }/p' "$TMP/small.json"
    ! grep -q '"by": "first", "of": "second"' "$TMP/small.json" || echo "the first, which ran before, evicted lines of the second"
)"
"$peet" profile -m modern --cpus 1 --sets 1/4 --format json "$TMP/apart.peet" >"$TMP/sets.json" || exit 1
verdict "sets of a cache are chosen by the addresses that the machine sees" "$(
    differs "$(column "$TMP/sets.json" programs addresses | sort -u)" "by process" "addresses with --sets"
)"
printf 'move data_of_second to 0x900000\n' >"$TMP/rules"
"$peet" simulate -m modern --remap "$TMP/rules" --format json "$TMP/two.peet" >"$TMP/moved.json" 2>"$TMP/moved.err"
verdict "data of one process move without those of another at their addresses" "$(
    [ ! -s "$TMP/moved.err" ] || cat "$TMP/moved.err"
    differs "$(sum "$TMP/moved.json" memory misses)" 300 misses
)"
exit $status
