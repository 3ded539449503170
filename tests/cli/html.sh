#!/bin/bash
# SPDX-License-Identifier: MIT
# The page of --format html: its structure, its escapes, and what a browser makes of it.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
browser=
for b in chromium-headless-shell chromium chromium-browser; do
    command -v $b >/dev/null && browser=$b && break
done

# A name that would do harm in text and in quotes.
harm="\"'><script>document.title='owned'<img src=x onerror=\"document.title='owned'\">&amp;"
trace=$TMP/$harm.peet
"$peet" record -o "$trace" -- "$PEET_BUILD/workloads/peet/mp3d" -n 500 -s 3 -p 4 >/dev/null 2>&1 || exit 1
"$peet" simulate -m shallow-bus --cpus 1,2,4 --format html "$trace" >"$TMP/page.html" || exit 1
drawn=$(grep -c '<figure' "$TMP/page.html")

well_formed() { # FILE
    python3 - "$1" <<'END'
import re, sys, xml.etree.ElementTree as tree
text = open(sys.argv[1], encoding="utf-8").read()
if not text.startswith("<!DOCTYPE html>\n"):
    print("it does not begin as a page of HTML")
text = re.sub(r"(?s)(<(script|style)>).*?</\2>", r"\1</\2>", text)
try:
    root = tree.fromstring(text)
except tree.ParseError as error:
    sys.exit("not well-formed: %s: %s" % (error, text.split("\n")[error.position[0] - 1][:200]))
name = lambda e: e.tag.split("}")[1]
ids = [e.get("id") for e in root.iter() if e.get("id")]
for i in set(ids):
    if ids.count(i) > 1:
        print("two have the id " + i)
for e in root.iter():
    for a in ("href", "aria-labelledby", "aria-describedby"):
        if a in e.attrib and not e.get(a).startswith("data:") and e.get(a).lstrip("#") not in ids:
            print("%s leads to nothing: %s" % (a, e.get(a)))
    if name(e) in ("script", "link", "img", "iframe") and "src" in e.attrib:
        print("something is taken from elsewhere: " + e.get("src"))
    if name(e) == "table" and not any(name(c) == "caption" for c in e):
        print("a table without caption")
    if name(e) == "table":
        rows = [len(r) for r in e.iter() if name(r) == "tr"]
        if len(set(rows)) > 1:
            print("rows of different lengths")
for f in root.iter():
    if name(f) == "figure" and not (f.get("data-over") and f.get("data-of")):
        print("a figure of nothing")
END
}
property="the page is well-formed, its links lead somewhere, every table has a caption"
if needs "$property" python3; then verdict "$property" "$(well_formed "$TMP/page.html")"; fi

verdict "a name cannot become a part of the page" "$(
    sed '/^<script>$/,/^<\/script>$/d' "$TMP/page.html" >"$TMP/visible"
    grep -n '<img\|<script\|onerror="' "$TMP/visible"
    grep -q '&#60;img src=x onerror=&#34;' "$TMP/visible" || echo "the name does not occur"
    [ "$(grep -c '</script' "$TMP/page.html")" -le 2 ] || echo "more than two scripts end"
)"

verdict "the page has every table of the result, and every row" "$(
    "$peet" simulate -m shallow-bus --cpus 1,2,4 --format csv "$trace" >"$TMP/all.csv"
    for table in runs times memory objects fabric; do
        in_csv=$(grep -c "^$table," "$TMP/all.csv")
        in_page=$(sed -n "/^<section id=\"$table\"/,/^<\/section/p" "$TMP/page.html" | grep -c '^<tr>')
        [ "$in_csv" = "$in_page" ] || echo "$table: $in_page rows in place of $in_csv"
    done
    "$peet" simulate -m shallow-bus --cpus 1,2,4 --format html -o "$TMP/file.html" "$trace"
    cmp "$TMP/page.html" "$TMP/file.html" 2>&1
    "$peet" simulate -m shallow-bus -o "$TMP/no/such/folder" "$trace" 2>"$TMP/complaint"
    code=$?
    [ $code = 3 ] && grep -q 'no/such/folder' "$TMP/complaint" || echo "status $code: $(cat "$TMP/complaint")"
)"

