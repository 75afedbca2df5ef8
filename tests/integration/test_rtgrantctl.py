# SPDX-License-Identifier: MIT
"""What rtgrant and rtgrantctl make of the broker's answers: for people, and for scripts."""

import json
import os
import pty
import re
import select
import signal
import subprocess

import pytest

import kernel
from agent import ALICE, BOB, CAROL
from daemon import wait_until
from kernel import BATCH, FIFO, IDLE, OTHER, RR

LEASE_KEYS = {
    "id", "uid", "user", "pid", "tid", "comm", "role", "policy", "priority", "nice", "state",
    "since", "expires", "reason", "transport", "lifetime", "granted_policy", "granted_priority",
    "granted_nice", "memlock_bytes", "cpu_latency_us", "block_max_sectors_kb", "block",
    "irq_priority", "irq",
}


def leases(daemon, uid):
    return json.loads(daemon.rtgrantctl(uid, "list", "--json").stdout)


# ---- rtgrant ----


@pytest.mark.parametrize("options, after", [
    (["-o"], (OTHER, 0, 3, False)),
    (["-o", "0"], (OTHER, 0, 3, False)),
    (["-b"], (BATCH, 0, 3, False)),
    (["-i"], (IDLE, 0, 3, False)),
], ids=["other", "other-0", "batch", "idle"])
def test_N06_back_to_normal_ends_the_lease(daemon, options, after):
    """And restores what was there before, nice value too, unless something else is asked for."""
    target = daemon.target(BOB)
    os.setpriority(os.PRIO_PROCESS, target.pid, 3)
    assert daemon.rtgrant(BOB, "-r", "--nice", "-4", "-p", 9, target.pid).returncode == 0
    assert target.sched() == (RR, 9, -4, True)

    result = daemon.rtgrant(BOB, *options, "-p", target.pid) if len(options) == 1 else \
        daemon.rtgrant(BOB, options[0], "-p", options[1], target.pid)

    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert target.sched() == after
    assert leases(daemon, BOB) == []


def test_what_was_there_before_comes_back_first(daemon):
    """A lease on an idle thread: normal is more than that, and the kernel lets nobody go there."""
    target = daemon.target(BOB)
    kernel.sched_setattr(target.pid, IDLE)
    assert daemon.rtgrant(BOB, "-f", "-p", 5, target.pid).returncode == 0

    assert daemon.rtgrant(BOB, "-i", "-p", target.pid).returncode == 0

    assert target.sched() == (IDLE, 0, 0, False)
    assert leases(daemon, BOB) == []


def test_I10_another_priority_is_the_same_lease(daemon):
    target = daemon.target(BOB)
    for priority in (5, 20, 1):
        assert daemon.rtgrant(BOB, "-f", "-p", priority, target.pid).returncode == 0
        assert target.sched() == (FIFO, priority, 0, True)
        (lease,) = leases(daemon, BOB)
        assert (lease["granted_priority"], lease["state"]) == (priority, "in force")


def test_I04_all_threads_and_the_refused_are_named(make_daemon):
    daemon = make_daemon().start({"Role desktop": {"ThreadsPerUser": 3}})
    target = daemon.target(BOB)
    tids = [target.pid, *(target.thread(f"voice-{i}") for i in range(4))]

    result = daemon.rtgrant(BOB, "-a", "-r", "-p", 10, target.pid)

    assert result.returncode == 3
    assert [target.sched(tid).policy for tid in tids] == [RR, RR, RR, OTHER, OTHER]
    for i, tid in enumerate(tids[1:]):
        assert (f"voice-{i} (thread {tid}): refused" in result.stderr) == (i >= 2)
    assert result.stderr.count("ThreadsPerUser=") == 2

    assert daemon.rtgrant(BOB, "-a", "-o", "-p", target.pid).returncode == 0
    assert all(target.sched(tid) == (OTHER, 0, 0, False) for tid in tids)
    assert leases(daemon, BOB) == []


def test_the_role_says_the_priority(make_daemon):
    daemon = make_daemon().start({
        "Role studio": {"AllowUsers": "*"},
        "Role nice-only": {"Priority": "none", "Nice": "-5", "AllowUsers": "*"},
    })

    for arguments, policy, priority in (
        (["--role", "desktop"], "SCHED_RR", 1),
        (["--role", "desktop", "-f"], "SCHED_FIFO", 1),
        (["--role", "studio"], "SCHED_FIFO", 61),  # gives no other
        (["--role", "studio", "65", "-f"], "SCHED_FIFO", 65),
    ):
        result = daemon.rtgrant(BOB, *arguments, "--", "chrt", "-p", 0)
        assert result.returncode == 0, result.stderr
        assert f"{policy}|SCHED_RESET_ON_FORK" in result.stdout
        assert f"priority: {priority}\n" in result.stdout

    for role in ("nice-only", "nonsense"):
        result = daemon.rtgrant(BOB, "--role", role, "--", "true")
        assert result.returncode == 3 and role in result.stderr
    assert daemon.rtgrant(BOB, "--role", "nice-only", "--nice", "-5", "nice").stdout == "-5\n"


