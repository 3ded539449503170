# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: MIT
package=bzip2
build() { make -j2 CC="$CC" bzip2 bzip2recover; }
suite() { make test; }
