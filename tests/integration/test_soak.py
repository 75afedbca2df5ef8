# SPDX-License-Identifier: MIT
"""Eight users who ask for everything, with deaths, execs, forks and hang-ups: nothing is left over.

RTGRANT_SOAK=1 (./dev test soak) makes a million requests, else 20 000.
"""

import os
import time

import pytest

import kernel
from daemon import policy_text, wait_until
from load import Load

REQUESTS = 1_000_000 if os.environ.get("RTGRANT_SOAK") else 20_000
USERS = range(64101, 64109)
ROLE = {"CpuLatency": "10us", "Memlock": "64M"}


@pytest.fixture
def loads(daemon):
    daemon.reload(policy_text({"Role desktop": ROLE}))
    made = [Load(daemon, uid, seed, wild=True) for seed, uid in enumerate(USERS)]
    yield made
    for load in made:
        load.kill()


def n_done(loads):
    return sum(load.done.value for load in loads)


def run_until(daemon, loads, n_requests):
    for load in loads:
        load.go_on()
    while n_done(loads) < n_requests:
        before = n_done(loads)
        wait_until(lambda: n_done(loads) > before, what="an answer")
        assert daemon.process.poll() is None, "the broker ended"
        time.sleep(0.1)
    for load in loads:
        load.rest()


def settle(daemon):
    """What the broker has when nobody is left."""
    wait_until(lambda: daemon.status().n_leases == 0, what="the end of all leases")
    wait_until(lambda: daemon.status().n_connections <= 1, what="the end of all connections")
    daemon.leases()
    return int(kernel.status(daemon.pid, "VmRSS").split()[0])


def test_a_long_mixed_load_leaves_nothing_over(daemon, loads, slack_kb):
    run_until(daemon, loads, REQUESTS // 10)
    fds_early, rss_early_kb = daemon.n_fds(), int(kernel.status(daemon.pid, "VmRSS").split()[0])

    start = time.monotonic()
    run_until(daemon, loads, REQUESTS)
    took_s = time.monotonic() - start

    rss_kb, fds = int(kernel.status(daemon.pid, "VmRSS").split()[0]), daemon.n_fds()
    broken = sum(load.broken.value for load in loads)
    for load in loads:
        load.kill()
    left_kb = settle(daemon)
    print(f"{n_done(loads)} requests, {REQUESTS * 0.9 / took_s:.0f}/s; RSS {rss_early_kb} kB after a "
          f"tenth, {rss_kb} kB at the end, {left_kb} kB alone; descriptors {fds_early}, {fds}")
    assert not broken, "connections ended that nobody had ended"
    assert left_kb <= rss_early_kb + slack_kb
