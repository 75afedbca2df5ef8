# SPDX-License-Identifier: MIT
"""
rtgrant without a broker is chrt: the same command lines, side by side with chrt 2.38, as root and
as a user without any right. Compared are standard output, exit status, and what every thread of the
target has afterwards. Where rtgrant differs, it does so on purpose, and the row says why.
"""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import tty
from dataclasses import dataclass, field

import pytest

import kernel
from agent import NOBODY
from daemon import Target, wait_until
from kernel import BATCH, DEADLINE, FIFO, IDLE, OTHER, RR

ROOT = 0
NICE = 7  # of every target: must survive whatever happens to its policy
TIMING_NS = (100_000, 10_000_000, 10_000_000)  # runtime, deadline, period: a hundredth of a CPU
TIMING = ["-T", "100000", "-P", "10000000"]


@dataclass
class Differs:
    """How rtgrant departs from chrt, for `why`. None: it does not, in this respect."""

    why: str
    status: int | None = None
    output: str | None = None
    after: tuple | None = None  # policy, priority, reset on fork


@dataclass
class Row:
    """One command line; {pid}, {tid}, {gone} and {init} stand for numbers."""

    name: str
    arguments: list
    before: tuple = (OTHER, 0, False)
    n_threads: int = 0
    root: Differs | None = None
    nobody: Differs | None = None
    tags: list = field(default_factory=list)

    def differs(self, uid):
        return self.root if uid == ROOT else self.nobody


NO_BROKER = Differs("the kernel refuses, and there is no broker to ask: a status of its own", 4)
NOT_GIVEN = Differs("the kernel refuses, and no broker gives it: refused, a status of its own", 3)


def both(differs):
    return {"root": differs, "nobody": differs}


QUERIES = [
    Row("query", ["-p", "{pid}"]),
    Row("query fifo", ["-p", "{pid}"], (FIFO, 50, False)),
    Row("query rr", ["-p", "{pid}"], (RR, 1, False)),
    Row("query reset-on-fork", ["-p", "{pid}"], (RR, 99, True)),
    Row("query other, reset-on-fork", ["-p", "{pid}"], (OTHER, 0, True)),
    Row("query batch", ["-p", "{pid}"], (BATCH, 0, False)),
    Row("query idle", ["-p", "{pid}"], (IDLE, 0, False)),
    Row("query deadline", ["-p", "{pid}"], (DEADLINE, 0, False)),
    Row("query deadline, reset-on-fork", ["-p", "{pid}"], (DEADLINE, 0, True)),
    Row("query verbosely", ["-v", "-p", "{pid}"], (FIFO, 3, False)),
    Row("query in long", ["--verbose", "--pid", "{pid}"], (FIFO, 3, False)),
    Row("query a thread", ["-p", "{tid}"], (FIFO, 9, False), n_threads=2),
    Row("query all threads", ["-a", "-p", "{pid}"], (RR, 4, True), n_threads=3),
    Row("query all threads in long", ["--all-tasks", "--pid", "{pid}"], n_threads=3),
    Row("query all by a thread", ["-a", "-p", "{tid}"], n_threads=2),
    Row("query somebody else's", ["-p", "{init}"]),
    Row("query oneself", ["-p", "0"]),
    Row("query with -R", ["-R", "-p", "{pid}"]),
    Row("query with blanks and sign", ["-p", " +{pid}"]),
    Row("max", ["-m"]),
    Row("max in long", ["--max"]),
    Row("max and pid", ["-m", "-p", "{pid}"]),
    Row("max and command", ["-m", "true"]),
]

