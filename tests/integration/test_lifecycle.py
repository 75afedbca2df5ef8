# SPDX-License-Identifier: MIT
"""The daemon's own life: starting, stopping, crashing, and how it gets on with its init system."""

import os
import resource
import signal
import socket
import stat
import subprocess
import time

import pytest

import kernel
import wire
from agent import ALICE, BOB, CAROL, as_user
from daemon import assert_granted, assert_refused, wait_until
from kernel import BATCH, FIFO, OTHER, RR


# ---- starting ----


def test_files_are_what_they_should_be(daemon):
    daemon.client(BOB).acquire()

    mode = os.stat(daemon.socket_path).st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o666
    for name in os.listdir(daemon.state_path):
        status = os.stat(f"{daemon.state_path}/{name}")
        assert (stat.S_IMODE(status.st_mode), status.st_uid) == (0o600, 0), name
    assert not stat.S_IMODE(os.stat(daemon.state_path).st_mode) & 0o022


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version(programs, option):
    result = subprocess.run([programs.rtgrantd, option], capture_output=True, text=True, check=False)

    assert result.returncode == 0
    assert "rtgrantd" in result.stdout
    assert result.stderr == ""


@pytest.mark.parametrize("arguments", [["--nonsense"], ["--log-level", "loud"], ["extra"], ["--socket"]])
def test_a_wrong_command_line(programs, arguments):
    result = subprocess.run([programs.rtgrantd, *arguments], capture_output=True, text=True,
                            timeout=10, check=False)

    assert result.returncode != 0
    assert result.stderr


def test_it_needs_no_systemd(make_daemon):
    """From a bare shell: no NOTIFY_SOCKET, an empty environment."""
    daemon = make_daemon().start(prefix=["/usr/bin/env", "-i"], wait=False)
    wait_until(lambda: os.path.exists(daemon.socket_path), 20, "the socket")

    assert_granted(daemon.client(BOB).acquire(), FIFO, 5)


@pytest.mark.parametrize("own_state", [True, False])
def test_a_second_daemon_leaves_the_first_alone(make_daemon, daemon, own_state):
    client = daemon.client(BOB)
    client.acquire()
    inode = os.stat(daemon.socket_path).st_ino
    second = make_daemon()
    second.socket_path = daemon.socket_path
    if not own_state:
        second.state_path = daemon.state_path

    second.start(wait=False)

    assert second.wait() != 0
    assert daemon.socket_path in second.log() or daemon.state_path in second.log()
    assert os.stat(daemon.socket_path).st_ino == inode
    assert client.sched() == (FIFO, 5, 0, True)
    assert_granted(daemon.client(CAROL).acquire(), FIFO, 5)


def test_a_stale_socket_is_replaced(make_daemon):
    daemon = make_daemon().start()
    daemon.kill()
    assert os.path.exists(daemon.socket_path)

    daemon.start()

    assert_granted(daemon.client(BOB).acquire(), FIFO, 5)


def test_what_is_no_socket_is_not_replaced(make_daemon):
    daemon = make_daemon()
    with open(daemon.socket_path, "w", encoding="ascii") as file:
        file.write("precious")

    daemon.start(wait=False)

    assert daemon.wait() != 0
    assert daemon.socket_path in daemon.log()
    with open(daemon.socket_path, encoding="ascii") as file:
        assert file.read() == "precious"


def test_it_starts_again_where_it_stopped(make_daemon):
    daemon = make_daemon()
    for _ in range(3):
        daemon.start()
        client = daemon.client(BOB)
        assert_granted(client.acquire(), FIFO, 5)
        daemon.stop()
        assert client.sched() == (OTHER, 0, 0, False)
        assert not os.path.exists(daemon.socket_path)


# ---- stopping ----


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_clean_stop_restores_everything(either, signal_number):
    daemon = either.start()
    clients = [daemon.client(uid) for uid in (ALICE, BOB, CAROL)]
    os.setpriority(os.PRIO_PROCESS, clients[0].pid, 19)
    kernel.sched_setattr(clients[1].pid, BATCH, nice=3)
    kernel.sched_setattr(clients[2].pid, RR, 2)
    before = [client.sched() for client in clients]
    for client in clients:
        client.acquire(priority=9)
        client.acquire(tid=client.thread(), want=wire.WANT_NICE, nice=-5)

    os.kill(daemon.pid, signal_number)

    assert daemon.wait() == 0
    assert [client.sched() for client in clients] == before
    for client in clients:
        assert {kernel.sched_getattr(tid).nice for tid in kernel.threads(client.pid)} \
            <= {client.sched().nice, 0}


