# SPDX-License-Identifier: MIT
"""The real rtgrantd, started on a private socket with a policy of the test's own."""

import contextlib
import fcntl
import os
import queue
import re
import signal
import socket
import subprocess
import threading
import time

import agent
import kernel

SANITIZER = re.compile(r"AddressSanitizer|LeakSanitizer|runtime error:|ThreadSanitizer")
START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 60

# The machine's own bus is none of a test's business.
NO_BUS = {"DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nonexistent/bus"}

# A desktop of 20 and a studio above it, without limits that a test would meet by chance.
POLICY = {
    "Broker": {
        "DefaultRole": "desktop",
        "ThreadsMax": 1000,
        "ThreadsPerUser": 500,
        "ConnectionsMax": 500,
        "ConnectionsPerUser": 100,
        "GrantBurst": 1000,
        "GrantRefill": "1ms",
        "MessageBurst": 10000,
        "MessageRefill": "100us",
    },
    "Role desktop": {
        "Policy": "fifo rr other",
        "Priority": "1-20",
        "Nice": "-15",
        "ThreadsPerUser": 500,
        "LifetimeMax": "1h",
        "AllowUsers": "*",
    },
    "Role studio": {
        "Policy": "fifo",
        "Priority": "61-70",
        "ThreadsPerUser": 100,
        "AllowUsers": "64001",
    },
}


def policy_text(changes=None):
    """POLICY as a file, with {section: {key: value}} changed; a value of None leaves the key out."""
    changes = changes or {}
    text = ""
    for section in dict.fromkeys([*POLICY, *changes]):
        if section in changes and changes[section] is None:
            continue
        keys = {**POLICY.get(section, {}), **changes.get(section, {})}
        text += f"[{section}]\n"
        text += "".join(f"{key}={value}\n" for key, value in keys.items() if value is not None)
    return text


# A limit on waiting is there so that a test ends, not to measure: a busy machine may take its time.
PATIENCE_S = 30


def wait_until(condition, timeout_s=PATIENCE_S, what="it"):
    """Waits for what announces itself by no event; returns its first true value."""
    timeout_s = max(timeout_s, PATIENCE_S)
    end = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"{what} did not come true within {timeout_s} s"
        time.sleep(0.005)


class ServiceManager:
    """Reads what a service says by sd_notify(3), as systemd would: at once and always."""

    def __init__(self, path):
        self.path = path
        self.messages = queue.Queue()
        self.kept = []  # (name, descriptor) of what the service had it keep for its successor
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._socket.bind(path)
        self._all_read = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        while True:
            message, fds, _flags, _address = socket.recv_fds(self._socket, 65536, 16)
            if not message:
                return
            lines = message.decode().splitlines()
            if lines == ["ALL-READ"]:
                self._all_read.set()
                continue
            if "FDSTORE=1" in lines:
                (name,) = [line[7:] for line in lines if line.startswith("FDNAME=")]
                self.kept += [(name, fd) for fd in fds]
            self.messages.put(lines)

    def close(self):
        self._socket.shutdown(socket.SHUT_RD)
        self._reader.join()
        self._socket.close()
        for _name, fd in self.kept:
            os.close(fd)

    def take_kept(self):
        """[(name, descriptor)], which are the caller's from now on, above those that a shell moves."""
        self._all_read.clear()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as mine:
            mine.sendto(b"ALL-READ", self.path)
        assert self._all_read.wait(PATIENCE_S)
        kept, self.kept = self.kept, []
        taken = []
        for name, fd in kept:
            taken.append((name, fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 1000)))
            os.close(fd)
        return taken


