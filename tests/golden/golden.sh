#!/bin/bash
# SPDX-License-Identifier: MIT
# Golden traces decode to their text for ever; damaged ones yield what they yielded, with the same complaint and status.
. tests/lib.sh
peet=${PEET:-$PEET_BUILD/peet}
cd tests/golden || exit 2
for f in good/*.peet; do
    n=${f%.peet}
    verdict "$n decodes to its text" "$("$peet" dump "$f" 2>&1 | diff "$n.expanded" -)"
    verdict "$n decodes to its compact text" "$("$peet" dump --compact "$f" 2>&1 | diff "$n.compact" -)"
    "$peet" import --text "$n.expanded" -o "$TMP/again.peet"
    verdict "$n survives a round trip through text" "$("$peet" dump "$TMP/again.peet" 2>&1 | diff "$n.expanded" -)"
done
cd bad || exit 2
for f in *.peet; do
    n=${f%.peet}
    "$peet" dump "$f" >"$TMP/text" 2>"$TMP/complaint"
    s=$?
    verdict "bad/$n is told with status $(cat "$n.status")" \
        "$([ $s = "$(cat "$n.status")" ] || echo "status $s"; diff "$n.complaint" "$TMP/complaint"; diff "$n.text" "$TMP/text")"
done
exit $status
