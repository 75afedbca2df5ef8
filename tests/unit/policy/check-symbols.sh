#!/bin/sh
# SPDX-License-Identifier: MIT
#
# usage: check-symbols.sh NM ARCHIVE
#
# The policy only computes: its archive needs no symbol from outside but a few of libc that touch
# nothing but memory, and what the compiler puts in (stack protector, sanitizers, coverage).

set -eu

nm=$1
archive=$2

allowed='^(memcpy|memmove|memset|memcmp|bcmp|strcmp|strlen|__stack_chk_fail|_GLOBAL_OFFSET_TABLE_'
allowed="$allowed|__(asan|ubsan|sanitizer|gcov|llvm)_.*)\$"

defined=$("$nm" --defined-only --format=posix "$archive" | awk 'NF >= 3 { print $1 }' | sort -u)
needed=$("$nm" --undefined-only --format=posix "$archive" | awk '$2 == "U" { print $1 }' | sort -u)

for symbol in policy_evaluate policy_role_admits policy_find_role reason_to_string; do
        if ! printf '%s\n' "$defined" | grep -qx "$symbol"; then
                echo "$archive does not define $symbol: not the policy?" >&2
                exit 1
        fi
done

foreign=$(printf '%s\n' "$needed" | grep -vxF "$defined" | grep -vE "$allowed" || true)
if [ -n "$foreign" ]; then
        echo "$archive needs from outside:" >&2
        printf '%s\n' "$foreign" >&2
        exit 1
fi
