# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: MIT
# A library, static and shared, and programs that use either.
package=zlib
build() { ./configure && make -j2 all; }
suite() { make test; }