verdict "a page of a build without D3 has its table unfolded and says why there is no plot" "$(
    "$PEET_BUILD/tests/cli/bare_page" >"$TMP/bare.html" || echo "status $?"
    [ "$(grep -c 'Plots were left out when this peet was built' "$TMP/bare.html")" = 1 ] || echo "it does not say so"
    [ "$(grep -c '^<tr>' "$TMP/bare.html")" = 100 ] || echo "it lacks rows"
    grep '<figure\|<details' "$TMP/bare.html"
    ! command -v python3 >/dev/null || well_formed "$TMP/bare.html"
    env -u MAKEFLAGS -u MAKELEVEL make -s B="$TMP/build" D3= DEPS=: "$TMP/build/page.c" >"$TMP/out" 2>&1 || cat "$TMP/out"
    grep -q 'no plots in HTML pages' "$TMP/out" || echo "the build does not say that there are no plots"
    tail -n 2 "$TMP/build/page.c" | tr -d '\n' | grep -q 'html_library\[\] = {0 };' || echo "the library is not empty"
)"

browse() { # FILE OUT LOG: what the page has become, and what was asked for on the way; nothing leaves this machine
    timeout 300 $browser --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update --disable-sync \
        --host-resolver-rules="MAP * ~NOTFOUND, EXCLUDE 127.0.0.1" --user-data-dir="$TMP/profile" --virtual-time-budget=3000 \
        --enable-logging=stderr --log-net-log="$3" --dump-dom "file://$1" >"$2" 2>"$2.err"
}
# LOG: what the page asks for. Browsers ask for other things, too: these are begun by what is "not an origin".
asked_for() {
    grep '"initiator":"' "$1" | grep -v '"initiator":"not an origin"' | grep -o '"url":"[a-z]*://[^"]*"' | grep -v '"file:' | sort -u
}

property="a browser draws every plot, sorts by a column, asks for nothing and runs nothing else"
if [ -z "$browser" ]; then
    skip "$property" "needs chromium"
elif [ "$drawn" = 0 ]; then
    skip "$property" "needs node-d3, at build time"
else
    { # the largest number of instructions comes to the top
        cat "$TMP/page.html"
        echo '<script>document.querySelector("#times thead th:nth-child(2) button").click();'
        echo 'document.body.dataset.first = document.querySelector("#times tbody td:nth-child(2)").dataset.value;</script>'
    } >"$TMP/clicked.html"
    verdict "$property" "$(
        printf '<!DOCTYPE html><img src="http://127.0.0.1:9/x.png">' >"$TMP/asks.html"
        browse "$TMP/asks.html" "$TMP/asks.dom" "$TMP/asks.net"
        asked_for "$TMP/asks.net" | grep -q 127.0.0.1 || echo "a page that asks for something is not found out"
        browse "$TMP/clicked.html" "$TMP/dom" "$TMP/net" || { echo "status $?"; cat "$TMP/dom.err"; }
        asked_for "$TMP/net"
        grep 'CONSOLE' "$TMP/dom.err"
        grep -o '<title>owned' "$TMP/dom"
        # One drawing a figure, none of them empty; figures of which all is zero are taken away.
        figures=$(grep -o '<figure data-plot' "$TMP/dom" | wc -l)
        drawings=$(grep -o '<svg role="img"' "$TMP/dom" | wc -l)
        [ "$figures" -ge 8 ] && [ "$figures" = "$drawings" ] || echo "$drawings drawings in $figures figures of $drawn"
        for kind in lines stack bars steps; do
            sed -n "/<figure data-plot=\"$kind\"/,/<\/figure>/p" "$TMP/dom" | grep -q '"mark' || echo "no plot of $kind is drawn"
        done
        grep -q 'NaN' <<<"$(grep -o '<\(path\|rect\|circle\)[^>]*>' "$TMP/dom")" && echo "something is drawn nowhere"
        largest=$(sed -n 's/^times,[0-9]*,\([0-9]*\),.*/\1/p' "$TMP/all.csv" | sort -n | tail -n 1)
        grep -q "data-first=\"$largest\"" "$TMP/dom" || echo "sorting did not bring $largest to the top"
        grep -q 'aria-sort="descending"' "$TMP/dom" || echo "nothing says how it is sorted"
    )"
fi
exit $status
