# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: MIT
# Errors by longjmp, under the names that _FORTIFY_SOURCE gives it; coroutines; a library that is loaded while it runs. Lua's
# own package has no tests in it: those of LPeg, a pattern matcher in C for Lua, take their place.
package="lua5.4 lua-lpeg"
build() {
    rm src/luac.c && echo '#define DEB_HOST_MULTIARCH "any"' >src/lua5.4-deb-multiarch.h &&
        $CC -std=gnu99 -O2 -D_FORTIFY_SOURCE=2 -DLUA_USE_LINUX -DLUA_COMPAT_5_3 -Wl,-E -o lua src/*.c -lm -ldl &&
        $CC -std=gnu99 -O2 -D_FORTIFY_SOURCE=2 -fPIC -shared -Isrc -o ../lua-lpeg/lpeg.so ../lua-lpeg/*.c
}
suite() { ./lua -v && cd ../lua-lpeg && ../lua5.4/lua test.lua; }
