# SPDX-License-Identifier: MIT
"""Whose thread it is: what is not the caller's own is refused, and cannot be told from nothing."""

import os
import time

import pytest

import kernel
import wire
from agent import ALICE, BOB, CAROL, NOBODY, Connection
from daemon import assert_granted, assert_refused, explain, wait_until, words_of
from kernel import FIFO, OTHER, RR

REVALIDATION_S = 2


def free_pid():
    """A number that is nobody's."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


def irq_thread():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8") as comm:
                if comm.read().startswith("irq/"):
                    return int(pid)
        except OSError:
            pass
    return None


def assert_looks_like_none(client, pid=0, tid=0):
    """What exists is refused in the same words as numbers that are nobody's."""
    answer = client.acquire(pid=pid, tid=tid)
    nobody = free_pid()
    missing = client.acquire(pid=pid and nobody, tid=tid and nobody)

    assert_refused(missing, "no-such-thread")
    assert_refused(answer, "no-such-thread")
    assert words_of(answer) == words_of(missing)


def test_S3_S4_another_users_thread_looks_like_none(either):
    daemon = either.start()
    client, victim = daemon.client(NOBODY), daemon.target(BOB)
    tid = victim.thread()

    assert_looks_like_none(client, pid=victim.pid)
    assert_looks_like_none(client, pid=victim.pid, tid=tid)
    assert_looks_like_none(client, tid=tid)
    assert_looks_like_none(client, tid=victim.pid)
    assert_looks_like_none(client, pid=client.pid, tid=tid)
    assert_looks_like_none(client, pid=victim.pid, tid=client.pid)
    assert victim.sched() == victim.sched(tid) == (OTHER, 0, 0, False)


@pytest.mark.parametrize("who", ["root", "init", "daemon", "kthreadd", "irq"])
def test_S5_what_belongs_to_the_machine(either, who):
    daemon = either.start()
    client = daemon.client(NOBODY)
    pid = {
        "root": lambda: daemon.target(0).pid,
        "init": lambda: 1,
        "daemon": lambda: daemon.pid,
        "kthreadd": lambda: 2,
        "irq": irq_thread,
    }[who]()
    if pid is None:
        pytest.skip("this machine has no IRQ threads")
    before = kernel.sched_getattr(pid)

    assert_looks_like_none(client, pid=pid)
    assert_looks_like_none(client, tid=pid)
    assert_looks_like_none(client, pid=pid, tid=pid)
    assert kernel.sched_getattr(pid) == before


@pytest.mark.parametrize("who", ["init", "daemon", "kthreadd", "irq"])
def test_S5_not_for_root_either(daemon, who):
    client = daemon.client(0)
    pid = {"init": 1, "daemon": daemon.pid, "kthreadd": 2, "irq": irq_thread()}[who]
    if pid is None:
        pytest.skip("this machine has no IRQ threads")
    before = kernel.sched_getattr(pid)

    assert_refused(client.acquire(pid=pid), "no-such-thread")
    assert kernel.sched_getattr(pid) == before


@pytest.mark.parametrize("field", ["pid", "tid"])
@pytest.mark.parametrize("number", [0xFFFFFFFF, 2**31, 2**32, 2**32 + 1, 2**63, 2**64 - 1])
def test_S6_H21_numbers_that_are_none(daemon, field, number):
    client = daemon.client(NOBODY)
    before = kernel.sched_getattr(daemon.pid)

    assert_refused(client.acquire(**{field: number}), "invalid")
    assert kernel.sched_getattr(daemon.pid) == before
    assert client.sched() == (OTHER, 0, 0, False)


@pytest.mark.parametrize("field", ["pid", "tid"])
def test_H21_a_number_that_is_ours_once_cut(daemon, field):
    client = daemon.client(NOBODY)

    assert_refused(client.acquire(**{field: 2**32 + client.pid}), "invalid")
    assert client.sched() == (OTHER, 0, 0, False)


def test_S6_zero_is_the_caller(daemon):
    client = daemon.client(NOBODY)

    assert_granted(client.acquire(pid=0, tid=0), FIFO, 5)
    assert client.sched() == (FIFO, 5, 0, True)


@pytest.mark.parametrize("owner", [BOB, NOBODY])
def test_S7_a_thread_is_no_process(either, owner):
    daemon = either.start()
    client, other = daemon.client(NOBODY), daemon.target(owner)
    tid = other.thread()

    assert_refused(client.acquire(pid=tid), "no-such-thread")
    assert_refused(client.acquire(pid=tid, tid=other.pid), "no-such-thread")
    assert other.sched(tid) == other.sched() == (OTHER, 0, 0, False)