CHANGES = [
    Row("set fifo", ["-f", "-p", "50", "{pid}"], nobody=NO_BROKER),
    Row("set rr", ["-r", "-p", "50", "{pid}"], nobody=NO_BROKER),
    Row("set default", ["-p", "1", "{pid}"], nobody=NO_BROKER),
    Row("set highest", ["-f", "-p", "99", "{pid}"], nobody=NO_BROKER),
    Row("set other", ["-o", "-p", "0", "{pid}"]),
    Row("set batch", ["-b", "-p", "0", "{pid}"]),
    Row("set idle", ["-i", "-p", "0", "{pid}"]),
    Row("set in long", ["--fifo", "--pid", "50", "{pid}"], nobody=NO_BROKER),
    Row("set in long, cut", ["--fif", "--pi", "50", "{pid}"], nobody=NO_BROKER),
    Row("set in a cluster", ["-fvp", "50", "{pid}"], nobody=NO_BROKER),
    Row("set a thread", ["-f", "-p", "50", "{tid}"], n_threads=2, nobody=NO_BROKER),
    Row("set and show", ["-v", "-f", "-p", "50", "{pid}"], nobody=NO_BROKER),
    Row("set batch and show", ["-v", "-b", "-p", "0", "{pid}"]),
    Row("set reset-on-fork", ["-v", "-R", "-f", "-p", "50", "{pid}"], nobody=NO_BROKER),
    Row("set reset-on-fork, other", ["-v", "-R", "-o", "-p", "0", "{pid}"]),
    Row("set all threads", ["-a", "-f", "-p", "50", "{pid}"], n_threads=3, nobody=NO_BROKER),
    Row("set and show all", ["-a", "-v", "-r", "-p", "5", "{pid}"], n_threads=3, nobody=NO_BROKER),
    Row("set all to batch", ["-a", "-v", "-b", "-p", "0", "{pid}"], n_threads=3),
    Row("set with sign", ["-f", "-p", "+5", "{pid}"], nobody=NO_BROKER),
    Row("last policy wins", ["-f", "-b", "-p", "0", "{pid}"]),
    Row("lower rr", ["-v", "-r", "-p", "5", "{pid}"], (RR, 20, False)),
    Row("raise rr", ["-v", "-r", "-p", "21", "{pid}"], (RR, 20, False), nobody=NO_BROKER),
    Row("rr to fifo", ["-f", "-p", "5", "{pid}"], (RR, 20, False), nobody=NO_BROKER),
    Row("fifo to other", ["-v", "-o", "-p", "0", "{pid}"], (FIFO, 20, False)),
    Row("fifo to batch", ["-v", "-b", "-p", "0", "{pid}"], (FIFO, 20, False)),
    Row("idle to other", ["-o", "-p", "0", "{pid}"], (IDLE, 0, False), nobody=NO_BROKER),
    Row("idle to batch", ["-b", "-p", "0", "{pid}"], (IDLE, 0, False), nobody=NOT_GIVEN),
    Row("batch to other", ["-o", "-p", "0", "{pid}"], (BATCH, 0, False)),
    Row("drop reset-on-fork", ["-f", "-p", "20", "{pid}"], (FIFO, 20, True),
        nobody=Differs("keeps the flag, which nobody may drop", 0, after=(FIFO, 20, True))),
    Row("lower with reset-on-fork", ["-r", "-p", "5", "{pid}"], (RR, 20, True),
        nobody=Differs("keeps the flag", 0, after=(RR, 5, True))),
    Row("other with reset-on-fork", ["-o", "-p", "0", "{pid}"], (RR, 20, True),
        nobody=Differs("keeps the flag", 0, after=(OTHER, 0, True))),
    Row("idle with reset-on-fork", ["-i", "-p", "0", "{pid}"], (RR, 20, True),
        nobody=Differs("keeps the flag", 0, after=(IDLE, 0, True))),
    Row("raise with reset-on-fork", ["-r", "-p", "21", "{pid}"], (RR, 20, True), nobody=NO_BROKER),
    Row("deadline to other", ["-o", "-p", "0", "{pid}"], (DEADLINE, 0, False)),
]

