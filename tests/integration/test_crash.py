# SPDX-License-Identifier: MIT
"""kill -9 at random moments under load: what the kernel has is always what the books say.

RTGRANT_SOAK=1 (./dev test soak) kills 500 times, else 25.
"""

import collections
import os
import random
import struct
import time

import pytest

import interrupts
import kernel
import wire
from agent import ALICE, BOB
from daemon import PATIENCE_S, policy_text, wait_until
from load import KINDS, Kind, Load

KILLS = 500 if os.environ.get("RTGRANT_SOAK") else 25
LATENCY_DEVICE = "/dev/cpu_dma_latency"
BASE = kernel.Sched(kernel.OTHER, 0, 0, False)

ROLE = {"CpuLatency": "10us", "Memlock": "64M"}

# What all leases share: how it is read, what it is without them, which of theirs is in force.
Shared = collections.namedtuple("Shared", "read usual of strongest")


def shared(read, of, strongest=min):
    return Shared(read, read(), of, strongest)


def cpu_latency():
    """In force for the machine; None where it has none."""
    if not os.path.exists(LATENCY_DEVICE):
        return None
    fd = os.open(LATENCY_DEVICE, os.O_RDONLY)
    try:
        return struct.unpack("i", os.pread(fd, 4, 0))[0]
    finally:
        os.close(fd)


def memlock(pid):
    with open(f"/proc/{pid}/limits", encoding="ascii") as file:
        (line,) = [line for line in file if line.startswith("Max locked memory")]
    return line.split()[3]


def differences(daemon, loads, usual_memlock, things):
    """Where the kernel and the books differ; [] if nowhere."""
    leases = {lease.tid: lease for lease in daemon.leases()}
    found = []
    for thing in things:
        held = [value for value in map(thing.of, leases.values()) if value]
        wanted = thing.strongest(held, default=thing.usual)
        if thing.read() != wanted:
            found.append((thing, thing.read(), wanted))
    for pid in [pid for load in loads for pid in load.children]:
        lease, now = leases.pop(pid, None), kernel.sched_getattr(pid)
        wanted = BASE._asdict()
        if lease and lease.granted_want & wire.WANT_SCHED:
            wanted |= {"policy": lease.granted_policy, "priority": lease.granted_priority,
                       "reset_on_fork": True}
        if lease and lease.granted_want & wire.WANT_NICE:
            wanted |= {"nice": lease.granted_nice, "reset_on_fork": True}
        if now != kernel.Sched(**wanted):
            found.append((pid, now, wanted))
        if lease and lease.state != wire.LEASE_IN_FORCE:
            found.append((pid, lease))
        if memlock(pid) != usual_memlock and not (lease and lease.memlock_bytes):
            found.append((pid, "memlock", memlock(pid)))
    found += [(tid, "has a lease but is no more") for tid in leases]
    return found


def settle(*arguments):
    """What still differs when there was time enough for what ended just now to be seen."""
    end = time.monotonic() + PATIENCE_S
    while found := differences(*arguments):
        if time.monotonic() > end:
            break
        time.sleep(0.01)
    return found


@pytest.fixture
def make_loads(daemon):
    made = []

    def make(kinds=KINDS):
        made.extend(Load(daemon, uid, seed, kinds=kinds) for seed, uid in enumerate((ALICE, BOB)))
        return made

    yield make
    for load in made:
        load.kill()


def kill_and_compare(daemon, policy, loads, things, n_kills):
    usual_memlock = memlock(os.getpid())
    chance = random.Random(1)

    for kills in range(n_kills):
        for load in loads:
            load.go_on()
        done = [load.done.value for load in loads]
        wait_until(lambda: all(load.done.value > n for load, n in zip(loads, done)), what="the load")
        time.sleep(chance.uniform(0, 0.03))
        daemon.kill()
        for load in loads:
            load.rest()
        daemon.start(policy)
        found = settle(daemon, loads, usual_memlock, things)
        assert not found, f"after kill {kills}"

    print(f"{n_kills} kills, {sum(load.done.value for load in loads)} requests")
    daemon.stop()
    for load in loads:
        for pid in load.children:
            assert kernel.sched_getattr(pid) == BASE
            assert memlock(pid) == usual_memlock
    assert [thing.read() for thing in things] == [thing.usual for thing in things]


