# SPDX-License-Identifier: MIT
"""Memory that a process may lock. Raising the limit of another process takes CAP_SYS_RESOURCE.

Where that is missing, the broker says so; what it does with it is shown by a broker whose limits
are kept in files, and for real by the tests on a whole machine.
"""

import json
import os
import signal
import time
from pathlib import Path

import pytest

import daemon as daemon_module
import kernel
import wire
from agent import ALICE, BOB, CAROL
from daemon import assert_granted, assert_refused, wait_until
from kernel import FIFO, OTHER
from test_namespace import subordinate_user

MEMLOCK = wire.WANT_MEMLOCK
MIB = 1 << 20
POLICY = {
    "Broker": {"MemlockMax": "200M"},
    "Role desktop": {"Memlock": "100M", "MemlockPerUser": "160M"},
}


def can_raise():
    return int(kernel.status("self", "CapEff"), 16) & 1 << 24


@pytest.fixture
def limits(kept_limits):
    return kept_limits.memlock


@pytest.fixture
def make_broker(kept_limits, make_daemon):
    return lambda policy: kept_limits.keep_for(make_daemon(), policy).start()


@pytest.fixture
def broker(make_broker):
    return make_broker(POLICY)


def ask(client, size, **values):
    return client.acquire(want=MEMLOCK, memlock_bytes=size, role="desktop", **values)


# ---- without the capability ----


@pytest.mark.skipif(can_raise(), reason="this machine has CAP_SYS_RESOURCE")
def test_without_the_capability_it_says_so_once_and_to_everybody(daemon):
    daemon.reload(daemon_module.policy_text(POLICY))
    client = daemon.client(ALICE)

    assert not client.hello().kinds & MEMLOCK
    for _ in range(3):
        answer = ask(client, MIB)
        assert_refused(answer, "resource-unavailable")
        assert "CAP_SYS_RESOURCE" in answer.explanation.text
    assert daemon.log().count("memlock cannot be granted here") == 1

    # and it is not what the rest depends on, if the client says so
    both = client.acquire(want=wire.WANT_SCHED | MEMLOCK, policy=FIFO, priority=5,
                          memlock_bytes=MIB, flags=wire.ACQUIRE_CLAMP)
    assert_granted(both, FIFO, 5)
    assert both.granted_want == wire.WANT_SCHED and both.flags & wire.ANSWER_CLAMPED


# ---- with it ----


def test_it_is_raised_and_put_back(broker, limits):
    client = broker.client(ALICE)
    before = limits(client.pid)

    answer = ask(client, 64 * MIB, reason="samples")

    assert (answer.reason, answer.memlock_bytes, answer.memlock_locked) == ("none", 64 * MIB, 0)
    assert limits(client.pid) == (64 * MIB, 64 * MIB)
    assert [(x.granted_want, x.memlock_bytes, x.reason) for x in broker.leases()] == [
        (MEMLOCK, 64 * MIB, "samples")]
    assert client.release(answer.id).reason == "none"
    assert limits(client.pid) == before


def test_what_is_more_already_stays(broker, limits):
    client = broker.client(ALICE)
    limits.set(client.pid, 90 * MIB, 2**64 - 1)

    lease = ask(client, 64 * MIB).id

    assert limits(client.pid) == (90 * MIB, 2**64 - 1)
    client.release(lease)
    assert limits(client.pid) == (90 * MIB, 2**64 - 1)


def test_never_below_what_is_locked(broker, limits):
    target = broker.target(ALICE)
    client = broker.client(ALICE)
    lease = ask(client, 64 * MIB, pid=target.pid).id
    target.tell("mlock", 3 * MIB)
    # as if the limit had been less than what is locked by now
    broker.kill()
    state = kernel.status(target.pid, "VmLck")
    assert int(state.split()[0]) >= 3 * 1024
    broker.start()
    client.reconnect()

    answer = ask(client, 64 * MIB, pid=target.pid)
    assert answer.memlock_locked >= 3 * MIB
    client.release(lease)

    soft, hard = limits(target.pid)
    assert soft >= 3 * MIB and hard >= 3 * MIB


def test_the_limit_is_of_the_process_and_its_threads_share_it(broker, limits):
    client = broker.client(ALICE)
    before = limits(client.pid)
    first = ask(client, 20 * MIB)
    second = ask(client, 40 * MIB, tid=client.thread())
    assert limits(client.pid)[1] == 40 * MIB

    client.release(second.id)
    assert limits(client.pid)[1] == 20 * MIB
    client.release(first.id)
    assert limits(client.pid) == before


def test_the_limit_is_put_back_when_the_thread_ends_and_the_process_goes_on(broker, limits):
    client, target = broker.client(ALICE), broker.target(ALICE)
    before = limits(target.pid)
    tid = target.thread()
    ask(client, 20 * MIB, pid=target.pid, tid=tid)
    assert limits(target.pid)[1] == 20 * MIB

    target.tell("end", tid=tid)

    wait_until(lambda: limits(target.pid) == before)


