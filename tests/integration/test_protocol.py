# SPDX-License-Identifier: MIT
"""The wire taken literally, and by people who mean it no good."""

import errno
import os
import random
import resource
import select
import socket
import struct
import time

import pytest

import kernel
import wire
from agent import ALICE, BOB, CAROL, NOBODY, Connection, as_user
from daemon import assert_granted, assert_refused, wait_until
from kernel import FIFO, OTHER

HELLO_TIMEOUT_S = 10


def send_raw(agent, data, fds=(), wait_s=10):
    """Sends bytes over a new connection: the reason of the answer, and whether the end follows."""
    connection = Connection(agent.path)
    try:
        connection.send(data, fds)
        record = connection.receive()
        if record is None:
            return None, True
        connection.socket.settimeout(wait_s)
        try:
            return record.reason, connection.receive() is None
        except TimeoutError:
            return record.reason, False
    except BrokenPipeError:
        return None, True
    finally:
        connection.close()


def header(size, version=wire.VERSION, verb=wire.HELLO, serial=7):
    return struct.pack("=IHHQ", size, version, verb, serial)


HELLO = wire.encode(wire.HELLO)
ACQUIRE = wire.encode(wire.ACQUIRE, want=wire.WANT_SCHED, policy=FIFO, priority=5)

MALFORMED = {
    "zero-length": b"",
    "one byte": b"\x18",
    "half a header": HELLO[:8],
    "a header less one byte": HELLO[:15],
    "only a header of HELLO": header(16),
    "only a header of ACQUIRE": header(16, verb=wire.ACQUIRE),
    "ACQUIRE less one byte": header(351, verb=wire.ACQUIRE) + ACQUIRE[16:-1],
    "size smaller than what arrived": header(16) + bytes(8),
    "size larger than what arrived": header(25) + bytes(8),
    "size 0": header(0) + bytes(8),
    "size 2^32-1": header(2**32 - 1) + bytes(8),
    "a tail that is not zero": wire.encode(wire.HELLO, tail=bytes(63) + b"\1"),
    "ACQUIRE with a tail that is not zero": wire.encode(
        wire.ACQUIRE, want=1, policy=FIFO, priority=5, tail=b"\1"
    ),
    "longer than a record": wire.encode(wire.HELLO, tail=bytes(wire.RECORD_MAX)),
    "much longer than a record": wire.encode(wire.HELLO, tail=bytes(100_000)),
    "random": random.Random(1).randbytes(336),
}


@pytest.mark.parametrize("name", [*MALFORMED])
def test_S33_malformed_is_answered_and_the_connection_closed(daemon, name):
    client = daemon.client(NOBODY)

    reason, closed = client.run(send_raw, MALFORMED[name])

    assert reason in ("malformed", "version" if name == "random" else "malformed", None)
    assert reason is not None or name == "zero-length"
    assert closed
    assert client.sched() == (OTHER, 0, 0, False)
    assert client.hello().reason == "none"


@pytest.mark.parametrize("version", [0, 2, 0xFFFF])
def test_S33_an_unknown_version(daemon, version):
    data = wire.encode(wire.HELLO, version=version)

    assert daemon.client(NOBODY).run(send_raw, data) == ("version", True)


@pytest.mark.parametrize("verb", [0, 12, 0x4000, 0x8000, 0x8001, 0xFFFF])
def test_S33_an_unknown_verb(daemon, verb):
    data = header(24, verb=verb) + bytes(8)

    reason, _ = daemon.client(NOBODY).run(send_raw, data, (), 0.01)

    assert reason in ("malformed", "unsupported", "invalid")


@pytest.mark.parametrize("verb,values", [
    (wire.HELLO, {"flags": 1 << 2}),
    (wire.ACQUIRE, {"flags": 1 << 4, "want": 1, "policy": FIFO, "priority": 5}),
    (wire.ACQUIRE, {"flags": 1 << 63, "want": 1, "policy": FIFO, "priority": 5}),
    (wire.ACQUIRE, {"want": 1 << 6 | 1, "policy": FIFO, "priority": 5}),
    (wire.ACQUIRE, {"padding": 1, "want": 1, "policy": FIFO, "priority": 5}),
    (wire.UPDATE, {"flags": 1 << 40}),
    (wire.LIST, {"flags": 2}),
    (wire.WATCH, {"flags": 1 << 32}),
    (wire.POLICY, {"flags": 1}),
    (wire.RELEASE, {"padding": 1}),
    (wire.RELEASE, {"lifetime_s": 1}),
])
def test_S33_unknown_flags_and_padding(daemon, verb, values):
    client = daemon.client(NOBODY)

    reason, _ = client.run(send_raw, wire.encode(verb, **values), (), 0.01)

    assert reason in ("malformed", "invalid", "unsupported", "no-such-lease")
    assert client.sched() == (OTHER, 0, 0, False)


