# SPDX-License-Identifier: MIT
"""A password that polkit asks for: what each way not to give it is told, and --ask of the programs."""

import contextlib
import fcntl
import os
import pty
import signal
import subprocess
import termios

import pytest

import bus as bus_module
import kernel
import wire
from agent import ALICE, BOB
from companions import agent_for, has_gi, start, start_time  # noqa: F401
from daemon import wait_until
from kernel import FIFO, OTHER

pytestmark = pytest.mark.skipif(not bus_module.is_here() or not has_gi(),
                                reason="no polkitd, dbus-daemon, python3-dbus or python3-gi")

# alice needs her password, for all that there is, each time; for the studio it is kept
RULES = """polkit.addRule(function(action, subject) {
    if (action.id == "org.rtgrant.realtime-high" && subject.user == "alice")
        return polkit.Result.AUTH_SELF_KEEP;
    if (action.id.indexOf("org.rtgrant.") == 0)
        return subject.user == "alice" ? polkit.Result.AUTH_SELF : polkit.Result.YES;
});
"""

POLICY = {
    "Broker": {"Authority": "polkit"},
    "Role desktop": {"AllowUsers": "64002", "PolkitAction": "org.rtgrant.realtime"},
    "Role studio": {"AllowUsers": "0", "PolkitAction": "org.rtgrant.realtime-high"},
}

# The program under which the terminal's agent is looked for: says whose it is, is ready when the
# test is, and then runs.
TERMINAL_AGENT = """#!/bin/bash
echo $PPID "$@" >"$FOLDER/started"
[ "$1 $2" = "--fallback --notify-fd" ] || exit
until [ -e "$FOLDER/ready" ]; do sleep 0.05; done
eval "exec $3>&-"
stty -echo
exec sleep 1000
"""


@pytest.fixture
def bus():
    made = bus_module.Bus(RULES)
    yield made
    made.close()


@pytest.fixture
def broker(make_daemon, bus):
    daemon = make_daemon().start(POLICY, environment=bus.environment)
    client = daemon.client(ALICE)
    wait_until(lambda: client.acquire(role="desktop").reason == "not-authorized", what="polkit")
    client.kill()
    daemon.companions.remove(client)
    daemon.take_as_base()
    return daemon


class Program:
    """One of ours, as alice, that begins only when its agent is there."""

    def __init__(self, broker, name, *arguments):
        command = [getattr(broker.programs, name), *map(str, arguments)]
        self.process = subprocess.Popen(
            ["sh", "-c", 'read -r _; exec "$@"', "sh", *command], user=ALICE, group=ALICE, extra_groups=[],
            cwd="/", text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "RTGRANT_SOCKET": broker.socket_path})
        self.pid = self.process.pid

    def go_on(self):
        """Exit status, standard output, standard error."""
        out, err = self.process.communicate("\n", timeout=60)
        return self.process.returncode, out, err


COMMANDS = [
    ("rtgrant", "--role", "desktop", "-f", 5, "true"),
    ("rtgrantctl", "list", "--all"),
    ("rtgrantctl", "top", "--all", "--once"),
    ("rtgrantctl", "reload"),
    ("rtgrantctl", "revoke", "--all"),
    ("rtgrantctl", "revoke", "--user", "0"),
]
each_command = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(map(str, command[:3])))


def with_ask(command):
    return command[:2] + ("--ask",) + command[2:] if command[0] == "rtgrantctl" else \
        command[:1] + ("--ask",) + command[1:]


@each_command
def test_without_ask_nobody_is_asked(broker, bus, start, command):
    program = Program(broker, *command)
    agent = agent_for(start, bus, program, "yes")

    status, _, err = program.go_on()

    assert status == 3 and "--ask" in err
    assert agent.lines == []


@each_command
def test_the_right_password(broker, bus, start, command):
    """Once, also where the program has several requests."""
    program = Program(broker, *with_ask(command))
    agent = agent_for(start, bus, program, "yes")

    status, _, err = program.go_on()

    assert (status, err) == (0, "")
    wait_until(lambda: agent.lines == ["asked"], what="one question")


@pytest.mark.parametrize("mode, cause, help_", [
    ("no", "not given the right one", "try again"),
    ("dismiss", "dismissed", "ask again"),
    (None, "nobody to ask", "pkttyagent"),
], ids=["wrong", "dismissed", "no-agent"])
@each_command
def test_no_password(broker, bus, start, command, mode, cause, help_):
    program = Program(broker, *with_ask(command))
    if mode:
        agent_for(start, bus, program, mode)

    status, out, err = program.go_on()

    assert (status, out) == (3, "")
    assert cause in err and help_ in err and "org.rtgrant." in err
    assert broker.leases() == []


def test_what_no_password_gives_is_a_plain_no(broker, bus, start):
    bus.write_rules('polkit.addRule(function(a, s) { return polkit.Result.NO; });')
    client = broker.client(ALICE)
    wait_until(lambda: "does not allow it" in client.acquire(role="desktop").explanation.text)
    program = Program(broker, *with_ask(COMMANDS[0]))
    agent = agent_for(start, bus, program, "yes")

    status, _, err = program.go_on()

    assert status == 3 and "polkit does not allow it" in err and "password" not in err
    assert agent.lines == []


def test_somebody_elses_lease_is_taken_away(broker, bus, start):
    client = broker.client(BOB)
    client.acquire(role="desktop", priority=5)
    program = Program(broker, "rtgrantctl", "revoke", "--ask", "--user", BOB)
    agent = agent_for(start, bus, program, "yes")

    assert program.go_on()[:2] == (0, "1 lease ended\n")
    wait_until(lambda: agent.lines == ["asked"], what="one question")
    assert client.sched()[0] == OTHER


