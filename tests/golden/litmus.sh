#!/bin/bash
# SPDX-License-Identifier: MIT
# Golden litmus tests have the outcomes that they had, and wrong ones the complaints. The outcomes are also those of the axioms:
# tests/oracle/litmus.sh. With "update" as its argument it writes the expectations again.
. tests/lib.sh
peet=$(realpath "${PEET:-$PEET_BUILD/peet}")
export LC_ALL=C
cd tests/golden/litmus || exit 2

# The number of states may change when the search is improved.
good() { "$peet" litmus --format csv --outcomes ./*.litmus | sed '/^table,model,/s/,states$//; /^summary,/s/,[0-9]*$//'; }
bad() { "$peet" litmus --format csv bad/*.litmus; }
if [ "${1:-}" = update ]; then
    good >expected.csv
    bad >expected-bad.csv
    exit 0
fi
verdict "golden litmus tests have their outcomes" "$(good 2>&1 | diff expected.csv -)"
verdict "each wrong file has its complaint" "$(bad 2>"$TMP/complaint" | diff expected-bad.csv -)"
verdict "and standard error has their number" "$(
    echo "peet: 9 of 9 tests could not be read or explored; the table of errors has the reasons" | diff - "$TMP/complaint"
)"
exit $status
