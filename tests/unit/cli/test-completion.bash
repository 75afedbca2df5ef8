#!/bin/bash
# SPDX-License-Identifier: MIT
#
# shellcheck disable=SC2317 # the stand-ins are called by what is tested
#
# What the bash completion offers; the programs that it asks have stand-ins here. TAP.

set -u
shopt -u extglob

# shellcheck disable=SC1090
source "$1"

rtgrantctl() {
        case "$*" in
        "policy --json")
                printf '  {\n    "section": "%s",\n    "key": "X"\n  },\n' \
                        Broker 'Role audio-server' 'Role audio-client' 'Role audio-client'
                ;;
        "list --json")
                printf '    "id": "%s",\n' \
                        0123456789abcdef0123456789abcdef fedcba9876543210fedcba9876543210
                ;;
        "irq --interval 0 --json") printf '      "name": "card:%s",\n' 0 1 ;;
        *) return 4 ;;
        esac
}

ps() {
        printf '%7s\n' 1 4711
}

n=0
failed=0

# offers FUNCTION "WORDS…" EXPECTED… — the last word is at the cursor; "!WORD" is not expected.
offers() {
        local function=$1 line=$2 expected missing=''
        shift 2

        read -ra COMP_WORDS <<<"$line"
        [[ $line == *' ' ]] && COMP_WORDS+=('')
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        COMPREPLY=()
        "$function"
        for expected in "$@"; do
                if [[ $expected == !* ]]; then
                        [[ " ${COMPREPLY[*]} " == *" ${expected#!} "* ]] && missing+=" $expected"
                else
                        [[ " ${COMPREPLY[*]} " == *" $expected "* ]] || missing+=" $expected"
                fi
        done

        n=$((n + 1))
        if [[ -z $missing ]]; then
                echo "ok $n $line"
        else
                failed=1
                echo "not ok $n $line"
                echo "# wanted:$missing"
                echo "# offered: ${COMPREPLY[*]:0:20}"
        fi
}

offers _rtgrant 'rtgrant --' --role --clamp --nice --fifo --all-tasks '!-f'
offers _rtgrant 'rtgrant -' -f -p --role
offers _rtgrant 'rtgrant --ro' --role '!--rr'
offers _rtgrant 'rtgrant --role ' audio-server audio-client '!Broker' '!--role'
offers _rtgrant 'rtgrant --role audio-s' audio-server '!audio-client'
offers _rtgrant 'rtgrant -f --role audio-server -p ' 1 4711
offers _rtgrant 'rtgrant -p 4' 4711 '!1'
offers _rtgrant 'rtgrant -fvp 20 ' 4711
offers _rtgrant 'rtgrant 20 --pid ' 4711
offers _rtgrant 'rtgrant -f 5' 50 59 '!60'
offers _rtgrant 'rtgrant -f 50 bas' bash '!50'
offers _rtgrant 'rtgrant -f -- bas' bash
offers _rtgrant 'rtgrant -f 50 cat /etc/passw' /etc/passwd
offers _rtgrant 'rtgrant -f 50 cat --' '!--role' '!--fifo'
offers _rtgrant 'rtgrant -f cat -p ' '!4711'
offers _rtgrant 'rtgrant --nice -1' -10 -19 '!-5'
offers _rtgrant 'rtgrant --reason x' '!--role'
offers _rtgrant 'rtgrant --socket /etc/passw' /etc/passwd
offers _rtgrantctl 'rtgrantctl ' status list monitor why revoke reload policy irq top
offers _rtgrantctl 'rtgrantctl ' status list monitor why revoke reload policy doctor
offers _rtgrantctl 'rtgrantctl re' revoke reload '!status'
offers _rtgrantctl 'rtgrantctl --json li' list
offers _rtgrantctl 'rtgrantctl -' --json --socket '!--all'
offers _rtgrantctl 'rtgrantctl list --' --all --json '!--user'
offers _rtgrantctl 'rtgrantctl revoke --' --all --user
offers _rtgrantctl 'rtgrantctl doctor --' --all --pid --sysroot '!--user'
offers _rtgrantctl 'rtgrantctl doctor --pid ' 4711
offers _rtgrantctl 'rtgrantctl revoke ' 01234567 fedcba98
offers _rtgrantctl 'rtgrantctl revoke 01234567 f' fedcba98 '!01234567'
offers _rtgrantctl 'rtgrantctl revoke --user roo' root
offers _rtgrantctl 'rtgrantctl irq c' card:0 card:1
offers _rtgrantctl 'rtgrantctl irq --' --all --sysroot '!--user'
offers _rtgrantctl 'rtgrantctl status ' '!list' '!0123456'
offers _rtgrantctl 'rtgrantctl why --role audio-c' audio-client
offers _rtgrantctl 'rtgrantctl why -f -p ' 4711
offers _rtgrantctl 'rtgrantctl why --cl' --clamp

echo "1..$n"
exit "$failed"
