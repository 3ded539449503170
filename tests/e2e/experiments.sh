#!/bin/bash
# SPDX-License-Identifier: MIT
# The quick forms of experiments keep their bars.
set -u
. tests/lib.sh

property="figure 2 of the PEET paper has its shape, and live and trace agree"
if [ -n "${SAN:-}" ]; then
    skip "$property" "needs a build without sanitizers, for its time"
else
    verdict "$property" "$(
        experiments/peet-fig2 --quick --out "$TMP/fig2" >"$TMP/out" 2>&1 || { cat "$TMP/out"; echo "status $?"; }
        tail -n 1 "$TMP/out" | grep -q '^instructions=.* phases=8 ' || echo "no figures in the last line"
        [ "$(wc -l <"$TMP/fig2/fig2.csv")" = 17 ] || echo "fig2.csv is not whole"
        if command -v gnuplot >/dev/null; then for f in a b c; do grep -q '</svg>' "$TMP/fig2/fig2$f.svg" || echo "no plot ($f)"; done; fi
        experiments/peet-fig2 --slow >"$TMP/out" 2>&1
        [ $? = 2 ] || echo "an unknown option is not told"
    )"
fi
exit $status
