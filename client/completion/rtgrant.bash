# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Completion for rtgrant, rtgrantctl and rtgrant-latency in bash. Works with and without the bash-completion package.

# The roles of the policy in force, one a line; nothing if there is no broker.
_rtgrant_roles() {
        rtgrantctl policy --json 2>/dev/null | sed -n 's/.*"section": "Role \([^"]*\)".*/\1/p' | sort -u
}

# The leases of the caller by the digits that tell them apart, one a line.
_rtgrant_leases() {
        rtgrantctl list --json 2>/dev/null | sed -n 's/.*"id": "\([0-9a-f]\{8\}\)[0-9a-f]*".*/\1/p'
}

# The sound cards, as a request names them.
_rtgrant_cards() {
        rtgrantctl irq --interval 0 --json 2>/dev/null | sed -n 's/.*"name": "\(card:[0-9]*\)".*/\1/p'
}

_rtgrant_pids() {
        ps -eo pid= 2>/dev/null
}

# _rtgrant_reply WORDS — those that begin as the word at the cursor.
_rtgrant_reply() {
        mapfile -t COMPREPLY < <(compgen -W "$1" -- "${COMP_WORDS[COMP_CWORD]}")
}

# What follows an option that takes an argument. Fails if the word before the cursor is none.
_rtgrant_argument() {
        case $1 in
        --role) _rtgrant_reply "$(_rtgrant_roles)" ;;
        --socket | --import-rtirq | --check) mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}") ;;
        --user) mapfile -t COMPREPLY < <(compgen -u -- "${COMP_WORDS[COMP_CWORD]}") ;;
        --sysroot) mapfile -t COMPREPLY < <(compgen -d -- "${COMP_WORDS[COMP_CWORD]}") ;;
        --block-queue) mapfile -t COMPREPLY < <(compgen -d -- "${COMP_WORDS[COMP_CWORD]}") ;;
        --irq) _rtgrant_reply "$(_rtgrant_cards)" ;;
        --relative) _rtgrant_reply "$(seq -2 2)" ;;
        --feeds) _rtgrant_reply "$(_rtgrant_cards) $(_rtgrant_pids)" ;;
        --nice) _rtgrant_reply "$(seq -20 19)" ;;
        -T | -P | -D | --sched-runtime | --sched-period | --sched-deadline | --lifetime | --reason | --memlock | --cpu-latency | --rate | --frames | --load)
                COMPREPLY=() ;;
        *) return 1 ;;
        esac
}

_rtgrant_is_cluster() {
        [[ $1 == -[!-]* ]]
}

# Where the words of the command line from $1 on stand: sets takes_pid and n_operands, and command to
# the index of COMMAND (0: not reached yet).
_rtgrant_scan() {
        local i word

        takes_pid=0 n_operands=0 command=0
        for ((i = $1; i < COMP_CWORD; i++)); do
                word=${COMP_WORDS[i]}
                case $word in
                --) ((command = i + 1)); return ;;
                --role | --socket | --nice | --lifetime | --reason | --memlock | --cpu-latency | --block-queue | --irq | --relative | --feeds | --rate | --frames | --load | --sched-* | -T | -P | -D) ((i++)) ;;
                --pid) takes_pid=1 ;;
                --*) ;;
                -?*) if _rtgrant_is_cluster "$word" && [[ $word == *p* ]]; then takes_pid=1; fi ;;
                *)
                        if ((!takes_pid)) && { ((n_operands > 0)) || [[ $word != +([0-9]) ]]; }; then
                                command=$i
                                return
                        fi
                        ((n_operands++))
                        ;;
                esac
        done
}

_rtgrant_options='--all-tasks --ask --batch --block-queue --clamp --cpu-latency --deadline --dry-run --feeds --fifo --frames --help --idle
        --irq --json --lifetime --load --max --memlock --nice --or-less --other --pid --rate --reason --relative --reset-on-fork --role --rr --sched-deadline --sched-period
        --sched-runtime --socket --verbose --version
        -D -P -R -T -V -a -b -d -f -h -i -m -o -p -r -v'

