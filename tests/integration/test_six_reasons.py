# SPDX-License-Identifier: MIT
"""Six situations that rtkit-daemon answers with the same four words.

Here each has a reason and a remedy of its own, on the socket, org.rtgrant.Broker1 and RealtimeKit's
interface; the last lines are the table of what was said.
"""

import os
import resource
import signal
import time

import pytest

import bus as bus_module
import hogs
import ways
from agent import ALICE, BOB, CAROL, Client
from bus import Bus, RtkitDaemon, limit_rttime
from daemon import wait_until
from hogs import Hog
from kernel import OTHER
from ways import RULES, WAYS, in_general, of_all, place, policy, with_policy  # noqa: F401

pytestmark = pytest.mark.skipif(not bus_module.is_here(),
                                reason="no dbus-daemon, polkitd or python3-dbus")


def join(group):
    def prepare():
        limit_rttime()()
        (group / "cgroup.procs").write_text(str(os.getpid()))

    return prepare


def ask_too_high(new):
    return new(ALICE).grant(21)


def ask_with_lethal_limit(new):
    """PipeWire sets 0 and 0 where a portal has read the limits too early."""
    asker = new(ALICE, prepare=lambda: resource.setrlimit(bus_module.RLIMIT_RTTIME, (0, 0)))
    refused = asker.grant()
    time.sleep(0.05)
    asker.client.thread()  # it lives
    return refused


def ask_without_limit(new):
    return new(ALICE, prepare=None).grant()


def ask_whom_polkit_refuses(new):
    return new(CAROL).grant_with_patience()


def ask_for_another_user(new):
    return new(ALICE).grant(pid=new(BOB).pid)


def ask_without_budget(group):
    return lambda new: new(ALICE, prepare=join(group)).grant()


def ask_in_the_window(new):
    return new(ALICE).grant()


@pytest.fixture
def six(budgetless_group):
    return {
        "priority above the limit": ("priority-limit", ask_too_high),
        "RLIMIT_RTTIME 0": ("rttime-lethal", ask_with_lethal_limit),
        "polkit's no": (bus_module.NO, ask_whom_polkit_refuses),
        "another user's thread": ("no-such-thread", ask_for_another_user),
        "cgroup without RT budget": ("kernel-rt-group", ask_without_budget(budgetless_group)),
        "after a hog was demoted": ("back-off", ask_in_the_window),
    }


@pytest.fixture
def told(request):
    """Prints what is put into it, whether the test passes or not."""
    lines = []
    yield lines
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(f"\n# {'situation':25} {'way in':12} reason, words and remedy")
        for line in lines:
            print("#", line)


def hog_is_demoted(place):
    """A thread of alice's has run on, and is demoted for a minute."""
    owner = place.client(ways.Socket, prepare=None)  # a hog has limits of its own
    hog = Hog(owner.client, hogs.spin, role="desktop")
    wait_until(lambda: hog.sched().policy == OTHER, what="its demotion")
    hog.rest()


def test_six_situations_have_six_reasons_and_remedies(place, with_policy, six, told):
    with_policy(policy({"BackOff": "1min", "BackOffMax": "1min"}, {"RunMax": "200ms"}))
    said = {}
    for situation, (reason, ask) in six.items():
        if ask is ask_in_the_window:
            hog_is_demoted(place)
        for way in WAYS:
            answer = ask(lambda *a, way=way, **v: place.client(way, *a, **v))
            said[situation, way] = answer
            told.append(f"{situation:25} {way.__name__:12} {answer.reason}: {answer.words}")
            assert answer.reason == reason
        # whatever is said on the socket is said on the bus
        assert len({in_general(said[situation, way].words) for way in WAYS}) == 1, situation

    for way in WAYS:
        answers = [said[situation, way] for situation in six]
        assert len({answer.reason for answer in answers}) == 6
        assert len({in_general(answer.words.rpartition("; ")[2]) for answer in answers}) == 6


@pytest.mark.skipif(not bus_module.has_rtkit(), reason="no rtkit-daemon")
def test_six_situations_are_one_for_rtkit_daemon(six, told):
    """What the table is to be compared with; its window comes when it was held up itself."""
    bus = Bus(RULES)
    made, reference = [], None

    def new(uid, prepare=limit_rttime()):
        made.append(Client(None, uid, prepare=prepare))
        return ways.RtkitDaemon(bus, made[-1])

    try:
        reference = RtkitDaemon(bus, "--canary-cheep-msec=100", "--canary-watchdog-msec=200")
        for situation, (_, ask) in six.items():
            if ask is ask_with_lethal_limit:
                # with 0 it grants, and the kernel kills
                situation, ask = "RLIMIT_RTTIME unset", ask_without_limit
            if ask is ask_in_the_window:
                os.kill(reference.pid, signal.SIGSTOP)
                time.sleep(1)
                os.kill(reference.pid, signal.SIGCONT)
                wait_until(lambda: "starving" in reference.log(), what="its alarm")
            told.append(f"{situation:25} rtkit-daemon {ask(new).reason}")
            assert told[-1].endswith("AccessDenied: Operation not permitted")
    finally:
        for client in made:
            client.kill()
        if reference:
            reference.close()
        bus.close()
