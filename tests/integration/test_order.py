# SPDX-License-Identifier: MIT
"""What rtgrant and rtgrantctl show of order, timing and policy, and reloads under load."""

import json
import os
import re

import pytest

import kernel
import wire
from agent import ALICE, BOB
from daemon import wait_until
from kernel import FIFO, OTHER, RR

# ---- rtgrantctl policy --check ----


def check(daemon, text, *options):
    path = f"{daemon.directory}/checked.conf"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o644)
    return path, daemon.rtgrantctl(0, "policy", "--check", path, *options)


def test_all_faults_of_a_file_at_once(daemon):
    path, result = check(daemon, "[Role a]\nPriorty=1-20\nNice=5\nPriority=95-99\n[Brokr]\n")

    assert result.returncode == 1
    lines = result.stdout.splitlines()
    assert f"{path}:2: unknown key Priorty= in [Role a], did you mean Priority=?" in lines
    assert any(line.startswith(f"{path}:3: Nice=5: ") for line in lines)
    assert any(line.startswith(f"{path}:4: Priority=95-99: ") for line in lines)
    assert any(line.startswith(f"{path}:5: unknown section [Brokr]") for line in lines)


def test_a_good_file_and_one_with_warnings(daemon):
    _, good = check(daemon, "[Role a-role]\nPriority=21-22\n")
    path, overlap = check(daemon, "[Role aa]\nPriority=1-20\n[Role bb]\nPriority=20-30\n", "--json")

    assert (good.returncode, good.stdout.splitlines()[-1].endswith(": good")) == (0, True)
    answer = json.loads(overlap.stdout)
    assert overlap.returncode == 0 and answer["good"] and answer["faults"] == 0
    assert any(message["kind"] == "warning" and message["place"] == f"{path}:4" and
               "overlap" in message["text"] for message in answer["messages"])


def test_a_check_needs_no_broker_and_says_what_is_missing(daemon):
    result = daemon.rtgrantctl(BOB, "policy", "--check", "/nonexistent/policy.conf", "--socket",
                               "/nonexistent/socket")

    assert result.returncode == 1
    assert "/nonexistent/policy.conf" in result.stdout


# ---- who stands where ----


def test_the_ladder_shows_what_is_in_force(daemon):
    target, foreign = daemon.target(BOB), daemon.target(BOB)
    kernel.sched_setattr(foreign.pid, FIFO, 33)
    assert daemon.rtgrant(BOB, "-f", "-p", 9, target.pid).returncode == 0

    ladder = json.loads(daemon.rtgrantctl(BOB, "status", "--json").stdout)["ladder"]
    text = daemon.rtgrantctl(BOB, "status").stdout

    assert [rung["priority"] for rung in ladder] == sorted(
        (rung["priority"] for rung in ladder), reverse=True)
    of = {rung["tid"]: rung for rung in ladder}
    assert (of[target.pid]["priority"], of[target.pid]["kind"]) == (9, "lease")
    assert of[target.pid]["role"] == "desktop"
    assert (of[foreign.pid]["priority"], of[foreign.pid]["kind"]) == (33, "other")
    assert any(rung["kind"] == "broker" and rung["priority"] == 96 for rung in ladder)
    lines = text[text.index("Who stands where"):].splitlines()
    at = [next(i for i, line in enumerate(lines) if word in line)
          for word in ("61-70", f"{foreign.pid}", " 1-20", f"{target.pid}")]
    assert at == sorted(at), text


# ---- rtgrant ----


def test_relative_priority(daemon):
    target = daemon.target(ALICE)

    result = daemon.rtgrant(ALICE, "--role", "studio", "-f", "--relative", "+2", "-p", target.pid)

    assert result.returncode == 0, result.stderr
    assert target.sched() == (FIFO, 70, 0, True)
    wrong = daemon.rtgrant(ALICE, "--relative", "1", "-p", 5, target.pid)
    assert wrong.returncode == 1 and "instead of PRIORITY" in wrong.stderr


def test_declared_timing(daemon):
    target = daemon.target(BOB)

    result = daemon.rtgrant(BOB, "-f", "--rate", 48000, "--frames", 480, "--load", "50%", "-p", 5,
                            target.pid)

    assert result.returncode == 0, result.stderr
    [lease] = daemon.client(BOB).list()
    assert (lease.period_ns, lease.computation_ns) == (10_000_000, 5_000_000)
    wrong = daemon.rtgrant(BOB, "--rate", 48000, "-p", 5, target.pid)
    assert wrong.returncode == 1 and "go together" in wrong.stderr


