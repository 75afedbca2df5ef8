# SPDX-License-Identifier: MIT
"""Interrupt threads: which they are, and who may raise them."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import kernel
import wire
from agent import ALICE, BOB
from conftest import BUILD
from daemon import assert_refused, policy_text, wait_until
from interrupts import ask, grants, real_threads, rule
from kernel import FIFO, OTHER

RTGRANTCTL = BUILD / "client" / "rtgrantctl"


# ---- rtgrantctl irq: no broker, no root ----


@pytest.fixture
def machine(tmp_path):
    """Files of /sys and /proc as another machine has them."""
    def make(name):
        root = tmp_path / name
        subprocess.run([BUILD / "tests" / "tools" / "irq-tree", name, root], check=True)
        for path in (tmp_path, *tmp_path.parents[:2]):
            path.chmod(0o755)
        return root
    return make


def as_nobody():
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(ALICE, ALICE, ALICE)
        os.setresuid(ALICE, ALICE, ALICE)


def irq(*arguments):
    return subprocess.run([RTGRANTCTL, "irq", *map(str, arguments)], preexec_fn=as_nobody,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, "RTGRANT_SOCKET": "/nonexistent"})


def irq_json(*arguments):
    result = irq(*arguments, "--json")
    assert result.stderr == ""
    return json.loads(result.stdout)


@pytest.mark.without_root
def test_J01_four_cards_two_on_usb(machine):
    root = machine("four-cards")
    shown = irq_json("--sysroot", root, "--interval", 0)
    assert shown["threads_forced"] and shown["threads_visible"]
    assert [(d["name"], d["card_id"], d["usb"], d["controller"], [t["name"] for t in d["threads"]],
             d["shared_with"]) for d in shown["devices"]] == [
        ("card:0", "PCH", None, "0000:00:1b.0", ["irq/31-snd_hda_intel:card0"], None),
        ("card:1", "USB", "3-2.4", "0000:05:00.0", ["irq/40-xhci_hcd"], "Keyboard (usb 3-1)"),
        ("card:2", "U192k", "5-1", "0000:81:00.0", ["irq/41-xhci_hcd"], None),
        ("card:3", "HDMI", None, "0000:00:03.0", ["irq/32-snd_hda_intel:card3"], None),
    ]
    thread = shown["devices"][0]["threads"][0]
    assert (thread["policy"], thread["priority"], thread["for"]) == ("SCHED_FIFO", 50, "sound card")

    table = irq("--sysroot", root, "--interval", 0)
    assert table.returncode == 0
    rows = [line.split() for line in table.stdout.splitlines()]
    assert rows[2][:8] == ["1", "USB", "usb", "3-2.4,", "0000:05:00.0", "40", "irq/40-xhci_hcd", "FIFO"]


@pytest.mark.without_root
@pytest.mark.parametrize("name, status, helps", [
    ("unthreaded", "not-threaded", "threadirqs"),
    ("unthreadable", "not-threadable", ""),
])
def test_J07_no_thread_and_why(machine, name, status, helps):
    root = machine(name)
    device, = irq_json("--sysroot", root, "--interval", 0)["devices"]
    assert (device["status"], device["threads"]) == (status, [])
    assert helps in (device["help"] or "")
    shown = irq("--sysroot", root, "--interval", 0)
    assert shown.returncode == 0 and device["text"] in shown.stdout


@pytest.mark.without_root
def test_J08_sharers_are_listed(machine):
    card, usb = irq_json("--sysroot", machine("shared"), "--interval", 0)["devices"]
    assert card["shared_with"] == "i801_smbus, ehci_hcd:usb1"
    assert usb["shared_with"] == "i801_smbus, snd_hda_intel:card0"


@pytest.mark.without_root
def test_names_that_are_none(machine):
    root = machine("four-cards")
    assert irq("--sysroot", root, "card:9", "--interval", 0).returncode == 1
    for arguments in (["foo"], ["irq:x"], ["--interval", "-1"], ["--interval", "1h"], ["--colour"]):
        result = irq(*arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith("rtgrantctl: ") or "unrecognized option" in result.stderr


@pytest.mark.without_root
def test_this_machine_is_counted():
    """Lines that fire: whichever they are here."""
    lines = sorted(int(path.parent.name) for path in Path("/sys/kernel/irq").glob("*/actions")
                   if path.read_text(encoding="utf-8").strip())
    if not lines:
        pytest.skip("nobody handles an interrupt here")
    shown = irq_json("--interval", "0.1", f"irq:{lines[0]}")
    line, = shown["devices"][0]["irqs"]
    assert line["irq"] == lines[0] and line["per_second"] is not None


@pytest.mark.without_root
def test_what_kernel_threads_are_for():
    shown = irq_json("--interval", 0, "--all")
    if not shown["threads_visible"]:
        pytest.skip("kernel threads are hidden here")
    threads = {t["name"]: t for t in shown["kernel_threads"]}
    assert "cannot be changed" in threads["migration/0"]["for"]
    assert "ksoftirqd/0" in threads


RTIRQ = """
# names, the first is the highest
RTIRQ_NAME_LIST="snd xhci_hcd i8042"   # and a comment
RTIRQ_PRIO_HIGH=95
export RTIRQ_PRIO_DECR=5
RTIRQ_RESET_ALL=1
RTIRQ_HIGH_LIST='timer'
RTIRQ_NON_THREADED="rtc snd"
RTIRQ_STATE=/var/run/rtirq.state
RTIRQ_PRIO_LOW=$(reboot)
if true; then
"""


@pytest.mark.without_root
def test_import_of_rtirq(machine, tmp_path):
    path = tmp_path / "rtirq.conf"
    path.write_text(RTIRQ, encoding="ascii")
    path.chmod(0o644)
    root = machine("four-cards")

    shown = irq_json("--sysroot", root, "--import-rtirq", path)
    assert [(rule["device"], rule["priority"]) for rule in shown["rules"]] == [
        ("card:PCH", 94), ("card:USB", 94), ("card:U192k", 93), ("card:HDMI", 92),
        ("pci:0000:05:00.0", 90), ("pci:0000:81:00.0", 89),
    ]
    notes = "\n".join(shown["notes"])
    for word in ("RTIRQ_RESET_ALL", "RTIRQ_HIGH_LIST", "RTIRQ_NON_THREADED", "RTIRQ_PRIO_LOW",
                 "above 94", '"i8042" is the handler of no interrupt', "line 11"):
        assert word in notes
    assert "RTIRQ_STATE" not in notes

    missing = irq("--import-rtirq", tmp_path / "none")
    assert (missing.returncode, missing.stdout) == (1, "")


def test_what_is_imported_is_a_policy(make_daemon, machine, tmp_path):
    path = tmp_path / "rtirq.conf"
    path.write_text(RTIRQ, encoding="ascii")
    path.chmod(0o644)
    text = irq("--sysroot", machine("four-cards"), "--import-rtirq", path).stdout
    daemon = make_daemon().start(policy_text() + text)
    listed = json.loads(daemon.rtgrantctl(ALICE, "policy", "--json").stdout)
    assert ("Irq rtirq-1-PCH", "Device", "card:PCH") in \
        [(entry["section"], entry["key"], entry["value"]) for entry in listed]


# ---- on this machine's own threads ----


def test_rules_hold_from_start_to_stop(make_daemon, lines):
    daemon = make_daemon().start({"Irq first": rule(lines[0])})
    assert lines[0].sched() == (FIFO, 90)
    assert lines[1].sched() == lines[1].before

    daemon.reload({"Irq first": rule(lines[0], 87), "Irq second": rule(lines[1], 88)})
    assert [line.sched() for line in lines] == [(FIFO, 87), (FIFO, 88)]
    daemon.reload({"Irq second": rule(lines[1], 88)})
    assert [line.sched() for line in lines] == [lines[0].before, (FIFO, 88)]

    daemon.stop()
    assert [line.sched() for line in lines] == [line.before for line in lines]
    assert not os.path.exists(daemon.state_path + "/irq-threads")


def test_rules_survive_a_crash(make_daemon, lines):
    """And what was there before them comes back in the end, also where the rule is gone by then."""
    daemon = make_daemon().start({"Irq first": rule(lines[0]), "Irq second": rule(lines[1])})
    daemon.kill()
    assert [line.sched() for line in lines] == [(FIFO, 90), (FIFO, 90)]

    daemon.start({"Irq first": rule(lines[0], 88)})
    assert [line.sched() for line in lines] == [(FIFO, 88), lines[1].before]
    daemon.stop()
    assert lines[0].sched() == lines[0].before


def test_what_others_set_stays(make_daemon, lines):
    daemon = make_daemon().start({"Irq first": rule(lines[0])})
    kernel.sched_setattr(lines[0].tid, FIFO, 60)
    daemon.stop()
    assert lines[0].sched() == (FIFO, 60)


def test_a_rule_without_its_device_is_said_once(make_daemon):
    daemon = make_daemon().start({"Irq usb": {"Device": "card:NoSuchCard"}})
    assert daemon.log().count("[Irq usb] has no effect yet") == 1


def test_a_faulty_rule_is_refused(make_daemon, lines):
    daemon = make_daemon().start({"Irq first": rule(lines[0])})
    daemon.reload({"Irq first": {"Device": "migration/0", "Priority": 90}})
    assert "Device=migration/0: not one of" in daemon.log()
    assert lines[0].sched() == (FIFO, 90)


# ---- leases ----


@pytest.fixture
def broker(make_daemon, lines):
    """A daemon that gives both lines."""
    return make_daemon().start(grants(*(line.device for line in lines)))


def test_raised_for_an_ordinary_user_and_restored_on_release(broker, lines):
    client = broker.client(ALICE)
    answer = ask(client, lines[0].device)
    assert (answer.reason, answer.irq_priority, answer.granted_want) == ("none", 90, wire.WANT_IRQ)
    assert lines[0].sched() == (FIFO, 90)
    assert lines[1].sched() == lines[1].before
    assert client.sched()[0] == OTHER

    listed, = client.list()
    assert (listed.irq, listed.irq_priority, listed.granted_want) == \
        (lines[0].device, 90, wire.WANT_IRQ)
    assert client.release(answer.id).reason == "none"
    assert lines[0].sched() == lines[0].before


def test_restored_when_the_client_is_killed(broker, lines):
    client = broker.client(ALICE)
    assert ask(client, lines[0].device).reason == "none"
    assert ask(client, lines[1].device, 91).reason == "none"
    assert [line.sched() for line in lines] == [lines[0].before, (FIFO, 91)]  # it moved
    client.kill()
    wait_until(lambda: lines[1].sched() == lines[1].before, what="restoring the thread")


def test_restored_on_revoke(broker, lines):
    answer = ask(broker.client(ALICE), lines[0].device)
    assert lines[0].sched() == (FIFO, 90)
    assert broker.admin.revoke(answer.id).reason == "none"
    assert lines[0].sched() == lines[0].before


def test_restored_when_the_daemon_stops(broker, lines):
    clients = [broker.client(ALICE), broker.client(BOB)]
    for client, line in zip(clients, lines):
        assert ask(client, line.device).reason == "none"
    assert [line.sched() for line in lines] == [(FIFO, 90), (FIFO, 90)]
    broker.stop()
    assert [line.sched() for line in lines] == [line.before for line in lines]


def test_kept_over_a_crash_and_then_restored(broker, lines):
    client = broker.client(ALICE)
    assert ask(client, lines[0].device).reason == "none"
    broker.kill()
    assert lines[0].sched() == (FIFO, 90)

    broker.start(grants(*(line.device for line in lines)))
    assert lines[0].sched() == (FIFO, 90)
    assert broker.status().n_leases == 1
    client.kill()
    wait_until(lambda: lines[0].sched() == lines[0].before, what="restoring the thread")


def test_restored_after_a_crash_that_the_client_did_not_survive(broker, lines):
    client = broker.client(ALICE)
    assert ask(client, lines[0].device).reason == "none"
    broker.kill()
    client.kill()
    broker.start(grants(*(line.device for line in lines)))
    assert lines[0].sched() == lines[0].before
    assert broker.status().n_leases == 0


def test_the_highest_of_two_users_and_a_rule_counts(make_daemon, lines):
    changes = grants(lines[0].device)
    daemon = make_daemon().start({**changes, "Irq first": rule(lines[0], 80)})
    alice, bob = daemon.client(ALICE), daemon.client(BOB)
    assert lines[0].sched() == (FIFO, 80)
    of_alice, of_bob = ask(alice, lines[0].device, 92), ask(bob, lines[0].device, 88)
    assert lines[0].sched() == (FIFO, 92)
    assert alice.release(of_alice.id).reason == "none"
    assert lines[0].sched() == (FIFO, 88)
    assert bob.release(of_bob.id).reason == "none"
    assert lines[0].sched() == (FIFO, 80)


def test_a_reload_lowers_and_takes(broker, lines):
    client = broker.client(ALICE)
    assert ask(client, lines[0].device, 94).reason == "none"
    broker.reload(grants(*(line.device for line in lines), priority="86-88"))
    assert lines[0].sched() == (FIFO, 88)
    broker.reload(grants(lines[1].device))
    assert lines[0].sched() == lines[0].before


def test_a_dry_run_changes_nothing(broker, lines):
    answer = ask(broker.client(ALICE), lines[0].device, flags=wire.ACQUIRE_DRY_RUN)
    assert (answer.reason, answer.irq_priority) == ("none", 90)
    assert lines[0].sched() == lines[0].before


def test_with_the_threads_priority_or_not_at_all(broker, lines):
    """One lease, all of it or nothing."""
    client = broker.client(ALICE)
    want = wire.WANT_IRQ | wire.WANT_SCHED
    refused = client.acquire(want=want, policy=FIFO, priority=10, irq=lines[0].device, irq_priority=95,
                             role="desktop")
    assert_refused(refused, "resource-limit")
    assert client.sched()[0] == OTHER and lines[0].sched() == lines[0].before

    answer = client.acquire(want=want, policy=FIFO, priority=10, irq=lines[0].device, irq_priority=90,
                            role="desktop")
    assert answer.reason == "none"
    assert client.sched()[:2] == (FIFO, 10) and lines[0].sched() == (FIFO, 90)
    assert client.release(answer.id).reason == "none"
    assert client.sched()[0] == OTHER and lines[0].sched() == lines[0].before


def test_what_others_set_is_told_and_left(broker, lines):
    client = broker.client(ALICE)
    answer = ask(client, lines[0].device)
    kernel.sched_setattr(lines[0].tid, FIFO, 60)
    wait_until(lambda: client.list()[0].state == wire.LEASE_CHANGED, what="noticing it")
    assert lines[0].sched() == (FIFO, 60)
    assert client.release(answer.id).reason == "none"
    assert lines[0].sched() == (FIFO, 60)


# ---- who is refused, and why ----


@pytest.mark.parametrize("device, reason", [
    ("irq/25-snd_hda", "no-such-device"),
    ("card:0", "no-such-device"),
    ("irq:9999", "no-such-device"),
    ("migration/0", "invalid"),
    ("watchdogd", "invalid"),
    ("ksoftirqd/0", "invalid"),
    ("irq:-1", "invalid"),
    ("card:../../x", "invalid"),
    ("irq:" + "1" * 40, "invalid"),
])
def test_S41_what_is_no_interrupt_thread(broker, device, reason):
    if device == "card:0" and os.path.exists("/sys/class/sound/card0"):
        pytest.skip("there is a sound card here")
    assert_refused(ask(broker.client(ALICE), device), reason)


def test_S41_a_process_that_calls_itself_so(broker, lines):
    """A name makes no interrupt thread, be it of an interrupt that there is or not."""
    def called(name):
        client = broker.client(BOB, prepare=lambda: kernel.prctl(kernel.PR_SET_NAME, name.encode()))
        assert Path(f"/proc/{client.pid}/comm").read_text(encoding="utf-8").strip() == name
        return client

    free = called("irq/25-snd_hda")
    taken = called(Path(f"/proc/{lines[0].tid}/comm").read_text(encoding="utf-8").strip()[:15])
    client = broker.client(ALICE)
    assert_refused(ask(client, "irq/25-snd_hda"), "no-such-device")
    assert ask(client, lines[0].device).reason == "none"
    assert lines[0].sched() == (FIFO, 90)
    assert free.sched().policy == taken.sched().policy == OTHER


def test_J16_an_interrupt_that_the_role_does_not_name(make_daemon, lines):
    daemon = make_daemon().start(grants(lines[0].device))
    answer = ask(daemon.client(ALICE), lines[1].device)
    assert_refused(answer, "irq-not-in-role")
    assert answer.explanation.rule.startswith(daemon.policy_path)
    assert lines[1].sched() == lines[1].before
    daemon.reload({"Role desktop": {"IrqPriority": "86-94"}})  # sound cards only
    assert_refused(ask(daemon.client(BOB), lines[0].device), "irq-not-in-role")


def test_J07_an_interrupt_without_a_thread(make_daemon, lines):
    forced = "threadirqs" in Path("/proc/cmdline").read_text(encoding="utf-8").split()
    threaded = set(real_threads().values())
    free = [int(path.parent.name) for path in Path("/sys/kernel/irq").glob("*/actions")
            if path.read_text(encoding="utf-8").strip() and int(path.parent.name) not in threaded]
    if forced or not free:
        pytest.skip("all interrupts have threads here")
    daemon = make_daemon().start(grants(f"irq:{free[0]}"))
    answer = ask(daemon.client(ALICE), f"irq:{free[0]}")
    assert_refused(answer, "irq-not-threaded")
    assert "threadirqs" in answer.explanation.help


@pytest.mark.parametrize("priority", [85, 95, 99])
def test_S41_priorities_outside_of_the_band(broker, lines, priority):
    assert_refused(ask(broker.client(ALICE), lines[0].device, priority), "resource-limit")
    assert lines[0].sched() == lines[0].before


def test_a_role_without_interrupts(daemon, lines):
    assert_refused(ask(daemon.client(ALICE), lines[0].device), "resource-not-in-role")


# ---- with the programs ----


def test_rtgrant_raises_it_for_a_program(broker, lines):
    """As a musician would: the program's own priority and the card's, in one lease."""
    with subprocess.Popen(
            [broker.programs.rtgrant, "--role", "desktop", "--irq", f"{lines[0].device}=91", "-f", "10",
             "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "RTGRANT_SOCKET": broker.socket_path}, preexec_fn=as_nobody) as program:
        program.stdin.write(b"x")
        program.stdin.flush()
        assert program.stdout.read(1) == b"x"
        assert lines[0].sched() == (FIFO, 91)
        assert kernel.sched_getattr(program.pid)[:2] == (FIFO, 10)
        lease, = json.loads(broker.rtgrantctl(ALICE, "list", "--json").stdout)
        assert lease["pid"] == program.pid
        program.stdin.close()
    wait_until(lambda: lines[0].sched() == lines[0].before, what="restoring the thread")


def test_rtgrant_says_why_not(make_daemon, lines):
    daemon = make_daemon().start(grants(lines[0].device))
    refused = daemon.rtgrant(ALICE, "--role", "desktop", "--irq", f"{lines[1].device}=90", "true")
    assert refused.returncode == 3
    assert "that role desktop does not name" in refused.stderr
    assert "IrqDevices= in [Role desktop]" in refused.stderr
    missing = daemon.rtgrant(ALICE, "--role", "desktop", "--irq", "irq:9999=90", "true")
    assert missing.returncode == 3 and "there is no device irq:9999" in missing.stderr
