# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034
# For the scripts here and their short forms in tests/e2e, in the root of the tree: tests/lib.sh, where things are, and $work, an
# empty folder, which is $TMP where a test has one.
. tests/lib.sh
build=${PEET_BUILD:-$PWD/build}
peet=$build/peet same=$build/tests/e2e/same
work=${TMP:-$(mktemp -d "${TMPDIR:-/tmp}/peet-soak.XXXXXX")} || exit 2
[ -n "${TMP:-}" ] || trap 'rm -rf "$work"' EXIT
