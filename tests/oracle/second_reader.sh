#!/bin/bash
# SPDX-License-Identifier: MIT
# The document of the trace format is complete: a reader that was made from it alone (second_reader.py) reads the same as
# the library (listing.c), record by record, from whole traces, from those that are cut off and from damaged ones, and
# both agree about which of them are whole.
set -u
cd "$(dirname "$0")/../.." || exit 2
. tests/lib.sh
dir=$(mktemp -d "${TMP:-/tmp}/reader.XXXXXX") || exit 2
trap 'rm -rf "$dir"' EXIT
listing=${PEET_BUILD:-build}/tests/oracle/listing
seeds="1 2 3 4 5 6 7 8 9 10"
whole="the document is enough to read a whole trace"
cut="the document is enough to read a trace that is cut off"
damaged="the document is enough to read a damaged trace"
all_skip() { # REASON
    for name in "$whole" "$cut" "$damaged"; do skip "$name" "$1"; done
    exit 0
}
command -v python3 >/dev/null || all_skip "needs python3"
python3 -c 'import ctypes; ctypes.CDLL("libzstd.so.1"), ctypes.CDLL("libxxhash.so.0")' 2>/dev/null ||
    all_skip "python3 finds no libzstd.so.1 and libxxhash.so.0"

# Complains where the readers differ about a file, or do not end with one of the statuses.
compare() { # NAME FILE STATUS…
    local name=$1 file=$2 library document
    shift 2
    "$listing" --read "$file" >"$dir/library" 2>"$dir/library.err"
    library=$?
    python3 tests/oracle/second_reader.py "$file" >"$dir/document" 2>"$dir/document.err"
    document=$?
    if [ $library != $document ] || [[ " $* " != *" $document "* ]]; then
        echo "$name: the library ends with $library, the second reader with $document, expected: $*"
        head -n 3 "$dir/library.err" "$dir/document.err"
    fi
    cmp -s "$dir/library" "$dir/document" ||
        { echo "$name:"; diff "$dir/library" "$dir/document" | head -n 10; }
}

verdict "$whole" "$(
    for seed in $seeds; do
        "$listing" "$seed" "$dir/$seed.peet" || echo "seed $seed: no trace was written"
        compare "seed $seed" "$dir/$seed.peet" $((seed % 7 ? 0 : 4))
        cut -d ' ' -f 2 "$dir/library" >>"$dir/kinds"
    done
    for kind in b l s u p e; do
        grep -qx $kind "$dir/kinds" || echo "no record of kind $kind: the traces prove little"
    done
)"

verdict "$cut" "$(
    for seed in $seeds; do
        size=$(stat -c %s "$dir/$seed.peet")
        head -c $((size * seed / 11)) "$dir/$seed.peet" >"$dir/cut"
        compare "seed $seed, $((size * seed / 11)) of $size bytes" "$dir/cut" 4
    done
    head -c $((size - 1)) "$dir/$seed.peet" >"$dir/cut"
    compare "seed $seed, without its last byte" "$dir/cut" 4
    head -c 31 "$dir/$seed.peet" >"$dir/cut"
    compare "seed $seed, 31 bytes" "$dir/cut" 3
)"

# A byte here and there is another one, and in every other trace the index cannot be used.
verdict "$damaged" "$(
    for seed in 1 3 5 7 9; do
        size=$(stat -c %s "$dir/$seed.peet")
        head -c $((size - seed % 4 / 2)) "$dir/$seed.peet" >"$dir/damaged"
        for part in 3 5 8; do
            at=$((size * (part * 10 + seed) / 100))
            byte=$(od -An -tu1 -j $at -N 1 "$dir/damaged")
            # shellcheck disable=SC2059
            printf "\\x$(printf %02x $((byte ^ 16)))" | dd of="$dir/damaged" bs=1 seek=$at conv=notrunc status=none
        done
        compare "seed $seed, damaged" "$dir/damaged" 4
    done
)"
exit $status
