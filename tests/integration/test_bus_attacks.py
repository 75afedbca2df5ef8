# SPDX-License-Identifier: MIT
"""What a user may do to the others over the bus: floods, huge and wrong messages, connections."""

import select
import socket
import struct
import time

import pytest

import broker1
import bus as bus_module
import kernel
import wire
from agent import ALICE, BOB, CAROL
from broker1 import NAME, PATH, Broker1, Gio1
from bus import KIT, KIT_PATH, Kit, limit_rttime
from companions import has_gi
from daemon import wait_until
from kernel import FIFO, OTHER

pytestmark = pytest.mark.skipif(not bus_module.is_here() or not has_gi(),
                                reason="no polkitd, dbus-daemon, python3-dbus or python3-gi")

# The rates are those that are shipped.
POLICY = {
    "Broker": {"Authority": "polkit", "RealtimeKitRole": "desktop", "RealtimeKitPolicy": "fifo",
               "MessageBurst": 2000, "MessageRefill": "1ms"},
    "Role desktop": {"AllowUsers": "*"},
}


@pytest.fixture
def bus():
    made = bus_module.Bus()  # which lets everything through
    yield made
    made.close()


@pytest.fixture
def broker(make_daemon, bus):
    daemon = make_daemon().start(POLICY, environment=bus.environment)
    for name in (NAME, KIT):
        wait_until(lambda name=name: bus_module.owner_of(bus, name) == daemon.pid)
    # with the first answer the broker is connected to polkit for good
    asker = Broker1(bus, daemon.client(BOB))
    assert not asker.ask("Hello", {"admin": True}).value["admin"]
    asker.client.close()
    wait_until(lambda: daemon.status().n_connections <= 1)
    daemon.take_as_base()
    return daemon


