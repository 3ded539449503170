#!/bin/bash
# SPDX-License-Identifier: MIT
# peet slack on programs of which it is known what they need, and its predictions against the programs that were changed in that way.
set -u
. tests/lib.sh
if ! command -v python3 >/dev/null; then
    skip "peet slack names what is needed and predicts what a change gains" "needs python3"
    exit $status
fi
peet=$PEET_BUILD/peet
workloads=$PEET_BUILD/workloads/peet

record() { # NAME PROGRAM [ARGUMENT…]
    "$peet" record -o "$TMP/$1.peet" -- "$workloads/$2" "${@:3}" >"$TMP/err" 2>&1 || cat "$TMP/err"
}
slack() { # NAME OPTION…: as JSON
    "$peet" slack --format json "${@:2}" "$TMP/$1.peet" >"$TMP/$1.json" 2>"$TMP/err" || { echo "status $?"; cat "$TMP/err"; }
}
cycles() { # NAME OPTION…
    "$peet" simulate --format json "${@:2}" "$TMP/$1.peet" | python3 -c 'import json, sys; print(json.load(sys.stdin)["runs"]["rows"][0]["cycles"])'
}
line() { # PATTERN FILE: line of the source
    grep -n "$1" "workloads/$2" | cut -d: -f1
}

cat >"$TMP/ask.py" <<'END'
import json, sys
tables = {name: t["rows"] for name, t in json.load(open(sys.argv[1])).items() if isinstance(t, dict)}
units = tables["synchronization"]
what, words = sys.argv[2], sys.argv[3:]
if what == "unneeded":  # exactly one barrier, at that line
    found = [u["place"] for u in units if u["verdict"] == "not needed"]
    if len(found) != 1 or not found[0].endswith(":" + words[0]):
        print("not needed:", found, "expected line", words[0])
    needed = [u for u in units if u["kind"] == "barrier" and u["verdict"] == "needed"]
    if len(needed) != 4:
        print(len(needed), "barriers are needed")
elif what == "prediction":  # of a change, within 5 % of the cycles of the program that was changed
    rows = [p for p in tables["predictions"] if p["unit"].endswith(words[0]) and words[1] in p["change"]]
    if len(rows) != 1 or abs(rows[0]["cycles"] / float(words[2]) - 1) > 0.05:
        print("predicted", rows, "simulated", words[2])
elif what == "parts":
    rows = [l for l in tables["locks"] if l["parts"] == 2]
    if len(tables["locks"]) != 1 or len(rows) != 1 or set(rows[0]["objects"].split(" | ")) != set(words):
        print("locks:", tables["locks"])
elif what == "verdict":
    for u in units:
        print(u["kind"], u["verdict"], u["needed_runs"], u["runs"])
elif what == "candidate":
    print([l["candidate"] for l in tables["locks"]])
END
ask() { python3 "$TMP/ask.py" "$TMP/$1.json" "${@:2}"; }

verdict "of five barriers, the one that is not needed is named, and no other" "$(
    record spare spare -r 8
    slack spare
    ask spare unneeded "$(line 's->keep)' spare.c | head -n 1 | awk '{ print $1 + 1 }')"
)"

verdict "without that barrier the program takes the predicted time" "$(
    record fewer spare -r 8 -k 0
    ask spare prediction ":$(line 's->keep)' spare.c | head -n 1 | awk '{ print $1 + 1 }')" removed "$(cycles fewer)"
)"

verdict "a lock over two independent tables is named, with both" "$(
    record coarse coarse -u 200
    slack coarse
    ask coarse parts s.left s.right
)"

verdict "with a lock for each table the program takes the predicted time" "$(
    record two coarse -u 200 -l 2
    ask coarse prediction "$(line 'pthread_mutex_lock' coarse.c)" "groups of data objects" "$(cycles two)"
)"

verdict "verdicts are over as many schedules as there are seeds" "$(
    slack spare --seeds 3 --predict 0
    ask spare verdict | grep barrier | sort | uniq -c | tr -s ' ' >"$TMP/verdicts"
    printf ' 4 barrier needed 3 3\n 1 barrier not needed 0 3\n' | diff "$TMP/verdicts" -
)"

verdict "all formats have the units, and a page has the timeline" "$(
    for format in text json csv html; do
        "$peet" slack --predict 1 --format $format -o "$TMP/out.$format" "$TMP/coarse.peet" || echo "$format: status $?"
        grep -q coarse.c "$TMP/out.$format" || echo "$format: no lock"
    done
    grep -q 'Waiting over time' "$TMP/out.html" || echo "no timeline"
)"

verdict "a program is recorded first, and its status passed on" "$(
    "$peet" slack --predict 0 --trace "$TMP/kept.peet" -- "$workloads/spare" -r 2 >"$TMP/out" 2>"$TMP/err" || echo "status $?"
    grep -q spare.c "$TMP/out" || echo "no barrier"
    "$peet" check "$TMP/kept.peet" >"$TMP/out" 2>&1 || echo "not kept"
    "$peet" slack --predict 0 -- "$workloads/spare" -r 0 >"$TMP/out" 2>"$TMP/err"
    [ $? = 2 ] || echo "the status of a program with wrong options is lost"
)"

# Programs of a few lines.
cc() { "$peet" cc -O1 -g -o "$TMP/$1" -x c - -pthread >"$TMP/err" 2>&1 || cat "$TMP/err"; }

verdict "a lock whose sections only read is a candidate for a reader lock, and one without conflicts for splitting" "$(
    cc readers <<'END'
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int table[256];
static volatile long sum[64];
static void *run(void *own)
{
    long id = (long)own, all = 0;
    for (int r = 0; r < 50; r++) {
        pthread_mutex_lock(&lock);
        for (int i = 0; i < 256; i++)
            all += table[i];
        pthread_mutex_unlock(&lock);
    }
    sum[8 * id] = all;
    return 0;
}
int main(void)
{
    pthread_t t[4];
    for (int i = 0; i < 256; i++)
        table[i] = i;
    for (long i = 0; i < 4; i++)
        pthread_create(&t[i], 0, run, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], 0);
    return sum[0] == 0;
}
END
    "$peet" record -o "$TMP/readers.peet" -- "$TMP/readers" >/dev/null 2>&1
    slack readers
    ask readers candidate | grep -q "'reader lock'" || ask readers candidate
    cc apart <<'END'
#include <pthread.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long count[64];
static void *run(void *own)
{
    for (int r = 0; r < 500; r++) {
        pthread_mutex_lock(&lock);
        count[8 * (long)own]++;
        pthread_mutex_unlock(&lock);
    }
    return 0;
}
int main(void)
{
    pthread_t t[4];
    for (long i = 0; i < 4; i++)
        pthread_create(&t[i], 0, run, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], 0);
    return count[0] != 500;
}
END
    "$peet" record -o "$TMP/apart.peet" -- "$TMP/apart" >/dev/null 2>&1
    slack apart
    ask apart candidate | grep -q "'splitting or removal'" || ask apart candidate
)"

verdict "mistakes in options are reported" "$(
    "$peet" slack >"$TMP/out" 2>&1
    [ $? = 2 ] || echo "no operand: not 2"
    "$peet" slack --seeds 5000 "$TMP/spare.peet" >"$TMP/out" 2>&1
    [ $? = 2 ] || echo "too many seeds: not 2"
    "$peet" slack "$TMP/none.peet" >"$TMP/out" 2>&1
    [ $? = 3 ] || echo "no trace: not 3"
)"

exit $status