def test_clients_see_the_end(daemon):
    client = daemon.client(BOB)
    client.hello()

    daemon.stop()

    assert client.receive() is None


# ---- S46: killed and started again ----


def crash_and_restart(daemon, meanwhile=lambda: None):
    daemon.kill()
    meanwhile()
    with open(daemon.policy_path, encoding="utf-8") as file:
        daemon.start(file.read())


def test_S46_leases_are_taken_up_again(either):
    daemon = either.start()
    client, target = daemon.client(BOB), daemon.target(BOB)
    tid = target.thread("worker")
    os.setpriority(os.PRIO_PROCESS, tid, 6)
    lease = client.acquire(pid=target.pid, tid=tid, policy=RR, priority=8, reason="a synth").id
    (before,) = daemon.leases()
    expected = target.sched(tid)

    crash_and_restart(daemon)

    assert target.sched(tid) == expected
    (after,) = daemon.leases()
    assert after == before
    client.reconnect()
    assert [listed.id for listed in client.list()] == [lease]
    assert client.release(lease).reason == "none"
    assert target.sched(tid) == (OTHER, 0, 6, False)


def test_S46_quotas_are_taken_up_again(make_daemon):
    daemon = make_daemon().start({"Broker": {"ThreadsPerUser": 1}})
    client = daemon.client(BOB)
    client.acquire()

    crash_and_restart(daemon)

    client.reconnect()
    assert client.acquire(tid=client.thread()).reason == "threads-per-user"
    assert client.hello().offers[0].threads_held == 1


def test_S46_what_ended_meanwhile_is_not_taken_up(either):
    daemon = either.start()
    client, target = daemon.client(BOB), daemon.target(BOB)
    tid = target.thread()
    client.acquire(pid=target.pid, tid=tid)

    crash_and_restart(daemon, lambda: target.tell("end", tid=tid))

    assert daemon.leases() == []


def test_S46_what_was_changed_meanwhile_is_left_alone(either):
    daemon = either.start()
    client = daemon.client(BOB)
    client.acquire()

    crash_and_restart(daemon, lambda: kernel.sched_setattr(client.pid, RR, 33))

    for lease in daemon.leases():
        assert lease.state == wire.LEASE_CHANGED
        daemon.admin.revoke(lease.id)
    assert client.sched() == (RR, 33, 0, False)


def test_S46_a_connection_that_died_with_the_daemon(either):
    """Its leases end: nobody is there who could let go of them."""
    daemon = either.start()
    client = daemon.client(BOB)
    os.setpriority(os.PRIO_PROCESS, client.pid, 4)
    client.acquire(lifetime=wire.LIFETIME_CONNECTION)

    crash_and_restart(daemon)

    wait_until(lambda: client.sched() == (OTHER, 0, 4, False), what="the restored nice")
    assert daemon.leases() == []


def test_S46_seconds_go_on_counting(either):
    daemon = either.start()
    client, other = daemon.client(BOB), daemon.client(CAROL)
    client.acquire(lifetime=wire.LIFETIME_SECONDS, lifetime_s=1)
    other.acquire(lifetime=wire.LIFETIME_SECONDS, lifetime_s=100)
    (expires_ms,) = [lease.expires_ms for lease in daemon.leases() if lease.uid == CAROL]

    crash_and_restart(daemon)

    wait_until(lambda: client.sched().policy == OTHER, 3, "the end of the lease")
    (lease,) = daemon.leases()
    assert abs(lease.expires_ms - expires_ms) <= 1000


def test_S46_a_setuid_program_meanwhile(either, with_mode):
    daemon = either.start()
    client, target = daemon.client(BOB), daemon.target(BOB)
    client.acquire(pid=target.pid)

    crash_and_restart(daemon, lambda: target.exec(with_mode(0o4755)))

    wait_until(lambda: target.sched().policy == OTHER, 5, "the demotion")
    assert daemon.leases() == []