class Other:
    """Somebody else, who asks on both interfaces and is to be answered as if alone."""

    def __init__(self, bus, broker, slowness):
        client = broker.client(ALICE, prepare=limit_rttime())
        self.kit, self.broker1 = Kit(bus, client), Broker1(bus, client)
        self.slowness = slowness
        self.is_served()

    def is_served(self, n=25):
        """Each time; and how long the slower ones of the answers took, in s."""
        took = []
        for _ in range(n):
            begin = time.monotonic()
            assert self.broker1.acquire(priority=7).value["priority"] == 7
            assert self.kit.realtime(0, 6).error == ""
            assert self.kit.sched()[:2] == (FIFO, 6)
            took.append((time.monotonic() - begin) / 2)
        # the two share the machine and the bus daemon, but not the rate
        assert sorted(took)[n // 2] < 0.1 * self.slowness
        assert max(took) < self.slowness


@pytest.fixture
def other(bus, broker, slowness):
    return Other(bus, broker, slowness)


# ---- raw messages: libraries refuse to send some of these ----


def message(destination, path, interface, member, signature=None, value=None):
    from gi.repository import Gio, GLib

    call = Gio.DBusMessage.new_method_call(destination, path, interface, member)
    if value is not None:
        call.set_body(value if isinstance(value, GLib.Variant) else GLib.Variant(signature, value))
    call.set_serial(2)
    return call.to_blob(Gio.DBusCapabilityFlags.NONE)


def connect(address):
    """A connection that is let on, as bytes go over it."""
    raw = socket.socket(socket.AF_UNIX)
    raw.connect(address.removeprefix("unix:path="))
    raw.sendall(b"\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n")
    raw.sendall(message("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                        "Hello"))
    while b":1." not in raw.recv(4096):
        pass
    return raw


def drain(raw):
    raw.setblocking(False)
    try:
        while raw.recv(1 << 20):
            pass
    except BlockingIOError:
        pass
    raw.setblocking(True)


def with_serial(blob, serial):
    """The bus daemon turns away what has the serial of a call that is not answered yet."""
    return blob[:8] + struct.pack("=I", serial) + blob[12:]


def flood(agent, address, calls, seconds):
    """As many of @calls as go through in that time, over four connections; how many."""
    blob = b"".join(with_serial(message(*calls[i % len(calls)]), 2 + i) for i in range(1000))
    left = {connect(address): b"" for _ in range(4)}
    n_bytes, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        readable, writable, _ = select.select(left, left, [], 1)
        for raw in readable:
            drain(raw)
        for raw in writable:
            rest = left[raw] or blob
            n = raw.send(rest, socket.MSG_DONTWAIT)
            left[raw] = rest[n:]
            n_bytes += n
    for raw in left:
        raw.close()
    return n_bytes * 1000 // len(blob)


FLOODS = {
    "Hello": [(NAME, PATH, NAME, "Hello", "(a{sv})", ({},))],
    "List": [(NAME, PATH, NAME, "List", "(a{sv})", ({},))],
    "a-refused-Revoke": [(NAME, PATH, NAME, "Revoke", "(sa{sv})", ("0" * 32, {}))],
    "RealtimeKit": [(KIT, KIT_PATH, KIT, "MakeThreadRealtimeWithPID", "(ttu)", (1, 1, 5)),
                    (KIT, KIT_PATH, KIT, "MakeThreadRealtime", "(tu)", (0, 5))],
    "properties": [(KIT, KIT_PATH, "org.freedesktop.DBus.Properties", "GetAll", "(s)", (KIT,))],
    "introspection": [(NAME, "/", "org.freedesktop.DBus.Introspectable", "Introspect")],
    "no-method": [(NAME, PATH, NAME, "Surprise"), (NAME, "/nowhere", KIT, "Exit")],
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_of_one_user_is_not_the_other_users(bus, broker, other, name, slowness):
    flooder = broker.client(BOB)
    n_lines, cpu_ns = broker.log().count("\n"), kernel.cpu_ns(broker.pid)

    flooder.start("run", flood, bus.address, FLOODS[name], 2)
    begin = time.monotonic()
    while time.monotonic() - begin < 1.8:
        other.is_served(n=10)
    assert flooder.finish() > 2000  # more than it may

    assert broker.process.poll() is None
    assert kernel.cpu_ns(broker.pid) - cpu_ns < 2e9 * 0.5 * slowness
    # what the other user is granted is worth a line each
    lines = [line for line in broker.log().splitlines()[n_lines:] if f"user {BOB}" in line]
    assert len(lines) <= 10
    other.is_served()


def test_over_its_rate_a_user_is_refused_and_served_again(bus, broker, other):
    bob = Broker1(bus, broker.client(BOB))

    bob.client.run(flood, bus.address, FLOODS["List"], 0.5)
    refused = bob.ask("List")

    assert refused.error in ("", "org.freedesktop.DBus.Error.LimitsExceeded")
    wait_until(lambda: not bob.ask("List").error, what="that it is served again")
    other.is_served()


# ---- huge and deep ----


def send_all(agent, address, kinds):
    """Of each kind one, over connections of their own; whether each was read to the end."""
    return [send_one(address, kind) for kind in kinds]


def send_one(address, kind):
    raw = connect(address)
    raw.settimeout(30)
    try:
        raw.sendall(message(*build(kind)))
        return len(raw.recv(65536)) > 0
    except OSError:
        return False  # the bus daemon has thrown it out
    finally:
        raw.close()


def build(kind):
    from gi.repository import GLib

    def options(**values):
        return GLib.Variant("(a{sv})", (values,))

    def nested(depth):
        inner = GLib.Variant("u", 5)
        for _ in range(depth):
            inner = GLib.Variant("v", inner)
        return inner

    def acquire(value):
        return NAME, PATH, NAME, "Acquire", None, value

    return {
        "a string of 30 MB": lambda: acquire(options(reason=GLib.Variant("s", "x" * 30_000_000))),
        "an array of 30 MB": lambda: acquire(options(reason=GLib.Variant.new_from_bytes(
            GLib.VariantType("ay"), GLib.Bytes.new(b"x" * 30_000_000), True))),
        "30 000 options": lambda: acquire(options(**{f"x{i}": GLib.Variant("y", 1)
                                                      for i in range(30_000)})),
        "variants, 50 deep": lambda: acquire(options(priority=nested(50))),
        "arrays, 30 deep": lambda: acquire(options(role=GLib.Variant.parse(
            GLib.VariantType("a" * 30 + "s"), "[" * 30 + "'x'" + "]" * 30, None, None))),
        "an id of 20 MB": lambda: (NAME, PATH, NAME, "Release", "(sa{sv})", ("f" * 20_000_000, {})),
        "a key of 20 MB": lambda: acquire(options(**{"k" * 20_000_000: GLib.Variant("y", 1)})),
        "an empty key": lambda: acquire(options(**{"": GLib.Variant("y", 1)})),
        "100 000 threads": lambda: (KIT, KIT_PATH, KIT, "MakeThreadRealtime", "(atu)",
                                    ([1] * 100_000, 5)),
        "interface of 20 MB": lambda: (KIT, KIT_PATH, "org.freedesktop.DBus.Properties", "GetAll",
                                       "(s)", ("i" * 20_000_000,)),
        "a long path": lambda: (NAME, "/" + "/".join(["x"] * 10_000), NAME, "Hello", "(a{sv})",
                                ({},)),
    }[kind]()


HUGE = ["a string of 30 MB", "an array of 30 MB", "30 000 options", "variants, 50 deep",
        "arrays, 30 deep", "an id of 20 MB", "a key of 20 MB", "an empty key", "100 000 threads",
        "interface of 20 MB", "a long path"]


def test_S33_huge_and_deep_messages(bus, broker, other, slack_kb):
    sender = broker.client(BOB)
    sender.run(send_all, bus.address, ["an empty key"])
    rss_kb = kernel.rss_kb(broker.pid)

    for _ in range(2):
        sender.start("run", send_all, bus.address, HUGE)
        time.sleep(0.1)
        other.is_served(n=10)
        assert all(sender.finish())

    assert broker.process.poll() is None
    other.is_served()
    assert [lease.uid for lease in broker.leases()] == [ALICE]
    # what was needed for them is given back
    wait_until(lambda: kernel.rss_kb(broker.pid) < rss_kb + slack_kb, what="the memory")


# ---- wrong ones ----


def call_with(agent, address, cases):
    """The error of each (name, path, interface, member, signature, value)."""
    from gi.repository import Gio, GLib

    connection = Gio.DBusConnection.new_for_address_sync(
        address, Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT |
        Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION, None, None)
    errors = []
    for name, path, interface, member, signature, value in cases:
        value = GLib.Variant(signature, value) if signature else None
        try:
            connection.call_sync(name, path, interface, member, value, None, 0, 30000, None)
            errors.append("")
        except GLib.Error as error:
            errors.append(Gio.DBusError.get_remote_error(error) or str(error))
    connection.close_sync(None)
    return errors


def b(member, signature, value):
    return NAME, PATH, NAME, member, signature, value


def k(member, signature, value):
    return KIT, KIT_PATH, KIT, member, signature, value


WRONG_SIGNATURES = [
    *(b(member, signature, value)
      for member in ("Hello", "Acquire", "List", "Watch", "Policy", "Reload", "RestoreAll", "Why")
      for signature, value in ((None, None), ("(s)", ("x",)), ("(a{ss})", ({"priority": "5"},)),
                               ("(a{sv}s)", ({}, "more")), ("(a{sv}a{sv})", ({}, {})),
                               ("(as)", (["x"],)))),
    *(b(member, signature, value)
      for member in ("Update", "Renew", "Release", "Revoke")
      for signature, value in ((None, None), ("(a{sv})", ({},)), ("(aya{sv})", ([1] * 16, {})),
                               ("(sa{sv}u)", ("0" * 32, {}, 1)))),
    *(k(member, signature, value)
      for member in ("MakeThreadRealtime", "MakeThreadRealtimeWithPID", "MakeThreadHighPriority",
                     "MakeThreadHighPriorityWithPID")
      for signature, value in ((None, None), ("(s)", ("now",)), ("(tttt)", (0, 0, 0, 5)),
                               ("(xx)", (0, 5)), ("(ay)", ([0] * 12,)))),
    *(k(member, "(t)", (0,)) for member in ("ResetKnown", "ResetAll", "Exit", "Suspend", "Resume")),
]

IMPOSSIBLE = [2**32, 2**32 + 1, 2**63, 2**64 - 1, 2**31, 0xffffffff]


def test_wrong_signatures(bus, broker, other):
    sender = broker.client(BOB)

    errors = sender.run(call_with, bus.address, WRONG_SIGNATURES)

    assert set(errors) == {"org.freedesktop.DBus.Error.InvalidArgs"}
    assert sender.sched() == (OTHER, 0, 0, False)
    other.is_served()


def test_S6_ids_of_64_bits_are_never_cut(bus, broker, other):
    sender, victim = broker.client(BOB), broker.client(BOB)
    own = kernel.sched_getattr(broker.pid)
    ids = [*IMPOSSIBLE, 2**32 + victim.pid, 2**63 + victim.pid]
    errors = []
    for number in ids:
        for value in ({"pid": number}, {"tid": number}, {"pid": number, "tid": number},
                      {"pid": victim.pid, "tid": number}, {"feeds_tid": number}):
            errors += sender.run(try_options, bus.address, value)
        errors += sender.run(call_with, bus.address, [
            k("MakeThreadRealtime", "(tu)", (number, 5)),
            k("MakeThreadRealtimeWithPID", "(ttu)", (number, number, 5)),
            k("MakeThreadRealtimeWithPID", "(ttu)", (victim.pid, number, 5)),
            k("MakeThreadHighPriorityWithPID", "(tti)", (number, 0, 5)),
        ])

    assert set(errors) == {broker1.ERROR + "Invalid", "org.freedesktop.DBus.Error.Failed"}
    assert sender.sched() == victim.sched() == (OTHER, 0, 0, False)
    assert kernel.sched_getattr(broker.pid) == own
    other.is_served()


def try_options(agent, address, values):
    from gi.repository import GLib

    options = {key.replace("_", "-"): GLib.Variant("t", value)
               for key, value in {"priority": 5, **values}.items()}
    return call_with(agent, address, [b("Acquire", "(a{sv})", (options,))])


# ---- connections, matches, watchers ----


def hoard(agent, address, n, n_matches):
    """That many connections, each with as many matches, each having asked once."""
    agent.hoarded = []
    rule = message("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                   "AddMatch", "(s)", (f"type='signal',sender='{NAME}',arg0='x'",))
    hello = message(NAME, PATH, NAME, "Hello", "(a{sv})", ({},))
    for _ in range(n):
        try:
            raw = connect(address)
        except OSError:
            break  # the bus daemon has its limits too
        raw.sendall(rule * n_matches + hello)
        drain(raw)
        agent.hoarded.append(raw)
    return len(agent.hoarded)


def give_back(agent):
    for raw in agent.hoarded:
        raw.close()


def test_connections_and_matches_of_one_user(bus, broker, other, slack_kb):
    hoarders = [broker.client(BOB) for _ in range(2)]
    rss_kb, n_fds = kernel.rss_kb(broker.pid), broker.n_fds()

    for hoarder in hoarders:
        hoarder.start("run", hoard, bus.address, 100, 400)
    other.is_served()
    assert sum(hoarder.finish() for hoarder in hoarders) == 200
    other.is_served()
    assert broker.n_fds() <= n_fds + 256  # PEERS_MAX
    for hoarder in hoarders:
        hoarder.run(give_back)

    wait_until(lambda: broker.n_fds() <= n_fds, what="the descriptors")
    wait_until(lambda: kernel.rss_kb(broker.pid) < rss_kb + slack_kb, what="the memory")
    other.is_served()


def watch_and_never_read(agent, address, n):
    agent.hoarded = [connect(address) for _ in range(n)]
    for raw in agent.hoarded:
        raw.sendall(message(NAME, PATH, NAME, "Watch", "(a{sv})", ({},)))


def change_often(agent, n):
    """Which costs no grant, as it is no more than before."""
    lease = agent.acquire(priority=9)
    for i in range(n):
        agent.update(lease.id, want=wire.WANT_SCHED, policy=FIFO, priority=8 - i % 2)


def test_watchers_who_do_not_read(bus, broker, other, slack_kb):
    """Who watches is told of so much, and how much it was not told of."""
    watcher, busy = broker.client(BOB), broker.client(BOB)
    gio, quiet = Gio1(bus, broker.client(BOB)), Gio1(bus, broker.client(CAROL))
    for each in (gio, quiet):
        each.listen()
        assert each.ask("Watch").error == ""
    watcher.run(watch_and_never_read, bus.address, 30)
    rss_kb = kernel.rss_kb(broker.pid)

    busy.start("run", change_often, 2000)  # 60 000 signals, were they all sent
    other.is_served()
    for priority in range(1, 6):
        assert quiet.acquire(priority=priority).error == ""
    busy.finish()

    other.is_served()
    assert kernel.rss_kb(broker.pid) < rss_kb + slack_kb
    wait_until(lambda: len(quiet.signals()) == 5, what="the events of somebody else")
    assert [of["lost"] for _, _, of in quiet.signals()] == [0] * 5
    time.sleep(0.1)
    busy.acquire(priority=3)
    told = wait_until(lambda: gio.signals()[-1][2]["granted-priority"] == 3 and gio.signals())
    assert told[-1][2]["lost"] == 2002 - len(told) > 500
    watcher.run(give_back)
    other.is_served()
