# SPDX-License-Identifier: MIT
"""How long the CPUs may take to wake up: read back from the kernel, all the way."""

import os
import struct

import pytest

import kernel
import wire
from agent import ALICE, BOB, CAROL
from daemon import assert_refused, policy_text, wait_until

DEVICE = "/dev/cpu_dma_latency"
LATENCY = wire.WANT_CPU_LATENCY

pytestmark = pytest.mark.skipif(not os.path.exists(DEVICE), reason=f"no {DEVICE}")


@pytest.fixture
def policy():
    return policy_text({"Role desktop": {"CpuLatency": "10us"}})


class Latency:
    """What is in force for the whole machine; our own descriptor asks for nothing."""

    def __init__(self):
        self.fd = os.open(DEVICE, os.O_RDWR)
        self.before = self()

    def __call__(self):
        (value,) = struct.unpack("i", os.pread(self.fd, 4, 0))
        return value

    def close(self):
        os.close(self.fd)


@pytest.fixture
def latency():
    made = Latency()
    yield made
    made.close()


def ask(client, value, **values):
    return client.acquire(want=LATENCY, cpu_latency_us=value, role="desktop", **values)


def test_the_lowest_of_two_is_in_force_and_gone_with_the_last(daemon, policy, latency):
    daemon.reload(policy)
    one, two = daemon.client(ALICE), daemon.client(BOB)

    first = ask(one, 100)
    assert (first.reason, first.cpu_latency_us, first.granted_want) == ("none", 100, LATENCY)
    assert latency() == 100
    second = ask(two, 20, reason="takes part in a recording")
    assert latency() == 20
    assert [(x.uid, x.cpu_latency_us, x.reason) for x in daemon.leases()] == [
        (ALICE, 100, ""), (BOB, 20, "takes part in a recording")]

    assert two.release(second.id).reason == "none"
    assert latency() == 100
    one.kill()
    wait_until(lambda: latency() == latency.before, what="the end of the limit")
    assert daemon.leases() == []