DEADLINES = [
    Row("set deadline", ["-d", *TIMING, "-p", "0", "{pid}"], nobody=NOT_GIVEN),
    Row("set deadline, show", ["-v", "-d", *TIMING, "-D", "5000000", "-p", "0", "{pid}"],
        nobody=NOT_GIVEN),
    Row("set deadline, reset-on-fork", ["-v", "-R", "-d", *TIMING, "-p", "0", "{pid}"],
        nobody=NOT_GIVEN),
    Row("set deadline in long",
        ["--deadline", "--sched-runtime", "100000", "--sched-period", "10000000",
         "--sched-deadline", "9000000", "-v", "--pid", "0", "{pid}"],
        nobody=NOT_GIVEN),
    Row("deadline without period", ["-d", "-p", "0", "{pid}"]),
    Row("deadline too short", ["-d", "-T", "5", "-P", "10000000", "-p", "0", "{pid}"]),
    Row("deadline with priority", ["-d", *TIMING, "-p", "5", "{pid}"]),
    Row("deadline of a command", ["-v", "-d", *TIMING, "0", "true"], nobody=NOT_GIVEN),
    Row("runtime of fifo", ["-f", "-T", "5", "-p", "10", "{pid}"]),
    Row("period of rr", ["-P", "5", "-p", "10", "{pid}"]),
    Row("deadline of other", ["-o", "-D", "5", "-p", "0", "{pid}"]),
    Row("runtime that is none", ["-d", "-T", "abc", "-P", "100", "-p", "0", "{pid}"]),
    Row("runtime with unit", ["-d", "-T", "2M", "-P", "100", "-p", "0", "{pid}"]),
    Row("runtime below 0", ["-d", "-T", "-2", "-P", "100000", "-p", "0", "{pid}"]),
]

FAULTS = [
    Row("nothing", []),
    Row("priority alone", ["50"]),
    Row("command alone", ["true"]),
    Row("policy alone", ["-f"]),
    Row("policy and priority alone", ["-f", "50"]),
    Row("policy and command alone", ["-f", "true"]),
    Row("no pid", ["-p"]),
    Row("unknown option", ["-Z"]),
    Row("unknown long option", ["--nonsense"]),
    Row("ambiguous option", ["--sched", "5"]),
    Row("argument where none belongs", ["--pid={pid}"]),
    Row("missing argument", ["-T"]),
    Row("priority 0 of fifo", ["-f", "-p", "0", "{pid}"]),
    Row("priority 100 of rr", ["-r", "-p", "100", "{pid}"]),
    Row("negative priority", ["-f", "-p", "--", "-1", "{pid}"]),
    Row("priority of other", ["-o", "-p", "5", "{pid}"]),
    Row("priority of batch", ["-b", "-p", "1", "{pid}"]),
    Row("priority that is none", ["-p", "xx", "{pid}"]),
    Row("priority with a point", ["-p", "1.5", "{pid}"]),
    Row("priority beyond 32 bits", ["-p", "4294967306", "{pid}"]),
    Row("priority beyond 64 bits", ["-p", "99999999999999999999", "{pid}"]),
    Row("impossible priority, shown first", ["-v", "-o", "-p", "5", "{pid}"]),
    Row("no priority, shown first", ["-v", "-p", "xx", "{pid}"]),
    Row("impossible for all, shown first", ["-a", "-v", "-o", "-p", "5", "{pid}"], n_threads=2),
    Row("priority 0 of a command", ["-f", "0", "true"]),
    Row("priority 100 of a command", ["-f", "100", "true"]),
    Row("priority of an other command", ["-o", "5", "true"]),
    Row("pid gone", ["-p", "{gone}"]),
    Row("set pid gone", ["-p", "10", "{gone}"]),
    Row("set all of pid gone", ["-a", "-p", "10", "{gone}"]),
    Row("pid that is none", ["-p", "abc"]),
    Row("pid with rest", ["-p", "1x"]),
    Row("empty pid", ["-p", ""]),
    Row("hexadecimal pid", ["-p", "0x1"]),
    Row("pid beyond 32 bits", ["-p", "4294967297"]),
    Row("pid beyond 64 bits", ["-p", "18446744073709551617"]),
    Row("set pid that is none", ["-f", "-p", "10", "abc"]),
    Row("all threads of a command", ["-a", "-f", "50", "true"]),
    Row("somebody else's to fifo", ["-f", "-p", "50", "{root}"], nobody=NO_BROKER),
    Row("somebody else's to other", ["-o", "-p", "0", "{root}"], nobody=NO_BROKER),
    Row("somebody else's to batch", ["-b", "-p", "0", "{root}"], nobody=NOT_GIVEN),
    Row("all of somebody else's", ["-a", "-f", "-p", "50", "{root}"], nobody=NO_BROKER),
]

