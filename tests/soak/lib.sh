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

# The words before a command whose recordings are to be compared: the recorder names its process in the environment of the program,
# which lies on its stack, so that one digit more can move all of the stack. With this the environment is as long for all numbers.
# shellcheck disable=SC2016
steady=(bash -c 'printf -v PEET_PADDING "%$((12 - ${#$}))s" ""; export PEET_PADDING; exec "$@"' steady)
