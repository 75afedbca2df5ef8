# SPDX-License-Identifier: MIT
"""Whether rtgrant-latency measures right, in figures that each run prints (pytest -s)."""

import json
import shutil

import pytest

import hogs
from agent import ALICE


pytestmark = pytest.mark.usefixtures("plain_build")


def measure(daemon, uid, *arguments):
    result = daemon.rtgrant(uid, "--json", "--cpu", hogs.CPU, *arguments, program="rtgrant_latency")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("us", [3000, 10000, 30000])
def test_an_injected_delay_is_reported_with_its_length(daemon, us):
    """Each cycle of 100 works longer by so much CPU time; what it did beyond its plan is told."""
    report = measure(daemon, ALICE, "--loads", "none", "--load", 10, "--duration", 1, "--inject", us,
                     "--role", "desktop")

    (row,) = [row for row in report["rows"] if row["variant"] == "with"]
    # the delay is in the thread's own time; what others took of the CPU is told apart from it
    told = sorted(one["work_us"] for one in row["overrun_list"] if one["work_us"] > 0.5 * us)
    print(f"injected {row['injected']} times {us} µs: told {[round(each) for each in told]}")
    assert len(told) == row["injected"] > 0
    assert told[len(told) // 2] == pytest.approx(us, rel=0.1, abs=100)


@pytest.mark.skipif(not shutil.which("cyclictest"), reason="no cyclictest (package rt-tests)")
def test_cyclictest_says_the_same(daemon):
    """In the same run, in turns, at the same priority. The median is a property of the machine; the
    99th percentile of seconds like these is that of its accidents, so it is printed only."""
    report = measure(daemon, 0, "--loads", "none", "--load", 10, "--duration", 0.5, "--cyclictest")

    figures = report["cyclictest"]
    print({key: value for key, value in figures.items() if key.endswith("_us")})
    assert figures["done"], figures["why"]
    assert figures["own_p50_us"] == pytest.approx(figures["cyclictest_p50_us"], rel=0.3, abs=8)


def test_what_the_grant_buys(daemon):
    """Without it most cycles under these loads are late; with it those that the host of this
    machine, or its interrupts, held up."""
    lost = {"without": 0, "with": 0}
    print("\nLOAD     VARIANT   CYCLES  P50 µs  P99 µs  MAX µs  OVERRUNS")
    for load in ("cpu", "fork", "memory"):
        report = measure(daemon, ALICE, "--loads", load, "--load", 50, "--duration", 2, "--role",
                         "desktop")
        for row in report["rows"]:
            lost[row["variant"]] += row["overruns"]
            print(f"{load:8} {row['variant']:8} {row['cycles']:7} {row['p50_us']:7.0f} "
                  f"{row['p99_us']:7.0f} {row['max_us']:7.0f} {row['overruns']:9}")
    assert lost["without"] >= 50
    assert lost["with"] <= lost["without"] / 10
