# SPDX-License-Identifier: MIT
"""Clients in containers and sandboxes: numbers mean what the client sees, users what the host sees."""

import os
import signal

import pytest

import kernel
import wire
from agent import ALICE, BOB, CAROL
from daemon import assert_granted, assert_refused, wait_until
from kernel import FIFO, OTHER


def own_pid_namespace(new_proc=True):
    """For a client's prepare: it is pid 1 of a namespace afterwards, with a /proc of that."""

    def prepare():
        kernel.unshare(kernel.CLONE_NEWPID | kernel.CLONE_NEWNS)
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
            os._exit(0)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
        if new_proc:
            kernel.mount("proc", "/proc", "proc")

    return prepare


def first_child(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return int(file.read().split()[0])


def outer_tid(pid, inner):
    for tid in kernel.threads(pid):
        if int(kernel.status(pid, "NSpid", tid).split()[-1]) == inner:
            return tid
    raise AssertionError(f"no thread {inner} in {pid}")


def test_G01_numbers_of_the_clients_own_namespace(either):
    daemon = either.start()
    client = daemon.client(BOB, prepare=own_pid_namespace())
    pid = first_child(client.pid)  # the namespace's pid 1, where the broker runs
    inner = client.thread()
    tid = outer_tid(pid, inner)
    init = kernel.sched_getattr(1)
    assert client.inner_pid == 1 and inner != tid

    answer = client.acquire(pid=1, tid=inner)
    assert_granted(answer, FIFO, 5)
    assert (answer.pid, answer.tid) == (pid, tid)
    answer = client.acquire(tid=inner, priority=6)
    assert_granted(answer, FIFO, 6)
    assert answer.tid == tid
    assert kernel.sched_getattr(pid) == (OTHER, 0, 0, False)
    assert kernel.sched_getattr(1) == init

    assert_granted(client.acquire(priority=7), FIFO, 7)
    assert kernel.sched_getattr(pid) == (FIFO, 7, 0, True)


def test_G01_a_child_in_the_clients_namespace(either):
    daemon = either.start()
    client = daemon.client(BOB, prepare=own_pid_namespace())
    inner = client.child()

    answer = client.acquire(pid=inner)

    assert_granted(answer, FIFO, 5)
    assert kernel.status(answer.pid, "NSpid").split()[-1] == str(inner)


def test_G01_what_cannot_be_mapped_touches_nobody(either):
    """Numbers that are somebody's outside, and nobody's inside."""
    daemon = either.start()
    outsider, victim = daemon.target(BOB), daemon.target(CAROL)
    client = daemon.client(BOB, prepare=own_pid_namespace())

    for pid in (outsider.pid, victim.pid, daemon.pid):
        answer = client.acquire(pid=pid)
        assert_refused(answer, "no-such-thread", "namespace")
        answer = client.acquire(tid=pid)
        assert_refused(answer, "no-such-thread", "namespace")
    assert outsider.sched() == victim.sched() == (OTHER, 0, 0, False)


def test_G01_by_pidfd_from_inside(daemon):
    client = daemon.client(BOB, prepare=own_pid_namespace())
    inner = client.child()

    answer = client.acquire_by_pidfd(inner)

    assert_granted(answer, FIFO, 5)
    assert kernel.status(answer.pid, "NSpid").split()[-1] == str(inner)


def test_R3_a_client_outside_the_daemons_pid_namespace(make_daemon):
    """The broker cannot see who asks, and says so."""
    daemon = make_daemon().start(prefix=["unshare", "--pid", "--mount-proc", "--fork",
                                         "--kill-child", "--"])
    daemon.pid = first_child(daemon.pid)
    client = daemon.client(BOB)

    refusal = client.receive()
    assert refusal.reason == "namespace"
    assert refusal.explanation.text
    assert client.receive() is None
    daemon.stop()  # what is left over cannot be asked from here


def own_user_namespace():
    """For a client's prepare: as a rootless container would be, with uid 0 inside."""
    uid = BOB

    def prepare():
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        kernel.unshare(kernel.CLONE_NEWUSER)
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"),
                           ("gid_map", f"0 {uid} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)

    return prepare


def test_G10_root_of_a_user_namespace_is_the_user_outside(either):
    daemon = either.start()
    client = daemon.client(0, prepare=own_user_namespace())

    hello = client.hello()
    assert hello.uid == BOB
    assert not hello.state & wire.STATE_ADMIN
    answer = client.acquire()
    assert_refused(answer, "user-namespace")
    assert str(BOB) in answer.explanation.text
    assert client.sched() == (OTHER, 0, 0, False)
    assert client.request(wire.RESTORE_ALL).reason == "admin-only"


def test_G10_served_where_the_policy_says_so(make_daemon):
    daemon = make_daemon().start({"Broker": {"UserNamespaces": "yes", "ThreadsPerUser": 2}})
    inside, outside = daemon.client(0, prepare=own_user_namespace()), daemon.client(BOB)

    assert_granted(inside.acquire(), FIFO, 5)
    assert [lease.uid for lease in daemon.leases()] == [BOB]
    assert_granted(outside.acquire(), FIFO, 5)
    assert_refused(inside.acquire(tid=inside.thread()), "threads-per-user")  # one quota for both


def subordinate_user(inner=4):
    """For a client's prepare: uid 200000 + @inner in a user namespace that ALICE made."""
    ready, go = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:  # the maker; the client joins it
        os.setgroups([])
        os.setresgid(ALICE, ALICE, ALICE)
        os.setresuid(ALICE, ALICE, ALICE)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        kernel.unshare(kernel.CLONE_NEWUSER)
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as file:
            file.write("0 200000 100")
    fd = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY)
    kernel.check(kernel.libc.setns(fd, kernel.CLONE_NEWUSER))
    os.write(go[1], b"x")
    os.waitpid(pid, 0)
    os.setgroups([])
    os.setresgid(inner, inner, inner)
    os.setresuid(inner, inner, inner)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)


