# SPDX-License-Identifier: MIT
"""rtgrant-latency as an unprivileged user: what it measures, and what it leaves behind."""

import contextlib
import json
import os
import pathlib
import pty
import pwd
import re
import select
import signal
import subprocess
import termios

import pytest

import hogs
import kernel
from agent import ALICE
from daemon import NO_BUS, wait_until

SHORT = ["--duration", "0.4", "--load", "10"]

def latency(daemon, uid, *arguments, **values):
    return daemon.rtgrant(uid, *SHORT, *arguments, program="rtgrant_latency", **values)


def rows_of(result):
    return {(row["load"], row["variant"]): row for row in json.loads(result.stdout)["rows"]}


def test_with_and_without_the_grant(daemon):
    result = latency(daemon, ALICE, "--loads", "none,fork", "--json")

    assert result.returncode == 0, result.stderr
    rows = rows_of(result)
    assert set(rows) == {(load, v) for load in ("none", "fork") for v in ("without", "with")}
    for (_, variant), row in rows.items():
        assert row["cycles"] >= 100
        assert row["min_us"] <= row["p50_us"] <= row["p99_us"] <= row["max_us"] <= row["done_max_us"]
        assert sum(entry["count"] for entry in row["histogram"]) == row["cycles"]
        assert row["injected"] == 0
        expected = ("SCHED_FIFO", 61) if variant == "with" else ("SCHED_OTHER", 0)
        assert (row["policy"], row["priority"]) == expected
    assert daemon.leases() == []


def test_the_role_and_priority_asked_for(daemon):
    result = latency(daemon, ALICE, "--loads", "none", "--json", "--role", "desktop",
                     "--priority", 7)

    row = rows_of(result)["none", "with"]
    assert (row["policy"], row["priority"]) == ("SCHED_FIFO", 7)


@pytest.mark.parametrize("arguments", [["--role", "desktop", "--priority", "50"], ["--role", "x"]])
def test_refused_it_measures_without(daemon, arguments):
    result = latency(daemon, ALICE, "--loads", "none", *arguments)

    assert result.returncode == 3, result.stderr
    assert "with: refused: " in result.stdout
    assert "none  without" in result.stdout
    assert "none  with " not in result.stdout


def test_no_broker(daemon):
    result = latency(daemon, ALICE, "--loads", "none", "--socket", "/nonexistent/socket", "--csv")

    assert result.returncode == 4
    lines = result.stdout.splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [["none", "without"]]
    assert len(lines[1].split(",")) == len(lines[0].split(","))


def test_an_injected_delay_is_reported_with_its_length(daemon):
    result = latency(daemon, ALICE, "--loads", "none", "--inject", 20000, "--json")

    row = rows_of(result)["none", "with"]
    assert row["injected"] >= 1
    injected = [one for one in row["overrun_list"] if one["work_us"] >= 19000]
    assert len(injected) == row["injected"]
    # done 20 ms after a tenth of the period, where a period was allowed: nobody else above us
    assert all(one["too_late_us"] > 16000 for one in injected)
    assert "own work too long" in {one["cause"] for one in injected}


def test_status_for_scripts(daemon, directory):
    arguments = ["--loads", "none", "--inject", 20000, "--json"]
    old = f"{directory}/old.json"

    assert latency(daemon, ALICE, *arguments, "--fail-on", "overruns").returncode == 5
    first = latency(daemon, ALICE, *arguments)
    assert first.returncode == 0
    report = json.loads(first.stdout)
    for row in report["rows"]:
        row["overruns"] = 0
    with open(old, "w", encoding="utf-8") as file:
        json.dump(report, file)
    result = latency(daemon, ALICE, *arguments, "--compare", old, "--fail-on", "worse")
    assert result.returncode == 5
    assert "overruns 0 -> " in result.stderr
    for row in report["rows"]:
        row["overruns"] = 100000
    with open(old, "w", encoding="utf-8") as file:
        json.dump(report, file)
    assert latency(daemon, ALICE, *arguments, "--compare", old, "--fail-on", "worse").returncode == 0
    with open(old, "w", encoding="utf-8") as file:
        file.write("[]")
    assert latency(daemon, ALICE, *arguments, "--compare", old).returncode == 1


def test_who_took_the_cpu_is_named(daemon, planted_hog):
    """As root for the records, as a user for all else."""
    name = pwd.getpwuid(65534).pw_name
    result = latency(daemon, 0, "--loads", "none", "--as-user", name, "--role", "desktop",
                     "--duration", 1, "--json")

    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    if not report["culprits_known"]:
        pytest.skip("this kernel records no context switches for root")
    found = hogs.told_of(report, planted_hog.end())
    assert found, report["rows"]
    assert all(told == pytest.approx(real, rel=0.1) for told, real in found), found


def idle_states(cpu):
    names = set()
    for path in pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/cpuidle").glob("state*/name"):
        names.add(path.read_text(encoding="utf-8").strip())
    return names


