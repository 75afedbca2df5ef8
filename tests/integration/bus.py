# SPDX-License-Identifier: MIT
"""A private system bus with the real polkitd and faked login sessions, and who speaks on it."""

import contextlib
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
from collections import namedtuple

import kernel
from agent import ALICE, BOB, CAROL
from daemon import wait_until

POLKITD = "/usr/lib/polkit-1/polkitd"
ROOT = pathlib.Path(__file__).resolve().parents[2]
ACTIONS = ROOT / "broker" / "dbus"
POLICIES = pathlib.Path(os.environ.get("RTGRANT_BUILD") or ROOT / "build") / "broker" / "dbus"

# What a caller without a session is told when polkit says no; without logind nobody knows of sessions.
NO = "no-active-session" if os.path.exists("/run/systemd/seats") else "not-authorized"

RTKIT_DAEMON = "/usr/libexec/rtkit-daemon"
KIT = "org.freedesktop.RealtimeKit1"
KIT_PATH = "/org/freedesktop/RealtimeKit1"
PROPERTIES = "org.freedesktop.DBus.Properties"
TIMEOUT_S = 10

# dbus-daemon lets on only whom it finds in the user database
DAVE = 4000000000  # more than an int holds
USERS = {"alice": ALICE, "bob": BOB, "carol": CAROL, "dave": DAVE}
# polkit goes by the groups of the user database, not by those of the process
REALTIME = 64100
MEMBERS = ["bob"]
RLIMIT_RTTIME = 15

# Everybody may send everything, so that what is refused is refused by the broker itself.
OPEN = """  <policy context="default">
    <allow send_type="method_call"/>
  </policy>
"""

# As a system bus is set up: what no file of a service allows does not get through.
STRICT = f"""  <policy context="default">
    <deny send_type="method_call"/>
    <allow send_destination="org.freedesktop.DBus"/>
    <allow send_destination="org.freedesktop.PolicyKit1"/>
    <allow send_interface="org.freedesktop.PolicyKit1.AuthenticationAgent"/>
  </policy>
  <include>{POLICIES}/org.rtgrant.realtimekit.conf</include>
  <include>{POLICIES}/org.rtgrant.Broker1.conf</include>
"""

BUS = """<busconfig>
  <type>system</type>
  <auth>EXTERNAL</auth>
  <listen>unix:path={directory}/bus</listen>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow send_type="signal"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
  </policy>
{services}
  <policy user="root"><allow own="*"/></policy>
  <policy user="polkitd"><allow own="org.freedesktop.PolicyKit1"/></policy>
  <policy user="rtkit"><allow own="org.freedesktop.RealtimeKit1"/></policy>
</busconfig>
"""

# Each question leaves a line in polkitd's log, so that questions can be counted.
LOG_EACH = """polkit.addRule(function(action, subject) {
    polkit.log("asked " + action.id + " role=" + action.lookup("role") +
               " policy=" + action.lookup("policy") + " priority=" + action.lookup("priority") +
               " nice=" + action.lookup("nice") + " program=" + action.lookup("program") +
               " value=" + action.lookup("value") + " device=" + action.lookup("device"));
});
"""


def is_here():
    try:
        import dbus  # noqa: F401
    except ImportError:
        return False
    return os.path.exists(POLKITD) and shutil.which("dbus-daemon") is not None


def has_rtkit():
    return os.path.exists(RTKIT_DAEMON)


