#!/bin/sh
# SPDX-License-Identifier: MIT
# Recordings that end badly: the short form of tests/soak/large, which says what is checked.
exec tests/soak/large --quick