def test_K08_clamp(daemon):
    result = daemon.rtgrant(BOB, "-f", "88", "true")
    assert result.returncode == 3

    result = daemon.rtgrant(BOB, "--clamp", "-f", "88", "chrt", "-p", 0)
    assert result.returncode == 0
    assert "priority: 20\n" in result.stdout
    assert "SCHED_FIFO 20" in result.stderr and "SCHED_FIFO 88" in result.stderr


def test_a_dry_run_changes_nothing(daemon):
    target = daemon.target(BOB)

    result = daemon.rtgrant(BOB, "--dry-run", "-f", "-p", 9, target.pid)
    assert result.returncode == 0 and "SCHED_FIFO 9" in result.stdout and "desktop" in result.stdout
    assert daemon.rtgrant(BOB, "--dry-run", "-f", "-p", 88, target.pid).returncode == 3
    result = daemon.rtgrant(BOB, "--dry-run", "-f", 9, "echo", "it was run")
    assert result.returncode == 0 and "it was run" not in result.stdout
    result = daemon.rtgrant(BOB, "--dry-run", "--clamp", "--json", "-f", "-p", 88, target.pid)
    answer = json.loads(result.stdout)
    assert (answer["priority"], answer["clamped"]) == (20, True)
    assert (answer["dry_run"], answer["lease"]) == (True, None)

    assert target.sched() == (OTHER, 0, 0, False)
    assert leases(daemon, BOB) == []


def test_a_dry_run_lowers_nothing(daemon):
    """Without privilege the kernel would let it happen."""
    target = daemon.target(BOB)
    assert daemon.rtgrant(BOB, "-f", "-p", 9, target.pid).returncode == 0

    daemon.reload({"Role desktop": {"Priority": "8-20"}})
    assert daemon.rtgrant(BOB, "--dry-run", "-f", "-p", 5, target.pid).returncode == 3
    assert target.sched() == (FIFO, 9, 0, True)
    assert daemon.rtgrant(BOB, "-f", "-p", 5, target.pid).returncode == 0
    assert target.sched() == (FIFO, 5, 0, True)


def test_refusal_as_json(daemon):
    result = daemon.rtgrant(BOB, "--json", "-f", "88", "true")

    assert result.returncode == 3
    answer = json.loads(result.stdout)
    assert answer["comm"] == "true" and answer["route"] is answer["lease"] is None
    refusal = answer["refusal"]
    assert (refusal["reason"], refusal["asked"], refusal["limit"]) == ("priority-limit", 88, 20)
    assert re.fullmatch(re.escape(daemon.policy_path) + r":\d+", refusal["rule"])
    assert refusal["text"] in result.stderr and refusal["help"] in result.stderr


def test_grant_as_json(daemon):
    target = daemon.target(BOB)

    result = daemon.rtgrant(BOB, "--json", "-r", "--reason", "a synth", "--lifetime", 60, "-p", 9,
                            target.pid)

    answer = json.loads(result.stdout)
    (lease,) = leases(daemon, BOB)
    assert answer == {
        "pid": target.pid, "tid": target.pid, "comm": "target", "policy": "SCHED_RR",
        "priority": 9, "nice": 0, "reset_on_fork": True, "route": "broker", "lease": lease["id"],
        "role": "desktop", "clamped": False, "error": None, "refusal": None, "dry_run": False,
        "memlock_bytes": None, "memlock_locked": None, "cpu_latency_us": None,
        "block_max_sectors_kb": None, "irq_priority": None, "rung": "as-asked",
        "note": None,
    }
    assert set(lease) == LEASE_KEYS
    assert (lease["reason"], lease["lifetime"]) == ("a synth", "seconds")
    assert 59 <= lease["expires"] - lease["since"] <= 61

    answer = json.loads(daemon.rtgrant(BOB, "--json", "-o", "-p", target.pid).stdout)
    assert (answer["route"], answer["policy"], answer["lease"]) == ("released", "SCHED_OTHER", None)