def test_a_client_below_its_server(daemon):
    server, client = daemon.target(ALICE), daemon.target(BOB)
    assert daemon.rtgrant(ALICE, "-f", "-p", 12, server.pid).returncode == 0

    refused = daemon.rtgrant(BOB, "-f", "--feeds", server.pid, "-p", 12, client.pid)

    assert refused.returncode == 3 and f"thread {server.pid}" in refused.stderr
    clamped = daemon.rtgrant(BOB, "-f", "--feeds", server.pid, "--clamp", "-p", 15, client.pid)
    assert clamped.returncode == 0, clamped.stderr
    assert client.sched() == (FIFO, 11, 0, True)


def test_a_server_below_its_interrupt(make_daemon, lines):
    line = lines[0]
    daemon = make_daemon().start({
        "Role studio": {"IrqPriority": "71-94", "IrqDevices": line.device}})
    server = daemon.target(ALICE)
    feeds = ("-f", "--role", "studio", "--feeds", line.device)
    assert line.before == (FIFO, 50)

    refused = daemon.rtgrant(ALICE, *feeds, "-p", 65, server.pid)
    assert refused.returncode == 3
    assert f"the interrupt of {line.device}, which it feeds, has 50" in refused.stderr
    assert re.search(rf"from the top: this one 65, irq/{line.irq}-[^ ]+ 50\n", refused.stderr)
    assert f"raise the interrupt, by --irq {line.device}" in refused.stderr

    # a band that ends below what the interrupt has
    low = daemon.rtgrant(BOB, "-f", "--feeds", line.device, "-p", 20, daemon.target(BOB).pid)
    assert low.returncode == 0, low.stderr

    kernel.sched_setattr(line.tid, FIFO, 66)
    clamped = daemon.rtgrant(ALICE, *feeds, "--clamp", "-p", 70, server.pid)
    assert clamped.returncode == 0 and server.sched() == (FIFO, 65, 0, True)
    above = json.loads(daemon.rtgrantctl(ALICE, "why", *feeds, "70", "--json").stdout)
    assert above["refusal"]["reason"] == "above-server"
    assert f"thread {server.pid}" not in above["refusal"]["text"]
    assert f"({server.pid}) 65" in above["refusal"]["text"]

    kernel.sched_setattr(line.tid, FIFO, 50)
    both = daemon.rtgrant(ALICE, *feeds, "--irq", f"{line.device}=80", "-p", 70, server.pid)
    assert both.returncode == 0, both.stderr
    assert (server.sched(), line.sched()) == ((FIFO, 70, 0, True), (FIFO, 80))


@pytest.mark.parametrize("device, word", [
    ("card:NoSuchCard", "there is no"), ("what is this", "does not name a device")])
def test_what_it_feeds_is_not_there(daemon, device, word):
    target = daemon.target(BOB)

    refused = daemon.rtgrant(BOB, "-f", "--feeds", device, "-p", 5, target.pid)

    assert refused.returncode == 3 and word in refused.stderr, refused.stderr
    assert target.sched() == (OTHER, 0, 0, False)


def test_or_less(make_daemon):
    daemon = make_daemon().start({"Role desktop": {"Policy": "rr other"}})
    result = daemon.rtgrant(BOB, "-f", "--or-less", "--role", "studio", "--json", 65,
                            "true")

    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert (answer["rung"], answer["policy"], answer["priority"]) == ("rr", "SCHED_RR", 20)


def rung_of(daemon, tid, *arguments):
    """(rung, what was said to people, what is in force) of a thread that gets less than FIFO 65."""
    request = ("-f", "--or-less", *arguments, "-p", 65, tid)
    answer = json.loads(daemon.rtgrant(BOB, "--json", *request).stdout)
    said = daemon.rtgrant(BOB, *request)
    assert said.returncode == 0, said.stderr
    return answer.get("rung"), said.stderr, kernel.sched_getattr(tid)


