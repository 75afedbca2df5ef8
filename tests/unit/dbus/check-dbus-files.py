#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What polkitd and dbus-daemon make of the files that are installed for them.

usage: check-dbus-files.py BUS-POLICY FILE...   the program that writes policy files of the bus;
                                                *.policy and *.rules of polkit, *.conf of the bus

The real daemons run on a private bus, in a mount namespace where they see only these files. That
needs root; without it, or without the daemons, only the form is checked, and that is a skip.
"""

import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

PASSWORD = ("no", "no", "auth_admin_keep")
ACTIONS = {
    "org.rtgrant.realtime": ("no", "no", "yes"),
    "org.rtgrant.realtime-high": PASSWORD,
    "org.rtgrant.memlock": PASSWORD,
    "org.rtgrant.cpu-latency": PASSWORD,
    "org.rtgrant.irq": PASSWORD,
    "org.rtgrant.block-queue": PASSWORD,
    "org.rtgrant.observe": PASSWORD,
    "org.rtgrant.manage": ("auth_admin", "auth_admin", "auth_admin_keep"),
    "org.freedesktop.RealtimeKit1.acquire-high-priority": ("no", "yes", "yes"),
    "org.freedesktop.RealtimeKit1.acquire-real-time": ("no", "yes", "yes"),
}

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
POLKITD = "/usr/lib/polkit-1/polkitd"
POLKIT_DTD = "/usr/share/polkit-1/policyconfig-1.dtd"
SKIP = 77

# Two users who have no session, nor need have an account here: the daemons see these files.
ROOT, MEMBER, OTHER = 0, 64011, 64012
PASSWD = f"""root:x:0:0::/:/bin/sh
messagebus:x:{{messagebus}}:{{messagebus}}::/:/bin/false
polkitd:x:{{polkitd}}:{{polkitd}}::/:/bin/false
member:x:{MEMBER}:{MEMBER}::/:/bin/false
other:x:{OTHER}:{OTHER}::/:/bin/false
"""
GROUP = f"""root:x:0:
messagebus:x:{{messagebus}}:
polkitd:x:{{polkitd}}:
member:x:{MEMBER}:
other:x:{OTHER}:
realtime:x:64013:member
"""

BUS_CONFIG = """<busconfig>
  <type>system</type>
  <auth>EXTERNAL</auth>
  <listen>unix:path={directory}/bus</listen>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus"/>
  </policy>
  {includes}
  <include>/usr/share/dbus-1/system.d/org.freedesktop.PolicyKit1.conf</include>