def test_a_role_that_is_not_terminated(daemon):
    client = daemon.client(NOBODY)
    data = wire.encode(wire.ACQUIRE, want=1, policy=FIFO, priority=5, role=b"x" * 32)

    reason, _ = client.run(send_raw, data, (), 0.01)

    assert reason in ("malformed", "invalid", "no-such-role")
    assert client.sched() == (OTHER, 0, 0, False)


def test_a_longer_record_with_a_zero_tail_is_understood(daemon):
    client = daemon.client(BOB)

    assert client.hello(tail=bytes(100)).reason == "none"
    assert client.hello(tail=bytes(wire.RECORD_MAX - len(HELLO))).reason == "none"
    assert_granted(client.acquire(tail=bytes(8)), FIFO, 5)


def test_serials_come_back(daemon):
    client = daemon.client(BOB)

    assert client.run(ask_with_serial, 0) == 0
    assert client.run(ask_with_serial, 2**64 - 1) == 2**64 - 1


def ask_with_serial(agent, serial):
    connection = Connection(agent.path)
    connection.send(wire.encode(wire.HELLO, serial))
    return connection.receive().serial


def test_requests_may_be_sent_before_the_first_answer(daemon):
    assert daemon.client(BOB).run(ask_ahead, 50) == [*range(1, 51)]


def ask_ahead(agent, n):
    connection = Connection(agent.path)
    for serial in range(1, n + 1):
        connection.send(wire.encode(wire.LIST, serial))
    return [connection.receive().serial for _ in range(n)]


def send_garbage(agent, n, seed):
    """@n records of every kind of nonsense as fast as the broker takes them."""
    rng = random.Random(seed)
    bad = [data for data in MALFORMED.values() if data and len(data) <= wire.RECORD_MAX]
    for _ in range(n):
        connection = Connection(agent.path)
        data = bytearray(rng.choice([*bad, ACQUIRE, HELLO]))
        if rng.random() < 0.5 and len(data) > 4:
            data[rng.randrange(4, len(data))] = rng.randrange(256)
        try:
            connection.send(bytes(data))
            connection.receive()
        except (BrokenPipeError, ConnectionResetError):
            pass
        connection.close()


def test_S33_ten_thousand_of_them(make_daemon, sanitizer_factor):
    daemon = make_daemon().start(log_level="notice")
    client, other = daemon.client(NOBODY), daemon.client(CAROL)
    client.run(send_garbage, 500, 0)
    rss_kb, n_lines = kernel.rss_kb(daemon.pid), daemon.log().count("\n")

    client.start("run", send_garbage, 10000, 1)
    begin = time.monotonic()
    assert_granted(other.acquire(), FIFO, 5)
    assert time.monotonic() - begin < 5
    client.finish()

    assert daemon.log().count("\n") - n_lines <= 50  # a few a second at the most
    if sanitizer_factor == 1:
        assert kernel.rss_kb(daemon.pid) - rss_kb < 512
    for lease in daemon.leases():
        daemon.admin.revoke(lease.id)


# ---- descriptors ----


def send_files(agent, n, verb=wire.ACQUIRE):
    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(n)]
    try:
        return send_raw(agent, ACQUIRE if verb == wire.ACQUIRE else HELLO, fds, wait_s=0.02)
    finally:
        for fd in fds:
            os.close(fd)


@pytest.mark.parametrize("n", [2, 3, 16, 253])
def test_R28_several_descriptors(daemon, n):
    client = daemon.client(NOBODY)
    client.hello()  # the connection is accepted, and counted below
    n_fds = daemon.n_fds()

    reason, closed = client.run(send_files, n)

    assert reason in ("malformed", None) and closed
    wait_until(lambda: daemon.n_fds() <= n_fds, what="the end of the descriptors")
    assert client.sched() == (OTHER, 0, 0, False)


