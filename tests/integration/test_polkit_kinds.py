# SPDX-License-Identifier: MIT
"""What comes beside scheduling has an action of its own each: polkit may give one and not the others."""

import time

import pytest

import bus as bus_module
import wire
from agent import BOB, NOBODY
from kernel import FIFO, OTHER

pytestmark = pytest.mark.skipif(not bus_module.is_here(), reason="no polkitd, dbus-daemon or python3-dbus")

KINDS = ("memlock", "cpu-latency", "irq", "block-queue")
WANTS = {"memlock": wire.WANT_MEMLOCK, "cpu-latency": wire.WANT_CPU_LATENCY, "irq": wire.WANT_IRQ,
         "block-queue": wire.WANT_BLOCK_QUEUE}

# all may use the role; of the rest only what a test puts in
RULES = """polkit.addRule(function(action, subject) {
    if (action.id == "org.rtgrant.realtime-high") return polkit.Result.YES;
    if (%s) return polkit.Result.YES;
    if (action.id.indexOf("org.rtgrant.") == 0) return polkit.Result.NO;
});
"""


@pytest.fixture
def start(kept_limits, make_daemon, lines):
    """A broker that asks polkit about all kinds; the limits of processes are kept in files."""
    buses = []

    def begin(condition):
        bus = bus_module.Bus(RULES % condition)
        buses.append(bus)
        daemon = kept_limits.keep_for(make_daemon(), {
            "Broker": {"Authority": "polkit"},
            "Role desktop": {"AllowUsers": "64001"},
            "Role studio": {
                "AllowUsers": "64001", "PolkitAction": "org.rtgrant.realtime-high", "Memlock": "64M",
                "CpuLatency": "10us", "BlockQueue": "4-512", "IrqPriority": "86-94",
                "IrqDevices": " ".join(line.device for line in lines)},
        }, environment=bus.environment).start()
        # with the first answer the broker is connected to polkit for good
        asker = daemon.client(NOBODY)
        end = time.monotonic() + 10
        while asker.acquire(role="studio", priority=61, flags=wire.ACQUIRE_DRY_RUN).reason != "none":
            assert time.monotonic() < end
        asker.close()
        daemon.take_as_base()
        return daemon, bus

    yield begin
    for bus in buses:
        bus.close()


def values(lines, disk):
    return {"memlock": {"memlock_bytes": 1 << 20}, "cpu-latency": {"cpu_latency_us": 500},
            "irq": {"irq": lines[0].device, "irq_priority": 90},
            "block-queue": {"block": disk.name, "block_max_sectors_kb": 64}}


@pytest.mark.parametrize("given", KINDS)
def test_one_kind_and_no_other(start, lines, disk, given):
    daemon, bus = start(f'action.id == "org.rtgrant.{given}"')
    client = daemon.client(NOBODY)
    for kind in KINDS:
        answer = client.acquire(want=WANTS[kind], role="studio", **values(lines, disk)[kind])
        if kind == given:
            assert (answer.reason, answer.granted_want) == ("none", WANTS[kind])
            assert client.release(answer.id).reason == "none"
        else:
            assert answer.reason == "not-authorized"
            assert f"org.rtgrant.{kind}" in answer.explanation.text
        assert sum(f"asked org.rtgrant.{kind} role=studio" in line for line in bus.asked()) == 1


def test_all_of_them_each_asked_about_once(start, lines, disk):
    daemon, bus = start("true")
    client = daemon.client(BOB)
    want, wanted = wire.WANT_SCHED, {}
    for kind in KINDS:
        want |= WANTS[kind]
        wanted.update(values(lines, disk)[kind])
    answer = client.acquire(want=want, policy=FIFO, priority=62, role="studio", **wanted)
    assert (answer.reason, answer.granted_want) == ("none", want)
    asked = [line for line in bus.asked() if "priority=62" in line]
    assert [sum(f"org.rtgrant.{kind} " in line for line in asked) for kind in KINDS] == [1] * 4
    assert client.release(answer.id).reason == "none"
    assert client.sched()[0] == OTHER and lines[0].sched() == lines[0].before


def test_a_rule_can_look_at_the_device_and_the_value(start, lines):
    """And a yes about one is none about the other."""
    daemon, _bus = start(f'action.lookup("device") == "{lines[0].device}" && '
                         'parseInt(action.lookup("value")) <= 90')
    client = daemon.client(NOBODY)

    def ask(line, priority):
        return client.acquire(want=wire.WANT_IRQ, role="studio", irq=line.device,
                              irq_priority=priority).reason

    assert ask(lines[0], 90) == "none"
    assert ask(lines[0], 91) == "not-authorized"
    assert ask(lines[1], 90) == "not-authorized"
    assert (lines[0].sched(), lines[1].sched()) == ((FIFO, 90), lines[1].before)
