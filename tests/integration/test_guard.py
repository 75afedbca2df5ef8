# SPDX-License-Identifier: MIT
"""The guard: real hogs on the real scheduler, and innocent threads beside them."""

import contextlib
import os
import re
import resource
import time

import pytest

import hogs
import kernel
import wire
from agent import ALICE, BOB
from daemon import assert_granted, assert_refused, wait_until
from hogs import Hog
from kernel import FIFO, OTHER

DEMOTED = 2
GUARD = {"ran-on", "cpu-share", "cpu-per-user", "cpu-reserve"}


def limits(broker=None, **role):
    """Short times, so that the tests are."""
    return {
        "Broker": {"BackOff": "500ms", "BackOffMax": "10s", **(broker or {})},
        "Role desktop": {"RunMax": "200ms", "CPUMax": "80%", "CPUWindow": "500ms", **role},
    }


@pytest.fixture
def guarded(make_daemon):
    return make_daemon().start(limits())


def watcher(daemon, uid):
    client = daemon.client(uid)
    assert client.watch().reason == "none"
    return client


def next_event(watching, *kinds, pid=None):
    while True:
        event = watching.event()
        if event.kind in kinds and pid in (None, event.lease.pid):
            return event


def is_in_force(daemon, hog):
    return daemon.lease_of(hog.pid).state == 0 and hog.sched().policy == FIFO


@contextlib.contextmanager
def rt_runtime(value):
    path = "/proc/sys/kernel/sched_rt_runtime_us"
    with open(path, encoding="ascii") as file:
        before = file.read()
    with open(path, "w", encoding="ascii") as file:
        file.write(value)
    try:
        yield
    finally:
        with open(path, "w", encoding="ascii") as file:
            file.write(before)


# ---- hogs ----


@pytest.mark.parametrize("what", [hogs.spin, hogs.nap, hogs.give_way], ids=lambda f: f.__name__)
@pytest.mark.parametrize("runtime", ["950000", "-1"])
def test_a_hog_is_warned_demoted_and_restored(guarded, what, runtime):
    client, watching = guarded.client(ALICE), watcher(guarded, ALICE)
    with rt_runtime(runtime):
        hog = Hog(client, what)
        warned = next_event(watching, wire.EVENT_OVER_BUDGET, wire.EVENT_DEMOTED)
        demoted = next_event(watching, wire.EVENT_DEMOTED)

    assert warned.kind == wire.EVENT_OVER_BUDGET
    assert warned.reason in GUARD and demoted.reason in GUARD
    assert re.search(r"ran for \d+ ms|took [\d.]+%", demoted.text) and "demoted for" in demoted.text
    assert demoted.lease.state == DEMOTED
    assert (demoted.lease.pid, demoted.lease.granted_priority) == (hog.pid, 5)

    hog.rest()
    restored = next_event(watching, wire.EVENT_RESTORED)
    assert (restored.lease.id, restored.reason) == (hog.lease, "back-off-over")
    assert is_in_force(guarded, hog)
    assert hog.sched() == (FIFO, 5, 0, True)


def test_nice_is_kept(guarded):
    client, watching = guarded.client(ALICE), watcher(guarded, ALICE)
    hog = Hog(client, hogs.spin, begin=False, want=wire.WANT_SCHED | wire.WANT_NICE, policy=FIFO,
              priority=7, nice=-5)
    hog.begin()

    assert next_event(watching, wire.EVENT_DEMOTED).lease.nice == -5
    assert hog.sched() == (OTHER, 0, -5, True)


def test_only_the_culprit(guarded):
    """An innocent thread of lower priority starves until the hog is demoted, and is no culprit."""
    victim = Hog(guarded.client(BOB), hogs.work, 0.1, priority=2)
    sibling = Hog(guarded.client(ALICE), hogs.work, 0.1, priority=3)
    client, watching = guarded.client(ALICE), watcher(guarded, ALICE)
    hog = Hog(client, hogs.spin, priority=9)

    assert next_event(watching, wire.EVENT_DEMOTED).lease.pid == hog.pid
    for innocent in victim, sibling:
        assert is_in_force(guarded, innocent)
        before = innocent.n_switches()
        wait_until(lambda: innocent.n_switches() > before + 20, what="its wake-ups")
        assert is_in_force(guarded, innocent)