def test_R28_a_descriptor_that_nobody_asked_for(daemon):
    client = daemon.client(NOBODY)
    client.hello()
    n_fds = daemon.n_fds()

    for _ in range(100):
        reason, _ = client.run(send_files, 1, wire.HELLO)
        assert reason in ("none", "malformed", "invalid")

    wait_until(lambda: daemon.n_fds() <= n_fds, what="the end of the descriptors")


def test_a_pidfd_that_is_announced_and_does_not_come(daemon):
    client = daemon.client(NOBODY)

    answer = client.acquire(flags=wire.ACQUIRE_PIDFD)

    assert_refused(answer, "malformed", "invalid")
    assert client.sched() == (OTHER, 0, 0, False)


# ---- who sends ----


def test_a_process_that_inherited_the_connection(daemon):
    """Only who connected may speak: the kernel's word on the peer is about that process."""
    client = daemon.client(BOB)

    reason = client.run(ask_from_a_child)

    assert reason == "not-connector"
    assert client.sched() == (OTHER, 0, 0, False)


def ask_from_a_child(agent):
    connection = Connection(agent.path)
    assert connection.hello().reason == "none"
    pid = os.fork()
    if pid == 0:
        connection.send(ACQUIRE)
        os._exit(0)
    os.waitpid(pid, 0)
    return connection.receive().reason


def test_S37_the_name_of_the_clients_socket_means_nothing(daemon):
    for name in (b"\0;uid=0;", b"\0rtgrantd", b"\0" + b"/run/rtgrant/socket"):
        assert as_user(BOB, hello_under_a_name, daemon.socket_path, name) == BOB


def hello_under_a_name(path, name):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as own:
        own.bind(name)
        own.connect(path)
        own.sendall(HELLO)
        hello = wire.decode(own.recv(8192))
        assert not hello.state & wire.STATE_ADMIN
        return hello.uid


def test_forged_credentials(daemon):
    assert as_user(BOB, send_forged, daemon.socket_path, 0, 0) == errno.EPERM
    assert as_user(BOB, send_forged, daemon.socket_path, 1, BOB) == errno.EPERM


def send_forged(path, pid, uid):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as own:
        own.connect(path)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        credentials = struct.pack("iII", pid or os.getpid(), uid, uid)
        try:
            own.sendmsg([ACQUIRE], [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, credentials)])
        except OSError as error:
            return error.errno
        return 0


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_other_kinds_of_socket(daemon, kind):
    with socket.socket(socket.AF_UNIX, kind) as other, pytest.raises(OSError):
        other.connect(daemon.socket_path)


# ---- slow, silent and many ----


def test_R26_who_says_nothing_is_sent_away(daemon):
    client, silent = daemon.client(BOB), daemon.client(CAROL)
    begin = time.monotonic()
    client.hello()
    client.acquire()

    assert silent.run(wait_for_the_end) is None

    assert HELLO_TIMEOUT_S - 1 < time.monotonic() - begin < HELLO_TIMEOUT_S + 3
    assert client.hello().reason == "none"  # who spoke once may stay silent


def wait_for_the_end(agent):
    agent.connection.socket.settimeout(HELLO_TIMEOUT_S + 5)
    return agent.receive()


def ask_and_never_read(agent, verb, seconds):
    """Returns how many requests were sent, and whether the broker put an end to it."""
    connection = Connection(agent.path)
    connection.socket.setblocking(False)
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    n, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            connection.send(wire.encode(verb, n))
            n += 1
        except BlockingIOError:
            time.sleep(0.001)
        except (BrokenPipeError, ConnectionResetError):
            return n, True
    return n, False


@pytest.mark.parametrize("verb", [wire.LIST, wire.POLICY, wire.HELLO])
def test_R26_who_does_not_read_stops_nobody(daemon, sanitizer_factor, slowness, verb):
    lazy, client = daemon.client(BOB), daemon.client(CAROL)
    lazy.acquire()
    client.hello()
    rss_kb, cpu_ns = kernel.rss_kb(daemon.pid), kernel.cpu_ns(daemon.pid)

    lazy.start("run", ask_and_never_read, verb, 1)
    for _ in range(50):
        begin = time.monotonic()
        assert client.hello().reason == "none"
        assert time.monotonic() - begin < 5
    lazy.finish()

    if sanitizer_factor == 1:
        assert kernel.rss_kb(daemon.pid) - rss_kb < 2048
    assert kernel.cpu_ns(daemon.pid) - cpu_ns < 0.5e9 * slowness