def test_somebody_elses_thread(daemon):
    target = daemon.target(ALICE)

    result = daemon.rtgrant(BOB, "-f", "-p", 5, target.pid)

    assert result.returncode == 3 and str(target.pid) in result.stderr
    assert target.sched() == (OTHER, 0, 0, False)


# ---- rtgrantctl ----


def test_A01_changed_by_others_is_shown(daemon):
    target = daemon.target(BOB)
    daemon.rtgrant(BOB, "-r", "-p", 9, target.pid)
    kernel.sched_setattr(target.pid, OTHER)

    (lease,) = leases(daemon, BOB)
    assert (lease["state"], lease["policy"]) == ("changed", "SCHED_OTHER")
    assert lease["granted_policy"] == "SCHED_RR"
    assert "changed: SCHED_OTHER" in daemon.rtgrantctl(BOB, "list").stdout


def test_an_empty_list_says_what_to_do(daemon):
    assert "rtgrantctl status" in daemon.rtgrantctl(BOB, "list").stdout
    daemon.client(BOB).acquire()
    assert "rtgrantctl list --all" in daemon.rtgrantctl(0, "list").stdout
    assert str(BOB) in daemon.rtgrantctl(0, "list", "--all").stdout
    result = daemon.rtgrantctl(CAROL, "list", "--all")
    assert result.returncode == 3 and not result.stdout and "help: " in result.stderr


def test_status_shows_the_ladder(daemon):
    daemon.client(BOB).acquire()
    table = daemon.rtgrantctl(BOB, "status").stdout
    assert table.index("studio") < table.index("desktop"), "the highest first"
    assert re.search(r"studio +61-70 .*no: not-allowed", table)
    assert re.search(r"desktop +1-20 .* 1 of 500 +yes", table)
    assert table == daemon.rtgrantctl(BOB).stdout, "the command that is meant if none is given"

    status = json.loads(daemon.rtgrantctl(BOB, "status", "--json").stdout)
    assert (status["running"], status["admin"]) == (True, False)
    assert (status["uid"], status["leases_own"]) == (BOB, 1)
    assert [role["role"] for role in status["roles"]] == ["studio", "desktop"]
    assert [role["allowed"] for role in status["roles"]] == [False, True]


@pytest.mark.parametrize("command", [
    "status", "list", "monitor", "why -f 5", "revoke --all", "reload", "policy",
])
def test_A02_no_broker(make_daemon, command):
    daemon = make_daemon()
    result = daemon.rtgrantctl(BOB, *command.split())
    assert result.returncode == 4
    assert daemon.socket_path in result.stderr and "help: " in result.stderr and not result.stdout


def test_A02_no_broker_for_a_script(make_daemon):
    result = make_daemon().rtgrantctl(BOB, "status", "--json")
    assert result.returncode == 4 and json.loads(result.stdout)["running"] is False


def test_why(daemon):
    target = daemon.target(BOB)
    tid = target.thread("voice")
    line = r"  rule: " + re.escape(daemon.policy_path) + r":\d+\n"

    result = daemon.rtgrantctl(BOB, "why", "-f", "-p", 88, tid)
    assert result.returncode == 3
    assert re.fullmatch(
        r"no: .+\n  reason: priority-limit\n  role: desktop\n" + line +
        r"  asked: 88\n  limit: 20\n  help: .+\n  with --clamp: SCHED_FIFO 20\n"
        r"( +\d+\. role \w+, .+:\d+: .+\n)+( +kernel: .+\n)+  remedy: add --clamp: SCHED_FIFO 20\n", result.stdout)

    result = daemon.rtgrantctl(BOB, "why", "--clamp", "-f", "-p", 88, tid)
    assert result.returncode == 0
    assert result.stdout.startswith(f"clipped: voice (thread {tid}) may have SCHED_FIFO 20\n")

    result = daemon.rtgrantctl(BOB, "why", "-r", "--nice", "-5", 9)
    assert result.returncode == 0
    assert result.stdout.startswith("yes: you may have SCHED_RR 9, nice -5\n")

    result = daemon.rtgrantctl(BOB, "why", "--json", "--role", "studio", "-f", 65)
    answer = json.loads(result.stdout)
    assert (answer["verdict"], answer["grant"], answer["with_clamp"]) == ("no", None, None)
    assert answer["refusal"]["reason"] == "not-allowed"
    answer = json.loads(daemon.rtgrantctl(BOB, "--json", "why", "-f", 9).stdout)
    assert (answer["verdict"], answer["grant"]["priority"], answer["role"]) == ("yes", 9, "desktop")

    assert target.sched(tid) == (OTHER, 0, 0, False)
    for wrong in ([], ["-f"], ["-f", 100], ["-p", target.pid], ["-a", "-f", 5], ["-Z"]):
        assert daemon.rtgrantctl(BOB, "why", *wrong).returncode == 2, wrong


