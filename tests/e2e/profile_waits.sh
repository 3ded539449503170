#!/bin/bash
# SPDX-License-Identifier: MIT
# The place of a wait is the line of the program that calls, also where a library waits.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet

# KIND PLACE of each row of the table of waits.
waits() { # COMMAND AND OPTIONS OF peet profile
    "$peet" profile -m modern --format csv "$@" 2>"$TMP/err" >"$TMP/csv" || cat "$TMP/err"
    python3 -c 'import csv, sys
head = None
for row in csv.reader(open(sys.argv[1])):
    if row and row[0] == "table": head = row
    elif row and row[0] == "waits": print(row[head.index("kind")], row[head.index("place")].rsplit("/", 1)[-1])' "$TMP/csv" | sort -u
}

if ! command -v python3 >/dev/null; then
    skip "waits in the C library are of the line that calls it" "needs python3"
elif [ -f "$PEET_BUILD/lib/peet/libpeet-machine.so" ]; then
    "$peet" cc -g -O1 -w -o "$TMP/library_waits" tests/e2e/subjects/library_waits.c -lpthread || exit 1
    verdict "waits in the C library are of the line that calls it" "$(
        waits -- "$TMP/library_waits" >"$TMP/found"
        for line in $(grep -n '/\* waits \*/' tests/e2e/subjects/library_waits.c | cut -d : -f 1); do
            grep -qx "yield library_waits.c:$line" "$TMP/found" || { echo "line $line:"; cat "$TMP/found"; }
        done)"
else
    skip "waits in the C library are of the line that calls it" "needs libpeet-machine.so"
fi

printf '#include <thread>\nstatic volatile long x;\nint main() {\n    std::thread t([] { for (long i = 0; i < 300000; i++) x = x + i; });\n    t.join();\n}\n' >"$TMP/join.cc"
if "$peet" c++ -g -O1 -o "$TMP/join" "$TMP/join.cc" -lpthread 2>"$TMP/err"; then
    verdict "waits in the C++ library are of the line that calls it" "$(
        "$peet" record -o "$TMP/join.peet" -- "$TMP/join" >/dev/null 2>&1
        waits "$TMP/join.peet" >"$TMP/found"
        grep -q "join.cc:5" "$TMP/found" || cat "$TMP/found")"
else
    skip "waits in the C++ library are of the line that calls it" "needs g++"
fi
exit $status
