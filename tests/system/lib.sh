# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# For the tests in the machine. Each is a bash of its own that ends at the first thing that is not
# as it should be. It begins with a new broker and the policy as shipped.

set -euo pipefail
shopt -s inherit_errexit

UNIT=rtgrantd.service
PROGRAMS=()
PROGRAM=""

fail() {
        echo "failed: $*" >&2
        exit 1
}

skip() {
        echo "$*"
        exit 77
}

# expect WHAT WANTED GOT
expect() {
        [ "$2" = "$3" ] || fail "$1: wanted '$2', got '$3'"
}

# expect_text TEXT PART — the text has the part.
expect_text() {
        [[ $1 == *"$2"* ]] || fail "no '$2' in: $1"
}

# expect_status STATUS COMMAND… — it ends with that status; what it said is in $SAID.
expect_status() {
        local wanted=$1 got=0
        shift

        SAID=$("$@" 2>&1) || got=$?
        [ "$got" = "$wanted" ] || fail "'$*' ended with $got instead of $wanted: $SAID"
}

# await COMMAND… — until it is true.
await() {
        local until=$((SECONDS + 100))

        until "$@" >/dev/null 2>&1; do
                [ $SECONDS -lt $until ] || fail "waited in vain for: $*"
                sleep 0.1
        done
}

# as USER COMMAND…
as() {
        local user=$1
        shift

        setpriv --reuid="$user" --regid="$user" --init-groups --inh-caps=-all -- "$@"
}

is_running() {
        [ "$(cat "/proc/$2/comm")" = "$3" ] && [ "$(stat -c %U "/proc/$2")" = "$1" ]
}

# start USER NAME COMMAND… — in the background, until it runs as the program of that NAME; its id is in $PROGRAM.
start() {
        local user=$1 name=$2
        shift 2

        (exec setpriv --reuid="$user" --regid="$user" --init-groups --inh-caps=-all -- "$@") &
        PROGRAM=$!
        PROGRAMS+=("$PROGRAM")
        await is_running "$user" "$PROGRAM" "$name"
}

# What chrt(1), which knows nothing of us, says of a thread: "SCHED_FIFO|SCHED_RESET_ON_FORK 65".
scheduling() {
        chrt -p "$1" | awk -F': ' '{ printf "%s%s", sep, $2; sep = " " }'
}

# The same, with the nice value.
scheduling_and_nice() {
        echo "$(scheduling "$1") $(awk '{ sub(/.*\) /, ""); print $17 }' "/proc/$1/stat")"
}

broker_pid() {
        systemctl show --value --property MainPID $UNIT
}

# stop_broker — but not its socket.
stop_broker() {
        systemctl stop $UNIT
        expect "the broker" inactive "$(systemctl is-active $UNIT || true)"
        expect "its socket" active "$(systemctl is-active rtgrantd.socket)"
}

broker_is_active() {
        systemctl --quiet is-active $UNIT
}

# broker_succeeds PID — another one serves instead of that one.
broker_succeeds() {
        [ "$(broker_pid)" != 0 ] && [ "$(broker_pid)" != "$1" ] && broker_is_active
}

# leases FILTER — of the list of all leases, by jq.
leases() {
        rtgrantctl list --all --json | jq -r "$1"
}

# journal FIELD=VALUE… — the newest such entry of the broker, as JSON.
journal() {
        journalctl --sync
        journalctl --quiet --no-pager --output json --lines 1 _SYSTEMD_UNIT=$UNIT "$@"
}

# attendant COMMAND… — asks somebody outside of the machine; see the program of that name.
attendant() {
        local answer

        exec 7<>/dev/ttyS2
        stty -F /dev/ttyS2 raw -echo
        echo "$*" >&7
        read -r -t 200 answer <&7 || fail "nobody outside does: $*"
        exec 7>&-
        expect "the attendant's answer" "done" "$answer"
}

# policy NAME — a file of the administrator's, from stdin.
policy() {
        mkdir -p /etc/rtgrant/policy.d
        cat >"/etc/rtgrant/policy.d/$1.conf"
}

# drop_in SETTING… — for the broker's unit, instead of any before.
drop_in() {
        mkdir -p "/run/systemd/system/$UNIT.d"
        printf '%s\n' "[Service]" "$@" >"/run/systemd/system/$UNIT.d/test.conf"
        systemctl daemon-reload
}

set_up() {
        systemctl stop rtgrantd.socket $UNIT
        systemctl reset-failed rtgrantd.socket $UNIT 2>/dev/null || true
        rm -rf /etc/rtgrant "/run/systemd/system/$UNIT.d"
        systemctl daemon-reload
        systemctl start $UNIT
}

clean_up() {
        local pid

        for pid in "${PROGRAMS[@]}"; do
                kill -KILL "$pid" 2>/dev/null || true
        done
}
trap clean_up EXIT

set_up