</busconfig>
"""

RTKIT = "org.freedesktop.RealtimeKit1"
BROKER1 = "org.rtgrant.Broker1"
DBUS = "org.freedesktop.DBus"

# name, interface (None: left out), member, who may
EVERYBODY, NOBODY = {ROOT, MEMBER}, set()
CALLS = [
    *((RTKIT, RTKIT, member, EVERYBODY) for member in (
        "MakeThreadRealtime", "MakeThreadRealtimeWithPID", "MakeThreadHighPriority",
        "MakeThreadHighPriorityWithPID")),
    *((RTKIT, RTKIT, member, {ROOT}) for member in (
        "ResetKnown", "ResetAll", "Exit", "Suspend", "Resume")),
    *((BROKER1, BROKER1, member, EVERYBODY) for member in (
        "Hello", "Acquire", "Update", "Renew", "Release", "List", "Watch", "Revoke", "Reload",
        "RestoreAll", "Policy", "Why")),
    *((name, f"{DBUS}.{interface}", member, EVERYBODY)
      for name in (RTKIT, BROKER1) for interface, member in (("Properties", "Get"), ("Properties", "GetAll"),
                                ("Introspectable", "Introspect"), ("Peer", "Ping"),
                                ("Peer", "GetMachineId"))),
    *((name, f"{DBUS}.Properties", "Set", NOBODY) for name in (RTKIT, BROKER1)),
    *((name, name, "Surprise", NOBODY) for name in (RTKIT, BROKER1)),
    *((RTKIT, None, member, NOBODY) for member in ("MakeThreadRealtime", "Exit")),
    (RTKIT, "org.freedesktop.systemd1.Manager", "Exit", NOBODY),
]


def check_form(path):
    root = ElementTree.parse(path).getroot()
    if path.suffix == ".conf":
        for rule in root.iter("allow"):
            assert "own" in rule.attrib or set(rule.attrib) == {
                "send_destination", "send_interface", "send_member"}, rule.attrib
        assert not list(root.iter("deny")), "what is not allowed is denied already"
        return {}

    if shutil.which("xmllint") and os.path.exists(POLKIT_DTD):
        subprocess.run(["xmllint", "--nonet", "--noout", "--dtdvalid", POLKIT_DTD, path],
                       check=True)
    for action in root.iter("action"):
        for tag in ("description", "message"):
            texts = {text.get(LANGUAGE): text.text.strip() for text in action.findall(tag)}
            assert set(texts) == {None, "de"} and len(set(texts.values())) == 2, texts
    return {action.get("id"): tuple(action.findtext(f"defaults/allow_{who}")
                                    for who in ("any", "inactive", "active"))
            for action in root.iter("action")}


class Daemons:
    """A private bus with polkitd on it, as long as the with block lasts."""

    def __init__(self, directory, files):
        self.directory = directory
        self.files = files
        self.processes = []

    def write(self, name, text, mode=0o644):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    def show_only_ours(self):
        """Both daemons, and they alone, live in a mount namespace with these files."""
        ids = {name: int(subprocess.run(["id", "-u", name], check=True, capture_output=True).stdout)
               for name in ("messagebus", "polkitd")}
        over = {
            self.write("passwd", PASSWD.format(**ids)): "/etc/passwd",
            self.write("group", GROUP.format(**ids)): "/etc/group",
            self.directory / "actions": "/usr/share/polkit-1/actions",
            self.directory / "rules.d": "/etc/polkit-1/rules.d",
            self.directory / "no-rules": "/usr/share/polkit-1/rules.d",
            self.directory / "systemd": "/run/systemd",
        }
        for name in ("actions", "rules.d", "no-rules", "systemd"):
            (self.directory / name).mkdir()
        for file in self.files:
            if file.suffix == ".policy":
                shutil.copy(file, self.directory / "actions")
        for source, target in over.items():
            if source.is_dir():
                os.makedirs(target, exist_ok=True)
            subprocess.run(["mount", "--bind", source, target], check=True)

    def start(self, *command):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True)
        self.processes.append(process)
        return process

    def __enter__(self):
        self.show_only_ours()
        includes = "\n  ".join(f"<include>{file}</include>" for file in self.files
                               if file.suffix == ".conf")
        config = self.write("bus.conf", BUS_CONFIG.format(directory=self.directory,
                                                          includes=includes))
        bus = self.start("dbus-daemon", f"--config-file={config}", "--nofork", "--print-address")
        assert bus.stdout.readline().startswith("unix:"), "dbus-daemon does not like the files"
        os.environ["DBUS_SYSTEM_BUS_ADDRESS"] = f"unix:path={self.directory}/bus"
        self.polkitd = None
        return self

    def restart_polkitd(self, rules):
        """polkitd with that one file of rules."""
        if self.polkitd:
            self.polkitd.terminate()
            self.polkitd.wait()
        for old in (self.directory / "rules.d").iterdir():
            old.unlink()
        shutil.copy(rules, self.directory / "rules.d")
        self.polkitd = self.start(POLKITD, "--no-debug")
        subprocess.run(["gdbus", "wait", "--system", "--timeout=20",
                        "org.freedesktop.PolicyKit1"], check=True)

    def __exit__(self, *exception):
        for process in reversed(self.processes):
            process.terminate()
            process.wait()


def default_of(action):
    out = subprocess.run(["pkaction", "--verbose", "--action-id", action], check=True,
                         capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout
    fields = dict(line.strip().split(":", 1) for line in out.splitlines() if ":" in line)
    return tuple(fields[f"implicit {who}"].strip() for who in ("any", "inactive", "active"))


class Subject:
    """A process of a user without a session."""

    def __init__(self, uid):
        self.uid = uid
        self.process = subprocess.Popen(["sleep", "60"], user=uid, group=uid, extra_groups=[])

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.process.terminate()
        self.process.wait()

    def may(self, action, **details):
        """What polkit says: yes, no, or ask."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            start = file.read().rpartition(")")[2].split()[19]
        command = ["pkcheck", "--action-id", action, "--process",
                   f"{self.process.pid},{start},{self.uid}"]
        for key, value in details.items():
            command += ["--detail", key, str(value)]
        status = subprocess.run(command, capture_output=True, check=False)
        return {0: "yes", 1: "no", 2: "ask", 3: "no"}.get(status.returncode) or sys.exit(
            status.stderr.decode())


def check_group_rules(member, other):
    for action in ACTIONS:
        if action in ("org.rtgrant.manage", "org.rtgrant.observe"):
            without = "ask" if action == "org.rtgrant.manage" else "no"
            assert member.may(action) == other.may(action) == without
            continue
        assert member.may(action) == "yes", action
        assert other.may(action) == "no", action


def check_request_rules(member, other):
    for action in ("org.rtgrant.realtime", "org.rtgrant.realtime-high",
                   "org.freedesktop.RealtimeKit1.acquire-real-time"):
        assert member.may(action, role="audio-client", priority=70) == "yes", action
        assert member.may(action, role="audio-client", priority=71) == "no", action
        assert member.may(action, role="desktop", priority=10) == "no", action
        assert member.may(action) == "no", action
        assert other.may(action, role="audio-client", priority=70) == "no", action
        assert other.may(action, role="audio-server", priority=80,
                         program="/usr/bin/jackd") == "no", "not at the machine"
    assert member.may("org.rtgrant.memlock", role="audio-client", priority=70) == "no"


