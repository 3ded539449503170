# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034
# For test scripts, in the root of the tree: `. tests/lib.sh`, then verdicts, and `exit $status` at the end.
status=0

# The property holds when there is nothing to complain about.
verdict() { # PROPERTY COMPLAINTS
    if [ -z "$2" ]; then
        echo "ok $1"
    else
        printf '%s\nnot ok %s\n' "$2" "$1"
        status=1
    fi
}

# The property holds when the command succeeds; what it prints is shown when it does not.
holds() { # PROPERTY COMMAND [ARGUMENT…]
    property=$1
    shift
    if complaints=$("$@" 2>&1); then verdict "$property" ""; else verdict "$property" "$complaints
failed: $*"; fi
}

skip() { # PROPERTY REASON
    echo "skip $1: $2"
}

# Whether a program is here; if not, the property is skipped.
needs() { # PROPERTY PROGRAM
    command -v "$2" >/dev/null || { skip "$1" "needs $2"; return 1; }
}