def test_R12_subordinate_users_share_the_quota_of_their_owner(make_daemon):
    """U11: as many uids as a user has in /etc/subuid are one user to the broker."""
    daemon = make_daemon().start({"Broker": {"UserNamespaces": "yes", "ThreadsPerUser": 1}})
    owner, inside = daemon.client(ALICE), daemon.client(0, prepare=subordinate_user)
    assert inside.hello().uid == 200004
    assert_granted(owner.acquire(), FIFO, 5)

    assert_refused(inside.acquire(), "threads-per-user")
    assert inside.sched() == (OTHER, 0, 0, False)


def hidepid(mode):
    def prepare():
        kernel.unshare(kernel.CLONE_NEWNS)
        kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
        kernel.mount("proc", "/proc", "proc", data=f"hidepid={mode}")

    return prepare


ONLY_SYS_NICE = ["setpriv", "--bounding-set=-all,+sys_nice", "--inh-caps=-all", "--"]


@pytest.mark.parametrize("mode", [1, 2])
@pytest.mark.parametrize("prefix", [[], ONLY_SYS_NICE], ids=["all-capabilities", "only-sys-nice"])
def test_H01_S25_hidepid(make_daemon, mode, prefix):
    daemon = make_daemon().start(prepare=hidepid(mode), prefix=prefix)
    client, target, victim = daemon.client(BOB), daemon.target(BOB), daemon.target(CAROL)

    assert_granted(client.acquire(), FIFO, 5)
    assert_granted(client.acquire(pid=target.pid, tid=target.thread()), FIFO, 5)
    assert_refused(client.acquire(pid=victim.pid), "no-such-thread")


def test_S25_hidepid_of_the_client_changes_nothing(daemon):
    client, victim = daemon.client(BOB, prepare=hidepid(2)), daemon.target(CAROL)

    assert_granted(client.acquire(), FIFO, 5)
    assert_refused(client.acquire(pid=victim.pid), "no-such-thread")
    wait_until(lambda: victim.sched() == (OTHER, 0, 0, False))
