#!/bin/bash
# SPDX-License-Identifier: MIT
# Data objects have the names and types that the sources give them.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
subjects=tests/e2e/subjects

# Records a program into $TMP/NAME.peet and lists its objects in $TMP/NAME.list.
list() { # NAME PROGRAM [ARGUMENT…]
    "$peet" record -o "$TMP/$1.peet" -- "${@:2}" >"$TMP/log" 2>&1 && again "$1" || cat "$TMP/log"
}
again() { # NAME
    "$PEET_BUILD/tests/e2e/objects" "$TMP/$1.peet" >"$TMP/$1.list" 2>"$TMP/log" || cat "$TMP/log"
}
# The object must be there: its kind, name, type ("-": unknown), member that most references are to, and the least number of references.
has() { # LIST KIND NAME TYPE MEMBER COUNT
    awk -F'\t' -v kind="$2" -v name="$3" -v type="$4" -v member="$5" -v count="$6" '
        $2 == kind && $3 == name && $4 == type && $7 == member && $1 >= count { found = 1 }
        END { exit !found }' "$TMP/$1.list" || { echo "no $2 object $3 of type $4, member $5, with $6 references among"; cat "$TMP/$1.list"; }
}

for level in -O0 -O2; do
    "$peet" cc -g $level -Iinclude -o "$TMP/names$level" $subjects/names.c || exit 1
    verdict "variables, blocks, stacks and what the program named have their names ($level)" "$(
        list c$level "$TMP/names$level"
        has c$level variable grid 'double [1000][4]' '[][]' 2000
        has c$level variable of_function::history 'int [1000]' '[]' 2000
        has c$level named lattice - - 1000
        has c$level heap n 'struct node' next 3998
        has c$level stack 'stack of local' - - 2000
    )"
    verdict "blocks of wrappers have the names of their callers, with the place where two are the same ($level)" "$(
        has c$level heap 'p->keys' int '[]' 1500
        has c$level heap "buffer (names.c:$(grep -n '\*buffer = checked' $subjects/names.c | cut -d: -f1))" char '[]' 1000
        has c$level heap "buffer (names.c:$(grep -n '\*buffer = cleared' $subjects/names.c | cut -d: -f1))" char '[]' 1000
    )"
done

verdict "debug information may be in a file of its own" "$(
    cp "$TMP/names-O2" "$TMP/stripped" && objcopy --only-keep-debug "$TMP/stripped" "$TMP/stripped.debug" && strip -g "$TMP/stripped"
    list stripped "$TMP/stripped"
    has stripped heap n 'struct node' next 3998
)"
verdict "without it, objects have the names of symbols and of functions that allocate" "$(
    rm "$TMP/stripped.debug"
    again stripped
    has stripped variable grid - - 2000
    grep -q "$(printf '\theap\tcalloc in ')" "$TMP/stripped.list" || cat "$TMP/stripped.list"
)"
verdict "a program that was built anew is not believed" "$(
    cp "$TMP/names-O2" "$TMP/anew"
    list anew "$TMP/anew"
    has anew heap n 'struct node' next 3998
    cp "$TMP/names-O0" "$TMP/anew"
    again anew
    has anew variable grid - - 2000
)"

for level in -O0 -O2; do
    property="containers and what new makes have the names of C++ ($level)"
    if needs "$property" g++; then
        "$peet" c++ -g $level -o "$TMP/cpp$level" $subjects/names.cc || exit 1
        verdict "$property" "$(
            list cpp$level "$TMP/cpp$level"
            has cpp$level heap cells_ double '[]' 10000
            has cpp$level heap weights_ double '[]' 5000
            has cpp$level heap keys int '[]' 500
            has cpp$level variable sim::list 'sim::Node *' '' 1000
            grep -q "$(printf '\theap\tn\tsim::Node\t500\t16000\t')" "$TMP/cpp$level.list" || cat "$TMP/cpp$level.list"
            grep -q "$(printf '\theap\tnames\tstd::_Rb_tree_node<std::pair<int const, std::string>>\t50\t')" "$TMP/cpp$level.list" || cat "$TMP/cpp$level.list"
        )"
    fi
    property="arrays have the names of Fortran ($level)"
    if needs "$property" gfortran; then
        "$peet" fortran -g $level -J "$TMP" -o "$TMP/fortran$level" $subjects/names.f90 || exit 1
        verdict "$property" "$(
            list fortran$level "$TMP/fortran$level"
            has fortran$level heap grid 'real(kind=8)' '[]' 100000
            has fortran$level heap first 'real(kind=8)' '[]' 400
            has fortran$level heap second 'real(kind=8)' '[]' 300
            has fortran$level heap third 'integer(kind=4)' '[]' 100
            has fortran$level heap p particle '[].mass' 1000
            has fortran$level variable field::fixed 'real(kind=8) (64,32)' '[][]' 128
            has fortran$level variable field::below 'real(kind=8) (300)' '[]' 300
        )"
    fi
done

verdict "the arrays of workloads have the names that their sources give them" "$(
    list tri "$PEET_BUILD/workloads/peet/tri" -g 10 -r 1
    for object in x:double column:int32_t value:double known:double start:int64_t diagonal:double order:int32_t; do
        has tri heap "t->${object%:*}" "${object#*:}" '[]' 1000
    done
    list mp3d "$PEET_BUILD/workloads/peet/mp3d" -n 2000 -l 16 -s 1
    has mp3d heap 't->molecule' 'struct molecule' '[].speed[]' 50000
    list shallow "$PEET_BUILD/workloads/peet/shallow" -n 32 -m 32 -s 2
    has shallow heap 's.field[k]' double '[]' 100000
    list ocean "$PEET_BUILD/workloads/peet/ocean-con" -n 32 -s 0
    has ocean heap 'window_of(…)->at' double '[]' 100000
)"
exit $status
