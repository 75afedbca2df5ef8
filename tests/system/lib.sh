# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# For the tests in the machine. Each is a bash of its own that ends at the first thing that is not
# as it should be. It begins with a new broker and the policy as shipped.

set -euo pipefail
shopt -s inherit_errexit
exec {SAYS}>&2 # also where a program's output goes elsewhere

UNIT=rtgrantd.service
PROGRAMS=()
UNITS=()
LOGINS=()
PROGRAM=""

fail() {
        echo "failed: $*" >&"$SAYS"
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

# What chrt(1), which knows nothing of us, says of a thread: "SCHED_FIFO|SCHED_RESET_ON_FORK 65". Newer
# ones say more.
scheduling() {
        chrt -p "$1" | awk -F': ' '/ policy: | priority: / { printf "%s%s", sep, $2; sep = " " }'
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

# login USER [VT] — a login, on that console or on none; see the program "session".
login() {
        local user=$1 vt=${2:-} properties=()

        rm -rf "/run/login-$user"
        install -d -o "$user" "/run/login-$user"
        mkfifo "/run/login-$user/commands"
        chown "$user" "/run/login-$user/commands"
        properties=(--property PAMName=login)
        if [ -n "$vt" ]; then
                properties+=(--property "TTYPath=/dev/tty$vt" --property StandardInput=tty
                             --property StandardOutput=journal
                             --property "Environment=XDG_SEAT=seat0 XDG_VTNR=$vt XDG_SESSION_TYPE=tty XDG_SESSION_CLASS=user")
        fi
        systemd-run --quiet --collect --unit "login-$user" --uid "$user" "${properties[@]}" \
                "$PWD/session" "/run/login-$user"
        UNITS+=("login-$user")
        LOGINS+=("$user")
        await has_session "$user"
}

has_session() {
        loginctl list-sessions --no-legend | grep -qw "$1"
}

# in_session WANTED USER COMMAND — it ends with that status; what it said is in $SAID. Asked again
# where polkit, the broker or who types a password takes longer than is waited: an emulated machine that
# starts a login is slow.
in_session() {
        local wanted=$1 user=$2 status tries=0

        while true; do
                rm -f "/run/login-$user/answer"
                echo "$3" >"/run/login-$user/commands"
                await test -e "/run/login-$user/answer"
                { read -r status && SAID=$(cat); } <"/run/login-$user/answer"
                tries=$((tries + 1))
                [[ $SAID == *"did not answer"* || $SAID == *"does not answer"* || $SAID == *"one in time"* ]] && [ $tries -lt 20 ] || break
                sleep 1
        done
        [ "$status" = "$wanted" ] || fail "'$3' of $user ended with $status instead of $wanted: $SAID"
}

# on_terminal WANTED USER KEYS COMMAND — the same, on a terminal on which KEYS are typed when somebody is
# asked for a password; see the program on-terminal.
on_terminal() {
        printf '%s\n' "$4" >"/run/login-$2/line"
        in_session "$1" "$2" "'$PWD/on-terminal' '$3' \"\$(cat '/run/login-$2/line')\""
}

# passwords USER:PASSWORD… — in place of those that there are, until the test ends.
passwords() {
        install -d -m 700 /run/passwords
        cp -p /etc/{group,gshadow,shadow} /run/passwords
        printf '%s\n' "$@" | chpasswd
}

# watch_questions — what polkit says to agents from now on, in a file.
watch_questions() {
        busctl monitor --match "interface='org.freedesktop.PolicyKit1.AuthenticationAgent'" \
                >/run/questions 2>/dev/null &
        PROGRAMS+=($!)
}

# n_questions MEMBER — how many of these it said: BeginAuthentication, CancelAuthentication.
n_questions() {
        grep -c "Member=$1" /run/questions || true
}

# to_front VT — switches to that console.
to_front() {
        busctl --quiet call org.freedesktop.login1 /org/freedesktop/login1/seat/seat0 \
                org.freedesktop.login1.Seat SwitchTo u "$1"
        await is_in_front "$1"
}

is_in_front() {
        [ "$(cat /sys/class/tty/tty0/active)" = "tty$1" ]
}

# policy NAME — a file of the administrator's, from stdin.
policy() {
        mkdir -p /etc/rtgrant/policy.d
        cat >"/etc/rtgrant/policy.d/$1.conf"
}

# patient_guard — what takes ms takes a second on an emulated, busy machine; for tests whose subject
# is not the guard.
patient_guard() {
        policy patient <<'POLICY'
[Broker]
CPUPerUser=100%
[Role desktop]
RunMax=20s
CPUMax=100%
[Role audio-client]
RunMax=20s
CPUMax=100%
[Role audio-server]
RunMax=20s
CPUMax=100%
POLICY
        rtgrantctl reload >/dev/null
}

# drop_in SETTING… — for the broker's unit, instead of any before.
drop_in() {
        mkdir -p "/run/systemd/system/$UNIT.d"
        printf '%s\n' "[Service]" "$@" >"/run/systemd/system/$UNIT.d/test.conf"
        systemctl daemon-reload
}

set_up() {
        [ -d /run/systemd/system ] || return 0
        systemctl stop rtgrantd.socket $UNIT
        systemctl reset-failed rtgrantd.socket $UNIT 2>/dev/null || true
        rm -rf /etc/rtgrant "/run/systemd/system/$UNIT.d"
        systemctl daemon-reload
        systemctl start $UNIT
}

clean_up() {
        local pid user

        for pid in "${PROGRAMS[@]}"; do
                kill -KILL "$pid" 2>/dev/null || true
        done
        [ ${#UNITS[@]} = 0 ] || systemctl stop "${UNITS[@]}" 2>/dev/null || true
        for user in "${LOGINS[@]}"; do
                pkill -KILL -u "$user" || true # servers outlive their login
        done
        [ ! -d /run/passwords ] || mv /run/passwords/* /etc/
        rm -rf /run/passwords
}
trap clean_up EXIT

# A test that goes on after a reboot finds what that left.
[ "$BOOT" -gt 1 ] || set_up
