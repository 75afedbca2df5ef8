# SPDX-License-Identifier: MIT
"""Fixtures of the integration tests, and their report in TAP for meson."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

import daemon as daemon_module
import hogs
import kernel
from interrupts import Line, real_threads
from limits import Limits
from resources import Disk

BUILD = Path(os.environ.get("RTGRANT_BUILD") or Path(__file__).resolve().parents[2] / "build")


def pytest_addoption(parser):
    parser.addoption("--tap", action="store_true", help="report in TAP")


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    config.addinivalue_line("markers", "without_root: a test that needs no privilege")
    if config.getoption("--tap"):
        config.pluginmanager.unregister(config.pluginmanager.getplugin("terminalreporter"))
        config.pluginmanager.register(TapReporter(), "tap-reporter")


class TapReporter:
    """One "ok" or "not ok" for each test, whichever of its phases fails."""

    def __init__(self):
        self.n_tests = 0
        self.problems = []
        self.skip = None

    def pytest_collection_finish(self, session):
        print(f"1..{len(session.items)}", flush=True)

    def pytest_collectreport(self, report):
        if report.failed:
            print("Bail out! cannot collect", report.nodeid)
            self._comment(str(report.longrepr))

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.problems.append(report)
        elif report.skipped:
            self.skip = report.longrepr[2].removeprefix("Skipped: ")
        if report.when == "teardown":
            self._finish_test(report.nodeid.partition("::")[2].replace("#", "no."))

    def _finish_test(self, name):
        self.n_tests += 1
        if self.problems:
            print("not ok", self.n_tests, name)
            for report in self.problems:
                self._comment(f"{report.when}:\n{report.longreprtext}\n{report.capstdout}")
        elif self.skip:
            print("ok", self.n_tests, name, "# SKIP", self.skip)
        else:
            print("ok", self.n_tests, name)
        sys.stdout.flush()
        self.problems, self.skip = [], None

    def _comment(self, text):
        for line in text.splitlines():
            print("#", line)


def pytest_runtest_setup(item):
    if os.geteuid() != 0 and "without_root" not in item.keywords:
        pytest.skip("needs root")


@pytest.fixture(scope="session")
def directory():
    """A folder that everybody may look into, on a file system that honours set-user-ID."""
    for parent in (tempfile.gettempdir(), "/var/tmp", "/run"):
        if not os.statvfs(parent).f_flag & os.ST_NOSUID:
            path = tempfile.mkdtemp(prefix="rtgrant-test-", dir=parent)
            os.chmod(path, 0o755)
            yield path
            shutil.rmtree(path)
            return
    pytest.skip("no file system that honours set-user-ID")


@pytest.fixture(scope="session")
def programs(directory):
    """What was built, copied to where every user can run it, as it lay: the linker wants that."""
    found = {"rtgrantd": str(BUILD / "broker/rtgrantd")}
    for path in [*BUILD.glob("client/*"), *BUILD.glob("tests/tools/*")]:
        copy = Path(directory) / path.relative_to(BUILD)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            copy.symlink_to(os.readlink(path))
        elif path.is_file() and os.access(path, os.X_OK):
            shutil.copy(path, copy)
            found[path.name.replace("-", "_")] = str(copy)
    return SimpleNamespace(**found)


@pytest.fixture(scope="session")
def sanitizer_factor(programs):
    """How much slower the daemon may be: it is, where a sanitizer watches every access."""
    with open(programs.rtgrantd, "rb") as program:
        return 5 if b"__asan_init" in program.read() else 1


@pytest.fixture
def slack_kb(sanitizer_factor):
    """Memory that the broker may have kept; AddressSanitizer keeps 256 MiB of what was freed."""
    return 4096 if sanitizer_factor == 1 else 320 << 10


@pytest.fixture
def plain_build(sanitizer_factor):
    """For what measures, or waits for half a minute: once is enough, without a sanitizer."""
    if sanitizer_factor > 1:
        pytest.skip("done without a sanitizer")


@pytest.fixture
def slowness(sanitizer_factor):
    """What limits on time and CPU time are multiplied by: machines differ, and have other work."""
    return 4 * sanitizer_factor


@pytest.fixture
def kept_limits(directory):
    """Limits of processes in files, for brokers that may not set them."""
    made = Limits(directory)
    yield made
    made.close()


@pytest.fixture
def make_daemon(programs, directory):
    """Makes daemons, not started yet, each in a folder of its own."""
    made = []
    init = kernel.sched_getattr(1)

    def make():
        where = tempfile.mkdtemp(dir=directory)
        os.chmod(where, 0o755)
        made.append(daemon_module.Daemon(programs, where))
        return made[-1]

    yield make
    errors = []
    for one in reversed(made):
        try:
            one.close()
        except BaseException as error:
            errors.append(error)
    if init.policy == kernel.OTHER != kernel.sched_getattr(1).policy:
        kernel.sched_setattr(1, init.policy, init.priority, init.nice)
        errors.append(AssertionError("somebody changed the priority of init"))
    if errors:
        raise errors[0]


@pytest.fixture
def daemon(make_daemon):
    """A daemon with the policy of daemon.py, running."""
    return make_daemon().start()


@pytest.fixture(params=["this-kernel", "old-kernel"])
def either(request, make_daemon, programs):
    """The same on this kernel and on what looks like Linux 6.1; started by the test."""
    made = make_daemon()
    if request.param == "old-kernel":
        start = made.start
        made.start = lambda *a, **v: start(*a, prefix=[programs.with_filter, "--old-kernel", "--"], **v)
    return made


@pytest.fixture
def budgetless_group():
    """A cgroup whose real-time budget is 0: the kernel refuses real-time to who is in it."""
    parent = Path("/sys/fs/cgroup/cpu")
    if not (parent / "cpu.rt_runtime_us").exists():
        pytest.skip("this kernel has no RT_GROUP_SCHED, or no cgroup v1")
    group = parent / f"rtgrant-test-{os.getpid()}"
    group.mkdir()
    assert (group / "cpu.rt_runtime_us").read_text().strip() == "0"
    yield group
    for pid in (group / "cgroup.procs").read_text().split():
        (parent / "cgroup.procs").write_text(pid)
    group.rmdir()


@pytest.fixture
def capabilities(programs, directory):
    """Makes a copy of `target` with file capabilities."""

    def make(text):
        path = Path(tempfile.mkdtemp(dir=directory)) / "target"
        path.parent.chmod(0o755)
        shutil.copy(programs.target, path)
        subprocess.run(["setcap", text, path], check=True)
        return str(path)

    return make


@pytest.fixture
def with_mode(programs, directory):
    """Makes a copy of `target` that belongs to uid and gid, with mode bits as set-user-ID."""

    def make(mode, uid=0, gid=0):
        path = Path(tempfile.mkdtemp(dir=directory)) / "target"
        path.parent.chmod(0o755)
        shutil.copy(programs.target, path)
        os.chown(path, uid, gid)
        path.chmod(mode)
        return str(path)

    return make


@pytest.fixture
def disk(directory):
    try:
        made = Disk(directory)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no loop device: {error}")
    yield made
    made.close()


@pytest.fixture
def lines():
    """Two interrupts of this machine, put back afterwards whatever happens."""
    threads = real_threads()
    single = [(tid, irq) for tid, irq in threads.items() if list(threads.values()).count(irq) == 1]
    if len(single) < 2:
        pytest.skip("fewer than two interrupt threads here: the kernel runs without threadirqs")
    lines = [Line(*one) for one in single[:2]]
    was = [kernel.sched_getattr(line.tid) for line in lines]
    yield lines
    for line, (policy, priority, nice, reset) in zip(lines, was):
        kernel.sched_setattr(line.tid, policy, priority, nice, 1 if reset else 0)


@pytest.fixture
def planted_hog():
    hog = hogs.PlantedHog()
    yield hog
    hog.close()
