# SPDX-License-Identifier: MIT
"""The administrator's file in force: who is let in, reloading, faults in it."""

import os
import re
from pathlib import Path

import pytest

import wire
from agent import ALICE, BOB, CAROL, NOBODY
from daemon import assert_granted, assert_refused, policy_text, wait_until
from kernel import FIFO, OTHER, RR

GROUP, OTHER_GROUP = 64100, 64101


def only(**keys):
    """A policy of one role, without the default Allow."""
    return {"Role desktop": {"AllowUsers": None, **keys}, "Role studio": None}


@pytest.mark.parametrize("keys,uid,groups,reason", [
    ({"AllowUsers": BOB}, BOB, (), "none"),
    ({"AllowUsers": BOB}, CAROL, (), "not-allowed"),
    ({"AllowUsers": f"{ALICE} {BOB}"}, BOB, (), "none"),
    ({"AllowUsers": "nobody"}, NOBODY, (), "none"),
    ({"AllowGroups": GROUP}, BOB, (GROUP,), "none"),
    ({"AllowGroups": GROUP}, BOB, (1, 2, 3, GROUP, 5), "none"),
    ({"AllowGroups": GROUP}, BOB, (OTHER_GROUP,), "not-allowed"),
    ({"AllowGroups": BOB}, BOB, (), "none"),  # its own group
    ({"AllowUsers": "*", "DenyUsers": BOB}, BOB, (), "denied"),
    ({"AllowUsers": "*", "DenyUsers": BOB}, CAROL, (), "none"),
    ({"AllowUsers": BOB, "DenyGroups": GROUP}, BOB, (GROUP,), "denied"),
    ({"AllowGroups": GROUP, "DenyGroups": OTHER_GROUP}, BOB, (GROUP, OTHER_GROUP), "denied"),
    ({}, BOB, (), "not-allowed"),
    ({}, 0, (), "not-allowed"),
])
def test_who_is_let_in(make_daemon, keys, uid, groups, reason):
    daemon = make_daemon().start(only(**keys))
    client = daemon.client(uid, groups)

    answer = client.acquire()

    assert answer.reason == reason, answer.explanation.text
    assert client.sched().policy == (FIFO if reason == "none" else OTHER)


def test_groups_are_those_of_the_process_not_of_the_user_database(make_daemon):
    daemon = make_daemon().start(only(AllowGroups=GROUP))

    assert_granted(daemon.client(BOB, (GROUP,)).acquire(), FIFO, 5)
    assert_refused(daemon.client(BOB).acquire(), "not-allowed")


def test_a_refusal_names_the_line_that_decided(make_daemon):
    daemon = make_daemon().start(only(AllowUsers="*", DenyUsers=BOB))
    text = policy_text(only(AllowUsers="*", DenyUsers=BOB)).splitlines()
    line = text.index(f"DenyUsers={BOB}") + 1

    answer = daemon.client(BOB).acquire()

    assert answer.explanation.rule == f"{daemon.policy_path}:{line}"
    assert answer.explanation.help


def test_reload_gives_more(daemon):
    client = daemon.client(BOB)
    assert_refused(client.acquire(priority=25), "priority-limit")

    daemon.reload({"Role desktop": {"Priority": "1-30"}})

    assert_granted(client.acquire(priority=25), FIFO, 25)
    assert daemon.status().policy_generation == 2


def test_S47_reload_lowers_what_is_above_the_new_limit(daemon):
    client, watcher = daemon.client(BOB), daemon.client(BOB)
    high, low = client.thread(), client.thread()
    os.setpriority(os.PRIO_PROCESS, high, 4)
    lease = client.acquire(tid=high, policy=RR, priority=18).id
    client.acquire(tid=low, priority=5)
    watcher.watch()

    daemon.reload({"Role desktop": {"Priority": "1-10"}})

    wait_until(lambda: client.sched(high) == (RR, 10, 4, True), what="the lower priority")
    assert client.sched(low) == (FIFO, 5, 0, True)
    event = watcher.event()
    assert (event.kind, event.reason) == (wire.EVENT_LOWERED, "policy-reload")
    assert (event.lease.id, event.lease.priority) == (lease, 10)
    assert event.text
    client.release(lease)
    assert client.sched(high) == (OTHER, 0, 4, False)


def test_reload_lowers_nice(daemon):
    client = daemon.client(BOB)
    client.acquire(want=wire.WANT_NICE, nice=-12)

    daemon.reload({"Role desktop": {"Nice": -4}})

    wait_until(lambda: client.sched().nice == -4, what="the lower nice")