def connect_and_hold(agent, n):
    """Opens @n connections and keeps them; how many the broker refused to serve."""
    agent.held = [Connection(agent.path) for _ in range(n)]

    poll, refused = select.poll(), set()
    for connection in agent.held:
        poll.register(connection.socket, select.POLLIN)
    while ready := poll.poll(1000):
        for fd, _ in ready:
            poll.unregister(fd)
            refused.add(fd)
    return len(refused)


def test_S35_a_thousand_connections_that_say_nothing(make_daemon, slowness):
    daemon = make_daemon().start({"Broker": {"ConnectionsPerUser": 50}})
    flood = daemon.client(NOBODY)
    cpu_ns = kernel.cpu_ns(daemon.pid)

    begin = time.monotonic()
    flood.start("run", connect_and_hold, 1000)
    client = daemon.client(BOB)
    assert_granted(client.acquire(), FIFO, 5)
    assert time.monotonic() - begin < 5
    assert flood.finish() == 1000 - 49  # the agent's own connection is one of the 50

    assert daemon.n_fds() < 150  # a socket and a pidfd for each
    seconds = time.monotonic() - begin
    assert kernel.cpu_ns(daemon.pid) - cpu_ns < (0.1 * seconds + 0.1) * 1e9 * slowness


def test_S35_R27_out_of_descriptors(make_daemon):
    def few_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    daemon = make_daemon().start(prepare=few_files)
    client, flood = daemon.client(BOB), daemon.client(NOBODY)
    client.hello()
    flood.start("run", connect_and_hold, 90)
    flood.finish()

    cpu_ns, begin = kernel.cpu_ns(daemon.pid), time.monotonic()
    assert client.hello().reason == "none"
    time.sleep(1)
    assert kernel.cpu_ns(daemon.pid) - cpu_ns < 0.1e9 * (time.monotonic() - begin)

    flood.kill()
    newcomer = daemon.client(CAROL)
    assert_granted(newcomer.acquire(), FIFO, 5)


def connect_and_leave(agent, seconds):
    """Comes and goes as fast as it can, half of the time leaving a request behind."""
    n, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        connection = Connection(agent.path)
        if n % 2:
            connection.send(HELLO)
        if n % 3 == 0:
            connection.socket.shutdown(socket.SHUT_WR)
        connection.close()
        n += 1
        time.sleep(max(0.0, end - seconds + n / 1000 - time.monotonic()))
    return n


def test_F08_a_thousand_a_second_that_come_and_go(daemon, slowness):
    flood, client = daemon.client(NOBODY), daemon.client(BOB)
    cpu_ns, begin = kernel.cpu_ns(daemon.pid), time.monotonic()

    flood.start("run", connect_and_leave, 2)
    while time.monotonic() - begin < 1.5:
        client.hello()
        time.sleep(0.05)
    n = flood.finish()

    seconds = time.monotonic() - begin
    assert n > 500
    assert kernel.cpu_ns(daemon.pid) - cpu_ns < 0.2e9 * seconds * slowness


def half_close(agent):
    connection = Connection(agent.path)
    connection.send(HELLO)
    connection.socket.shutdown(socket.SHUT_WR)
    return connection.receive().reason, connection.receive()


def test_a_half_closed_connection_is_answered_and_closed(daemon):
    assert daemon.client(BOB).run(half_close) == ("none", None)


def test_other_users_are_served_while_one_floods(daemon, slowness):
    flood, client = daemon.client(ALICE), daemon.client(BOB)

    flood.start("run", send_garbage, 3000, 2)
    delays = []
    for i in range(100):
        begin = time.monotonic()
        assert client.acquire(priority=1 + i % 20).reason == "none"
        delays.append(time.monotonic() - begin)
    flood.finish()

    assert sorted(delays)[95] < 0.02 * slowness
    for lease in daemon.leases():
        daemon.admin.revoke(lease.id)
