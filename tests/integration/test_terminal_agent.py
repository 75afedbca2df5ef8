# SPDX-License-Identifier: MIT
"""--ask on a terminal with the real pkttyagent, its set-user-ID helper, and PAM's word on passwords."""

import fcntl
import os
import pty
import select
import shutil
import subprocess
import termios
import time

import pytest

import bus as bus_module
from agent import ALICE, BOB
from daemon import wait_until

PAM = ("/etc/pam.d/polkit-1", "/usr/lib/pam.d/polkit-1")

pytestmark = [
    pytest.mark.skipif(not bus_module.is_here() or not shutil.which("pkttyagent") or
                       not any(map(os.path.exists, PAM)) or not shutil.which("openssl"),
                       reason="no polkitd, dbus-daemon, pkttyagent, its PAM service or openssl"),
]

# bob is the administrator
RULES = """polkit.addAdminRule(function(action, subject) { return ["unix-user:bob"]; });
polkit.addRule(function(action, subject) {
    if (action.id.indexOf("org.rtgrant.") == 0)
        return subject.user == "alice" ? polkit.Result.AUTH_ADMIN : polkit.Result.YES;
});
"""
POLICY = {
    "Broker": {"Authority": "polkit"},
    "Role desktop": {"AllowUsers": None, "PolkitAction": "org.rtgrant.realtime"},
    "Role studio": {"AllowUsers": "0"},
}


@pytest.fixture
def bus():
    made = bus_module.Bus(RULES)
    made.write_passwords({"bob": "right"})
    yield made
    made.close()


@pytest.fixture
def broker(make_daemon, bus):
    daemon = make_daemon().start(POLICY, environment=bus.environment)
    client = daemon.client(BOB)
    wait_until(lambda: client.acquire(role="desktop").reason == "none", what="polkit's answer")
    client.kill()
    daemon.companions.remove(client)
    wait_until(lambda: daemon.leases() == [])
    daemon.take_as_base()
    return daemon


class Terminal:
    """Where alice, who is logged in, has started a program."""

    def __init__(self, broker, bus, command):
        enter = bus.session(ALICE)
        self.master, slave = pty.openpty()
        flags = termios.tcgetattr(slave)
        flags[3] |= termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, flags)
        self.before = flags

        def take_terminal():
            enter()
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = bus.run(
            {"shadow": "/etc/shadow", "dbus": "/run/dbus"},
            ["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups", "--inh-caps=-all",
             "--", *map(str, command)],
            {"RTGRANT_SOCKET": broker.socket_path, "LC_ALL": "C"},
            stdin=slave, stdout=slave, stderr=slave, cwd="/", preexec_fn=take_terminal)
        self.slave = slave
        self.text = ""

    def read_until(self, done, timeout_s=60):
        end = time.monotonic() + timeout_s
        while not done():
            assert time.monotonic() < end, self.text
            if select.select([self.master], [], [], 0.1)[0]:
                self.text += os.read(self.master, 4096).decode(errors="replace").replace("\r", "")

    def answer(self, keys):
        """Types it when a password is asked for; the exit status."""
        self.read_until(lambda: "Password: " in self.text and
                        not termios.tcgetattr(self.slave)[3] & termios.ECHO)
        os.write(self.master, keys)
        return self.wait()

    def wait(self):
        self.read_until(lambda: self.process.poll() is not None)
        self.read_until(lambda: not select.select([self.master], [], [], 0.1)[0])
        return self.process.returncode

    def is_as_before(self):
        return termios.tcgetattr(self.slave) == self.before

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def terminal(broker, bus):
    started = []

    def begin(name, *arguments):
        started.append(Terminal(broker, bus, [getattr(broker.programs, name), *arguments]))
        return started[-1]

    os.makedirs("/run/dbus", exist_ok=True)
    yield begin
    for each in started:
        each.close()


HIGH = ("--ask", "--role", "desktop", "-f", 5)


def agents():
    return subprocess.run(["pgrep", "-u", str(ALICE), "-x", "pkttyagent"], check=False,
                          stdout=subprocess.PIPE).stdout.split()


def test_the_right_password(terminal):
    shell = terminal("rtgrant", *HIGH, "chrt", "-p", 0)

    assert shell.answer(b"right\r") == 0

    assert "Authenticating as: bob" in shell.text and "AUTHENTICATION COMPLETE" in shell.text
    assert "SCHED_FIFO|SCHED_RESET_ON_FORK\n" in shell.text and "priority: 5\n" in shell.text
    assert shell.is_as_before() and agents() == []


def test_a_wrong_password(terminal):
    shell = terminal("rtgrant", *HIGH, "true")

    assert shell.answer(b"wrong\r") == 3

    assert "not given the right one" in shell.text and "help: try again" in shell.text
    assert shell.is_as_before() and agents() == []


def test_interrupted(terminal, broker):
    shell = terminal("rtgrant", *HIGH, "true")

    assert shell.answer(b"\x03") == -2

    wait_until(lambda: agents() == [], what="the agent's end")
    assert shell.is_as_before()
    assert broker.leases() == []


def test_nobody_types(plain_build, terminal):
    """The agent still waits for the terminal then, and has to be ended."""
    shell = terminal("rtgrant", *HIGH, "true")
    begin = time.monotonic()

    assert shell.wait() == 3

    assert 24 < time.monotonic() - begin < 35 and "in time" in shell.text
    assert shell.is_as_before() and agents() == []


def test_an_administrators_command(terminal, broker):
    client = broker.client(BOB)
    client.acquire(role="desktop")
    shell = terminal("rtgrantctl", "revoke", "--ask", "--user", BOB)

    assert shell.answer(b"right\r") == 0, shell.text

    assert shell.text.count("Password: ") == 1 and "1 lease ended\n" in shell.text


def test_without_ask(terminal):
    shell = terminal("rtgrant", "--role", "desktop", "-f", 5, "true")

    assert shell.wait() == 3

    assert "Password" not in shell.text and "--ask" in shell.text
