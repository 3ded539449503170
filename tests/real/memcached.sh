# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: MIT
# Threads that get their connections through pipes; an allocator inside; gives up root. tests/real/servers asks and checks every answer.
package="memcached libevent"
commands="python3 autoreconf"
build() {
    (cd ../libevent && autoreconf -fi &&
        ./configure --disable-shared --disable-openssl --disable-samples --disable-libevent-regress CC="$CC" CFLAGS=-O2 --prefix="$PWD/../events" &&
        make -j2 && make install) &&
        autoreconf -fi &&
        ./configure --with-libevent="$PWD/../events" CC="$CC" CFLAGS=-O2 --disable-docs --disable-coverage --disable-extstore &&
        make -j2 memcached
}
suite() { "$real/servers" memcached memcached 500; }
simulated() { "$real/servers" memcached memcached 50 $simulate; }