def test_killed_at_any_moment_the_kernel_has_what_the_books_say(daemon, make_loads):
    policy = policy_text({"Role desktop": ROLE})
    daemon.reload(policy)
    things = [shared(cpu_latency, lambda lease: lease.cpu_latency_us)]
    kill_and_compare(daemon, policy, make_loads(), things, KILLS)


def test_killed_at_any_moment_the_disk_and_the_interrupt_too(daemon, make_loads, disk, lines):
    line = lines[0]
    role = {**ROLE, "BlockQueue": "16-512", **interrupts.grants(line.device)["Role desktop"]}
    policy = policy_text({"Role desktop": role})
    daemon.reload(policy)
    things = [
        shared(cpu_latency, lambda lease: lease.cpu_latency_us),
        shared(disk, lambda lease: lease.block_max_sectors_kb),
        shared(lambda: line.sched()[1], lambda lease: lease.irq_priority, max),
    ]
    kinds = [*KINDS,
             Kind(wire.WANT_BLOCK_QUEUE,
                  lambda n: {"block": disk.name, "block_max_sectors_kb": 16 << n % 5}),
             Kind(wire.WANT_IRQ, lambda n: {"irq": line.device, "irq_priority": 86 + n % 9}),
             Kind(wire.WANT_IRQ | wire.WANT_SCHED | wire.WANT_BLOCK_QUEUE,
                  lambda n: {"policy": kernel.FIFO, "priority": 1 + n % 20, "irq": line.device,
                             "irq_priority": 86 + n % 9, "block": disk.name,
                             "block_max_sectors_kb": 16 << n % 5})]
    kill_and_compare(daemon, policy, make_loads(kinds), things, KILLS)


# -- connections that were lost with the broker --


def lease_bound_to_a_connection(daemon, uid):
    client, target = daemon.client(uid), daemon.target(uid)
    lease = client.acquire(pid=target.pid, tid=target.pid, lifetime=wire.LIFETIME_CONNECTION).id
    return client, target, lease


def crash(daemon):
    with open(daemon.policy_path, encoding="utf-8") as file:
        policy = file.read()
    daemon.kill()
    daemon.start(policy)


def test_who_connects_again_and_renews_keeps_what_was_bound_to_the_connection(daemon):
    client, target, lease = lease_bound_to_a_connection(daemon, BOB)
    crash(daemon)

    assert target.sched() == (kernel.FIFO, 5, 0, True)
    assert daemon.lease_of(target.pid).expires_ms
    client.reconnect()
    assert client.renew(lease).reason == "none"

    assert not daemon.lease_of(target.pid).expires_ms
    assert target.sched() == (kernel.FIFO, 5, 0, True)
    client.kill()
    daemon.companions.remove(client)
    wait_until(lambda: target.sched() == BASE, what="the end with its connection")


def test_nobody_else_takes_it_up_and_it_ends_by_itself(daemon):
    client, target, lease = lease_bound_to_a_connection(daemon, BOB)
    crash(daemon)

    assert daemon.client(ALICE).renew(lease).reason == "no-such-lease"

    daemon.admin.watch(everybody=True)
    client.reconnect()  # and does not say what it held
    event = daemon.admin.event()

    assert (event.kind, event.reason) == (wire.EVENT_ENDED, "disconnected")
    assert event.lease.tid == target.pid
    assert target.sched() == BASE


def test_a_lease_of_a_connection_that_is_there_stays_with_it(daemon):
    client, target, lease = lease_bound_to_a_connection(daemon, BOB)
    other = daemon.client(BOB)

    assert other.renew(lease).reason == "none"
    other.kill()
    daemon.companions.remove(other)

    client.hello()
    assert target.sched() == (kernel.FIFO, 5, 0, True)