SHOW = ["chrt", "-p", "0"]
COMMANDS = [
    Row("run fifo", ["-f", "50", *SHOW], nobody=NO_BROKER),
    Row("run rr", ["-r", "50", *SHOW], nobody=NO_BROKER),
    Row("run default", ["7", *SHOW], nobody=NO_BROKER),
    Row("run reset-on-fork", ["-R", "-f", "50", *SHOW], nobody=NO_BROKER),
    Row("run other", ["-o", "0", *SHOW]),
    Row("run batch", ["-b", "0", *SHOW]),
    Row("run idle", ["-i", "0", *SHOW]),
    Row("run idle, reset-on-fork", ["-R", "-i", "0", *SHOW]),
    Row("run deadline", ["-R", "-d", *TIMING, "0", *SHOW], nobody=NOT_GIVEN),
    Row("run and show", ["-v", "-f", "50", *SHOW], nobody=NO_BROKER),
    Row("run batch and show", ["-v", "-b", "0", *SHOW]),
    Row("status of the command", ["-b", "0", "sh", "-c", "exit 7"]),
    Row("death of the command", ["-b", "0", "sh", "-c", "kill -9 $$"]),
    Row("options of the command",
        ["-b", "0", "sh", "-c", 'echo "$0 $@"', "-f", "50", "-p", "--", "-v"]),
    Row("command not found", ["-b", "0", "/nonexistent/command"]),
    Row("command not in PATH", ["-b", "0", "no-such-command"]),
    Row("command that is empty", ["-b", "0", ""]),
    Row("command not executable", ["-b", "0", "/etc/passwd"]),
    Row("command that is a folder", ["-b", "0", "/"]),
    Row("command below a file", ["-b", "0", "/etc/passwd/x"]),
    Row("command and no right", ["-f", "50", "no-such-command"], nobody=NO_BROKER),
]

SHOWN = (
    "pid PID's current scheduling policy: SCHED_RR\n"
    "pid PID's current scheduling priority: 20\n"
)
NEW = "pid PID's new scheduling policy: SCHED_RR\npid PID's new scheduling priority: 5\n"
DELIBERATE = [
    Row("option after the pid", ["-p", "{pid}", "-v"], (RR, 20, False),
        **both(Differs("options may stand anywhere with -p", 0, SHOWN))),
    Row("options among the operands", ["5", "-p", "{pid}", "-r", "-v"], (RR, 20, False),
        **both(Differs("options may stand anywhere with -p", 0, SHOWN + NEW, (RR, 5, False)))),
    Row("priority before the options", ["0", "-b", "sh", "-c", "exit 7"],
        **both(Differs("options may stand before COMMAND", 7))),
    Row("two dashes", ["-b", "0", "--", "sh", "-c", "exit 7"],
        **both(Differs("-- ends the options, as everywhere", 7))),
    Row("two dashes first", ["-b", "--", "0", "sh", "-c", "exit 7"]),
    Row("no priority: batch command", ["-b", "sh", "-c", "exit 7"],
        **both(Differs("a policy without priorities needs none, as with chrt from 2.42 on", 7))),
    Row("no priority: other", ["-o", "-p", "{pid}"], (RR, 20, False),
        **both(Differs("a policy without priorities needs none", 0, "", (OTHER, 0, False)))),
    Row("no priority: fifo", ["-f", "-p", "{pid}"], (RR, 20, False),
        **both(Differs("a missing priority is no query", 2, ""))),
    Row("no priority: fifo, shown", ["-f", "-v", "-p", "{pid}"], (RR, 20, False),
        **both(Differs("a missing priority is no query", 2, SHOWN))),
    Row("one pid too many", ["-b", "-p", "0", "{pid}", "{pid}"],
        **both(Differs("chrt passes over what it does not understand", 1, "", (OTHER, 0, False)))),
    Row("set oneself", ["-b", "-p", "0", "0"],
        **both(Differs("chrt takes the pid for a command", 1))),
    Row("max after pid", ["-pm"],
        **both(Differs("options may stand anywhere with -p", 0,
                       "".join(f"SCHED_{name} min/max priority\t: {band}\n" for name, band in (
                           ("OTHER", "0/0"), ("FIFO", "1/99"), ("RR", "1/99"), ("BATCH", "0/0"),
                           ("IDLE", "0/0"), ("DEADLINE", "0/0")))))),
    Row("query all of pid gone", ["-a", "-p", "{gone}"],
        **both(Differs("chrt says nothing, and calls it success", 1))),
    Row("query all of oneself", ["-a", "-p", "0"],
        **both(Differs("chrt says nothing", 0,
                       "pid SELF's current scheduling policy: SCHED_OTHER\n"
                       "pid SELF's current scheduling priority: 0\n"))),
]

