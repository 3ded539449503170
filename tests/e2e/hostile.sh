#!/bin/bash
# SPDX-License-Identifier: MIT
# Programs whose names are markup, formulas and control characters, and files that another user left in /tmp.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
"$peet" cc -O1 -w -Iinclude -o "$TMP/hostile" tests/e2e/subjects/hostile.c || exit 1
"$peet" record -o "$TMP/t.peet" -- "$TMP/hostile" >"$TMP/out" 2>&1 || { cat "$TMP/out"; exit 1; }

# Every command that shows names, in a form; also what `profile` writes for other programs.
show() { # FORMAT
    local verb
    for verb in "profile -m core" "simulate -m core" "study sharing" "study allocation" dump; do
        # shellcheck disable=SC2086
        "$peet" $verb --format "$1" "$TMP/t.peet" 2>&1
    done
}
show text >"$TMP/text"
show csv >"$TMP/csv"
"$peet" profile -m core --stacks "$TMP/stacks" --callgrind "$TMP/callgrind" "$TMP/t.peet" >"$TMP/out" 2>&1

verdict "no output for people and tables has control characters, whatever a program calls its data" "$(
    for form in text csv stacks callgrind; do
        [ -s "$TMP/$form" ] || echo "$form: nothing"
        LC_ALL=C grep -anP '[\x00-\x09\x0b-\x1f\x7f]' "$TMP/$form" | head -n 3 | cat -v
    done
)"
verdict "no cell of CSV begins as a formula does" "$(
    grep -q "'=1+1</script>" "$TMP/csv" || echo "the variable is not there"
    grep -q "'@<img" "$TMP/csv" || echo "the data are not there"
    grep -anE '(^|,)"?([=@]|[+-]([^0-9.]|$))' "$TMP/csv" | head -n 5
)"
"$peet" profile -m core --format html -o "$TMP/page.html" "$TMP/t.peet" >"$TMP/out" 2>&1
verdict "no name of a program becomes markup of a page" "$(
    grep -q 'alert(2)' "$TMP/page.html" || echo "the variable is not there"
    grep -anoE '.{0,30}<(script>alert|svg onload|img src=x)' "$TMP/page.html" | head -n 5
)"
if needs "what a program calls its data is JSON all the same" python3; then
    verdict "what a program calls its data is JSON all the same" "$(
        for verb in "profile -m core" "simulate -m core" "study sharing"; do
            # shellcheck disable=SC2086
            "$peet" $verb --format json "$TMP/t.peet" 2>&1 | python3 -m json.tool 2>&1 >"$TMP/json"
            grep -q 'alert' "$TMP/json" || [ "$verb" = "simulate -m core" ] || echo "$verb: no names"
        done
    )"
fi

# A peet that has no library to load into programs records them into a file first.
mkdir -p "$TMP/alone/lib/peet" "$TMP/tmp"
cp "$peet" "$TMP/alone/" && cp "$PEET_BUILD"/lib/peet/as "$PEET_BUILD"/lib/peet/*.a "$PEET_BUILD"/lib/peet/wrap "$TMP/alone/lib/peet/"
echo "mine" >"$TMP/victim"
verdict "profile writes its recording into no file, and through no link, that stands in the folder for temporary files" "$(
    TMPDIR=$TMP/tmp bash -c '
        ln -s "$TMP/victim" "$TMPDIR/peet-profile-$$.peet"
        exec "$TMP/alone/peet" profile -m core -- "$TMP/hostile"' >"$TMP/out" 2>&1 || cat "$TMP/out"
    grep -q '^Profile\|misses' "$TMP/out" || cat "$TMP/out"
    [ "$(cat "$TMP/victim")" = mine ] || echo "the file that the link led to was overwritten"
    left=$(find "$TMP/tmp" -type f)
    [ -z "$left" ] || echo "left behind: $left"
)"
exit $status