def test_another_process_of_the_same_user(either):
    daemon = either.start()
    client, target = daemon.client(BOB), daemon.target(BOB)
    tid = target.thread("worker")

    assert_granted(client.acquire(pid=target.pid), FIFO, 5)
    assert_granted(client.acquire(pid=target.pid, tid=tid, priority=6), FIFO, 6)
    assert target.sched(tid) == (FIFO, 6, 0, True)


def test_a_number_alone_is_a_thread_of_the_callers_process(either):
    daemon = either.start()
    client, target = daemon.client(BOB), daemon.target(BOB)
    tid = target.thread("worker")

    assert_refused(client.acquire(tid=tid), "no-such-thread")
    assert target.sched(tid) == (OTHER, 0, 0, False)
    assert_granted(client.acquire(tid=client.thread()), FIFO, 5)


def test_I06_G16_a_parent_asks_for_its_child(daemon):
    parent = daemon.client(BOB)
    child = parent.child()

    assert_granted(parent.acquire(pid=child, policy=RR, priority=10), RR, 10)
    assert kernel.sched_getattr(child) == (RR, 10, 0, True)


def test_G16_a_stranger_asks_for_it(daemon):
    parent, stranger = daemon.client(ALICE), daemon.client(BOB)
    child = parent.child()

    assert_refused(stranger.acquire(pid=child), "no-such-thread")
    assert kernel.sched_getattr(child) == (OTHER, 0, 0, False)


# ---- by pidfd ----


def test_pidfd_of_a_process(either):
    daemon = either.start()
    client, target = daemon.client(BOB), daemon.target(BOB)

    answer = client.acquire_by_pidfd(target.pid)

    assert_granted(answer, FIFO, 5)
    assert (answer.pid, answer.tid) == (target.pid, target.pid)


def test_pidfd_of_a_process_and_a_thread_of_it(daemon):
    client, target = daemon.client(BOB), daemon.target(BOB)
    tid = target.thread()

    assert client.acquire_by_pidfd(target.pid, tid=tid).tid == tid
    assert_refused(client.acquire_by_pidfd(target.pid, tid=client.pid), "no-such-thread")


def test_pidfd_of_a_thread(daemon):
    client, target = daemon.client(BOB), daemon.target(BOB)
    tid = target.thread()

    answer = client.acquire_by_pidfd(tid, thread=True)

    assert_granted(answer, FIFO, 5)
    assert (answer.pid, answer.tid) == (target.pid, tid)
    assert target.sched() == (OTHER, 0, 0, False)


def acquire_by_dead_pidfd(agent):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    fd = kernel.pidfd_open(pid)
    os.waitpid(pid, 0)
    try:
        return agent.acquire(pidfd=fd)
    finally:
        os.close(fd)


def test_pidfd_of_the_dead_or_of_somebody_else(either):
    daemon = either.start()
    client, victim = daemon.client(BOB), daemon.target(ALICE)

    dead = client.run(acquire_by_dead_pidfd)
    assert_refused(dead, "no-such-thread")
    for pid in (victim.pid, daemon.pid, 1):
        answer = client.acquire_by_pidfd(pid)
        assert_refused(answer, "no-such-thread")
        assert words_of(answer) == words_of(dead)
    assert victim.sched() == (OTHER, 0, 0, False)


def acquire_by_file(agent):
    with open("/dev/null", "rb") as file:
        return agent.acquire(pidfd=file.fileno())


def test_pidfd_that_is_none(daemon):
    assert_refused(daemon.client(BOB).run(acquire_by_file), "invalid")


# ---- more rights than the user ----


def test_S11_setuid_target(either, with_mode):
    daemon = either.start()
    client, target = daemon.client(BOB), daemon.target(BOB, path=with_mode(0o4755))

    assert_refused(client.acquire(pid=target.pid), "target-privileged", "no-such-thread")
    assert target.sched() == (OTHER, 0, 0, False)


def test_S11_setgid_target(either, with_mode):
    daemon = either.start()
    client, target = daemon.client(BOB), daemon.target(BOB, path=with_mode(0o2755, gid=4))

    assert_refused(client.acquire(pid=target.pid), "target-privileged", "no-such-thread")
    assert target.sched() == (OTHER, 0, 0, False)


def test_S11_setuid_target_that_dropped_its_rights_for_now(either, with_mode):
    daemon = either.start()
    client, target = daemon.client(BOB), daemon.target(BOB, path=with_mode(0o4755))
    target.tell("seteuid", BOB)

    assert_refused(client.acquire(pid=target.pid), "target-privileged", "no-such-thread")
    assert target.sched() == (OTHER, 0, 0, False)


