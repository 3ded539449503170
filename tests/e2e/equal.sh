#!/bin/sh
# SPDX-License-Identifier: MIT
# Whether recordings are exact: the short form of `make soak`, which says what is compared.
exec tests/soak/equal --quick