def test_one_on_each_cpu(guarded):
    cpus = sorted(os.sched_getaffinity(0))[-4:]
    innocent = Hog(guarded.client(BOB), hogs.work, 0.1, priority=15)
    client = guarded.client(ALICE)
    all_of_them = [Hog(client, hogs.spin, cpu=cpu, begin=False) for cpu in cpus]
    for hog in all_of_them:
        hog.begin()

    watching = watcher(guarded, ALICE)
    wait_until(lambda: all(guarded.lease_of(hog.pid).state == DEMOTED or hog.sched().policy == OTHER
                           for hog in all_of_them), what="the demotion of all")
    for hog in all_of_them:
        hog.rest()
    for _ in all_of_them:
        next_event(watching, wire.EVENT_RESTORED)
    assert is_in_force(guarded, innocent)


def test_twenty_small_ones(make_daemon):
    """None of them takes much; together they take a whole CPU. As many go as have to."""
    daemon = make_daemon().start(limits({"BackOff": "20s"}))
    innocent = Hog(daemon.client(BOB), hogs.work, 0.1, priority=3)
    client, watching = daemon.client(ALICE), watcher(daemon, ALICE)
    small = [Hog(client, hogs.work, 0.07, priority=5, begin=False) for _ in range(20)]
    for one in small:
        one.begin()

    assert next_event(watching, wire.EVENT_DEMOTED).reason == "cpu-reserve"
    before = innocent.n_switches()
    wait_until(lambda: innocent.n_switches() > before + 20, what="the wake-ups of the innocent one")
    assert is_in_force(daemon, innocent)
    assert any(one.sched().policy == FIFO for one in small)


def test_all_of_a_user(make_daemon):
    """Threads that each keep to their own limit, on all CPUs."""
    daemon = make_daemon().start(limits({"CPUPerUser": "20%", "BackOff": "20s"}))
    innocent = Hog(daemon.client(BOB), hogs.work, 0.1, priority=15)
    client, watching = daemon.client(ALICE), watcher(daemon, ALICE)
    cpus = sorted(os.sched_getaffinity(0))
    some = [Hog(client, hogs.work, 0.35, cpu=cpu, begin=False) for cpu in cpus]
    for one in some:
        one.begin()

    event = next_event(watching, wire.EVENT_DEMOTED)
    assert event.reason == "cpu-per-user"
    assert "CPUPerUser=20%" in event.text
    assert is_in_force(daemon, innocent)


def test_a_fork_bomb_of_a_granted_thread(guarded):
    client, watching = guarded.client(ALICE), watcher(guarded, ALICE)
    hog = Hog(client, hogs.bomb, 30)

    demoted = next_event(watching, wire.EVENT_DEMOTED)
    assert demoted.lease.pid == hog.pid
    with open(f"/proc/{hog.pid}/task/{hog.pid}/children", encoding="ascii") as file:
        children = [int(pid) for pid in file.read().split()]
    assert children and all(kernel.sched_getattr(pid).policy == OTHER for pid in children)
    assert guarded.client(BOB).hello().reason == "none"
    hog.kill()
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in children), what="their end")


def test_as_declared(make_daemon):
    """Less than the role gives, and far more than it said."""
    daemon = make_daemon().start(limits({"BackOff": "20s"}))
    client, watching = daemon.client(ALICE), watcher(daemon, ALICE)
    timing = {"period_ns": 20_000_000, "computation_ns": 4_000_000, "deadline_ns": 20_000_000}
    honest = Hog(client, hogs.work, 0.1, priority=6, **timing)
    liar = Hog(client, hogs.work, 0.6, priority=5, **timing)

    event = next_event(watching, wire.EVENT_DEMOTED)
    assert (event.lease.pid, event.reason) == (liar.pid, "cpu-share")
    assert "40.0%" in event.text
    assert is_in_force(daemon, honest)


@pytest.mark.parametrize("runtime", ["950000", "-1"])
def test_who_may_have_all_of_a_cpu_has_it(make_daemon, runtime):
    """As long as the kernel sees to it that others run there now and then."""
    if not has_fair_server():
        pytest.skip("this kernel lets nothing else run then")
    daemon = make_daemon().start(limits(
        {"ReserveCPU": "0%", "CPUPerUser": "100%"}, RunMax="1min", CPUMax="100%"))
    with rt_runtime(runtime):
        victim = Hog(daemon.client(BOB), hogs.work, 0.1, priority=2)
        hog = Hog(daemon.client(ALICE), hogs.spin)
        time.sleep(5)
        assert is_in_force(daemon, hog) and is_in_force(daemon, victim)
        assert "over-budget" not in daemon.log()
        # the canary looked
        assert any(name == "rtgrantd" and affinity == {hogs.CPU}
                   for name, affinity in threads_of(daemon.pid))
        hog.kill()


