# SPDX-License-Identifier: MIT
"""rtgrantctl doctor on this machine, as an unprivileged user."""

import json

from agent import BOB, NOBODY

FINDING = {"id", "title", "health", "seen", "measured", "why", "now", "lasting", "lease"}


def examine(daemon, uid, *arguments):
    """(exit status, {check: finding})"""
    result = daemon.rtgrantctl(uid, "doctor", "--json", *arguments)
    assert result.stderr == ""
    report = json.loads(result.stdout)
    assert report["fit"] == (result.returncode == 0)
    assert all(set(finding) == FINDING and finding["seen"] for finding in report["findings"])
    return result.returncode, {finding["id"]: finding for finding in report["findings"]}


def test_A03_without_a_broker(make_daemon):
    """All routes are named, with what is missing; after a start of the daemon all is well."""
    daemon = make_daemon()

    _, findings = examine(daemon, NOBODY)

    routes = findings["routes"]
    assert routes["health"] != "fine" and routes["now"] and routes["lasting"]
    for route in ("own right: closed", "rtgrantd: closed", "RealtimeKit: ", "desktop portal: "):
        assert route in routes["seen"]
    assert findings["broker"]["health"] == "warning"

    daemon.start()
    _, findings = examine(daemon, NOBODY)
    assert findings["routes"]["health"] == "fine" and "rtgrantd: open" in findings["routes"]["seen"]
    assert findings["broker"]["health"] == "fine"


def test_a_user_without_a_role(make_daemon):
    daemon = make_daemon().start({"Role desktop": {"AllowUsers": "64001"}})

    _, findings = examine(daemon, BOB)

    assert "rtgrantd: no role" in findings["routes"]["seen"]


def test_a_broken_policy_is_seen(make_daemon):
    daemon = make_daemon().start()
    daemon.reload("[Broker]\nNonsense=1\n")

    _, findings = examine(daemon, BOB)

    assert findings["broker"]["health"] == "warning"
    assert "Nonsense" in findings["broker"]["seen"]


def test_what_is_measured(daemon):
    _, findings = examine(daemon, BOB)

    assert "us late as a rule" in findings["wake-up"]["measured"]
    assert "one reading takes" in findings["clocksource"]["measured"]


def test_K13_the_worst_comes_first(make_daemon):
    """Without --all what is fine is only named."""
    daemon = make_daemon()

    plain, everything = (daemon.rtgrantctl(NOBODY, "doctor", *options).stdout
                         for options in ((), ("--all",)))

    labels = [line.split("  ")[0] for line in plain.splitlines() if line[:1].isupper()]
    order = ["BAD", "WARNING", "NOTE", "CANNOT TELL"]
    assert labels == sorted(labels, key=order.index)
    assert "\nFINE " not in plain and "\nFINE " in everything
    assert "\x1b" not in plain


def test_nobody_elses_secrets(daemon):
    """Of root's process it says what everybody may read."""
    target = daemon.target(0)

    _, findings = examine(daemon, NOBODY, "--pid", target.pid)

    assert f"process {target.pid}" in findings["rttime"]["seen"]


def test_wrong_usage(daemon):
    for arguments in (("--pid", "x"), ("--pid", "0"), ("--user", "x"), ("operand",)):
        assert daemon.rtgrantctl(NOBODY, "doctor", *arguments).returncode == 2
    assert daemon.rtgrantctl(NOBODY, "status", "--sysroot", "/").returncode == 2
    gone = daemon.rtgrantctl(NOBODY, "doctor", "--pid", str(2**22))
    assert gone.returncode == 1 and "no process" in gone.stderr
