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

property="speculation past barriers keeps the bars of its experiment"
if [ -n "${SAN:-}" ]; then
    skip "$property" "needs a build without sanitizers, for its time"
else
    verdict "$property" "$(
        experiments/sato-fig4 --quick --out "$TMP/sato" >"$TMP/out" 2>&1 || { cat "$TMP/out"; echo "status $?"; }
        tail -n 1 "$TMP/out" | grep -q '^lu_con=.* wrong=0$' || echo "no figures in the last line"
        [ "$(wc -l <"$TMP/sato/claims.csv")" = 30 ] || echo "claims.csv is not whole"
        experiments/sato-fig4 --slow >"$TMP/out" 2>&1
        [ $? = 2 ] || echo "an unknown option is not told"
    )"
fi

property="intervals of sampled profiles hold the truth"
if [ -n "${SAN:-}" ]; then
    skip "$property" "needs a build without sanitizers, for its time"
elif ! grep -q ' fsgsbase' /proc/cpuinfo; then
    skip "$property" "needs a processor with fsgsbase"
else
    verdict "$property" "$(
        experiments/sampling-truth --quick --out "$TMP/sampling" >"$TMP/out" 2>&1 || { cat "$TMP/out"; echo "status $?"; }
        tail -n 1 "$TMP/out" | grep -q '^rows=[0-9]* coverage=' || echo "no figures in the last line"
        experiments/sampling-truth --slow >"$TMP/out" 2>&1
        [ $? = 2 ] || echo "an unknown option is not told"
    )"
fi

property="traces of Ji et al. equal single-stepping, and only waiting differs with threads"
offline=--offline
[ "${PEET_SYSTEM:-}" != 1 ] || offline=
if [ -n "${SAN:-}" ]; then
    skip "$property" "needs a build without sanitizers, for its time"
elif [ "$(uname -m)" != x86_64 ] || [ "${PEET_SYSTEM:-}" = 0 ] || ! "$PEET_BUILD/lib/peet/get-system" $offline x86_64 >"$TMP/parts" 2>&1; then
    skip "$property" "needs x86-64, QEMU and a kernel (PEET_SYSTEM=1 gets them)"
else
    verdict "$property" "$(
        experiments/ji-exact --quick --out "$TMP/ji" >"$TMP/out" 2>&1 || { echo "status $?"; cat "$TMP/out"; }
        tail -n 1 "$TMP/out" | grep -q '^guests=7 exact=6 .* missing=0 foreign=0 ' || echo "no figures in the last line"
        [ "$(wc -l <"$TMP/ji/exact.csv") $(wc -l <"$TMP/ji/ji.csv")" = "7 7" ] || echo "tables are not whole"
        [ "$(grep -c '^quality: ' "$TMP/out")" = 3 ] || echo "nothing of completeness, detail and distortion"
        if command -v gnuplot >/dev/null; then for f in ji3 ji4 ji5 ji6 ji-waiting; do grep -q '</svg>' "$TMP/ji/$f.svg" || echo "no plot ($f)"; done; fi
    )"
fi
property="longer patterns are found less often where nobody put them (J16)"
if [ -n "${SAN:-}" ] || [ "${PEET_SYSTEM:-}" != 1 ] || [ "$(uname -m)" != x86_64 ] || ! "$PEET_BUILD/lib/peet/get-system" x86_64 >"$TMP/parts" 2>&1; then
    skip "$property" "takes a while (PEET_SYSTEM=1 runs it)"
else
    holds "$property" experiments/ji-false --quick --out "$TMP/false"
fi
property="without QEMU the experiment says what is missing"
verdict "$property" "$(
    PEET_QEMU=./none experiments/ji-exact --out "$TMP/none" >"$TMP/out" 2>&1
    [ $? = 77 ] || echo "not skipped"
    grep -q 'skipped: .*' "$TMP/out" || cat "$TMP/out"
    experiments/ji-exact --slow >"$TMP/out" 2>&1
    [ $? = 2 ] || echo "an unknown option is not told"
)"
exit $status
