# SPDX-License-Identifier: MIT
"""What is somebody else's cannot be found out by asking for it, on any way in: R16, S25, rtkit's W15.

Neither by words nor by the time that an answer takes; nor where the broker itself sees the
processes of others in /proc no more than they do (hidepid=2).
"""

import time

import pytest

import broker1
import bus as bus_module
from agent import ALICE, BOB, CAROL
from bus import KIT, KIT_PATH, TIMEOUT_S
from daemon import wait_until
from test_namespace import ONLY_SYS_NICE, hidepid
from ways import (UNTOUCHED, WAYS, YES, Broker1, Place, RealtimeKit, Socket,  # noqa: F401
                  in_general, of_all, place)
from kernel import FIFO

pytestmark = pytest.mark.skipif(not bus_module.is_here(),
                                reason="no dbus-daemon, polkitd or python3-dbus")

MISSING = (1 << 22) - 1


def over_socket(agent, pid):
    return agent.acquire(pid=pid, role="desktop").reason


def over_broker1(agent, address, pid):
    options = {"policy": "fifo", "priority": 5, "pid": pid, "role": "desktop"}
    return broker1.speak(agent, address, broker1.NAME, "Acquire", "a{sv}", (options,), True)[0]


def over_realtimekit(agent, address, pid):
    return bus_module.speak(agent, address, False, KIT, KIT_PATH, KIT, "MakeThreadRealtimeWithPID",
                            "ttu", (pid, 0, 5), TIMEOUT_S).error


def ask_over(asker, pid):
    """What the asker's process calls to ask for the process @pid."""
    return {Socket: (over_socket, pid), Broker1: (over_broker1, asker.bus.address, pid),
            RealtimeKit: (over_realtimekit, asker.bus.address, pid)}[type(asker)]


def refusal_ns(agent, n, ask, *arguments):
    """The median time of a refusal."""
    times = []
    for _ in range(n):
        begin = time.monotonic_ns()
        assert ask(agent, *arguments) not in ("", "none")
        times.append(time.monotonic_ns() - begin)
    return sorted(times)[n // 2]


@pytest.fixture(scope="module")
def hidden(programs, directory):
    made = Place(programs, directory, prepare=hidepid(2), prefix=ONLY_SYS_NICE)
    yield made
    made.close()


@pytest.fixture(params=["seen", "hidden"])
def where(request):
    made = request.getfixturevalue("place" if request.param == "seen" else "hidden")
    yield made
    made.end_clients()


@pytest.mark.parametrize("uid", [ALICE, CAROL], ids=["allowed", "refused"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_R16_the_time_tells_nothing(where, way, uid):
    asker, other = where.client(way, uid), where.client(way, BOB)
    pids = [MISSING, other.pid, 1]

    # In turn, and the best of each: a machine that slows down in between hurts all alike.
    times = [[asker.client.run(refusal_ns, 60, *ask_over(asker, pid)) for pid in pids]
             for _ in range(3)]
    best = list(map(min, zip(*times)))

    assert max(best) - min(best) < 300_000 or max(best) < 3 * min(best)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_S25_W15_hidden_processes_are_served_and_not_told_of(where, way):
    """rtkit-daemon says of each thread that there is none."""
    asker, own, other = where.client(way), where.client(way), where.client(way, BOB)
    tid = asker.client.thread()

    assert asker.grant(tid=tid) == asker.grant(pid=own.pid) == YES
    assert (asker.sched(tid), own.sched()) == ((FIFO, 5, 0, True), (FIFO, 5, 0, True))
    refused = [asker.grant(pid=pid) for pid in (other.pid, MISSING, 1)]
    assert len({(one.reason, in_general(one.words)) for one in refused}) == 1
    assert refused[0].reason == "no-such-thread"
    assert other.sched() == UNTOUCHED
    asker.client.end_thread(tid)
    wait_until(lambda: where.daemon.status().n_leases == 1, what="the end of the lease")