def test_what_the_kernel_did_around_an_overrun(daemon, planted_hog):
    """Interrupts, soft interrupts and sleep as everybody may read them; the stack as root may."""
    for uid in (ALICE, 0):
        result = latency(daemon, uid, "--loads", "none", "--json", "--cpu", hogs.CPU, "--duration", 1,
                         "--role", "desktop")
        report = json.loads(result.stdout)
        overruns = [one for row in report["rows"] for one in row["overrun_list"]]
        assert overruns
        around = [one["around"] for one in overruns if one["around"]]
        # beyond 64 of a slice they are only counted
        assert len(around) == len(overruns)
        for one in around:
            assert 0 < one["us"] < 1e6
            assert sum(one["interrupts"].values()) > 0
        # the clock's, whatever it is called
        assert any({"LOC", "TIMER", "SCHED", "HRTIMER"} & set(one["interrupts"]) for one in around)
        # a busy CPU may not have slept at all
        states = idle_states(hogs.CPU)
        for idle in (one["idle"] for one in around):
            assert (idle["state"] in states and idle["exits"] > 0 if idle["state"] else
                    idle == {"state": None, "exits": 0, "slept_us": 0, "exit_latency_us": 0})
        stacks = [one["kernel_stack"] for one in overruns]
        if uid == 0 and os.path.exists("/proc/self/stack"):
            # it sleeps, but for 5 ms of 55
            assert any(stack and "nanosleep" in stack for stack in stacks), overruns[:5]
        else:
            assert not any(stacks)
            assert {one["kernel_stack_why"] for one in overruns} <= {
                "only root may see that", "more overruns than are looked at one by one"}


