# SPDX-License-Identifier: MIT
# Bash completion for peet. It knows nothing itself: verbs come from `peet help --list`, the options of a verb from
# `peet help --complete VERB`, which prints one per line: "--flag", "--option=ARGUMENT" or "--option CHOICE CHOICE…".
# Everything else is completed as a file's name.

# _peet_value PEET VERB OPTION: fails when the option takes no value; prints the choices when it has some
_peet_value()
{
    local line
    while read -r line; do
        case $line in
            "$3") return 1 ;;
            "$3="VERB) "$1" help --list; return 0 ;;
            "$3="*) return 0 ;;
            "$3 "*) printf '%s\n' "${line#* }"; return 0 ;;
        esac
    done < <("$1" help --complete "$2" 2>/dev/null)
    return 1
}

_peet()
{
    local peet=${COMP_WORDS[0]} verb=${COMP_WORDS[1]} cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local words=

    if [[ $cur == = ]]; then # bash cuts --format=json into three words
        cur=
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if ((COMP_CWORD == 1)); then
        words="$("$peet" help --list 2>/dev/null) --help --version"
    elif [[ $prev == --?* ]] && words=$(_peet_value "$peet" "$verb" "$prev"); then
        :
    elif [[ $cur == -* ]]; then
        words=$("$peet" help --complete "$verb" 2>/dev/null | sed 's/[= ].*//')
    elif [[ $verb == help ]]; then
        words=$("$peet" help --list 2>/dev/null)
    fi
    COMPREPLY=()
    [[ -z $words ]] || mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -o default -o bashdefault -F _peet peet