def test_who_interrupts_takes_the_question_along(broker, bus, start):
    program = Program(broker, "rtgrantctl", "list", "--all", "--ask")
    agent = agent_for(start, bus, program, "never")

    program.process.stdin.write("\n")
    program.process.stdin.flush()
    wait_until(lambda: agent.lines == ["asked"], what="the question")
    program.process.kill()
    program.process.communicate()

    wait_until(lambda: agent.lines == ["asked", "cancelled"], what="its end")


@pytest.mark.parametrize("command", ["status", "policy", "irq", "doctor"])
def test_what_needs_no_administrator_asks_none(broker, command):
    result = broker.rtgrantctl(ALICE, command, "--ask")

    assert (result.returncode, result.stdout) == (2, "")


def test_why_asks_nobody(broker, bus, start):
    program = Program(broker, "rtgrantctl", "why", "--ask", "--role", "desktop", "-f", 5)
    agent = agent_for(start, bus, program, "yes")

    status, out, _ = program.go_on()

    assert status == 3 and "--ask" in out
    assert agent.lines == []


@pytest.mark.parametrize("role, priority, kept", [("studio", 61, True), ("desktop", 1, False)],
                         ids=["kept", "not-kept"])
def test_polkit_keeps_it_for_the_process_where_it_is_to(broker, bus, start, role, priority, kept):
    client, other = broker.client(ALICE), broker.client(ALICE)
    agent = agent_for(start, bus, client, "yes")

    assert client.acquire(role=role, priority=priority, flags=wire.ACQUIRE_MAY_ASK).reason == "none"
    higher = client.acquire(role=role, priority=priority + 1)

    assert higher.reason == ("none" if kept else "not-authorized")
    assert other.acquire(role=role, priority=priority).reason == "not-authorized"
    wait_until(lambda: agent.lines == ["asked"], what="one question")


# ---- an agent for the terminal ----


@pytest.fixture
def terminal(broker, tmp_path_factory):
    """Starts a program as alice in front of a terminal, where pkttyagent is the one above."""
    folder = tmp_path_factory.mktemp("terminal")
    (folder / "pkttyagent").write_text(TERMINAL_AGENT)
    (folder / "pkttyagent").chmod(0o755)
    for each in (folder, folder.parent, folder.parent.parent):
        each.chmod(0o777)
    started = []

    def begin(*command, in_front=True):
        master, slave = pty.openpty()
        before = termios.tcgetattr(slave)

        def take_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        words = [getattr(broker.programs, command[0]), *map(str, command[1:])]
        process = subprocess.Popen(
            words if in_front else ["sh", "-mc", '"$@" & wait $!', "sh", *words], user=ALICE, group=ALICE,
            extra_groups=[], cwd="/", stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, preexec_fn=take_terminal,
            env={**os.environ, "RTGRANT_SOCKET": broker.socket_path, "FOLDER": str(folder),
                 "PATH": f"{folder}:{os.environ['PATH']}"})
        started.append((process, master, slave))
        process.folder = folder
        process.is_as_before = lambda: termios.tcgetattr(slave) == before
        return process

    yield begin
    for process, master, slave in started:
        process.kill()
        process.communicate()
        os.close(master)
        os.close(slave)


def the_agent(process):
    """What is known of it: whose it is; its own id."""
    wait_until(lambda: (process.folder / "started").exists() and
               (process.folder / "started").read_text().endswith("\n"), what="the terminal's agent")
    pid = subprocess.run(["pgrep", "-P", str(process.pid)], check=True, text=True,
                         capture_output=True).stdout.split()
    return int((process.folder / "started").read_text().split()[0]), int(pid[0])


@pytest.mark.parametrize("command", [COMMANDS[0], COMMANDS[1]], ids=["rtgrant", "rtgrantctl"])
def test_on_a_terminal_it_is_started_and_ended(broker, bus, start, terminal, command):
    process = terminal(*with_ask(command))
    owner, pid = the_agent(process)
    assert owner == process.pid
    agent = agent_for(start, bus, process, "yes")
    (process.folder / "ready").touch()

    out, err = process.communicate(timeout=60)

    assert (process.returncode, err) == (0, "")
    wait_until(lambda: agent.lines == ["asked"], what="one question")
    assert not os.path.exists(f"/proc/{pid}")
    assert process.is_as_before()


def test_it_is_gone_before_the_command_runs(broker, bus, start, terminal):
    process = terminal("rtgrant", "--ask", "--role", "desktop", "-f", 5, "sleep", 100)
    _, pid = the_agent(process)
    agent_for(start, bus, process, "yes")
    (process.folder / "ready").touch()

    wait_until(lambda: kernel.status(process.pid, "Name") == "sleep", what="the command")

    assert not os.path.exists(f"/proc/{pid}")
    assert kernel.sched_getattr(process.pid)[:2] == (FIFO, 5)


@pytest.mark.parametrize("how", ["without-ask", "behind", "granted"])
def test_it_is_not_started(broker, bus, terminal, how):
    command = ("rtgrant", "--role", "desktop", "-f", 5, "true")
    process = terminal(*(command if how == "without-ask" else with_ask(command)),
                       in_front=how != "behind") if how != "granted" else \
        terminal("rtgrant", "--ask", "-o", 0, "true")

    process.communicate(timeout=30)

    assert process.returncode == (0 if how == "granted" else 3)
    assert not (process.folder / "started").exists()


def test_an_agent_that_ends_at_once_holds_nobody_up(broker, terminal):
    process = terminal(*with_ask(COMMANDS[0]))
    with contextlib.suppress(ProcessLookupError):
        os.kill(the_agent(process)[1], signal.SIGKILL)

    _, err = process.communicate(timeout=30)

    assert process.returncode == 3 and "nobody to ask" in err
    assert process.is_as_before()