@pytest.mark.parametrize("size", [100 * MIB + 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1])
def test_U14_more_than_the_role_gives(broker, limits, size):
    client = broker.client(ALICE)
    before = limits(client.pid)

    assert_refused(ask(client, size), "resource-limit")

    assert limits(client.pid) == before
    clamped = ask(client, size, flags=wire.ACQUIRE_CLAMP)
    assert (clamped.memlock_bytes, limits(client.pid)[1]) == (100 * MIB, 100 * MIB)


def test_two_users_and_twenty_processes_at_the_cap(broker, limits):
    """8 MiB each: 20 of one user fill its 160 MiB, and 5 more of another the 200 MiB of all."""
    ones = [broker.client(ALICE) for _ in range(20)]
    for client in ones:
        assert ask(client, 8 * MIB).reason == "none"
    late = broker.client(ALICE)
    refused = ask(late, 4096)
    assert_refused(refused, "memlock-quota")
    assert refused.explanation.limit == 0
    assert "MemlockPerUser" in refused.explanation.help

    twos = [broker.client(BOB) for _ in range(5)]
    for client in twos:
        assert ask(client, 8 * MIB).reason == "none"
    refused = ask(broker.client(CAROL), 4096)
    assert_refused(refused, "memlock-quota")
    assert "MemlockMax" in broker_rule(broker, refused)

    # what a dead process held comes back at once, and asking for the same again is no more
    assert ask(ones[0], 8 * MIB).reason == "none"
    ones[1].kill()
    wait_until(lambda: len(broker.leases()) == 24)
    assert ask(late, 8 * MIB).reason == "none"
    assert ask(broker.client(ALICE), 4096).reason == "memlock-quota"

    assert sum(x.memlock_bytes for x in broker.leases()) == 200 * MIB


def broker_rule(broker, answer):
    """The text of the line that decided."""
    file, _, line = answer.explanation.rule.rpartition(":")
    return Path(file).read_text().splitlines()[int(line) - 1]


def test_clamped_to_what_is_left(broker, limits):
    assert ask(broker.client(ALICE), 100 * MIB).reason == "none"
    client = broker.client(ALICE)

    answer = ask(client, 100 * MIB, flags=wire.ACQUIRE_CLAMP)

    assert (answer.memlock_bytes, limits(client.pid)[1]) == (60 * MIB, 60 * MIB)


def test_what_children_inherit_counts_and_is_taken_back_with_the_last(broker, limits):
    holder, child = broker.client(ALICE), broker.target(ALICE)
    before = limits(child.pid)
    lease = ask(holder, 100 * MIB).id
    limits.inherit(holder.pid, child.pid)

    # 100 held, 100 inherited, of 160
    assert_refused(ask(broker.client(ALICE), 4096), "memlock-quota")

    holder.release(lease)
    assert limits(child.pid) == before
    assert ask(broker.client(ALICE), 100 * MIB).reason == "none"


def test_a_user_namespace_counts_for_its_owner(make_broker, limits):
    """Whatever subordinate users its processes and their children run as."""
    broker = make_broker({**POLICY, "Broker": {"MemlockMax": "1G", "UserNamespaces": "yes"}})
    inside = broker.client(0, prepare=subordinate_user)
    child = broker.client(0, prepare=lambda: subordinate_user(7))
    before = limits(child.pid)
    assert inside.hello().uid == 200004
    lease = ask(inside, 100 * MIB).id
    limits.inherit(inside.pid, child.pid)

    # 100 held and 100 inherited of 160: nothing is left, within and without
    assert_refused(ask(broker.client(ALICE), 4096), "memlock-quota")
    assert_refused(ask(broker.client(0, prepare=subordinate_user), 4096), "memlock-quota")
    assert ask(broker.client(BOB), 100 * MIB).reason == "none"

    inside.release(lease)
    assert limits(child.pid) == before
    assert ask(broker.client(ALICE), 100 * MIB).reason == "none"


def test_an_older_process_of_the_user_with_a_limit_of_its_own_is_let_be(broker, limits):
    """A session's program that may lock more than a service, which then has a lease for a while."""
    older = broker.target(ALICE)
    time.sleep(0.05)  # the kernel counts births in 10 ms
    holder = broker.client(ALICE)
    limits.set(older.pid, 50 * MIB, 50 * MIB)

    lease, other = ask(holder, 100 * MIB), broker.client(ALICE)
    second = ask(other, 60 * MIB)
    assert second.reason == "none"
    other.release(second.id)
    holder.release(lease.id)

    assert limits(older.pid) == (50 * MIB, 50 * MIB)


