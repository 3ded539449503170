#!/bin/bash
# SPDX-License-Identifier: MIT
# What runs a program ends with the program's own status, and what was stopped says that its report is of a part.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
"$peet" cc -O1 -o "$TMP/statuses" tests/e2e/subjects/statuses.c || exit 1
MODES=("profile -m core" "profile -m sato1999 --trace $TMP/kept.peet" "simulate -m ideal" "simulate -m ideal --apart")

for mode in "${MODES[@]}"; do
    # shellcheck disable=SC2086
    verdict "${mode/ --trace*/ --trace} ends with the program's own status, and with its signal's" "$(
        for is in "code 3" "signal 139"; do
            "$peet" $mode --format json -- "$TMP/statuses" ${is% *} >"$TMP/out" 2>"$TMP/err"
            status=$?
            [ $status = ${is#* } ] || { echo "after $is: status $status"; cat "$TMP/err"; }
            grep -q '"extent": "whole"' "$TMP/out" || { echo "after $is:"; tail -n 20 "$TMP/out"; }
        done
    )"
done

# timeout sends the signal to peet, which passes it on, and to all of the group: the program gets it two or three times at once.
interrupt() { # SIGNAL FILE COMMAND…: what is in FILE is there when the program has begun; yields the command's status
    local number=$1 file=$2 pid i
    shift 2
    rm -f "$file"
    env --default-signal=INT timeout --preserve-status -k 10 300 "$@" >"$TMP/out" 2>"$TMP/err" &
    pid=$!
    for ((i = 0; i < 600; i++)); do
        [ ! -e "$file" ] || break
        sleep 0.1
    done
    sleep 0.3
    kill -s "$number" $pid
    wait $pid
}
is_part() { # STATUS WANTED
    [ "$1" = "$2" ] || { echo "status $1, not $2"; cat "$TMP/err"; }
    grep -q '"extent": "part"' "$TMP/out" || { echo "not told to be a part:"; tail -n 20 "$TMP/out"; }
}
for mode in "${MODES[@]}"; do
    case $mode in *--trace*) continue ;; esac # its profile would be of all that was recorded, which may take minutes
    # shellcheck disable=SC2086
    verdict "$mode after Ctrl-C ends with 130, after SIGTERM with 143, and tells that it saw a part" "$(
        for is in "INT 130" "TERM 143"; do
            interrupt ${is% *} "$TMP/begun" "$peet" $mode --format json -- "$TMP/statuses" stop "$TMP/begun"
            is_part $? ${is#* }
        done
    )"
    # shellcheck disable=SC2086
    verdict "$mode ends with what a program that handles Ctrl-C ends with" "$(
        interrupt INT "$TMP/begun" "$peet" $mode --format json -- "$TMP/statuses" own "$TMP/begun"
        status=$?
        [ $status = 5 ] || { echo "status $status"; cat "$TMP/err"; }
        grep -q '"extent": "whole"' "$TMP/out" || tail -n 20 "$TMP/out"
    )"
done
exit $status