# What rtgrant understands, from word $1 on.
_rtgrant_request() {
        local takes_pid n_operands command
        local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}

        _rtgrant_scan "$1"
        if ((command > 0)); then
                # from here on it is somebody else's command line
                if declare -F _command_offset >/dev/null; then
                        _command_offset "$command"
                elif ((COMP_CWORD == command)); then
                        mapfile -t COMPREPLY < <(compgen -c -- "$current")
                else
                        mapfile -t COMPREPLY < <(compgen -f -- "$current")
                fi
                return
        fi
        _rtgrant_argument "$previous" && return
        if [[ $current == -* ]]; then
                _rtgrant_reply "$_rtgrant_options"
        elif ((takes_pid)); then
                _rtgrant_reply "$(_rtgrant_pids)"
        elif ((n_operands > 0)); then
                mapfile -t COMPREPLY < <(compgen -c -- "$current")
        else
                mapfile -t COMPREPLY < <(compgen -W "$(seq 1 99)" -- "$current"; [[ -z $current ]] || compgen -c -- "$current")
        fi
}

_rtgrant() {
        COMPREPLY=()
        _rtgrant_request 1
}

# The index of rtgrantctl's own command; 0 if there is none yet.
_rtgrantctl_command() {
        local i

        for ((i = 1; i < COMP_CWORD; i++)); do
                case ${COMP_WORDS[i]} in
                --socket | --user) ((i++)) ;;
                -*) ;;
                *) echo "$i"; return ;;
                esac
        done
        echo 0
}

_rtgrantctl() {
        local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} at options

        COMPREPLY=()
        at=$(_rtgrantctl_command)
        if ((at > 0)) && [[ ${COMP_WORDS[at]} == why ]]; then
                _rtgrant_request $((at + 1))
                return
        fi
        if [[ $previous == --pid && ${COMP_WORDS[at]} == doctor ]]; then
                _rtgrant_reply "$(_rtgrant_pids)"
                return
        fi
        _rtgrant_argument "$previous" && return
        if ((at == 0)) && [[ $current != -* ]]; then
                _rtgrant_reply 'doctor irq list monitor policy reload revoke status top why'
                return
        fi

        options='--help --json --socket --version'
        case ${COMP_WORDS[at]} in
        list | monitor) options+=' --all --ask' ;;
        top) options+=' --all --ask --once' ;;
        revoke) options+=' --all --ask --user' ;;
        reload) options+=' --ask' ;;
        irq) options='--all --help --import-rtirq --interval --json --sysroot' ;;
        doctor) options+=' --all --pid --sysroot' ;;
        policy) options+=' --check' ;;
        esac
        if [[ $current == -* ]]; then
                _rtgrant_reply "$options"
        elif [[ ${COMP_WORDS[at]} == revoke ]]; then
                _rtgrant_reply "$(_rtgrant_leases)"
        elif [[ ${COMP_WORDS[at]} == irq ]]; then
                _rtgrant_reply "$(_rtgrant_cards)"
        fi
}

_rtgrant_latency() {
        local previous=${COMP_WORDS[COMP_CWORD - 1]}

        COMPREPLY=()
        _rtgrant_argument "$previous" && return
        case $previous in
        --loads) _rtgrant_reply 'none cpu proc disk-write disk-copy disk-read memory fork network' ;;
        --compare) _rtgrant_reply 'priority cpu-latency irq governor' ;;
        --fail-on) _rtgrant_reply 'overruns late worse' ;;
        --sweep) _rtgrant_reply max_sectors_kb ;;
        --stream) _rtgrant_reply 'auto alsa jack pipewire' ;;
        --cpu) _rtgrant_reply any ;;
        --plot) mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}") ;;
        --directory) mapfile -t COMPREPLY < <(compgen -d -- "${COMP_WORDS[COMP_CWORD]}") ;;
        --as-user) mapfile -t COMPREPLY < <(compgen -u -- "${COMP_WORDS[COMP_CWORD]}") ;;
        --rate | --frames | --periods | --load | --duration | --priority | --inject | --with) ;;
        *)
                _rtgrant_reply '--as-user --ask --compare --cpu --csv --cyclictest --direct --directory --duration
                        --fail-on --frames --help --inject --irq --json --load --loads --periods --plot
                        --priority --rate --role --socket --stream --sweep --sysroot --version --with'
                ;;
        esac
}

complete -F _rtgrant rtgrant
complete -F _rtgrant_latency rtgrant-latency
complete -F _rtgrantctl rtgrantctl