def test_a_dead_child_counts_no_more(broker, limits):
    """Also while its parent has not looked what became of it."""
    client, holder = broker.client(ALICE), broker.target(ALICE)
    ask(client, 100 * MIB, pid=holder.pid)
    child = holder.fork()
    limits.inherit(holder.pid, child)
    assert_refused(ask(client, 60 * MIB), "memlock-quota")

    os.kill(child, signal.SIGKILL)

    wait_until(lambda: "Z" in kernel.status(child, "State"))
    assert ask(client, 60 * MIB).reason == "none"


def test_a_child_that_hides_counts_too(broker, limits):
    """One that cannot be dumped has files in /proc that belong to root."""
    holder, child = broker.client(ALICE), broker.target(ALICE)
    ask(holder, 100 * MIB)
    limits.inherit(holder.pid, child.pid)
    child.tell("hide")
    assert os.stat(f"/proc/{child.pid}/status").st_uid == 0

    assert_refused(ask(broker.client(ALICE), 60 * MIB), "memlock-quota")


def test_children_of_another_lease_are_let_be(broker, limits):
    one, two, child = broker.client(ALICE), broker.client(ALICE), broker.target(ALICE)
    first = ask(one, 50 * MIB).id
    second = ask(two, 50 * MIB).id
    limits.inherit(two.pid, child.pid)
    before = limits(broker.target(ALICE).pid)

    one.release(first)
    assert limits(child.pid)[1] == 50 * MIB
    two.release(second)
    assert limits(child.pid) == before


def test_another_user_s_process(broker, limits):
    theirs = broker.target(BOB)
    before = limits(theirs.pid)

    assert_refused(ask(broker.client(ALICE), MIB, pid=theirs.pid), "no-such-thread")
    assert limits(theirs.pid) == before


def test_U19_a_set_user_id_program(broker, limits, with_mode):
    target = broker.target(ALICE, path=with_mode(0o4755))
    before = limits(target.pid)

    assert_refused(ask(broker.client(ALICE), 50 * MIB, pid=target.pid),
                   "no-such-thread", "target-privileged")
    assert limits(target.pid) == before


def test_U19_it_becomes_a_set_user_id_program(broker, limits, with_mode):
    target = broker.target(ALICE)
    before = limits(target.pid)
    assert ask(broker.client(ALICE), 50 * MIB, pid=target.pid).reason == "none"

    target.exec(with_mode(0o4755))

    wait_until(lambda: broker.leases() == [], what="the end of the lease")
    assert limits(target.pid)[1] == before[1]


def test_killed_and_started_again(broker, limits):
    client, gone = broker.client(ALICE), broker.client(ALICE)
    before = limits(client.pid)
    lease = ask(client, 50 * MIB).id
    ask(gone, 50 * MIB)

    broker.kill()
    gone.kill()
    broker.start()

    assert [(x.id, x.memlock_bytes) for x in broker.leases()] == [(lease, 50 * MIB)]
    assert limits(client.pid) == (50 * MIB, 50 * MIB)
    # it counts as before
    assert ask(broker.client(ALICE), 100 * MIB).reason == "none"
    assert_refused(ask(broker.client(ALICE), 20 * MIB), "memlock-quota")
    client.reconnect()
    client.release(lease)
    assert limits(client.pid) == before


def test_a_clean_stop_puts_it_back(broker, limits):
    client = broker.client(ALICE)
    before = limits(client.pid)
    ask(client, 50 * MIB)

    broker.stop()

    assert limits(client.pid) == before


def test_what_its_owner_lowered_is_not_raised_again(broker, limits):
    client = broker.client(ALICE)
    lease = ask(client, 50 * MIB).id
    limits.set(client.pid, 4096, 40 * MIB)

    wait_until(lambda: broker.leases()[0].state == wire.LEASE_CHANGED)
    client.release(lease)

    soft, hard = limits(client.pid)
    assert (soft, hard) == (4096, limits.real(client.pid)[1])


def test_a_reload_lowers_it(broker, limits):
    client = broker.client(ALICE)
    before = limits(client.pid)
    ask(client, 50 * MIB)

    broker.reload(daemon_module.policy_text({"Role desktop": {"Memlock": "30M"}}))
    assert limits(client.pid)[1] == 30 * MIB
    broker.reload(daemon_module.policy_text({}))
    assert limits(client.pid) == before


def test_the_program(broker, limits):
    target = broker.target(ALICE)

    run = broker.rtgrant(ALICE, "--memlock", "64M", "--json", "-p", target.pid)

    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["memlock_bytes"] == 64 * MIB
    assert limits(target.pid) == (64 * MIB, 64 * MIB)
    assert "memlock 64 MiB" in broker.rtgrantctl(ALICE, "list").stdout
    assert kernel.sched_getattr(target.pid).policy == OTHER
    assert os.path.exists(f"/proc/{target.pid}")