def test_every_rung(make_daemon):
    """FIFO, a lower RR, nice, a shorter slice: whatever is the first that may be had."""
    studio = {"AllowUsers": "*"}
    daemon = make_daemon().start({"Role studio": studio})
    tids = [daemon.target(BOB).pid for _ in range(4)]

    rung, said, now = rung_of(daemon, tids[0])
    assert (rung, said, now[:2]) == ("as-asked", "", (FIFO, 65))

    daemon.reload({"Role desktop": {"Policy": "rr other"}})
    rung, said, now = rung_of(daemon, tids[1], "--role", "studio")
    assert (rung, now[:2]) == ("rr", (RR, 20)) and "got SCHED_RR 20 of role desktop" in said

    daemon.reload({"Role desktop": {"Policy": "other", "Priority": None}})
    rung, said, now = rung_of(daemon, tids[2])
    assert (rung, now[:3]) == ("nice", (OTHER, 0, -11)) and "nice -11" in said

    daemon.reload({"Role desktop": {"DenyUsers": "*"}})
    if kernel.slice_ns(tids[3]) == 0:
        pytest.skip("this kernel has no slices: Linux before 6.12")
    before = kernel.slice_ns(tids[3])
    rung, said, now = rung_of(daemon, tids[3])
    assert (rung, now[:3]) == ("slice", (OTHER, 0, 0)) and "shorter time slices" in said
    assert kernel.slice_ns(tids[3]) == 500_000 < before


def test_the_last_rung(make_daemon):
    daemon = make_daemon().start({"Role desktop": {"DenyUsers": "*"}})
    running = daemon.rtgrant(BOB, "-f", "--or-less", 65, "sh", "-c",
                             "echo it ran; chrt -p $$")
    assert running.returncode == 0 and running.stdout.startswith("it ran\n"), running.stderr
    assert running.stderr

    # a slice is for those who are not real-time: then there is nothing less
    target = daemon.target(BOB)
    kernel.sched_setattr(target.pid, RR, 3)
    rung, said, _ = rung_of(daemon, target.pid)
    assert rung == "nothing" and "refused: user" in said
    assert target.sched()[:2] == (RR, 3)


# ---- reloads under load ----


def test_a_reload_lowers_and_keeps_a_thousand_leases(make_daemon):
    daemon = make_daemon().start({
        "Broker": {"ThreadsMax": 1200, "ThreadsPerUser": 1200, "GrantBurst": 2000},
        "Role desktop": {"ThreadsPerUser": 1200},
    })
    client, watcher = daemon.client(BOB), daemon.client(BOB)
    tids = [client.thread() for _ in range(1000)]
    for i, tid in enumerate(tids):
        assert client.acquire(tid=tid, priority=1 + i % 20).reason == "none"
    assert watcher.watch().reason == "none"

    daemon.reload({"Broker": {"ThreadsMax": 1200, "ThreadsPerUser": 1200, "GrantBurst": 2000},
                   "Role desktop": {"ThreadsPerUser": 1200, "Priority": "1-10"}})

    # so many at once may be more than a connection holds: then it is told how many it missed
    watcher.hello()  # reads what waits
    last = client.acquire(tid=tids[0], priority=2)
    told = [watcher.event()]
    while told[-1].lease.tid != last.tid or told[-1].kind == wire.EVENT_LOWERED:
        told.append(watcher.event())
    assert {event.kind for event in told[:-1]} == {wire.EVENT_LOWERED}
    assert len({event.lease.tid for event in told[:-1]}) + told[-1].n_lost == 500
    assert client.acquire(tid=tids[0], priority=1).reason == "none"
    assert [kernel.sched_getattr(tid).priority for tid in tids] == \
        [min(1 + i % 20, 10) for i in range(1000)]
    assert daemon.status().n_leases == 1000

    with open(daemon.policy_path, "a", encoding="utf-8") as file:
        file.write("[Role desktop]\nPriority=99\n")
    refused = daemon.admin.request(wire.RELOAD)
    assert refused.reason == "reload-failed"
    assert daemon.policy_path in refused.explanation.text
    assert daemon.status().state & wire.STATE_POLICY_BROKEN
    assert daemon.status().n_leases == 1000

    daemon.reload({"Broker": {"ThreadsMax": 1200, "ThreadsPerUser": 1200, "GrantBurst": 2000},
                   "Role desktop": {"ThreadsPerUser": 1200, "Priority": "1-20"}})
    assert daemon.status().n_leases == 1000  # what was lowered may be asked for again
    assert client.acquire(tid=tids[19], priority=20).reason == "none"
    assert kernel.sched_getattr(tids[19]).priority == 20
