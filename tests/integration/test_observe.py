# SPDX-License-Identifier: MIT
"""Who has a CPU, told to users who are not root: to whom, of what, for how long."""

import json
import os
import time

import pytest

import bus as bus_module
import hogs
import wire
from agent import ALICE, BOB, CAROL, NOBODY
from daemon import wait_until

CPU = max(os.sched_getaffinity(0))
GROUP = 64100
POLICY = {"Broker": {"ObserveGroups": GROUP}}


@pytest.fixture
def broker(make_daemon):
    return make_daemon().start(POLICY)


def observe(client, cpu=CPU, **values):
    return client.request(wire.OBSERVE, cpu=cpu, **values)


def begun(client):
    """The reply once it is recorded."""
    def ask():
        reply = client.request(wire.OCCUPANTS)
        assert reply.reason == "none", reply.explanation.text
        return reply.since_ns and reply

    return wait_until(ask, what="the beginning of the record")


def occupants(client, begin, end):
    wait_until(lambda: client.request(wire.OCCUPANTS).until_ns >= end, what="the record until then")
    reply = client.request(wire.OCCUPANTS, from_ns=begin, to_ns=end)
    assert reply.reason == "none" and reply.since_ns <= begin
    return {one.comm: one.ns for one in reply.occupants}


def test_names_and_times_of_the_cpu(broker, planted_hog):
    client = broker.client(ALICE, groups=[GROUP])
    assert observe(client).reason == "none"
    begun(client)

    begin = time.monotonic_ns()
    time.sleep(0.3)
    end = begin + 100_000_000
    told = occupants(client, begin, end)

    assert sum(told.values()) <= 100_000_000
    real = sum(max(0, min(end, last) - max(begin, first)) for first, last in planted_hog.end())
    assert real > 4_000_000
    assert told["planted-hog"] == pytest.approx(real, rel=0.1), told


def test_who_may_not_is_told_why(broker):
    answer = observe(broker.client(BOB))

    assert answer.reason == "not-allowed"
    assert "user 64002 may not see which programs have a CPU" in answer.explanation.text
    assert "ObserveGroups=" in answer.explanation.help
    assert answer.explanation.rule.rpartition(":")[2].isdigit()
    assert broker.client(BOB).request(wire.OCCUPANTS).reason == "resource-unavailable"


def test_only_a_cpu_of_his_own(broker):
    client = broker.client(ALICE, groups=[GROUP])

    assert observe(client, cpu=4095).reason == "no-such-device"
    assert observe(client, cpu=1 << 31).reason == "no-such-device"
    os.sched_setaffinity(client.pid, {0})
    if CPU != 0:
        answer = observe(client, cpu=CPU)
        assert answer.reason == "no-such-device"
        assert f"CPU {CPU} is none that process {client.pid} may run on" in answer.explanation.text
    assert observe(client, cpu=0).reason == "none"
    assert observe(client, cpu=0, flags=2).reason == "invalid"


@pytest.mark.parametrize("window", [(0, 100_000_001), (5, 4), (0, (1 << 64) - 1)])
def test_a_window_is_bounded(broker, window):
    client = broker.client(ALICE, groups=[GROUP])
    assert observe(client).reason == "none"

    assert client.request(wire.OCCUPANTS, from_ns=window[0], to_ns=window[1]).reason == "invalid"


def n_rings(daemon):
    with open(f"/proc/{daemon.pid}/maps", encoding="utf-8") as file:
        return sum("[perf_event]" in line for line in file)


def test_quotas_and_the_end_with_the_connection(broker):
    clients = [broker.client(ALICE, groups=[GROUP]) for _ in range(3)]
    assert [observe(client).reason for client in clients] == ["none", "none", "resources"]
    begun(clients[0]), begun(clients[1])
    assert n_rings(broker) == 2
    assert "as many CPUs already as may be, 2" in observe(clients[2]).explanation.text

    # again is not more
    assert observe(clients[0]).reason == "none"
    clients[1].close()
    wait_until(lambda: observe(clients[2]).reason == "none")
    clients[0].close()
    clients[2].close()
    wait_until(lambda: n_rings(broker) == 0, what="the end of the records")


