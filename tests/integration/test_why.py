# SPDX-License-Identifier: MIT
"""rtgrantctl why: what stands in the way, and the shortest way round it."""

import json
import resource
import signal
import subprocess

import pytest

import bus as bus_module
import kernel
import wire
from agent import ALICE, BOB
from bus import RLIMIT_RTTIME, Bus
from daemon import assert_refused
from kernel import OTHER
from test_kernel import join

HIGH = {
    "Broker": {"Authority": "polkit"},
    "Role studio": {"AllowUsers": None, "PolkitAction": "org.rtgrant.realtime-high"},
}


def why(daemon, uid, *arguments):
    return json.loads(daemon.rtgrantctl(uid, "why", *arguments, "--json").stdout)


# ---- the last line ----


@pytest.mark.parametrize("request_, remedy", [
    (("--role", "studio", "-f", 15), "leave out --role: desktop gives it"),
    (("-f", 88), "add --clamp: SCHED_FIFO 20"),
    (("--nice", -20), "add --clamp: nice -15"),
    (("--role", "studio", "-f", 65), "an administrator can add the user to a group"),
    (("--role", "nowhere", "-f", 65), "roles with their priorities: desktop 1-20"),
], ids=["another-role", "less", "less-nice", "a-list", "no-such-role"])
def test_the_shortest_remedy_comes_last(daemon, request_, remedy):
    result = daemon.rtgrantctl(BOB, "why", *request_)

    assert result.returncode == 3, result.stderr
    assert result.stdout.splitlines()[-1].startswith(f"  remedy: {remedy}"), result.stdout
    assert why(daemon, BOB, *request_)["remedy"].startswith(remedy)


def test_a_yes_needs_none_and_says_which_role_and_why(daemon):
    result = daemon.rtgrantctl(BOB, "why", "-f", 9)

    assert result.returncode == 0
    assert "the first that allows you" in result.stdout
    assert "remedy" not in result.stdout and why(daemon, BOB, "-f", 9)["remedy"] is None


# ---- polkit's part ----


@pytest.fixture
def bus():
    if not bus_module.is_here():
        pytest.skip("no polkitd or dbus-daemon")
    made = Bus()
    yield made
    made.close()


def why_in_session(daemon, bus, enter, *arguments):
    process = bus.run({"systemd": "/run/systemd"},
                      ["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups",
                       daemon.programs.rtgrantctl, "why", *arguments],
                      {"RTGRANT_SOCKET": daemon.socket_path}, preexec_fn=enter, text=True,
                      stdout=subprocess.PIPE)
    text, _ = process.communicate(timeout=60)
    return text


def test_what_polkits_action_would_need(make_daemon, bus):
    daemon = make_daemon().start(HIGH, environment=bus.environment)
    request = ("--role", "studio", "-f", "65")

    without = why_in_session(daemon, bus, None, *request)
    assert ("  polkit: action org.rtgrant.realtime-high; active: auth_admin_keep, inactive: no, "
            "any: no; you have no session at the machine itself, so no unless") in without
    assert without.splitlines()[-1] == \
        "  remedy: do it from a session at the machine itself (then auth_admin_keep)"

    within = why_in_session(daemon, bus, bus.session(ALICE), *request)
    assert "you sit at the machine, so auth_admin_keep unless" in within
    assert within.splitlines()[-1] == "  remedy: ask in earnest, with --ask and an administrator's password"

    part = json.loads(why_in_session(daemon, bus, bus.session(ALICE), *request, "--json"))
    assert part["polkit"] == {"action": "org.rtgrant.realtime-high", "active": "auth_admin_keep",
                              "inactive": "no", "any": "no", "place": "active"}

    # where a list decides, it has no part
    assert json.loads(why_in_session(daemon, bus, None, "-f", "5", "--json"))["polkit"] is None


def test_polkit_does_not_answer(make_daemon, bus):
    daemon = make_daemon().start(HIGH, environment=bus.environment)
    bus.kill()

    text = why_in_session(daemon, bus, None, "--role", "studio", "-f", "65")

    assert "  polkit: action org.rtgrant.realtime-high; polkit does not tell" in text


# ---- the kernel's part ----


def test_limits_of_that_process_and_where_they_come_from(daemon):
    target = daemon.target(BOB)

    text = daemon.rtgrantctl(BOB, "why", "-f", 90, "-p", target.pid).stdout
    part = why(daemon, BOB, "-f", 90, "-p", target.pid)["kernel"]

    assert "RLIMIT_RTPRIO" in text and "CAP_SYS_NICE: no" in text
    with open(f"/proc/{target.pid}/limits", encoding="ascii") as file:
        (line,) = [line for line in file if line.startswith("Max locked memory")]
    assert [part["limits"]["RLIMIT_MEMLOCK"][key] for key in ("soft", "hard")] == line.split()[3:5]
    assert all(limit["origin"] for limit in part["limits"].values())
    assert part["cap_sys_nice"] is False


def set_rttime(agent, soft_us, hard_us):
    resource.setrlimit(RLIMIT_RTTIME, (soft_us, hard_us))


def start_child(agent, hard_us=None):
    """A sleep; with @hard_us a limit of its own. It ends with its parent."""
    def prepare():
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        if hard_us:
            resource.setrlimit(RLIMIT_RTTIME, (200_000, hard_us))

    return subprocess.Popen(["sleep", "60"], preexec_fn=prepare).pid


def test_a_limit_that_a_child_inherited(daemon):
    parent = daemon.client(BOB, prepare=lambda: set_rttime(None, 200_000, 300_000))
    child, own = parent.run(start_child), parent.run(start_child, 250_000)

    def found(pid):
        return why(daemon, BOB, "-f", 5, "-p", pid)["kernel"]["limits"]["RLIMIT_RTTIME"]

    inherited = found(child)
    assert (inherited["soft"], inherited["hard"]) == ("200000", "300000")
    assert inherited["origin"].startswith(f"inherited from pid {parent.pid} (")
    assert found(own)["origin"] == "the process itself, or who started it"

    # as the kernel does it, when the parent ran too long
    parent.run(set_rttime, 250_000, 300_000)
    assert found(child)["origin"] == inherited["origin"]


def test_a_group_without_budget_is_known_before(daemon, budgetless_group):
    client = daemon.client(BOB, prepare=join(budgetless_group))

    answer = client.acquire(flags=wire.ACQUIRE_DRY_RUN)
    assert_refused(answer, "kernel-rt-group")
    assert budgetless_group.name in answer.explanation.text

    said = why(daemon, BOB, "-f", 5, "-p", client.pid)
    assert (said["verdict"], said["refusal"]["reason"]) == ("no", "kernel-rt-group")
    assert said["kernel"]["rt_budget_us"] == 0
    assert said["kernel"]["rt_budget_path"] == f"{budgetless_group}/cpu.rt_runtime_us"
    assert why(daemon, BOB, "--nice", -5, "-p", client.pid)["verdict"] == "yes"
    assert client.sched() == (OTHER, 0, 0, False)
