# SPDX-License-Identifier: MIT
"""Everything that a program needs, as one lease: all of it or nothing, one line, one end."""

import json
import os

import pytest

import kernel
import wire
from agent import ALICE, BOB
from daemon import assert_granted, assert_refused, policy_text, wait_until
from kernel import FIFO, OTHER
from resources import DEVICE, Latency

POLICY = {"Role desktop": {"CpuLatency": "10us", "BlockQueue": "16-512", "Memlock": "64M"}}
ALL = wire.WANT_SCHED | wire.WANT_NICE | wire.WANT_CPU_LATENCY | wire.WANT_BLOCK_QUEUE

pytestmark = pytest.mark.skipif(not os.access(DEVICE, os.R_OK | os.W_OK), reason=f"no {DEVICE}")


@pytest.fixture
def latency():
    made = Latency()
    yield made
    made.close()


@pytest.fixture
def broker(daemon):
    daemon.reload(policy_text(POLICY))
    return daemon


def ask(client, disk, want=ALL, **values):
    whole = {"policy": FIFO, "priority": 15, "nice": -5, "role": "desktop"}
    if want & wire.WANT_CPU_LATENCY:
        whole["cpu_latency_us"] = 40
    if want & wire.WANT_BLOCK_QUEUE:
        whole.update(block=disk.name, block_max_sectors_kb=64)
    return client.acquire(want=want, **{**whole, **values})


def test_one_id_one_line_one_end(broker, disk, latency):
    client = broker.client(ALICE)

    answer = ask(client, disk, reason="jackd")

    assert_granted(answer, FIFO, 15, nice=-5)
    assert (answer.granted_want, answer.cpu_latency_us, answer.block_max_sectors_kb) == (ALL, 40, 64)
    (listed,) = broker.leases()
    assert (listed.id, listed.granted_want, listed.cpu_latency_us, listed.block) == (
        answer.id, ALL, 40, disk.name)
    assert (client.sched(), latency(), disk()) == ((FIFO, 15, -5, True), 40, 64)

    assert client.release(answer.id).reason == "none"
    assert (client.sched(), latency(), disk()) == ((OTHER, 0, 0, False), latency.before, disk.before)


@pytest.mark.parametrize("values, reason", [
    ({"priority": 21}, "priority-limit"),
    ({"nice": -20}, "nice-limit"),
    ({"cpu_latency_us": 5}, "resource-limit"),
    ({"block_max_sectors_kb": 8}, "resource-limit"),
    ({"block": "nonexistent"}, "no-such-device"),
])
def test_all_or_nothing_by_the_policy(broker, disk, latency, values, reason):
    client = broker.client(ALICE)

    assert_refused(ask(client, disk, **values), reason)

    assert (client.sched(), latency(), disk()) == ((OTHER, 0, 0, False), latency.before, disk.before)
    assert broker.leases() == []


def test_all_or_nothing_by_the_kernel(make_daemon, budgetless_group, disk, latency):
    """The thread comes last, and is refused: what was set before it is taken back."""
    daemon = make_daemon().start(POLICY)
    client = daemon.client(ALICE)
    (budgetless_group / "cgroup.procs").write_text(str(client.pid))

    assert_refused(ask(client, disk), "kernel-rt-group")

    assert (client.sched(), latency(), disk()) == ((OTHER, 0, 0, False), latency.before, disk.before)
    assert daemon.leases() == []


def test_a_refused_change_leaves_the_lease_as_it_was(broker, disk, latency):
    client = broker.client(ALICE)
    lease = ask(client, disk).id

    assert_refused(ask(client, disk, priority=25, cpu_latency_us=20), "priority-limit")
    assert (client.sched(), latency(), disk()) == ((FIFO, 15, -5, True), 40, 64)

    answer = ask(client, disk, want=wire.WANT_CPU_LATENCY, cpu_latency_us=20)
    assert (answer.id, answer.granted_want, latency()) == (lease, ALL, 20)


