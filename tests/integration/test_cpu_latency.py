# SPDX-License-Identifier: MIT
"""How long the CPUs may take to wake up: read back from the kernel, all the way."""

import os
from pathlib import Path

import pytest

import wire
from agent import ALICE, BOB, CAROL
from daemon import assert_refused, policy_text, wait_until
from resources import DEVICE, Latency

LATENCY = wire.WANT_CPU_LATENCY
OF_CPU = Path("/sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us")

pytestmark = pytest.mark.skipif(not os.access(DEVICE, os.R_OK | os.W_OK), reason=f"no {DEVICE}")


@pytest.fixture
def latency():
    made = Latency()
    assert made.before > 5000, "somebody else holds the latency of this machine"
    yield made
    made.close()


@pytest.fixture
def policy():
    return {"Role desktop": {"CpuLatency": "10us"}}


@pytest.fixture
def broker(daemon, policy):
    daemon.reload(policy_text(policy))
    return daemon


@pytest.fixture
def of_cpu():
    """The limit of the second CPU alone, put back."""
    if not OF_CPU.exists():
        pytest.skip("the CPUs have no pm_qos_resume_latency_us")
    before = OF_CPU.read_text()
    yield lambda: OF_CPU.read_text().strip()
    OF_CPU.write_text(before)


def ask(client, value, **values):
    return client.acquire(want=LATENCY, cpu_latency_us=value, role="desktop", **values)


def test_the_lowest_of_two_is_in_force_and_gone_with_the_last(broker, latency):
    one, two = broker.client(ALICE), broker.client(BOB)

    first = ask(one, 100)
    assert (first.reason, first.cpu_latency_us, first.granted_want) == ("none", 100, LATENCY)
    assert latency() == 100
    second = ask(two, 20, reason="takes part in a recording")
    assert latency() == 20
    assert [(x.uid, x.cpu_latency_us, x.reason) for x in broker.leases()] == [
        (ALICE, 100, ""), (BOB, 20, "takes part in a recording")]

    assert two.release(second.id).reason == "none"
    assert latency() == 100
    one.kill()
    wait_until(lambda: latency() == latency.before, what="the end of the limit")
    wait_until(lambda: broker.leases() == [])


@pytest.mark.parametrize("lifetime", [wire.LIFETIME_THREAD, wire.LIFETIME_CONNECTION])
def test_it_ends_with_its_holder(broker, latency, lifetime):
    client = broker.client(ALICE)
    ask(client, 50, lifetime=lifetime)
    assert latency() == 50

    client.kill()

    wait_until(lambda: latency() == latency.before)


def test_it_is_changed_in_place(broker, latency):
    client = broker.client(ALICE)
    first = ask(client, 50)

    second = ask(client, 90)

    assert (second.id, second.flags) == (first.id, wire.ANSWER_UPDATED)
    assert latency() == 90
    assert [x.cpu_latency_us for x in broker.leases()] == [90]


def test_the_floor_of_the_role(broker, latency):
    client = broker.client(ALICE)

    refused = ask(client, 9)
    assert_refused(refused, "resource-limit")
    assert (refused.explanation.asked, refused.explanation.limit) == (9, 1000000)
    assert "policy.conf:" in refused.explanation.rule
    assert latency() == latency.before

    clamped = ask(client, 9, flags=wire.ACQUIRE_CLAMP)
    assert (clamped.cpu_latency_us, clamped.flags) == (10, wire.ANSWER_CLAMPED)
    assert latency() == 10


@pytest.mark.parametrize("value", [1000001, 2**31, 2**32 - 1])
def test_values_that_mean_nothing(broker, latency, value):
    assert_refused(ask(broker.client(ALICE), value), "resource-limit")
    assert latency() == latency.before


def test_a_dry_run_changes_nothing(broker, latency):
    answer = ask(broker.client(ALICE), 20, flags=wire.ACQUIRE_DRY_RUN)

    assert (answer.reason, answer.cpu_latency_us, answer.granted_want) == ("none", 20, LATENCY)
    assert latency() == latency.before
    assert broker.leases() == []


def test_a_reload_raises_it_to_the_new_floor_and_takes_it(broker, policy, latency):
    client = broker.client(ALICE)
    ask(client, 20)

    broker.reload(policy_text({"Role desktop": {"CpuLatency": "200us"}}))
    assert latency() == 200
    assert [x.cpu_latency_us for x in broker.leases()] == [200]

    broker.reload(policy_text({}))
    wait_until(lambda: latency() == latency.before)


def test_a_clean_stop_ends_it(broker, latency):
    ask(broker.client(ALICE), 20)

    broker.stop()

    assert latency() == latency.before


def test_killed_and_started_again_it_is_in_force_again(make_daemon, policy, latency):
    daemon = make_daemon().start(policy)
    client, other = daemon.client(ALICE), daemon.client(BOB)
    lease = ask(client, 20).id
    ask(other, 15, lifetime=wire.LIFETIME_CONNECTION)
    assert latency() == 15

    daemon.kill()
    # the kernel closed the descriptor
    wait_until(lambda: latency() == latency.before)
    daemon.start(policy)

    assert latency() == 15  # the other one may connect again
    wait_until(lambda: latency() == 20, what="the end of what nobody took up")
    assert [(x.id, x.cpu_latency_us) for x in daemon.leases()] == [(lease, 20)]
    client.reconnect()
    assert client.release(lease).reason == "none"
    assert latency() == latency.before


def test_a_pinned_thread_is_about_its_cpu(broker, latency, of_cpu):
    one, two = broker.client(ALICE), broker.client(BOB)
    before = of_cpu()
    os.sched_setaffinity(one.pid, {1})
    os.sched_setaffinity(two.pid, {1})

    first = ask(one, 70)
    assert first.reason == "none"
    assert (of_cpu(), latency()) == ("70", latency.before)
    second = ask(two, 30)
    assert of_cpu() == "30"

    two.release(second.id)
    assert of_cpu() == "70"
    one.kill()
    wait_until(lambda: of_cpu() == before)


def test_of_a_cpu_it_survives_a_kill(make_daemon, policy, of_cpu):
    daemon = make_daemon().start(policy)
    client = daemon.client(ALICE)
    before = of_cpu()
    os.sched_setaffinity(client.pid, {1})
    lease = ask(client, 70).id

    daemon.kill()
    assert of_cpu() == "70"
    daemon.start(policy)

    assert [x.id for x in daemon.leases()] == [lease]
    client.kill()
    wait_until(lambda: of_cpu() == before)


def test_of_a_cpu_it_is_restored_if_the_holder_ended_meanwhile(make_daemon, policy, of_cpu):
    daemon = make_daemon().start(policy)
    client = daemon.client(ALICE)
    before = of_cpu()
    os.sched_setaffinity(client.pid, {1})
    ask(client, 70)

    daemon.kill()
    client.kill()
    daemon.start(policy)

    assert of_cpu() == before
    assert daemon.leases() == []


def test_what_others_set_meanwhile_is_left_alone(broker, of_cpu):
    client = broker.client(ALICE)
    os.sched_setaffinity(client.pid, {1})
    lease = ask(client, 70).id
    OF_CPU.write_text("55")

    wait_until(lambda: broker.leases()[0].state == wire.LEASE_CHANGED)
    client.release(lease)

    assert of_cpu() == "55"


def test_who_asked_for_it_may_not_be_touched_by_others(broker, latency):
    lease = ask(broker.client(ALICE), 20).id

    assert_refused(broker.client(BOB).release(lease), "no-such-lease")
    assert latency() == 20
    assert broker.client(CAROL).list() == []
