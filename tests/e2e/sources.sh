#!/bin/bash
# SPDX-License-Identifier: MIT
# Names come from the sources that a program was built from, wherever peet is called.
set -u
. tests/lib.sh
peet=$PEET_BUILD/peet
mkdir "$TMP/here" "$TMP/there"
cat >"$TMP/here/grid.c" <<'C'
#include <stdlib.h>
static struct { double *rows, *cells; } world;
int main(void)
{
    world.cells = malloc(80000);
    for (int i = 0; i < 10000; i++)
        world.cells[i] = i;
    return world.cells[77] != 77;
}
C
touch -d '1 hour ago' "$TMP/here/grid.c"
(cd "$TMP/here" && "$peet" cc -O1 -g grid.c -o ../grid && "$peet" record -o ../t.peet -- ../grid 2>/dev/null) || exit 1
first() { (cd "$1" && "$peet" profile -m core "$TMP/t.peet" 2>"$TMP/err" | head -n 1); }

verdict "data have the names of their source, wherever peet is called" "$(
    first "$TMP/here" | grep -q 'waits for world.cells ' || first "$TMP/here"
    cp "$TMP/here/grid.c" "$TMP/there" && sed -i 's/world.cells/world.other/g' "$TMP/there/grid.c"
    first "$TMP/there" | grep -q 'waits for world.cells ' || first "$TMP/there"
    cat "$TMP/err")"
verdict "a file of the same name in the working directory is no source" "$(
    mv "$TMP/here/grid.c" "$TMP/here/away.c"
    first "$TMP/there" | grep -E 'waits for world[.](cells|other) ')"
verdict "a source that is gone is named once" "$(grep -c "here/grid.c is not there" "$TMP/err" | grep -vx 1; cat "$TMP/err" | grep -v 'is not there')"
mv "$TMP/here/away.c" "$TMP/here/grid.c"
sed -i 's/world.cells/world.later/g' "$TMP/here/grid.c"
touch -d '1 hour' "$TMP/here/grid.c"
verdict "a source that was changed since the program was built gives no names, which is said once" "$(
    first "$TMP/there" | grep -E 'waits for world[.](cells|later) '
    grep -c "here/grid.c was changed since the program was built" "$TMP/err" | grep -vx 1)"
exit $status