ROWS = [*QUERIES, *CHANGES, *DEADLINES, *FAULTS, *COMMANDS, *DELIBERATE]


def run(command, uid, **values):
    """Runs it with a terminal for stdout: chrt loses what is buffered when it becomes COMMAND."""
    master, slave = os.openpty()
    tty.setraw(slave)
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "RTGRANT_SOCKET": "/nonexistent/socket", "LC_ALL": "C.UTF-8"},
            user=uid, group=uid, extra_groups=[], cwd="/", **values,
        )
        os.close(slave)
        slave = -1
        _, errors = process.communicate(timeout=30)
        output = b""
        try:
            while data := os.read(master, 65536):
                output += data
        except OSError:  # EIO: nobody has the other end any more
            pass
        return process, output.decode(), errors
    finally:
        os.close(master)
        if slave >= 0:
            os.close(slave)


def prepare(target, row):
    for _ in range(row.n_threads):
        target.thread()
    policy, priority, reset_on_fork = row.before
    timing = TIMING_NS if policy == DEADLINE else (0, 0, 0)
    for tid in kernel.threads(target.pid):
        os.setpriority(os.PRIO_PROCESS, tid, NICE)
        kernel.sched_setattr(tid, policy, priority, NICE if policy in (OTHER, BATCH) else 0,
                             kernel.RESET_ON_FORK if reset_on_fork else 0, timing)


def try_row(program, row, uid, programs, numbers):
    """Exit status, output, errors, and the scheduling of each thread, all numbers made words."""
    target = Target(programs.target, uid)
    try:
        prepare(target, row)
        tids = list(map(int, os.listdir(f"/proc/{target.pid}/task")))  # by birth; numbers come round
        words = {"pid": tids[0], "tid": tids[-1], **numbers}
        arguments = [re.sub(r"\{(\w+)\}", lambda m: str(words[m[1]]), a) for a in row.arguments]
        process, output, errors = run([program, *arguments], uid)

        output = output.replace(f"pid {process.pid}'s", "pid SELF's")
        for number, tid in enumerate(tids):
            output = output.replace(f"pid {tid}'s", f"pid {f'TID{number}' if number else 'PID'}'s")
        return process.returncode, output, errors, [target.sched(tid) for tid in tids]
    finally:
        target.kill()


