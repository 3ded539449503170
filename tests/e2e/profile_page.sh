#!/bin/bash
# SPDX-License-Identifier: MIT
# The page of peet profile in a browser: off-line, by the keyboard, by ear, on a phone; with names that would do harm; from samples.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
property="the page of a profile can be read by everybody"
browser=
for b in chromium-headless-shell chromium chromium-browser; do
    command -v $b >/dev/null && browser=$b && break
done
[ -n "$browser" ] || { skip "$property" "needs chromium"; exit 0; }
needs "$property" python3 || exit 0
needs "$property" g++ || exit 0

"$peet" c++ -O1 -g -Iinclude -o "$TMP/harm" tests/e2e/subjects/harm.cc -lpthread || exit 1
# A title that would do harm, too.
trace="$TMP/\"'><script>document.title='owned'<img src=x onerror=alert(1)>&amp;.peet"
"$peet" record -o "$trace" -- "$TMP/harm" >/dev/null 2>&1 || exit 1
make_page() { # NAME OPTION…
    local name=$1
    shift
    "$peet" profile -m memspy-16k --cpus 2 --format html -o "$TMP/$name.html" "$@" "$trace" 2>"$TMP/err" || cat "$TMP/err"
}
look_at() { # NAME [WANT…]
    python3 tests/e2e/page.py $browser "$TMP/$1.html" "$TMP/browser" "${@:2}" 2>&1
}
make_page full
if ! grep -q '<figure' "$TMP/full.html"; then
    skip "$property" "needs node-d3, at build time"
    exit 0
fi
tables=bottlenecks,summary,causes,procedures,objects,objects_by_procedure,lines,evictions,sharing,over_time,source
verdict "$property" "$(look_at full "tables=$tables" plots=bars,matrix,steps)"
verdict "names of the program are text, whatever they are" "$(
    look_at full "says=walk<script>" "says=count_up<alert>" "says=<b onclick=alert(1)>&lt;.cc" \
        "says=\"'><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">&amp;\\n\\xff\\u{202e}" \
        "says=\"'><script>document.title='owned'<img src=x onerror=alert(1)>&amp;.peet"
)"
verdict "from samples, bars have errors" "$(
    make_page sampled --sample 1/2 --length 1000
    look_at sampled "tables=estimates,$tables" plots=bars,matrix,steps
    sed 's|</body>|<script>document.body.append(`${document.querySelectorAll("#estimates .error").length} errors`);</script></body>|' \
        "$TMP/sampled.html" >"$TMP/counted.html"
    look_at counted "says=0 errors" | grep -q 'does not say 0 errors' || echo "no error is drawn"
)"
"$peet" profile -m memspy-16k --format html --top 0 -o "$TMP/difference.html" diff "$trace" "$trace" 2>"$TMP/err"
verdict "the page of a comparison can be read, too" "$(look_at difference "tables=summary,changes")"

# Pages that are wrong are found out.
finds() { # FAULT COMPLAINT SED-SCRIPT
    sed -e "$3" "$TMP/full.html" >"$TMP/wrong.html"
    cmp -s "$TMP/full.html" "$TMP/wrong.html" && echo "the page has not become wrong: $1"
    look_at wrong >"$TMP/complaints"
    grep -q "$2" "$TMP/complaints" || { echo "$1 is not found; instead:"; cat "$TMP/complaints"; }
}
verdict "pages with faults are found out" "$(
    finds "a request" "asks for http:\|the browser says" 's|<main |<img src="http://127.0.0.1:9/x.png" alt="x"/><main |'
    finds "an error" "a script failed" 's|</body>|<script>nothing.at.all();</script></body>|'
    finds "a wide text" "wide on 360" 's|</main>|<p style="width: 500px">x</p></main>|'
    finds "a heading without scope" "no scope" 's|<th scope="col">|<th>|'
    finds "a table without caption" "without caption" '0,/<caption/s|<caption.*</caption>||'
    finds "a pale text" "contrast" 's|--quiet: #5b6472|--quiet: #bbb|'
    finds "what the keyboard cannot reach" "Tab goes through" 's|<summary>|<summary tabindex="-1">|'
    finds "a name that is not escaped" "not ours" 's|walk&#60;script&#62;|<b onclick="x()">walk</b>|'
)"
exit $status
