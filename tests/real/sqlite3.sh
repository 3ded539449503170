# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: MIT
# One file of 240000 lines. Its tests need Tcl's library and hours; here its shell runs a script of ours, whose answers are
# checked by what they have to be.
package=sqlite3
commands=tclsh
build() {
    ./configure --disable-tcl --disable-readline --enable-threadsafe && make sqlite3.c shell.c &&
        $CC -O2 -DSQLITE_THREADSAFE=1 -DSQLITE_ENABLE_MATH_FUNCTIONS -o sqlite3 sqlite3.c shell.c -lpthread -ldl -lm
}
suite() { rm -f test.db && ./sqlite3 -bail test.db <"${real:?}/sqlite3.sql" | tee answer && cmp answer "$real/sqlite3.answer"; }
profiled() { rm -f profile.db && ${profile:?} ./sqlite3 -bail profile.db <"${real:?}/sqlite3-profile.sql"; }
functions="sqlite3VdbeExec sqlite3BtreeTableMoveto"
data="pCache->pBulk aNew.* p->pFree|pPg"
