#!/bin/bash
# SPDX-License-Identifier: MIT
# The documents agree with the code where both list the same things.
. tests/lib.sh

events_in_code() { sed -n 's/^ *X(\([a-z_]*\), *[0-9], "\([^"]*\)",.*/\1: \2/p' include/peet/record.h; }
events_in_document() { sed -n '/^## 9/,/^## 10/s/^| \([a-z_]*\) | \([a-z ,]*\) |.*|$/\1: \2/p' docs/trace-format.md | grep -v '^event: ' | tr -d ,; }
verdict "trace-format.md lists the events of record.h" "$(diff <(events_in_code) <(events_in_document))"

classes_in_code() { sed -n '/define PEET_CLASSES/,/enum peet_class/p' include/peet/schema.h | grep -o 'X([a-z_]*)' |
    sed 's/X(\(.*\))/\1/' | awk '{ print NR - 1, $0 }'; }
classes_in_document() { sed -n '/^\*\*Classes\*\*/,/\*\*Flags\*\*/p' docs/trace-format.md | tr '\n' ' ' | sed 's/\*\*Flags.*//; s/.*Classes\*\*://; s/(conditional)//' |
    tr '|' '\n' | awk '$1 ~ /^[0-9]/ { print $1, $2 }'; }
verdict "trace-format.md lists the classes of schema.h" "$(diff <(classes_in_code) <(classes_in_document))"

links() { grep -o '](\([^)#]*\)' README.md ARCHITECTURE.md CONTRIBUTING.md docs/*.md docs/design/*.md 2>/dev/null | sed 's/\(.*\):](\(.*\)/\1 \2/' |
    while read -r from to; do
        case $to in *://*) continue ;; esac
        [ -e "$(dirname "$from")/$to" ] || echo "$from: there is no $to"
    done; }
verdict "links in the documents lead somewhere" "$(links)"
exit $status