def on_terminal(daemon, *arguments, term="xterm"):
    """What rtgrant-latency writes to a terminal as its stderr, and how much its measuring threads
    wrote to anything."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    written, seen = {}, b""
    process = subprocess.Popen(
        [daemon.programs.rtgrant_latency, *arguments],
        env={**os.environ, **NO_BUS, "RTGRANT_SOCKET": daemon.socket_path, "TERM": term}, user=ALICE,
        group=ALICE, extra_groups=[], stdout=subprocess.DEVNULL, stderr=theirs, cwd="/",
    )
    os.close(theirs)
    try:
        while True:
            if select.select([ours], [], [], 0.02)[0]:
                try:
                    data = os.read(ours, 65536)
                except OSError:
                    break  # closed by its end
                seen += data
            for task in os.listdir(f"/proc/{process.pid}/task"):
                with contextlib.suppress(OSError):
                    where = f"/proc/{process.pid}/task/{task}"
                    with open(f"{where}/comm", encoding="utf-8") as file:
                        if file.read() != "rtgrant-measure\n":
                            continue
                    with open(f"{where}/io", encoding="utf-8") as file:
                        written[task] = int(file.read().split()[3])
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return seen.decode(), written


def test_progress_and_histogram_on_a_terminal(daemon):
    seen, written = on_terminal(daemon, "--loads", "none", "--load", "10", "--duration", "2")

    drawings = seen.split("\r\x1b[J")[1:]
    assert 4 <= len(drawings) <= 4 * 5 + 4, "five a second, of 4 s, and one for each of 4 slices"
    assert all("cycles, worst" in drawing for drawing in drawings[:-1])
    assert "  0 %  none       without " in drawings[0]
    assert any(" 75 %  none       " in drawing for drawing in drawings)
    assert any(re.search(r"\n\x1b\[K +\d+ µs +\d+ #{40}", drawing) for drawing in drawings)
    for drawing in drawings:
        lines = re.sub(r"\x1b\[\d*[AKJ]", "", drawing).splitlines()
        assert len(lines) <= 24 and all(len(line) < 80 for line in lines)
    assert drawings[-1] == "", "nothing is left of it"
    assert written and set(written.values()) == {0}, "the measuring threads write nothing"


def test_a_terminal_without_a_cursor_gets_a_line(daemon):
    seen, _ = on_terminal(daemon, "--loads", "none", "--load", "10", "--duration", "0.5", term="dumb")

    assert "\x1b" not in seen and "#" not in seen
    assert seen.endswith("\r\n") and all(len(line) < 80 for line in seen.split("\r"))


def test_no_terminal_no_progress(daemon):
    result = latency(daemon, ALICE, "--loads", "none")

    assert result.stderr == ""


def test_a_stream_that_runs(daemon, directory):
    for sub, text in (("sub0", "closed\n"),
                      ("sub1", "rate: 96000 (96000/1)\nperiod_size: 256\nbuffer_size: 768\n")):
        path = f"{directory}/machine/proc/asound/card0/pcm0p/{sub}"
        os.makedirs(path)
        with open(f"{path}/hw_params", "w", encoding="utf-8") as file:
            file.write(text)

    result = latency(daemon, ALICE, "--loads", "none", "--stream", "auto", "--json", "--sysroot",
                     f"{directory}/machine")

    report = json.loads(result.stdout)
    assert (report["rate"], report["frames"], report["periods"]) == (96000, 256, 3)
    assert report["deadline_us"] == pytest.approx(2 * 256e6 / 96000, abs=1)


def test_compared_by_leases(daemon):
    """What the role does not give is said, and the rest is measured."""
    result = latency(daemon, ALICE, "--loads", "none", "--compare", "priority,governor,cpu-latency")

    if os.path.exists("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"):
        assert "priority+governor: " in result.stdout
    else:
        assert "priority+governor: no cpufreq here" in result.stdout
    assert "priority+cpu-latency: refused: " in result.stdout
    assert "none  with " in result.stdout


@pytest.fixture
def cpufreq(directory):
    """A machine whose governor alice may change."""
    path = f"{directory}/machine/sys/devices/system/cpu/cpu{hogs.CPU}/cpufreq/scaling_governor"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write("powersave\n")
    os.chown(path, ALICE, ALICE)
    return path


def test_compared_with_the_governor(daemon, cpufreq, directory):
    seen = set()
    process = subprocess.Popen(
        [daemon.programs.rtgrant_latency, *SHORT, "--loads", "none", "--cpu", str(hogs.CPU), "--compare",
         "governor", "--sysroot", f"{directory}/machine", "--csv"],
        env={**os.environ, **NO_BUS, "RTGRANT_SOCKET": daemon.socket_path}, user=ALICE, group=ALICE,
        extra_groups=[], stdout=subprocess.PIPE, cwd="/", text=True,
    )
    while process.poll() is None:
        with open(cpufreq, encoding="utf-8") as file:
            seen.add(file.read(9))
    rows = process.stdout.read().splitlines()
    process.stdout.close()

    assert [row.split(",")[1] for row in rows[1:]] == ["without", "with", "priority+governor"]
    assert {"performan", "powersave"} <= seen
    with open(cpufreq, encoding="utf-8") as file:
        assert file.read().startswith("powersave"), "put back"


def test_a_governor_that_cannot_be_compared(daemon, cpufreq, directory):
    arguments = ["--loads", "none", "--cpu", hogs.CPU, "--compare", "governor", "--sysroot",
                 f"{directory}/machine"]
    os.chown(cpufreq, 0, 0)
    assert "only root may change the governor" in latency(daemon, ALICE, *arguments).stdout
    with open(cpufreq, "w", encoding="utf-8") as file:
        file.write("performance\n")
    os.chown(cpufreq, ALICE, ALICE)
    assert 'the governor is "performance" already' in latency(daemon, ALICE, *arguments).stdout


def children_of(pid):
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z" and int(fields[1]) == pid:
                found += [int(entry), *children_of(int(entry))]
    return found


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("load", [["--loads", "cpu"], ["--with", "sleep 300 & sleep 301"]])
def test_no_load_outlives_it(daemon, load, how):
    command = [daemon.programs.rtgrant_latency, *load, "--duration", "30", "--load", "10"]
    if "--with" in load:
        command += ["--loads", "none", "--duration", "2"]
    process = subprocess.Popen(
        command, env={**os.environ, **NO_BUS, "RTGRANT_SOCKET": daemon.socket_path}, user=ALICE,
        group=ALICE, extra_groups=[], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
        preexec_fn=lambda: kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL),
    )
    try:
        children = wait_until(lambda: len(found := children_of(process.pid)) >= 2 and found)
    finally:
        process.send_signal(how)
        process.wait(timeout=60)

    def alive(pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                return file.read().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    wait_until(lambda: not any(alive(pid) for pid in children), what="the end of the load")


def test_pictures(daemon, monkeypatch):
    # fontconfig, which cairo asks, keeps what it has read until the end: a leak to a sanitizer
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    for kind, magic in (("svg", b"<?xml"), ("png", b"\x89PNG")):
        path = f"/var/tmp/rtgrant-latency-test-{os.getpid()}.{kind}"
        result = latency(daemon, ALICE, "--loads", "none", "--plot", path)
        if "built without cairo" in result.stderr:
            pytest.skip("built without cairo")
        assert result.returncode == 0, result.stderr
        with open(path, "rb") as file:
            assert file.read(len(magic)) == magic
        os.unlink(path)


@pytest.mark.parametrize("arguments", [
    ["--loads", "nothing"], ["--rate", "5"], ["--cpu", "x"], ["--duration", "0"],
    ["--plot", "file.gif"], ["--compare", "prio"], ["--fail-on", "worse"], ["operand"],
    ["--json", "--csv"], ["--stream", "oss"],
])
def test_wrong_usage(daemon, arguments):
    result = latency(daemon, ALICE, *arguments)

    assert result.returncode == 2
    assert result.stderr.startswith("rtgrant-latency: ") and result.stdout == ""