class Bus:
    """The bus, and polkitd on it unless it is left away, with @rules in the language of polkit."""

    def __init__(self, rules="", strict=False, polkit=True):
        self.directory = tempfile.mkdtemp(prefix="rtgrant-bus-")
        os.chmod(self.directory, 0o755)
        for name in ("rules", "actions", "systemd/sessions", "systemd/users", "systemd/seats"):
            os.makedirs(f"{self.directory}/{name}", 0o755)
        for path in ACTIONS.glob("*.policy"):
            shutil.copy(path, f"{self.directory}/actions")
        self._add_users("passwd", "{user}:x:{uid}:{uid}::/:/bin/false\n")
        self._add_users("group", "{user}:x:{uid}:\n")
        with open(f"{self.directory}/group", "a", encoding="utf-8") as file:
            file.write(f"realtime:x:{REALTIME}:{','.join(MEMBERS)}\n")
        self.write_rules(rules)
        self.strict = strict
        self.log_path = f"{self.directory}/log"
        self.address = f"unix:path={self.directory}/bus"
        self.environment = {"DBUS_SYSTEM_BUS_ADDRESS": self.address}
        os.mkdir(f"{self.directory}/dbus")
        os.symlink(f"{self.directory}/bus", f"{self.directory}/dbus/system_bus_socket")
        self._log = open(self.log_path, "wb")
        self._groups = []
        self.bus = self.polkitd = None
        self.start_bus()
        if polkit:
            self.start()

    def _add_users(self, name, line):
        shutil.copy(f"/etc/{name}", self.directory)
        with open(f"{self.directory}/{name}", "a", encoding="utf-8") as file:
            for user, uid in USERS.items():
                file.write(line.format(user=user, uid=uid))

    def write_passwords(self, passwords):
        """{user: password}, for those who see our users; nobody else has one there."""
        with open(f"{self.directory}/shadow", "w", encoding="utf-8") as file:
            for user, password in passwords.items():
                hashed = subprocess.run(["openssl", "passwd", "-6", password], check=True, text=True,
                                        stdout=subprocess.PIPE).stdout.strip()
                file.write(f"{user}:{hashed}:19000:0:99999:7:::\n")
        os.chmod(f"{self.directory}/shadow", 0o600)

    def run(self, mounts, command, environment=None, **values):
        """Starts a program that sees our users, and our {name: path}, in place of the machine's."""
        mounts = {"passwd": "/etc/passwd", "group": "/etc/group", **mounts}
        script = " && ".join(f"mount --bind {self.directory}/{ours} {theirs}"
                             for ours, theirs in mounts.items())
        return subprocess.Popen(
            ["unshare", "-m", "--propagation", "private", "sh", "-c",
             f'mkdir -p /run/systemd && {script} && exec "$@"', "sh", *command],
            env={**os.environ, **self.environment, **(environment or {})}, **values)

    def start_bus(self):
        with open(f"{self.directory}/bus.conf", "w", encoding="utf-8") as file:
            file.write(BUS.format(directory=self.directory,
                                  services=STRICT if self.strict else OPEN))
        self.bus = self.run(
            {}, ["dbus-daemon", f"--config-file={self.directory}/bus.conf", "--nofork",
                 "--nopidfile", "--print-address"], stdout=subprocess.PIPE, stderr=self._log)
        assert self.bus.stdout.readline(), "dbus-daemon did not start"

    def kill_bus(self):
        self.bus.kill()
        self.bus.wait()
        self.bus.stdout.close()
        self.bus = None

    def write_rules(self, rules):
        with open(f"{self.directory}/rules/10.rules", "w", encoding="utf-8") as file:
            file.write(LOG_EACH + rules)
        os.chmod(f"{self.directory}/rules/10.rules", 0o644)

    def start(self):
        """Starts polkitd, which sees our actions, rules and sessions in place of the machine's."""
        n = self.log().count("Acquired the name")
        self.polkitd = self.run(
            {"rules": "/etc/polkit-1/rules.d", "actions": "/usr/share/polkit-1/actions",
             "systemd": "/run/systemd"}, [POLKITD], stdout=self._log, stderr=subprocess.STDOUT)
        wait_until(lambda: self.log().count("Acquired the name") > n, 10, "polkitd")

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def asked(self):
        """The questions so far, as LOG_EACH writes them."""
        return [line for line in self.log().splitlines() if "asked org." in line]

    def session(self, uid, active=True, remote=False):
        """A login session as logind describes it; what takes a process there, run in it as root."""
        name = f"t{uid}"
        with open(f"{self.directory}/systemd/sessions/{name}", "w", encoding="utf-8") as file:
            file.write(f"UID={uid}\nACTIVE={int(active)}\nREMOTE={int(remote)}\nTYPE=x11\n"
                       f"STATE={'active' if active else 'online'}\nCLASS=user\n"
                       f"SCOPE=session-{name}.scope\n" + ("" if remote else "SEAT=seat0\n"))
        with open(f"{self.directory}/systemd/users/{uid}", "w", encoding="utf-8") as file:
            file.write(f"STATE=active\nSESSIONS={name}\nACTIVE_SESSIONS={name}\n")
        made = []
        for root in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup"):
            if os.path.exists(f"{root}/cgroup.procs"):
                group = pathlib.Path(root, "user.slice", f"user-{uid}.slice",
                                     f"session-{name}.scope")
                group.mkdir(parents=True, exist_ok=True)
                made.append(group)
        self._groups += made

        def enter():
            for group in made:
                (group / "cgroup.procs").write_text("0")

        return enter

    def hang(self):
        self.polkitd.send_signal(signal.SIGSTOP)
        wait_until(lambda: kernel.status(self.polkitd.pid, "State").startswith("T"))

    def go_on(self):
        self.polkitd.send_signal(signal.SIGCONT)

    def kill(self):
        self.polkitd.kill()
        self.polkitd.wait()

    def close(self):
        for process in (self.polkitd, self.bus):
            if process:
                process.kill()
                process.wait()
        if self.bus:
            self.bus.stdout.close()
        self._log.close()
        for group in self._groups:
            with contextlib.suppress(OSError):
                for folder in (group, group.parent, group.parent.parent):
                    folder.rmdir()
        shutil.rmtree(self.directory)