def test_S11_setuid_target_of_a_third_user(either, with_mode):
    daemon = either.start()
    bob, carol = daemon.client(BOB), daemon.client(CAROL)
    target = daemon.target(BOB, path=with_mode(0o4755, uid=CAROL))

    assert_refused(bob.acquire(pid=target.pid), "target-privileged", "no-such-thread")
    assert_refused(carol.acquire(pid=target.pid), "target-privileged", "no-such-thread")
    assert target.sched() == (OTHER, 0, 0, False)


def test_S11_target_with_file_capabilities(either, capabilities):
    daemon = either.start()
    client, target = daemon.client(BOB), daemon.target(BOB, path=capabilities("cap_net_raw+ep"))

    assert_refused(client.acquire(pid=target.pid), "target-privileged")
    assert target.sched() == (OTHER, 0, 0, False)


def keep_capabilities():
    kernel.prctl(kernel.PR_SET_KEEPCAPS, 1)


def keep_only(agent, *numbers):
    kernel.set_capabilities(*numbers)
    agent.reconnect()


def test_H17_a_program_with_capabilities_asks_for_itself(either):
    daemon = either.start()
    client = daemon.client(BOB, prepare=keep_capabilities)
    client.run(keep_only, kernel.CAP_NET_RAW)
    assert int(kernel.status(client.pid, "CapPrm"), 16) == 1 << kernel.CAP_NET_RAW

    assert_granted(client.acquire(), FIFO, 5)
    assert_refused(daemon.client(CAROL).acquire(pid=client.pid), "no-such-thread")


# ---- time passes between asking and doing ----


def test_H08_the_thread_ends_between_request_and_handling(either):
    daemon = either.start({"Broker": {"GrantBurst": 1, "GrantRefill": "1h"}}, log_level="notice")
    client, target = daemon.client(BOB), daemon.target(BOB)
    tid = target.thread()
    n_lines = daemon.log().count("\n")

    with daemon.paused():
        client.ask_to_acquire(pid=target.pid, tid=tid)
        target.tell("end", tid=tid)

    assert_refused(client.answer(), "no-such-thread")
    assert daemon.log().count("\n") == n_lines
    assert_granted(client.acquire(), FIFO, 5)  # the only token is there still


def test_H18_H19_became_a_setuid_program_between_request_and_handling(either, with_mode):
    daemon = either.start()
    privileged = with_mode(0o4755)
    client, target = daemon.client(BOB), daemon.target(BOB)

    with daemon.paused():
        client.ask_to_acquire(pid=target.pid)
        target.exec(privileged)

    assert_refused(client.answer(), "target-privileged", "target-changed", "no-such-thread")
    assert target.sched() == (OTHER, 0, 0, False)


def test_H19_the_identity_is_that_of_the_connection(daemon, with_mode):
    """A process that has become another user's since speaks neither for that one nor this."""
    client = daemon.client(BOB, prepare=keep_capabilities)
    client.run(keep_only, kernel.CAP_SETUID)
    assert client.hello().uid == BOB

    client.run(become_carol)

    assert client.acquire().reason == "not-connector"
    assert client.sched() == (OTHER, 0, 0, False)


def become_carol(agent):
    os.setresuid(CAROL, CAROL, CAROL)


def test_S54_more_rights_or_another_user_end_the_grant(either, with_mode, capabilities):
    """All at once, since each takes until the broker looks again."""
    daemon = either.start()
    client = daemon.client(BOB)
    changes = {
        "setuid root": lambda target: target.exec(with_mode(0o4755)),
        "setuid carol": lambda target: target.exec(with_mode(0o4755, uid=CAROL)),
        "setgid": lambda target: target.exec(with_mode(0o2755, gid=4)),
        "file capabilities": lambda target: target.exec(capabilities("cap_net_raw+ep")),
        "user namespace": lambda target: target.tell("unshare-user"),
    }
    targets = {name: daemon.target(BOB) for name in changes}
    plain = daemon.target(BOB)
    for target in (plain, *targets.values()):
        assert_granted(client.acquire(pid=target.pid), FIFO, 5)
    setuid = daemon.client(BOB, prepare=keep_capabilities)
    setuid.run(keep_only, kernel.CAP_SETUID)
    assert_granted(setuid.acquire(), FIFO, 5)

    for name, change in changes.items():
        change(targets[name])
    setuid.run(become_carol)
    plain.exec(daemon.programs.target)

    def granted():
        everybody = {**targets, "setuid(2)": setuid}
        return [name for name, one in everybody.items() if one.sched().policy != OTHER]

    wait_until(lambda: not granted(), 2 * REVALIDATION_S, "the end of all grants")
    assert [lease.tid for lease in daemon.leases()] == [plain.pid]
    assert plain.sched() == (FIFO, 5, 0, True)