@pytest.fixture(name="numbers")
def fixture_numbers(programs):
    """Process ids for a row that need not be of its own target."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    roots = Target(programs.target, ROOT)
    yield {"gone": gone.pid, "init": 1, "root": roots.pid}
    roots.kill()


@pytest.mark.parametrize("uid", [ROOT, NOBODY], ids=["root", "nobody"])
@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_as_chrt(row, uid, programs, numbers):
    theirs = try_row("chrt", row, uid, programs, numbers)
    ours = try_row(programs.rtgrant, row, uid, programs, numbers)
    print("chrt:   ", theirs, "\nrtgrant:", ours)

    status, output, errors, after = theirs
    differs = row.differs(uid)
    if differs:
        status = status if differs.status is None else differs.status
        output = output if differs.output is None else differs.output
        if differs.after is not None:
            after = [(*differs.after[:2], NICE, differs.after[2]) for _ in after]
        departures = (status, output, [tuple(a) for a in after])
        assert departures != (theirs[0], theirs[1], [tuple(a) for a in theirs[3]]), "no difference"

    assert ours[0] == status
    assert ours[1] == output
    assert [tuple(a) for a in ours[3]] == [tuple(a) for a in after]
    wants_words = ours[0] not in (0, 7) if differs else bool(errors)
    assert bool(ours[2]) == wants_words, "what is on stderr"
    assert "pid 0" not in ours[2].replace("-p 0", "")


def test_N03_a_missing_priority_changes_nothing(programs):
    """And the message says which range fits which policy."""
    target = Target(programs.target, ROOT)
    try:
        for arguments, words in (
            (["-f", "-p", target.pid], ["SCHED_FIFO", "1", "99"]),
            (["-r", "-p", target.pid], ["SCHED_RR", "1", "99"]),
            (["-f", "-p", "100", target.pid], ["SCHED_FIFO", "1", "99", "100"]),
            (["-o", "-p", "50", target.pid], ["SCHED_OTHER", "50", "SCHED_FIFO", "SCHED_RR"]),
        ):
            process, output, errors = run([programs.rtgrant, *map(str, arguments)], ROOT)
            assert process.returncode in (1, 2) and not output
            assert all(word in errors for word in words), errors
            assert target.sched() == (OTHER, 0, 0, False)
    finally:
        target.kill()


def test_N07_errors_name_the_thread(programs):
    """Its number and its name, what was asked, why not, and what helps; never "pid 0"."""
    target = Target(programs.target, NOBODY)
    try:
        tid = target.thread("audio-io")
        process, _, errors = run([programs.rtgrant, "-f", "-p", "50", str(tid)], NOBODY)
        assert process.returncode == 4
        assert f"audio-io (thread {tid})" in errors and "SCHED_FIFO 50" in errors
        assert "no broker" in errors and "help: " in errors

        process, _, errors = run([programs.rtgrant, "50", "/usr/bin/sleep", "1"], NOBODY)
        assert f"sleep (pid {process.pid})" in errors and "SCHED_RR 50" in errors
    finally:
        target.kill()


def test_names_are_escaped(programs):
    """A thread's name is anybody's text: no escape sequence of it reaches a terminal."""
    target = Target(programs.target, NOBODY)
    try:
        target.tell("name", b"x\n\x1b[31m\xff".hex())
        for arguments in (["-f", "-p", "50", str(target.pid)], ["--json", "-p", str(target.pid)]):
            _, output, errors = run([programs.rtgrant, *arguments], NOBODY)
            assert r"x\x0a\x1b[31m\xff" in (output + errors).replace("\\\\", "\\")
            assert "\x1b" not in output + errors
    finally:
        target.kill()


WHAT_IS_INHERITED = """
import json, os, resource, signal, sys
def lines(name, keys):
    with open(f"/proc/self/{name}") as file:
        return [line for line in file if line.split(":")[0] in keys]
def limits():
    return [resource.getrlimit(n) for n in range(16)]