class RtkitDaemon:
    """The reference."""

    def __init__(self, bus, *arguments):
        # its standard error must be a pipe: it gives itself a limit of 0 for the size of files;
        # and one of 3 threads for all that run as its user, which another one's would exceed
        self.process = subprocess.Popen(
            [RTKIT_DAEMON, "--stderr", "--no-limit-resources", *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **bus.environment})
        self.pid = self.process.pid
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            wait_until(lambda: has_owner(bus, KIT), 10, "rtkit-daemon")
        except AssertionError:
            self.close()
            raise

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line)

    def log(self):
        return "".join(self.lines)

    def close(self):
        self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stderr.close()


def has_owner(bus, name):
    return owner_of(bus, name) is not None


def owner_of(bus, name):
    """The process that has @name; None if nobody has."""
    import dbus

    connection = dbus.bus.BusConnection(bus.address)
    try:
        return int(connection.call_blocking("org.freedesktop.DBus", "/org/freedesktop/DBus",
                                            "org.freedesktop.DBus", "GetConnectionUnixProcessID",
                                            "s", (name,)))
    except dbus.DBusException:
        return None
    finally:
        connection.close()


Reply = namedtuple("Reply", "error text value", defaults=("", "", None))

OK = Reply()


def speak(agent, address, fresh, destination, path, interface, member, signature, arguments,
          timeout_s):
    """A method call from a client's process, over its connection or one of its own."""
    import dbus

    connection = getattr(agent, "bus", None)
    if fresh or connection is None:
        connection = dbus.bus.BusConnection(address)
        if not fresh:
            agent.bus = connection
    try:
        value = connection.call_blocking(destination, path, interface, member, signature, arguments,
                                         timeout=timeout_s)
        return Reply(value=plain(value))
    except dbus.DBusException as error:
        return Reply(error.get_dbus_name().removeprefix("org.freedesktop.DBus.Error."),
                     error.get_dbus_message())
    finally:
        if fresh:
            connection.close()


def plain(value):
    """Without dbus-python's types, but for the type of a variant."""
    import dbus

    if isinstance(value, dbus.Dictionary):
        return {str(key): plain(item) for key, item in value.items()}
    types = {dbus.Int32: "i", dbus.Int64: "x", dbus.UInt32: "u", dbus.UInt64: "t"}
    for kind, letter in types.items():
        if isinstance(value, kind):
            return letter, int(value)
    return str(value) if isinstance(value, str) else value


def leave(agent):
    """Disconnects from the bus."""
    agent.bus.close()
    del agent.bus


class Kit:
    """An unprivileged client of RealtimeKit's interface."""

    def __init__(self, bus, client):
        self.bus = bus
        self.client = client
        self.pid = client.pid

    def call(self, member, signature="", *arguments, fresh=False, path=KIT_PATH, interface=KIT,
             timeout_s=TIMEOUT_S):
        return self.client.run(speak, self.bus.address, fresh, KIT, path, interface, member,
                               signature, arguments, timeout_s)

    def start(self, member, signature="", *arguments, timeout_s=TIMEOUT_S):
        """Calls without waiting; client.finish() has the reply."""
        self.client.start("run", speak, self.bus.address, False, KIT, KIT_PATH, KIT, member,
                          signature, arguments, timeout_s)

    def realtime(self, thread, priority, **values):
        return self.call("MakeThreadRealtime", "tu", thread, priority, **values)

    def realtime_of(self, process, thread, priority, **values):
        return self.call("MakeThreadRealtimeWithPID", "ttu", process, thread, priority, **values)

    def high_priority(self, thread, nice, **values):
        return self.call("MakeThreadHighPriority", "ti", thread, nice, **values)

    def high_priority_of(self, process, thread, nice, **values):
        return self.call("MakeThreadHighPriorityWithPID", "tti", process, thread, nice, **values)

    def get(self, name, interface=KIT):
        return self.call("Get", "ss", interface, name, interface=PROPERTIES)

    def leave(self):
        self.client.run(leave)

    def sched(self, tid=None):
        return self.client.sched(tid)


def limit_rttime(soft_us=100000, hard_us=200000):
    """For prepare=: what RealtimeKit's clients set before they ask."""

    return lambda: resource.setrlimit(RLIMIT_RTTIME, (soft_us, hard_us))