def test_revoke(daemon):
    clients = {uid: daemon.client(uid) for uid in (ALICE, BOB, CAROL)}
    for client in clients.values():
        client.acquire()
    ids = {uid: leases(daemon, uid)[0]["id"] for uid in clients}

    for wrong in (ids[ALICE], ids[ALICE][:8]):
        result = daemon.rtgrantctl(BOB, "revoke", wrong)
        assert result.returncode == 3 and "refused" in result.stderr
    result = daemon.rtgrantctl(BOB, "revoke", "--user", ALICE)
    assert result.returncode == 3 and "for administrators only" in result.stderr
    assert clients[ALICE].sched().policy == FIFO

    assert daemon.rtgrantctl(BOB, "revoke", ids[BOB][:8]).stdout == "1 lease ended\n"
    assert daemon.rtgrantctl(0, "revoke", ids[ALICE][:8].upper()).returncode == 0
    result = daemon.rtgrantctl(0, "revoke", "--user", CAROL, "--json")
    assert json.loads(result.stdout) == {"ended": 1}
    assert all(client.sched() == (OTHER, 0, 0, False) for client in clients.values())

    for wrong in ([], ["xyz"], ["12"], ["--all", "--user", "root"], ["--all", ids[BOB]],
                  ["--user", "no such user"]):
        assert daemon.rtgrantctl(0, "revoke", *wrong).returncode == 2, wrong


def test_revoke_all(daemon):
    clients = [daemon.client(uid) for uid in (ALICE, BOB)]
    for client in clients:
        client.acquire()

    assert daemon.rtgrantctl(BOB, "revoke", "--all").returncode == 3
    assert [client.sched().policy for client in clients] == [FIFO, FIFO]
    assert daemon.rtgrantctl(0, "revoke", "--all").stdout == "2 leases ended\n"
    assert [client.sched().policy for client in clients] == [OTHER, OTHER]


def test_reload(daemon):
    client = daemon.client(BOB)
    client.acquire(priority=20)

    assert daemon.rtgrantctl(BOB, "reload").returncode == 3
    daemon.write_policy({"Role desktop": {"Priority": "1-9"}})
    assert daemon.rtgrantctl(0, "reload").stdout == "Policy loaded; 1 lease lowered\n"
    assert client.sched().priority == 9

    daemon.write_policy({"Role desktop": {"Priority": "nonsense"}})
    result = daemon.rtgrantctl(0, "reload")
    assert result.returncode == 3
    assert re.search(re.escape(daemon.policy_path) + r":\d+", result.stderr)
    answer = json.loads(daemon.rtgrantctl(0, "reload", "--json").stdout)
    assert answer["reloaded"] is False and answer["refusal"]["reason"] == "reload-failed"
    assert "fault" in daemon.rtgrantctl(BOB, "status").stdout
    daemon.write_policy()
    assert daemon.rtgrantctl(0, "reload").returncode == 0