class Daemon:
    """One rtgrantd and everybody who talks to it."""

    def __init__(self, programs, directory):
        self.programs = programs
        self.directory = directory
        self.socket_path = f"{directory}/socket"
        self.state_path = f"{directory}/state"
        self.policy_path = f"{directory}/policy.conf"
        self.log_path = f"{directory}/log"
        self.process = None
        self.pid = 0
        self.companions = []
        self._manager = None
        self._admin = None
        self._n_fds = None
        open(self.log_path, "w", encoding="utf-8").close()

    # -- life --

    def start(self, policy=None, arguments=(), prefix=(), environment=None, log_level="info",
              prepare=None, wait=True):
        """
        policy      changes to POLICY, or the whole text
        prefix      a command that runs the daemon in its own place, as with-filter
        prepare     runs in the daemon's process before it
        wait        until it says READY=1
        """
        self.write_policy(policy)
        kept = self._manager.take_kept() if self._manager else []
        if self._manager:
            self._manager.close()
        self._manager = ServiceManager(f"{self.directory}/notify")

        def in_child():
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
            if prepare:
                prepare()

        command = [
            *prefix, self.programs.rtgrantd, "--socket", self.socket_path,
            "--policy", self.policy_path, "--state", self.state_path, "--log-level", log_level,
            *arguments,
        ]
        if kept:
            moves = " ".join(f"{3 + i}<&{fd}-" for i, (_name, fd) in enumerate(kept))
            names = ":".join(name for name, _fd in kept)
            command = ["bash", "-c", f"exec {moves}; LISTEN_PID=$$ LISTEN_FDS={len(kept)} "
                       f"LISTEN_FDNAMES={names} exec \"$@\"", "bash", *command]
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=in_child,
                env={**os.environ, **NO_BUS, "NOTIFY_SOCKET": self._manager.path, **(environment or {})},
                pass_fds=[fd for _name, fd in kept],
            )
        for _name, fd in kept:
            os.close(fd)
        self.pid = self.process.pid
        if wait:
            self.wait_for_message("READY=1", START_TIMEOUT_S)
            self._n_fds = self.n_fds()
        return self

    def write_policy(self, policy=None):
        text = policy if isinstance(policy, str) else policy_text(policy)
        with open(self.policy_path, "w", encoding="utf-8") as file:
            file.write(text)

    def wait_for_message(self, wanted, timeout_s=PATIENCE_S):
        """The next sd_notify(3) message that has the line @wanted, as {key: value}."""
        end = time.monotonic() + timeout_s
        while True:
            assert time.monotonic() < end, f"no {wanted} within {timeout_s} s"
            assert self.process.poll() is None, f"rtgrantd ended with {self.process.returncode}"
            with contextlib.suppress(queue.Empty):
                lines = self._manager.messages.get(timeout=0.1)
                if wanted in lines:
                    return dict(line.partition("=")[::2] for line in lines)

    def line_of(self, key):
        """Where the policy sets @key."""
        with open(self.policy_path, encoding="utf-8") as f:
            [line] = [n for n, text in enumerate(f, 1) if text.startswith(f"{key}=")]
        return line

    def reload(self, policy=None):
        """SIGHUP with another policy, or with False the file as it is; returns when it was read."""
        if policy is not False:
            self.write_policy(policy)
        os.kill(self.pid, signal.SIGHUP)
        self.wait_for_message("RELOADING=1")
        return self.wait_for_message("READY=1")

    @contextlib.contextmanager
    def paused(self):
        """While it does nothing."""
        os.kill(self.pid, signal.SIGSTOP)
        wait_until(lambda: kernel.status(self.pid, "State").startswith("T"), what="the stop")
        try:
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def stop(self):
        """SIGTERM; it has to end by itself, well, and without a sanitizer's complaint."""
        if self.process is None:
            return
        self._forget_admin()
        process, self.process = self.process, None
        os.kill(self.pid, signal.SIGTERM)
        try:
            status = process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError("rtgrantd did not end on SIGTERM") from None
        assert status == 0, f"rtgrantd ended with {status}"

    def upgrade(self, **values):
        """Stops it as a restart for an upgrade does, and starts it again, with what it had kept."""
        self._forget_admin()
        process, self.process = self.process, None
        os.kill(self.pid, signal.SIGUSR2)
        assert process.wait(STOP_TIMEOUT_S) == 0
        with open(self.policy_path, encoding="utf-8") as file:
            self.start(file.read(), **values)

    def kill(self):
        """As a crash would end it."""
        self._forget_admin()
        self.process.kill()
        self.process.wait()
        self.process = None

    def wait(self, timeout_s=START_TIMEOUT_S):
        """The exit status of one that is to end by itself."""
        process, self.process = self.process, None
        try:
            return process.wait(timeout_s)
        finally:
            if process.returncode is None:
                process.kill()
                process.wait()

    def close(self):
        """The end of a test: nobody left, nothing left over."""
        try:
            self._forget_admin()
            for companion in reversed(self.companions):
                companion.kill()
            if self.process:
                assert self.process.poll() is None, f"rtgrantd ended with {self.process.poll()}"
                self._check_nothing_left()
                self.stop()
        finally:
            if self.process:
                self.kill()
            if self._manager:
                self._manager.close()
            log = self.log()
            print("--- log of rtgrantd, the last lines:", *log.splitlines()[-40:], sep="\n")
        assert not SANITIZER.search(log), "a sanitizer complained"

    def take_as_base(self):
        """What the daemon has open now is what it is to have open in the end."""
        self._n_fds = self.n_fds()

    def _check_nothing_left(self):
        wait_until(lambda: self.status().n_leases == 0, what="the end of all leases")
        wait_until(lambda: self.status().n_connections <= 1, what="the end of all connections")
        self._forget_admin()
        if self._n_fds is not None:
            wait_until(lambda: self.n_fds() <= self._n_fds, what="the end of all descriptors")

    # -- those who talk to it --

    def client(self, uid, groups=(), prepare=None):
        client = agent.Client(self.socket_path, uid, groups, prepare)
        self.companions.append(client)
        return client

    def target(self, uid, groups=(), path=None, **values):
        """A program of that user; @path: a copy of `target` with more rights."""
        target = Target(path or self.programs.target, uid, groups, **values)
        self.companions.append(target)
        return target

    def rtgrant(self, uid, *arguments, groups=(), program="rtgrant", **values):
        """Runs a program of the project as @uid; see subprocess.run() for what comes back."""
        return subprocess.run(
            [getattr(self.programs, program), *map(str, arguments)],
            env={**os.environ, "RTGRANT_SOCKET": self.socket_path, "LC_ALL": "C.UTF-8"},
            user=uid, group=uid, extra_groups=list(groups), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30,
            check=False, cwd="/", **values,
        )

    def rtgrantctl(self, uid, *arguments, **values):
        return self.rtgrant(uid, *arguments, program="rtgrantctl", **values)

    # -- what can be seen of it --

    @property
    def admin(self):
        """A connection of root, who is the administrator."""
        if self._admin is None:
            self._admin = agent.Connection(self.socket_path)
        return self._admin

    def _forget_admin(self):
        if self._admin:
            self._admin.close()
            self._admin = None

    def status(self):
        return self.admin.hello()

    def leases(self):
        return self.admin.list(everybody=True)

    def lease_of(self, tid):
        (lease,) = [lease for lease in self.leases() if lease.tid == tid]
        return lease

    def n_fds(self):
        """Open descriptors, but for the timers, which sd-event makes when first needed and keeps."""
        n = 0
        for fd in os.listdir(f"/proc/{self.pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                n += "timerfd" not in os.readlink(f"/proc/{self.pid}/fd/{fd}")
        return n

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()


class Target:
    """tests/tools/target: a program that knows nothing of the broker."""

    def __init__(self, path, uid, groups=(), prepare=None, start_new_session=False):
        def in_child():
            if prepare:
                prepare()
            kernel.become(uid, groups)

        self.process = subprocess.Popen(
            [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            preexec_fn=in_child, start_new_session=start_new_session, cwd="/",
        )
        self.pid = self.process.pid
        assert self.reply() == [str(self.pid)]

    def reply(self):
        """The words after "ok", of a command that was written."""
        words = self.process.stdout.readline().split()
        assert words, "the target ended"
        assert words[0] == "ok", OSError(int(words[1]), os.strerror(int(words[1])))
        return words[1:]

    def tell(self, *words, tid=0):
        """Has a thread obey a command; what it answered. OSError's number in the assertion."""
        self.write(*words, tid=tid)
        return self.reply()

    def errno_of(self, *words, tid=0):
        """The same for a command that may fail: its errno, 0 if it did not."""
        self.write(*words, tid=tid)
        words = self.process.stdout.readline().split()
        return int(words[1]) if words[0] == "error" else 0

    def write(self, *words, tid=0):
        print(tid, *words, file=self.process.stdin, flush=True)

    def thread(self, name="sleeper", tid=0):
        return int(self.tell("thread", name, tid=tid)[0])

    def fork(self, tid=0):
        return int(self.tell("fork", tid=tid)[0])

    def exec(self, path, *arguments, tid=0):
        """Becomes another program, which has to be a `target` too; returns when it has."""
        self.write("exec", path, *arguments, tid=tid)
        assert self.reply() == [str(self.pid)]

    def sched(self, tid=None):
        return kernel.sched_getattr(tid or self.pid)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def assert_granted(answer, policy, priority, nice=0):
    """That the broker says so, with RESET_ON_FORK, and that the kernel says the same."""
    assert answer.reason == "none", explain(answer)
    assert (answer.policy, answer.priority, answer.nice) == (policy, priority, nice)
    assert any(answer.id)
    in_force = kernel.sched_getattr(answer.tid)
    assert in_force[:3] == (policy, priority, nice)
    assert in_force.reset_on_fork == bool(answer.reset_on_fork)
    assert in_force.reset_on_fork or (policy == kernel.OTHER and nice >= 0)
    return answer


def assert_refused(answer, *reasons):
    """That it says no for one of these reasons, in words, and hands out nothing."""
    assert answer.reason in reasons, explain(answer)
    assert answer.explanation.text, "a refusal without a word"
    assert not any(answer.id)


def explain(answer):
    explanation = answer.explanation
    return f"{answer.reason}: {explanation.text} {explanation.help} [{explanation.rule}]"


def words_of(answer):
    """The words of a refusal without the numbers, which the caller itself may have named."""
    explanation = answer.explanation
    return re.sub(r"\d+", "N", f"{explanation.text}|{explanation.help}|{explanation.rule}")
