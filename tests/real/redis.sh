# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: MIT
# An event loop over sockets that do not block, threads in the background, Lua inside. tests/real/servers asks and checks every answer.
package="redis"
commands="python3"
build() { make -j2 MALLOC=libc OPTIMIZATION=-O2 CC="$CC" redis-server; }
suite() { "$real/servers" redis src/redis-server 500; }
simulated() { "$real/servers" redis src/redis-server 50 $simulate; }