def test_policy(daemon):
    text = daemon.rtgrantctl(BOB, "policy").stdout
    entries = json.loads(daemon.rtgrantctl(BOB, "policy", "--json").stdout)
    assert {(e["section"], e["key"], e["value"]) for e in entries} >= {
        ("Broker", "ThreadsMax", "1000"), ("Role desktop", "Priority", "1-20"),
        ("Role studio", "AllowUsers", "64001"),
    }
    with open(daemon.policy_path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for entry in entries:
        if entry["origin"]:
            path, line = entry["origin"].rsplit(":", 1)
            assert path == daemon.policy_path
            assert lines[int(line) - 1] == f"{entry['key']}={entry['value']}"
        assert f"[{entry['section']}]\n" in text
        setting = re.escape(f"{entry['key']}={entry['value']}")
        assert re.search(rf"^{setting}\s+{entry['origin'] or 'default'}$", text, re.M)


@pytest.mark.parametrize("word, meant", [
    ("stat", "status"), ("lst", "list"), ("monitr", "monitor"), ("relaod", "reload"),
    ("frobnicate", None),
])
def test_an_unknown_command(daemon, word, meant):
    result = daemon.rtgrantctl(BOB, word)
    assert result.returncode == 2 and not result.stdout
    assert (f"'{meant}'" in result.stderr) if meant else ("meant" not in result.stderr)


@pytest.mark.parametrize("arguments", [
    ["list", "x"], ["status", "--all"], ["list", "--user", "root"], ["--nonsense"],
    ["policy", "--json", "x"],
], ids=" ".join)
def test_wrong_usage(daemon, arguments):
    result = daemon.rtgrantctl(BOB, *arguments)
    assert result.returncode == 2 and "--help" in result.stderr and not result.stdout


# ---- monitor ----


class Monitor:
    def __init__(self, daemon, uid, *arguments):
        self.process = subprocess.Popen(
            [daemon.programs.rtgrantctl, "monitor", *arguments], stdout=subprocess.PIPE,
            env={**os.environ, "RTGRANT_SOCKET": daemon.socket_path},
            user=uid, group=uid, extra_groups=[],
        )
        self.daemon = daemon
        self.read = b""

    def hears(self, timeout_s):
        """Whether there is another line."""
        while b"\n" not in self.read:
            if not select.select([self.process.stdout], [], [], timeout_s)[0]:
                return False
            data = os.read(self.process.stdout.fileno(), 65536)
            assert data, "the monitor ended"
            self.read += data
        return True

    def line(self):
        assert self.hears(5), "no event within 5 s"
        line, _, self.read = self.read.partition(b"\n")
        return line.decode()

    def told_of(self, target, uid):
        """Has the thread granted again until the monitor, which may just have started, says so."""
        for _ in range(50):
            assert self.daemon.rtgrant(uid, "-r", "-p", 9, target.pid).returncode == 0
            if self.hears(0.1):
                return self.line()
        raise AssertionError("the monitor says nothing")

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.process.wait(5)


@pytest.fixture(name="monitor")
def fixture_monitor(daemon):
    made = []

    def make(uid, *arguments):
        n = daemon.status().n_connections
        made.append(Monitor(daemon, uid, *arguments))
        wait_until(lambda: daemon.status().n_connections > n, what="the monitor's connection")
        return made[-1]

    yield make
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait()
        one.process.stdout.close()


def test_monitor_as_json(daemon, monitor):
    target = daemon.target(BOB)
    watching = monitor(BOB, "--json")
    watching.told_of(target, BOB)

    daemon.rtgrant(BOB, "-o", "-p", target.pid)

    events = []
    while not events or events[-1]["event"] != "ended":
        events.append(json.loads(watching.line()))
    assert events[-1]["cause"] == "released"
    assert set(events[-1]["lease"]) == LEASE_KEYS
    assert events[-1]["lease"]["pid"] == target.pid
    assert events[-1]["lost"] == 0
    assert watching.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_monitor_for_people_ends_on_a_signal(daemon, monitor, number):
    target = daemon.target(BOB)
    watching = monitor(0)
    line = watching.told_of(target, BOB)
    assert re.match(r"\d\d:\d\d:\d\d  (granted|updated) +64002  target \(\d+/\d+\)  "
                    r"SCHED_RR 9, role desktop", line)
    assert watching.stop(number) == 0


def test_monitor_shows_nobody_elses(daemon, monitor):
    targets = {uid: daemon.target(uid) for uid in (BOB, CAROL)}
    watching = monitor(CAROL)
    daemon.rtgrant(BOB, "-r", "-p", 9, targets[BOB].pid)
    lines = [watching.told_of(targets[CAROL], CAROL)]
    daemon.rtgrant(BOB, "-r", "-p", 10, targets[BOB].pid)
    daemon.rtgrantctl(0, "revoke", "--all")

    while "revoked" not in lines[-1]:
        lines.append(watching.line())
    assert watching.stop() == 0
    assert all(f"({targets[CAROL].pid}/" in line for line in lines)


def test_monitor_says_when_the_broker_is_gone(daemon, monitor):
    target = daemon.target(BOB)
    watching = monitor(BOB)
    watching.told_of(target, BOB)
    daemon.stop()
    assert watching.process.wait(5) == 4


# ---- on a terminal ----


@pytest.mark.parametrize("environment, coloured", [
    ({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False),
    ({"TERM": "xterm", "NO_COLOR": ""}, True), ({"TERM": "dumb"}, False),
], ids=["terminal", "NO_COLOR", "NO_COLOR-empty", "dumb"])
def test_colours(daemon, environment, coloured):
    master, slave = pty.openpty()
    try:
        subprocess.run([daemon.programs.rtgrantctl, "status"], stdout=slave, check=True,
                       user=BOB, group=BOB, extra_groups=[],
                       env={"RTGRANT_SOCKET": daemon.socket_path, **environment})
        assert (b"\x1b[" in os.read(master, 65536)) == coloured
    finally:
        os.close(master)
        os.close(slave)
    assert "\x1b" not in daemon.rtgrantctl(BOB, "status").stdout
