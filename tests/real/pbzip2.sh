# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: MIT
# C++, a thread in sigwait, a queue between threads; with the libbz2 that it uses. It has no tests of its own: what it packs, it unpacks again.
package="pbzip2 bzip2"
build() {
    make -C ../bzip2 -j2 CC="$CC" libbz2.a &&
        make CXX="$CXX" CXXFLAGS="-O2 -I../bzip2 -pthread" LDFLAGS=-L../bzip2 pbzip2
}
suite() {
    cat ../bzip2/*.c ../bzip2/*.c >text &&
        ./pbzip2 -kf -p4 -b1 text && ./pbzip2 -t -p4 text.bz2 && ./pbzip2 -dc -p4 text.bz2 | cmp - text
}
simulated() { head -c 100000 text >part && $simulate ./pbzip2 -kf -p2 -b1 part && ./pbzip2 -dc part.bz2 | cmp - part; }
