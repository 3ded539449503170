# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: MIT
# A master process with workers; event loops over sockets that do not block. tests/real/servers asks and checks every answer.
package="nginx"
commands="python3"
build() {
    ./configure --with-cc="$CC" --with-cc-opt="-O2" --without-http_rewrite_module --without-http_gzip_module --with-threads &&
        make -j2
}
suite() { "$real/servers" nginx objs/nginx 500; }
simulated() { "$real/servers" nginx objs/nginx 100 $simulate; }
