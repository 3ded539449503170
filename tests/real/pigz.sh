# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: MIT
# Threads that come and go, locks and conditions; with the zlib that it uses.
package="pigz zlib"
build() {
    (cd ../zlib && ./configure --static && make -j2 libz.a) &&
        make -j2 CC="$CC" CFLAGS="-O3 -I../zlib" LDFLAGS=-L../zlib pigz
}
suite() { make -o pigz CC="$CC" test; }