def has_fair_server():
    return tuple(int(n) for n in os.uname().release.split("-")[0].split(".")[:2]) >= (6, 12)


def threads_of(pid):
    for tid in kernel.threads(pid):
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="ascii") as file:
            yield file.read().strip(), os.sched_getaffinity(tid)


def fill_with_nice(agent, n):
    """Leases of nice for threads of its own, until no more is given: (thread, lease) each."""
    given = []
    for _ in range(n):
        tid = agent.thread()
        answer = agent.acquire(tid=tid, want=wire.WANT_NICE, nice=-3)
        if answer.reason != "none":
            return given, answer.reason
        given.append((tid, answer.id))
    return given, "none"


def test_who_cannot_be_watched_does_not_become_real_time(make_daemon):
    """Each real-time lease takes a descriptor more, and there is none."""
    daemon = make_daemon().start(
        {"Broker": {"GrantBurst": 1000}, "Role desktop": {"ThreadsPerUser": 200}},
        prepare=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
    client = daemon.client(ALICE)
    given, reason = client.run(fill_with_nice, 100)
    assert reason == "resources" and len(given) > 10

    (tid, lease), (_, other) = given[:2]
    assert_refused(client.update(lease, policy=FIFO, priority=4), "resources")
    assert_refused(client.acquire(tid=tid), "resources")
    assert client.sched(tid) == (OTHER, 0, -3, True)
    assert [x.granted_want for x in client.list() if x.id == lease] == [wire.WANT_NICE]

    client.release(other)
    assert client.update(lease, policy=FIFO, priority=4).reason == "none"
    assert client.sched(tid)[:2] == (FIFO, 4)


# ---- what follows ----


def test_the_user_gets_nothing_new_for_a_while(make_daemon):
    daemon = make_daemon().start(limits({"BackOff": "20s"}))
    client, watching = daemon.client(ALICE), watcher(daemon, ALICE)
    before = Hog(client, hogs.work, 0.05, priority=8)
    hog = Hog(client, hogs.spin)
    next_event(watching, wire.EVENT_DEMOTED)

    refusal = client.acquire()
    assert_refused(refusal, "back-off")
    assert 0 < refusal.explanation.retry_after_ms <= 20000
    assert refusal.explanation.rule.startswith(daemon.policy_path)
    assert client.renew(hog.lease).reason == "back-off"
    assert client.update(hog.lease, policy=FIFO, priority=4).reason == "back-off"
    assert client.acquire(flags=wire.ACQUIRE_DRY_RUN).reason == "back-off"
    # what it has already, what is not real-time, and others are none of that
    assert client.renew(before.lease).reason == "none"
    assert client.acquire(want=wire.WANT_NICE, nice=-3).reason == "none"
    assert_granted(daemon.client(BOB).acquire(), FIFO, 5)
    assert is_in_force(daemon, before)
    assert "event=demoted" in daemon.log() or "demoted for" in daemon.log()


def test_each_time_twice_as_long(guarded):
    client, watching = guarded.client(ALICE), watcher(guarded, ALICE)
    hog = Hog(client, hogs.spin)

    times = [next_event(watching, wire.EVENT_DEMOTED).text for _ in range(3)]
    hog.kill()
    assert [re.search(r"demoted for ([\d.]+) s", text)[1] for text in times] == ["0.5", "1.0", "2.0"]


def test_a_reload_lowers_what_comes_back(make_daemon):
    daemon = make_daemon().start(limits({"BackOff": "3s"}))
    client, watching = daemon.client(ALICE), watcher(daemon, ALICE)
    hog = Hog(client, hogs.spin, priority=15)
    next_event(watching, wire.EVENT_DEMOTED)
    hog.rest()

    daemon.reload(limits({"BackOff": "3s"}, Priority="1-7"))

    next_event(watching, wire.EVENT_RESTORED)
    assert hog.sched() == (FIFO, 7, 0, True)


def test_released_while_demoted(guarded):
    client, watching = guarded.client(ALICE), watcher(guarded, ALICE)
    hog = Hog(client, hogs.spin)
    next_event(watching, wire.EVENT_DEMOTED)

    client.release(hog.lease)
    assert hog.sched() == (OTHER, 0, 0, False)
    time.sleep(1)  # no timer of a lease that is no more
    assert hog.sched() == (OTHER, 0, 0, False)


def test_what_others_set_meanwhile_stays(guarded):
    client, watching = guarded.client(ALICE), watcher(guarded, ALICE)
    hog = Hog(client, hogs.spin)
    next_event(watching, wire.EVENT_DEMOTED)
    hog.rest()
    kernel.sched_setattr(hog.pid, kernel.BATCH, 0, 3)

    event = next_event(watching, wire.EVENT_CHANGED)
    assert event.lease.state == 1
    assert hog.sched()[:3] == (kernel.BATCH, 0, 3)


def test_killed_while_somebody_is_demoted(make_daemon):
    """The successor waits as long as its predecessor would have, and restores it."""
    daemon = make_daemon().start(limits({"BackOff": "3s"}))
    watching = watcher(daemon, ALICE)
    hog = Hog(daemon.client(ALICE), hogs.spin)
    next_event(watching, wire.EVENT_DEMOTED)
    hog.rest()
    daemon.kill()
    assert hog.sched().policy == OTHER

    daemon.start(limits({"BackOff": "3s"}))
    assert daemon.lease_of(hog.pid).state in (0, DEMOTED)
    wait_until(lambda: is_in_force(daemon, hog), what="its priority")


def test_killed_and_ended(make_daemon):
    """A lease that ends while the thread is demoted by a broker before: all is as it was."""
    daemon = make_daemon().start(limits({"BackOff": "60s", "BackOffMax": "60s"}))
    watching = watcher(daemon, ALICE)
    hog = Hog(daemon.client(ALICE), hogs.spin)
    next_event(watching, wire.EVENT_DEMOTED)
    daemon.kill()
    daemon.start(limits({"BackOff": "60s", "BackOffMax": "60s"}))
    assert daemon.lease_of(hog.pid).state == DEMOTED
    assert_refused(daemon.client(ALICE).acquire(), "back-off")

    daemon.stop()
    assert hog.sched() == (OTHER, 0, 0, False)


# ---- who is not to blame ----


def test_the_daemon_stopped_for_a_while(guarded):
    worker = Hog(guarded.client(ALICE), hogs.work, 0.4)
    before = worker.n_switches()
    wait_until(lambda: worker.n_switches() > before + 10, what="its work")

    with guarded.paused():
        time.sleep(12)
    before = worker.n_switches()
    wait_until(lambda: worker.n_switches() > before + 100, what="its work")

    assert is_in_force(guarded, worker)
    assert "over-budget" not in guarded.log()


def test_the_loop_held_up(guarded):
    """The guard needs nobody: the dispatcher alone is stopped, by being traced."""
    client = guarded.client(ALICE)
    hog = Hog(client, hogs.spin, begin=False)
    kernel.check(kernel.libc.ptrace(0x4206, guarded.pid, 0, 0))  # PTRACE_SEIZE
    try:
        kernel.check(kernel.libc.ptrace(0x4207, guarded.pid, 0, 0))  # PTRACE_INTERRUPT
        os.waitpid(guarded.pid, 0x40000000)
        hog.begin()
        wait_until(lambda: hog.sched().policy == OTHER, what="the demotion")
    finally:
        kernel.libc.ptrace(17, guarded.pid, 0, 0)  # PTRACE_DETACH
    wait_until(lambda: guarded.lease_of(hog.pid).state in (0, DEMOTED), what="the books")
    hog.kill()


def test_nobody_watched_no_wake_up(guarded):
    client = guarded.client(ALICE)
    lease = client.acquire().id
    wait_until(lambda: rt_threads(guarded.pid, 97) == 1, what="the guard")
    client.release(lease)
    nice = client.acquire(want=wire.WANT_NICE, nice=-3).id
    client.release(nice)

    def quiet():
        before = kernel.wake_ups(guarded.pid)
        time.sleep(2)
        return kernel.wake_ups(guarded.pid) == before

    guarded._forget_admin()
    wait_until(quiet, what="sleep")


def rt_threads(pid, priority):
    return sum(kernel.sched_getattr(tid)[:2] == (FIFO, priority) for tid in kernel.threads(pid))