def test_S46_many(either, slowness):
    daemon = either.start()
    client = daemon.client(BOB)
    for _ in range(200):
        client.acquire(tid=client.thread())
    before = {lease.id for lease in daemon.leases()}

    begin = time.monotonic()
    crash_and_restart(daemon)
    assert time.monotonic() - begin < 1 * slowness

    assert {lease.id for lease in daemon.leases()} == before
    daemon.admin.request(wire.RESTORE_ALL)
    assert all(kernel.sched_getattr(tid) == (OTHER, 0, 0, False)
               for tid in kernel.threads(client.pid))


@pytest.mark.parametrize("damage", ["truncated", "garbage", "foreign", "writable"])
def test_S46_a_state_file_that_is_not_to_be_believed(make_daemon, damage):
    daemon = make_daemon().start()
    client = daemon.client(BOB)
    client.acquire()
    path = f"{daemon.state_path}/leases"

    def spoil():
        if damage == "truncated":
            os.truncate(path, os.stat(path).st_size // 3)
        elif damage == "garbage":
            with open(path, "r+b") as file:
                file.write(os.urandom(4096))
        elif damage == "foreign":
            os.chown(path, BOB, BOB)
        elif damage == "writable":
            os.chmod(path, 0o666)

    daemon.kill()
    spoil()
    daemon.start(wait=False)

    # It may start without that file, or refuse to; it may not do what the file says, nor crash.
    try:
        daemon.wait_for_message("READY=1", 20)
    except AssertionError:
        assert daemon.wait() > 0
        assert path in daemon.log()


# ---- systemd ----


def test_sd_notify(make_daemon):
    daemon = make_daemon().start(wait=False)

    ready = daemon.wait_for_message("READY=1", 20)
    assert ready.get("STATUS")

    daemon.write_policy()
    os.kill(daemon.pid, signal.SIGHUP)
    reloading = daemon.wait_for_message("RELOADING=1")
    assert int(reloading["MONOTONIC_USEC"]) <= time.monotonic() * 1e6
    daemon.wait_for_message("READY=1")

    os.kill(daemon.pid, signal.SIGTERM)
    daemon.wait_for_message("STOPPING=1")
    assert daemon.wait() == 0


def test_watchdog(make_daemon):
    daemon = make_daemon().start(environment={"WATCHDOG_USEC": "400000"})

    for _ in range(3):
        daemon.wait_for_message("WATCHDOG=1", 1)


def test_socket_activation(make_daemon, programs):
    daemon = make_daemon()
    daemon.write_policy()
    with open(daemon.log_path, "ab") as log:
        daemon.process = subprocess.Popen(
            ["systemd-socket-activate", "--seqpacket", "--listen", daemon.socket_path,
             programs.rtgrantd, "--socket", daemon.socket_path, "--policy", daemon.policy_path,
             "--state", daemon.state_path],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            preexec_fn=lambda: kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL),
        )
    daemon.pid = daemon.process.pid
    wait_until(lambda: os.path.exists(daemon.socket_path), what="the socket")
    os.chmod(daemon.socket_path, 0o666)

    client = daemon.client(BOB)
    assert client.hello().uid == BOB
    assert_granted(client.acquire(), FIFO, 5)


def test_the_journal_is_written_to_only_if_it_is_there(make_daemon):
    daemon = make_daemon().start(environment={"JOURNAL_STREAM": "1:1"})

    daemon.client(BOB).acquire(priority=88)

    wait_until(lambda: "priority-limit" in daemon.log(), what="a line on stderr")


# ---- idle ----


def test_no_lease_no_wake_up(daemon):
    client, watcher = daemon.client(BOB), daemon.client(BOB)
    watcher.watch()
    client.release(client.acquire().id)
    time.sleep(1.5)  # it may tell its service manager at a slow pace

    cpu_ns, wake_ups = kernel.cpu_ns(daemon.pid), kernel.wake_ups(daemon.pid)
    time.sleep(3)

    assert kernel.wake_ups(daemon.pid) == wake_ups
    assert kernel.cpu_ns(daemon.pid) == cpu_ns


def test_few_wake_ups_with_leases(daemon, slowness):
    client = daemon.client(BOB)
    for _ in range(16):
        client.acquire(tid=client.thread())

    cpu_ns, wake_ups = kernel.cpu_ns(daemon.pid), kernel.wake_ups(daemon.pid)
    time.sleep(3)

    assert kernel.wake_ups(daemon.pid) - wake_ups < 15
    assert kernel.cpu_ns(daemon.pid) - cpu_ns < 3e9 * 0.001 * slowness