print(json.dumps({
    "pid": os.getpid(), "ppid": os.getppid(), "pgid": os.getpgid(0), "sid": os.getsid(0),
    "cwd": os.getcwd(), "umask": os.umask(0), "environment": repr(sorted(os.environb.items())),
    "descriptors": sorted((fd, os.readlink(f"/proc/self/fd/{fd}"), os.get_inheritable(int(fd)))
                          for fd in os.listdir("/proc/self/fd")
                          if os.path.lexists(f"/proc/self/fd/{fd}")),
    "status": lines("status", ("SigBlk", "SigIgn", "Uid", "Gid", "Groups", "CapInh", "CapPrm",
                               "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp",
                               "Seccomp_filters", "Cpus_allowed", "THP_enabled")),
    "limits": limits(), "cgroup": lines("cgroup", [str(n) for n in range(20)]),
    "argv": sys.argv,
}))
"""


def what_is_inherited(prefix, uid, directory, environment=None):
    """What a command finds that was started in unusual circumstances."""

    def in_child():
        os.setsid()
        os.umask(0o027)
        signal.pthread_sigmask(signal.SIG_SETMASK, [signal.SIGUSR1, signal.SIGTERM])
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    with open("/etc/passwd", "rb") as extra:
        process = subprocess.Popen(
            [*prefix, sys.executable, "-I", "-c", WHAT_IS_INHERITED, "-f", "--", "-p"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, pass_fds=[extra.fileno()],
            preexec_fn=in_child, user=uid, group=uid, extra_groups=[uid], cwd=directory,
            env={"PATH": os.environ["PATH"], "ODD": "a=b\n\xff",
                 "RTGRANT_SOCKET": "/nonexistent/socket", **(environment or {})},
        )
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    found = json.loads(output)
    assert [found.pop("pid"), found.pop("pgid"), found.pop("sid")] == 3 * [process.pid]
    assert found.pop("ppid") == os.getpid()
    # the number of the pipe
    found["descriptors"] = [re.sub(r"\[\d+\]", "", str(d)) for d in found["descriptors"]]
    return found


@pytest.mark.parametrize("uid, options", [(ROOT, ["-f", "50"]), (NOBODY, ["-b"])],
                         ids=["root", "nobody"])
def test_nothing_else_is_changed(programs, directory, uid, options):
    """The command finds what it would have found without rtgrant, but for its scheduling."""
    without = what_is_inherited([], uid, directory)
    assert what_is_inherited([programs.rtgrant, *options], uid, directory) == without


def test_nothing_else_is_changed_by_the_broker(daemon, programs, directory):
    """Nor if the broker grants: no connection is left, no filter, no limit."""
    values = NOBODY, directory, {"RTGRANT_SOCKET": daemon.socket_path}
    granted = what_is_inherited([programs.rtgrant, "-f", "5"], *values)
    assert granted == what_is_inherited([], *values)
    assert "SCHED_FIFO 5" in daemon.log()


def test_the_process_stays_the_same(programs):
    """In place: the pid that was started is the one that runs COMMAND."""
    process, output, _ = run([programs.rtgrant, "-f", "50", "sh", "-c", "echo $$"], ROOT)
    assert process.returncode == 0
    assert output == f"{process.pid}\n"


def test_pid_with_inode(programs):
    target, other = Target(programs.target, ROOT), Target(programs.target, ROOT)
    try:
        fd = kernel.pidfd_open(target.pid)
        inode = os.fstat(fd).st_ino
        os.close(fd)
        if kernel.libc.syscall(kernel.SYS_PIDFD_OPEN, os.getpid(), os.O_EXCL) < 0:
            pytest.skip("this kernel has no pidfs")

        right = f"{target.pid}:{inode}"
        process, output, _ = run([programs.rtgrant, "-v", "-b", "-p", right], ROOT)
        assert process.returncode == 0 and "new scheduling policy: SCHED_BATCH" in output
        for wrong in (f"{other.pid}:{inode}", f"{target.pid}:{inode + 10**9}"):
            process, output, errors = run([programs.rtgrant, "-f", "-p", "50", wrong], ROOT)
            assert (process.returncode, output) == (1, "") and "inode" in errors
        assert target.sched().policy == BATCH and other.sched().policy == OTHER
    finally:
        target.kill()
        other.kill()


CHURN = """
import os, threading, time
def live(seconds): time.sleep(seconds)
for _ in range(4): threading.Thread(target=live, args=(1e6,), daemon=True).start()
print(os.getpid(), flush=True)
while True:
    threading.Thread(target=live, args=(0.002,), daemon=True).start()
    time.sleep(0.001)
