#!/bin/sh
# SPDX-License-Identifier: MIT
# The explorer of litmus tests finds the outcomes that the axioms of each model allow; tests/soak/litmus has more random tests.
set -u
cd "$(dirname "$0")/../.." || exit 2
exec "${PEET_BUILD:-build}/tests/oracle/litmus" "${PEET_TESTS:-400}" "${PEET_SEED:-1}" tests/golden/litmus/*.litmus