def test_what_cannot_be_had_is_left_out_if_asked_so(broker, disk, latency):
    client = broker.client(ALICE)
    values = {"block": "nonexistent", "flags": wire.ACQUIRE_CLAMP}

    answer = ask(client, disk, **values)

    assert answer.reason == "none" and answer.flags & wire.ANSWER_CLAMPED
    assert answer.granted_want == ALL & ~wire.WANT_BLOCK_QUEUE
    assert (client.sched(), latency(), disk()) == ((FIFO, 15, -5, True), 40, disk.before)

    alone = ask(broker.client(BOB), disk, want=wire.WANT_BLOCK_QUEUE, **values)
    assert_refused(alone, "no-such-device")


@pytest.mark.parametrize("ends", ["release", "client", "revoke", "stop"])
def test_every_end_restores_all(broker, disk, latency, ends):
    client = broker.client(ALICE)
    lease = ask(client, disk).id

    if ends == "release":
        client.release(lease)
    elif ends == "client":
        client.kill()
    elif ends == "revoke":
        assert broker.admin.revoke(lease).reason == "none"
    else:
        broker.stop()

    wait_until(lambda: (latency(), disk()) == (latency.before, disk.before))
    if ends != "client":
        assert client.sched() == (OTHER, 0, 0, False)


def test_killed_and_started_again_all_of_it_is_there(make_daemon, disk, latency):
    daemon = make_daemon().start(POLICY)
    client, gone = daemon.client(ALICE), daemon.client(BOB)
    lease = ask(client, disk).id
    ask(gone, disk, cpu_latency_us=20, block_max_sectors_kb=32)

    daemon.kill()
    gone.kill()
    daemon.start(POLICY)

    (listed,) = daemon.leases()
    assert (listed.id, listed.granted_want, listed.state) == (lease, ALL, wire.LEASE_IN_FORCE)
    assert (client.sched(), latency(), disk()) == ((FIFO, 15, -5, True), 40, 64)
    client.kill()
    wait_until(lambda: (latency(), disk()) == (latency.before, disk.before))


def test_the_program(broker, disk, latency):
    run = broker.rtgrant(ALICE, "-f", "--nice", -5, "--cpu-latency", 40,
                         f"--block-queue={disk.name}=64", "--role", "desktop", 15,
                         "sh", "-c", f"cat /sys/block/{disk.name}/queue/max_sectors_kb; chrt -p $$")

    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("64\n") and "priority: 15" in run.stdout
    wait_until(lambda: (latency(), disk()) == (latency.before, disk.before))


def test_the_program_s_words(broker, disk):
    refused = broker.rtgrant(ALICE, "--cpu-latency", 5, f"--block-queue={disk.name}=64", "true")
    assert refused.returncode == 3
    assert "wake-up latency 5 us" in refused.stderr and "10 us" in refused.stderr

    dry = broker.rtgrant(ALICE, "--clamp", "--dry-run", "--cpu-latency", 5,
                         f"--block-queue={disk.name}=64", "true")
    assert "cpu-latency 10 us, block-queue" in dry.stdout and "instead of cpu-latency 5 us" in dry.stdout

    why = json.loads(broker.rtgrantctl(ALICE, "why", "--json", "--cpu-latency", 5).stdout)
    assert why["refusal"]["reason"] == "resource-limit"
    assert why["with_clamp"]["cpu_latency_us"] == 10

    target = broker.target(ALICE)
    run = broker.rtgrant(ALICE, "--cpu-latency", 50, "--reason", "a take", "-p", target.pid)
    assert run.returncode == 0, run.stderr
    assert kernel.sched_getattr(target.pid).policy == OTHER
    table = broker.rtgrantctl(ALICE, "list").stdout
    assert "cpu-latency 50 us" in table and "a take" in table
    (lease,) = json.loads(broker.rtgrantctl(ALICE, "list", "--json").stdout)
    assert (lease["cpu_latency_us"], lease["granted_policy"], lease["block"]) == (50, None, None)


@pytest.mark.parametrize("options", [
    ["--memlock", "x"], ["--memlock", "0"], ["--memlock", "99999999999999T"], ["--memlock", "-1"],
    ["--cpu-latency", "-1"], ["--cpu-latency", "4294967296"], ["--block-queue", "/"],
    ["--block-queue", "/=0"], ["--block-queue", "=64"], ["--irq", "card:0=100"], ["--irq", "=5"]])
def test_command_lines_that_mean_nothing(broker, options):
    run = broker.rtgrant(ALICE, *options, "true")

    assert run.returncode == 1 and options[0] in run.stderr