"""


def test_I04_all_threads_while_they_come_and_go(programs):
    """chrt stops at the first thread that ended meanwhile, and misses those born meanwhile."""
    process = subprocess.Popen([sys.executable, "-I", "-c", CHURN], stdout=subprocess.PIPE,
                               text=True)
    try:
        pid = int(process.stdout.readline())
        lasting = sorted(kernel.threads(pid))[:5]
        for _ in range(20):
            result = subprocess.run([programs.rtgrant, "-a", "-b", "-p", str(pid)], text=True,
                                    capture_output=True, check=False, timeout=30)
            assert (result.returncode, result.stderr) == (0, "")
            assert {kernel.sched_getattr(tid).policy for tid in lasting} == {BATCH}
            wait_until(lambda: len(kernel.threads(pid)) > 5, what="another thread")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_nice(programs):
    """--nice sets the static nice value, alone or with a policy, of a command or a process."""
    target = Target(programs.target, NOBODY)
    try:
        pid = str(target.pid)
        for arguments, status, after in (
            (["--nice", "5", "-p", pid], 0, (OTHER, 0, 5, False)),
            (["-b", "--nice", "6", "-p", pid], 0, (BATCH, 0, 6, False)),
            (["--nice", "-5", "-p", pid], 4, (BATCH, 0, 6, False)),
            (["-o", "--nice", "5", "-p", pid], 4, (BATCH, 0, 6, False)),  # all or nothing
            (["-f", "--nice", "9", "-p", "50", pid], 4, (BATCH, 0, 6, False)),
            (["--nice", "20", "-p", pid], 1, (BATCH, 0, 6, False)),
        ):
            process, _, _ = run([programs.rtgrant, *arguments], NOBODY)
            assert (process.returncode, target.sched()) == (status, after), arguments
    finally:
        target.kill()

    process, output, _ = run([programs.rtgrant, "--nice", "5", "nice"], NOBODY)
    assert (process.returncode, output) == (0, "5\n")
    process, output, _ = run([programs.rtgrant, "--nice", "-5", "nice"], ROOT)
    assert (process.returncode, output) == (0, "-5\n")


def test_json(programs):
    target = Target(programs.target, ROOT)
    try:
        tid = target.thread("worker")
        process, output, _ = run([programs.rtgrant, "--json", "-p", str(tid)], ROOT)
        assert process.returncode == 0 and json.loads(output) == {
            "pid": target.pid, "tid": tid, "comm": "worker", "policy": "SCHED_OTHER", "priority": 0,
            "nice": 0, "reset_on_fork": False,
        }

        command = [programs.rtgrant, "--json", "-a", "-f", "-p", "50", str(target.pid)]
        process, output, _ = run(command, ROOT)
        threads = json.loads(output)
        assert [thread["tid"] for thread in threads] == [target.pid, tid]
        for thread in threads:
            assert (thread["policy"], thread["priority"]) == ("SCHED_FIFO", 50)
            assert thread["route"] == "direct"
            assert thread["lease"] is thread["role"] is thread["error"] is thread["refusal"] is None

        command = [programs.rtgrant, "--json", "-d", "-P", "10000000", "true"]
        process, output, errors = run(command, NOBODY)
        refusal = json.loads(output)["refusal"]
        assert process.returncode == 3 and refusal["reason"] == "unsupported"
        assert "SCHED_DEADLINE" in refusal["text"] and refusal["text"] in errors
    finally:
        target.kill()


def test_output_that_cannot_be_written_is_a_failure(programs):
    with open("/dev/full", "w", encoding="ascii") as full:
        for program in ("chrt", programs.rtgrant):
            assert subprocess.run([program, "-p", "1"], stdout=full, stderr=subprocess.DEVNULL,
                                  check=False).returncode == 1
