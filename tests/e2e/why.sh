#!/bin/bash
# SPDX-License-Identifier: MIT
# peet compare --why: names the function, data and cause of slowdowns that were planted; its parts add up to the difference.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
for plant in 0 1 2 3 4 5 6 7 8 9; do
    "$peet" cc -g -O1 -DPLANT=$plant -o "$TMP/plant" tests/e2e/subjects/plants.c -lpthread || exit 1
    "$peet" record -o "$TMP/$plant.peet" -- "$TMP/plant" >"$TMP/err" 2>&1 || { cat "$TMP/err"; exit 1; }
done
why() { "$peet" compare --why --cpus 4 --format csv "$@" >"$TMP/csv" 2>"$TMP/err"; } # its status

while read -r plant machine part data cause function; do
    verdict "plant $plant on $machine is $part of ${data/-/$function}: $cause, in $function" "$(
        why -m "$machine" "$TMP/0.peet" "$TMP/$plant.peet" && echo "status 0"
        awk -F, -v part="$part" -v data="${data/-/}" -v cause="${cause/-/}" -v f="$function" '
            { gsub("_", " ", cause) }
            $1 == "why" && ($2 != "worse" || $6 != part || $7 != data || $8 != cause || $9 != f) { print }
            $1 == "why" { rows++ } END { if (rows != 1) print rows + 0 " rows" }' "$TMP/csv"
        awk -F, -v cpus=4 '
            $1 == "why" { whole = cpus * ($4 - $3) } $1 == "parts" { parts += $5 } $1 == "details" { details += $8 }
            END {
                if (whole == 0 || (parts / whole - 1) ^ 2 > 1e-4) print "parts: " parts ", not " whole
                if (whole == 0 || (details / whole - 1) ^ 2 > 1e-4) print "details: " details ", not " whole
            }' "$TMP/csv"
    )"
done <<'END'
1 modern instructions - - mix
2 modern instructions - - find
3 modern misses matrix in_a_farther_cache walk
4 modern misses item cold visit
5 sato1999 misses row conflict columns
6 modern misses counter false_sharing count
7 modern lock gate lock protect
8 modern barrier barrier barrier run
9 modern misses shared_sum true_sharing sum_up
END
verdict "the other way round it is better, and the exit code is 0" "$(
    why "$TMP/6.peet" "$TMP/0.peet" || echo "status $?"
    grep -q '^why,better,.*,misses,counter,false sharing,count,' "$TMP/csv" || cat "$TMP/csv"
    why "$TMP/0.peet" "$TMP/0.peet" || echo "status $?"
    grep -q '^why,same,' "$TMP/csv" || cat "$TMP/csv"
)"
verdict "--allow is the limit of the exit code" "$(
    change=$(why "$TMP/0.peet" "$TMP/1.peet"; awk -F, '$1 == "why" { print 100 * $5 }' "$TMP/csv")
    why --allow "$(awk -v c="$change" 'BEGIN { print c + 0.01 }')%" "$TMP/0.peet" "$TMP/1.peet" || echo "above: $?"
    why --allow "$(awk -v c="$change" 'BEGIN { print c - 0.01 }')" "$TMP/0.peet" "$TMP/1.peet"
    [ $? = 1 ] || echo "below is no status 1"
)"
verdict "options that do not go with it are errors" "$(
    why --edits "$TMP/0.peet" "$TMP/1.peet"; [ $? = 2 ] || echo "--edits"
    "$peet" compare -m modern "$TMP/0.peet" "$TMP/1.peet" >/dev/null 2>&1; [ $? = 2 ] || echo "-m without --why"
)"
exit $status