@pytest.mark.parametrize("policy", [
    {"Broker": {"DefaultRole": None}, "Role desktop": None, "Role studio": {"AllowUsers": "*"}},
    {"Role desktop": {"DenyUsers": BOB}},
    {"Role desktop": {"Policy": "rr"}},
    {"Role desktop": {"Priority": "none"}},
])
def test_reload_ends_what_is_not_given_any_more(daemon, policy):
    client = daemon.client(BOB)
    client.acquire(priority=5)

    daemon.reload(policy)

    wait_until(lambda: client.sched() == (OTHER, 0, 0, False), what="the end of the lease")
    wait_until(lambda: daemon.leases() == [], what="the end of the lease")


@pytest.mark.parametrize("change,line", [
    ({"Role desktop": {"Priority": "1-99"}}, "Priority=1-99"),
    ({"Role desktop": {"Prioritaet": "5"}}, "Prioritaet=5"),
    ({"Broker": {"ThreadsMax": "many"}}, "ThreadsMax=many"),
])
def test_a_broken_file_changes_nothing(daemon, change, line):
    client = daemon.client(BOB)
    client.acquire(priority=20)
    n = policy_text(change).splitlines().index(line) + 1

    daemon.reload(change)

    status = daemon.status()
    assert status.state & wire.STATE_POLICY_BROKEN
    assert status.policy_generation == 1
    assert f"{daemon.policy_path}:{n}" in status.policy_error
    assert f"{daemon.policy_path}:{n}" in daemon.log()
    assert client.sched() == (FIFO, 20, 0, True)
    assert_granted(client.acquire(priority=19), FIFO, 19)

    daemon.reload()
    status = daemon.status()
    assert not status.state & wire.STATE_POLICY_BROKEN
    assert status.policy_error == ""


def test_a_file_that_is_gone_changes_nothing(daemon):
    os.unlink(daemon.policy_path)

    daemon.reload(False)

    assert daemon.status().state & wire.STATE_POLICY_BROKEN
    assert_granted(daemon.client(BOB).acquire(), FIFO, 5)


def test_the_daemon_does_not_start_with_a_broken_file(make_daemon):
    daemon = make_daemon().start({"Role desktop": {"Priority": "1-99"}}, wait=False)

    assert daemon.wait() != 0
    assert re.search(rf"{re.escape(daemon.policy_path)}:\d+: .*1-99", daemon.log())
    assert not os.path.exists(daemon.socket_path)


def test_the_daemon_does_not_start_without_a_file(make_daemon):
    daemon = make_daemon().start(arguments=["--policy", "/nonexistent/policy.conf"], wait=False)

    assert daemon.wait() != 0
    assert "/nonexistent/policy.conf" in daemon.log()


def entries_of(connection):
    entries, after = [], 0
    while True:
        page = connection.request(wire.POLICY, after=after)
        assert page.reason == "none"
        entries += page.entries
        after = page.next
        if not after:
            return {(entry.section, entry.key): entry for entry in entries}


def test_the_policy_in_force_is_shown(daemon):
    entries = entries_of(daemon.admin)
    text = policy_text().splitlines()

    priority = entries["Role desktop", "Priority"]
    assert priority.value == "1-20"
    assert priority.origin == f"{daemon.policy_path}:{text.index('Priority=1-20') + 1}"
    unset = entries["Role studio", "DenyUsers"]
    assert (unset.value, unset.origin) == ("", "")
    assert {section for section, _ in entries} == {"Broker", "Role desktop", "Role studio"}


def test_the_shipped_policy(make_daemon):
    """For members of its group, who get a number here: not every machine has the group yet."""
    with open(Path(__file__).parents[2] / "policy/policy.conf", encoding="utf-8") as file:
        text = file.read().replace("AllowGroups=realtime", f"AllowGroups={GROUP}")
    daemon = make_daemon().start(text)
    member, stranger = daemon.client(NOBODY, (GROUP,)), daemon.client(BOB)
    bands = {offer.role: (offer.priority_min, offer.priority_max) for offer in member.hello().offers}

    assert bands == {
        "desktop": (1, 20), "worker": (51, 60), "audio-client": (61, 70), "audio-server": (71, 85),
    }
    assert_granted(member.acquire(role="audio-client", priority=65), FIFO, 65)
    assert_refused(member.acquire(role="audio-server", priority=86), "priority-limit")
    # polkit would decide, and is not on this machine's bus
    assert_refused(stranger.acquire(role="audio-client", priority=65), "authority-unavailable",
                   "not-authorized", "no-active-session")