def test_memory_does_not_grow(make_daemon, slowness):
    # A sanitizer keeps what was freed for a while: no more than this.
    daemon = make_daemon().start(environment={"ASAN_OPTIONS": "quarantine_size_mb=1"})
    client = daemon.client(BOB)

    def work(n):
        for _ in range(n):
            client.release(client.acquire().id)
            client.reconnect()
            client.acquire(priority=99)

    work(1000)
    rss_kb = kernel.rss_kb(daemon.pid)
    work(2500)
    assert kernel.rss_kb(daemon.pid) - rss_kb < 256 * slowness


def test_the_daemon_is_out_of_its_users_reach(daemon):
    """S45 in part: what a service user or a stranger could try on the process itself."""

    def try_all():
        results = []
        for attempt in (
            lambda: os.kill(daemon.pid, 0),
            lambda: open(f"/proc/{daemon.pid}/mem", "rb"),
            lambda: os.listdir(f"/proc/{daemon.pid}/fd"),
            lambda: open(f"{daemon.state_path}/leases", "rb"),
            lambda: kernel.check(kernel.libc.ptrace(16, daemon.pid, 0, 0)),
            lambda: kernel.check(kernel.libc.syscall(438, kernel.pidfd_open(daemon.pid), 3, 0)),
        ):
            try:
                attempt()
                results.append(0)
            except OSError as error:
                results.append(error.errno)
        return results

    assert 0 not in as_user(BOB, try_all)


def test_R31_a_service_manager_that_does_not_read(make_daemon):
    """Its socket is full; nobody waits for it."""
    daemon = make_daemon()
    path = f"{daemon.directory}/deaf"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf, \
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as other:
        deaf.bind(path)
        daemon.start(environment={"NOTIFY_SOCKET": path}, wait=False)
        wait_until(lambda: os.path.exists(daemon.socket_path), 20, "the socket")
        with pytest.raises(BlockingIOError):
            while True:
                other.sendto(b"STATUS=", path)
        client = daemon.client(BOB)

        for _ in range(3):
            client.release(client.acquire().id)
            os.kill(daemon.pid, signal.SIGHUP)
            time.sleep(0.5)  # for messages that it sends at a slow pace

        assert_granted(client.acquire(), FIFO, 5)
        daemon.stop()


def limit_itself(rttime_us):
    def prepare():
        resource.setrlimit(resource.RLIMIT_RTTIME, (rttime_us // 2, rttime_us))
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))

    return prepare


def ask_often(agent, seconds):
    """As many leases as it can get in that time, one after the other; how many."""
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for _ in range(50):
            answer = agent.acquire()
            assert answer.reason == "none", answer.explanation.text
            agent.release(answer.id)
        n += 50
    return n


def test_R10_its_own_limits_do_not_kill_it(make_daemon):
    """rtkit-daemon dies of both: real-time that it runs itself, and threads of root's."""
    daemon = make_daemon().start(
        {"Broker": {"GrantBurst": 1000000, "MessageBurst": 1000000, "MessageRefill": "1us"}},
        prepare=limit_itself(100000))
    others = [daemon.client(uid) for uid in (ALICE, BOB)]
    keeper = daemon.client(CAROL)
    keeper.acquire()  # real-time all the time

    for client in others:
        client.start("run", ask_often, 4)
    assert all(client.finish() > 1000 for client in others)
    assert daemon.process.poll() is None
    assert not keeper.hello().state & wire.STATE_DEGRADED


def test_R10_a_limit_that_is_too_short_to_live_with(make_daemon):
    if int(kernel.status("self", "CapEff"), 16) & 1 << 24:
        pytest.skip("it lifts it, with CAP_SYS_RESOURCE")
    daemon = make_daemon().start(prepare=limit_itself(20000))
    client = daemon.client(ALICE)

    assert_refused(client.acquire(), "degraded")
    assert client.hello().state & wire.STATE_DEGRADED
    assert_granted(client.acquire(want=wire.WANT_NICE, nice=-5), OTHER, 0, nice=-5)
    assert daemon.log().count("RLIMIT_RTTIME of 20000 us is too short") == 1