def serve_names():
    """A child that owns both names and answers each call that gets through with one error."""
    import dbus
    import dbus.lowlevel
    from dbus.mainloop.glib import DBusGMainLoop
    from gi.repository import GLib

    ready, pipe = os.pipe()
    child = os.fork()
    if child > 0:
        os.close(pipe)
        assert os.read(ready, 1) == b"x", "root may not own the names"
        return child

    def on_message(connection, message):
        if isinstance(message, dbus.lowlevel.MethodCallMessage):
            connection.send_message(
                dbus.lowlevel.ErrorMessage(message, "test.Arrived", message.get_member()))
            return dbus.lowlevel.HANDLER_RESULT_HANDLED
        return dbus.lowlevel.HANDLER_RESULT_NOT_YET_HANDLED

    bus = dbus.bus.BusConnection(os.environ["DBUS_SYSTEM_BUS_ADDRESS"], mainloop=DBusGMainLoop())
    bus.add_message_filter(on_message)
    for name in (RTKIT, BROKER1):
        bus.request_name(name, dbus.bus.NAME_FLAG_DO_NOT_QUEUE)
    os.write(pipe, b"x")
    GLib.MainLoop().run()
    os._exit(1)


def arrivals(uid):
    """The errors of CALLS, made by that user, and then of taking a name that is not theirs."""
    import dbus
    import dbus.lowlevel

    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        bus = dbus.bus.BusConnection(os.environ["DBUS_SYSTEM_BUS_ADDRESS"])
        results = []
        for name, interface, member, _ in CALLS:
            message = dbus.lowlevel.MethodCallMessage(name, "/x", interface, member)
            try:
                bus.send_message_with_reply_and_block(message, 10)
                results.append("test.Arrived")  # libdbus answers org.freedesktop.DBus.Peer itself
            except dbus.DBusException as error:
                results.append(error.get_dbus_name())
        try:
            bus.request_name(RTKIT + ".Other" if uid == ROOT else RTKIT)
            results.append("given")
        except dbus.DBusException as error:
            results.append(error.get_dbus_name())
        os.write(writer, json.dumps(results).encode())
        os._exit(0)

    os.close(writer)
    with os.fdopen(reader) as file:
        results = json.loads(file.read())
    os.waitpid(child, 0)
    return results


def check_bus_policies():
    server = serve_names()
    try:
        for uid in (ROOT, MEMBER):
            results = arrivals(uid)
            assert results.pop() == f"{DBUS}.Error.AccessDenied", "a name was given away"
            for (name, interface, member, who), result in zip(CALLS, results, strict=True):
                wanted = "test.Arrived" if uid in who else f"{DBUS}.Error.AccessDenied"
                assert result == wanted, (uid, name, interface, member, result)
    finally:
        os.kill(server, 15)
        os.waitpid(server, 0)


def skip(why):
    print("SKIP:", why)
    sys.exit(SKIP)


def enter_namespace():
    CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 0x4000, 1 << 18
    libc = ctypes.CDLL(None, use_errno=True)

    if libc.unshare(CLONE_NEWNS) < 0 or libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) < 0:
        skip(f"no mount namespace: {os.strerror(ctypes.get_errno())}")


def main():
    bus_policy, *files = [pathlib.Path(path).resolve() for path in sys.argv[1:]]
    actions = {}
    for file in files:
        if file.suffix != ".rules":
            actions |= check_form(file)
    assert actions == ACTIONS, actions
    needed = subprocess.run([bus_policy, "actions"], check=True, capture_output=True, text=True)
    assert set(needed.stdout.split()) <= set(actions), needed.stdout

    if os.geteuid() != 0:
        skip("the daemons need root; the form is good")
    for program in ("dbus-daemon", "gdbus", "pkaction", "pkcheck", POLKITD):
        if not shutil.which(program):
            skip(f"there is no {program}; the form is good")

    enter_namespace()
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        with Daemons(pathlib.Path(name), files) as daemons, Subject(MEMBER) as member, \
                Subject(OTHER) as other:
            for file in files:
                if file.suffix == ".rules":
                    daemons.restart_polkitd(file)
                    check = check_group_rules if "group" in file.name else check_request_rules
                    check(member, other)
            for action, defaults in ACTIONS.items():
                assert default_of(action) == defaults, action
            try:
                check_bus_policies()
            except ImportError as error:
                skip(f"{error}; all but the bus policies is good")
    print(len(ACTIONS), "actions,", len(CALLS), "calls")


main()