def test_all_together_have_a_limit(make_daemon):
    broker = make_daemon().start({"Broker": {"ObserveGroups": "*"}})
    clients = [broker.client(uid) for uid in (ALICE, BOB, CAROL, NOBODY) for _ in range(2)]
    assert {observe(client).reason for client in clients} == {"none"}

    answer = observe(broker.client(0))

    assert answer.reason == "resources"
    assert "as many CPUs are observed already as may be, 8" in answer.explanation.text


def test_a_reload_takes_it_away(broker):
    client = broker.client(ALICE, groups=[GROUP])
    assert observe(client).reason == "none"
    begun(client)

    broker.write_policy({})
    assert broker.admin.request(wire.RELOAD).reason == "none"

    assert client.request(wire.OCCUPANTS).reason == "not-allowed"
    wait_until(lambda: n_rings(broker) == 0, what="the end of the record")
    assert client.request(wire.OCCUPANTS).reason == "resource-unavailable"


RULES = """polkit.addRule(function(action, subject) {
    if (action.id == "org.rtgrant.observe")
        return subject.user == "nobody" ? polkit.Result.YES : polkit.Result.NO;
});
"""


@pytest.mark.skipif(not bus_module.is_here(), reason="no polkitd, dbus-daemon or python3-dbus")
def test_polkit_decides_about_others(make_daemon):
    polkit = bus_module.Bus(RULES)
    try:
        broker = make_daemon().start({"Broker": {"Authority": "polkit", "ObserveGroups": GROUP}},
                                     environment=polkit.environment)
        allowed = broker.client(NOBODY)
        wait_until(lambda: observe(allowed).reason == "none", what="polkit's yes")
        begun(allowed)
        refused = observe(broker.client(BOB))
        assert refused.reason == "not-authorized"
        assert "org.rtgrant.observe" in refused.explanation.text
        assert observe(broker.client(ALICE, groups=[GROUP])).reason == "none"
        assert not any("64001" in line for line in polkit.asked())
        allowed.close()
    finally:
        polkit.close()


def measure(broker, uid, *arguments, groups=()):
    result = broker.rtgrant(uid, "--loads", "none", "--load", 10, "--duration", 2, "--json", "--role",
                            "desktop", *arguments, program="rtgrant_latency", groups=groups)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_a_planted_culprit_is_named_to_a_user(broker, planted_hog):
    report = measure(broker, ALICE, "--cpu", CPU, groups=[GROUP])

    assert report["culprits_known"] and report["culprits_from"] == "broker", report["culprits_why"]
    found = hogs.told_of(report, planted_hog.end())
    assert len(found) >= 5, report["rows"]
    assert all(told == pytest.approx(real, rel=0.1) for told, real in found), found
    print(f"{len(found)} times 5 ms: (told, real) in µs: {found[:8]}")
    overrun = next(one for row in report["rows"] for one in row["overrun_list"] if one["culprits"])
    assert {culprit["tid"] for culprit in overrun["culprits"]} == {0}, "names only"
    assert all(one["comm"] != "rtgrant-measure" for one in overrun["culprits"])


def test_without_permission_the_split_is_there(broker, planted_hog):
    report = measure(broker, BOB, "--cpu", CPU)

    assert not report["culprits_known"] and report["culprits_from"] is None
    assert "user 64002 may not see which programs have a CPU" in report["culprits_why"]
    (row,) = [row for row in report["rows"] if row["variant"] == "with"]
    waited = [one["waiting_us"] for one in row["overrun_list"] if one["cause"] == "runnable but not running"]
    assert waited and max(waited) >= 4500, row["overrun_list"]
    assert all(one["culprits"] == [] for one in row["overrun_list"])
