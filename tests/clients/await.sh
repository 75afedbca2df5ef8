# SPDX-License-Identifier: MIT
# For the others: await COMMAND… tries until it succeeds, for 10 s.
await() {
        n=0
        until "$@" >/dev/null 2>&1; do
                n=$((n + 1))
                [ $n -lt 200 ] || { echo "gave up waiting for: $*" >&2; exit 1; }
                sleep 0.05
        done
}