def test_S10_becomes_a_setuid_program_at_every_moment(either, with_mode):
    """Whichever is first, at the end no program of root's has a user's priority."""
    daemon = either.start()
    privileged = with_mode(0o4755)
    client = daemon.client(BOB)
    targets, reasons = [], set()

    # It goes to where both are as quick as each other, wherever that is on this machine.
    lead_s, step_s, granted_before = 0.0, 20e-6, None
    for _ in range(150):
        target = daemon.target(BOB)
        targets.append(target)
        if lead_s >= 0:
            target.write("exec", privileged)
            time.sleep(lead_s)
            reason = client.acquire(pid=target.pid).reason
        else:
            client.ask_to_acquire(pid=target.pid)
            time.sleep(-lead_s)
            target.write("exec", privileged)
            reason = client.answer().reason
        target.reply()
        reasons.add(reason)

        granted = reason == "none"
        step_s = 20e-6 if granted_before != granted else min(2 * step_s, 0.02)
        lead_s += step_s if granted else -step_s
        granted_before = granted

    assert reasons <= {"none", "target-privileged", "target-changed", "no-such-thread"}
    assert len(reasons) > 1, "one side was always first"
    wait_until(lambda: all(target.sched().policy == OTHER for target in targets),
               2 * REVALIDATION_S, "the end of all grants")
    assert daemon.leases() == []


def disconnect_early(agent, n, **values):
    """Asks and is gone, sooner or later, @n times."""
    agent.close()
    for i in range(n):
        connection = Connection(agent.path)
        connection.send(wire.encode(wire.ACQUIRE, want=wire.WANT_SCHED, policy=FIFO, **values))
        if i % 4:
            time.sleep(i % 20 / 1000 if i % 20 < 3 else i % 20 / 20000)
        connection.close()


def test_S26_gone_after_asking(daemon):
    allowed, refused = daemon.client(ALICE), daemon.client(BOB)
    victim = daemon.target(CAROL)

    for priority, role in ((65, "studio"), (5, "")):
        refused.start("run", disconnect_early, 500, priority=priority, role="studio")
        allowed.run(disconnect_early, 500, priority=priority, role=role,
                    lifetime=wire.LIFETIME_CONNECTION)
        refused.finish()
    daemon.client(BOB).run(disconnect_early, 200, pid=victim.pid, priority=5)

    wait_until(lambda: daemon.status().n_connections == 1, what="the end of all connections")
    assert daemon.leases() == []
    assert allowed.sched() == refused.sched() == victim.sched() == (OTHER, 0, 0, False)


# ---- names ----


@pytest.mark.parametrize("name", [b"x) R 9 9", b") R 1 1\nx", b"a b(c)", b"\x1b[31mred", b"\xff\xfe"])
def test_H10_hostile_names(either, name):
    daemon = either.start(log_level="debug")
    client, target = daemon.client(BOB), daemon.target(BOB)
    tid = target.thread()
    target.tell("name", name.hex(), tid=tid)

    answer = client.acquire(pid=target.pid, tid=tid, reason="\x1b[31mred\nrtgrantd: all is well")

    assert_granted(answer, FIFO, 5)
    (lease,) = client.list()
    assert lease.comm and lease.comm.isprintable()
    assert lease.reason.isprintable()
    client.release(answer.id)
    assert target.sched(tid) == (OTHER, 0, 0, False)
    assert all(line.isprintable() for line in daemon.log().split("\n"))
    assert not any(line.startswith("rtgrantd: all is well") for line in daemon.log().splitlines())


def test_a_leader_that_left_its_threads(either):
    """The main thread ended, the others live: there is nothing to prioritise under its number."""
    daemon = either.start()
    client, target = daemon.client(BOB), daemon.target(BOB)
    tid = target.thread()
    target.tell("end")
    wait_until(lambda: kernel.status(target.pid, "State").startswith("Z"), what="the zombie")

    answer = client.acquire(pid=target.pid)
    assert answer.reason in ("no-such-thread", "none"), explain(answer)
    assert_granted(client.acquire(pid=target.pid, tid=tid), FIFO, 5)
