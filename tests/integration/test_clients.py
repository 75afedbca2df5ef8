# SPDX-License-Identifier: MIT
"""Programs that people have already, unchanged, on rtgrantd and on rtkit-daemon: who gets what.

As an unprivileged user of an active session, by the defaults of the actions. What is expected is
read from the kernel; the last lines of the run are the table of it.
"""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import wave
from collections import namedtuple

import pytest

import bus as bus_module
import kernel
from agent import ALICE
from conftest import BUILD
from bus import KIT, Bus, RtkitDaemon
from daemon import START_TIMEOUT_S, Daemon, wait_until

pytestmark = pytest.mark.skipif(not bus_module.is_here() or not bus_module.has_rtkit(),
                                reason="no dbus-daemon, polkitd, python3-dbus or rtkit-daemon")

CLIENTS = pathlib.Path(__file__).resolve().parents[1] / "clients"
SDL_CLIENT = BUILD / "tests/clients/sdl-client"
POLICIES = {kernel.OTHER: "OTHER", kernel.FIFO: "FIFO", kernel.RR: "RR", kernel.BATCH: "BATCH",
            kernel.IDLE: "IDLE"}
BROKERS = ["rtgrantd", "rtkit-daemon"]

# what a thread is to have in the end; @name: of the thread, "" for any; @nice: None for any
Wanted = namedtuple("Wanted", "program name policy priority nice")

# @refused: what it says where rtkit-daemon gives it nothing
Case = namedtuple("Case", "name needs wanted refused", defaults=("",))

# no path of it is the same on two architectures
MINI_BROWSER = next(map(str, pathlib.Path("/usr/lib").glob("*/webkit2gtk-4.1/MiniBrowser")),
                    "MiniBrowser of WebKitGTK 4.1")

CASES = [
    Case("pulseaudio", ["pulseaudio"], [
        Wanted("pulseaudio", "pulseaudio", "OTHER", 0, -11),
        Wanted("pulseaudio", "null-sink", "RR", 5, None)]),
    Case("pipewire", ["pipewire", "wireplumber", "pw-cat", "dbus-run-session"], [
        Wanted("pipewire", "", "OTHER", 0, -11),
        Wanted("pipewire", "", "RR", 20, None),
        Wanted("wireplumber", "", "OTHER", 0, -11),
        Wanted("wireplumber", "", "RR", 20, None),
        Wanted("pw-cat", "", "RR", 20, None)]),
    Case("portal", ["pipewire", "/usr/libexec/xdg-desktop-portal", "gdbus", "dbus-run-session"], [
        Wanted("pipewire", "", "OTHER", 0, -11),
        Wanted("pipewire", "", "RR", 20, None)]),
    Case("sdl", ["dbus-run-session"], [Wanted("sdl-client", "SDLAudioP2", "OTHER", 0, -15)]),
    Case("sdl-realtime", ["dbus-run-session"],
         [Wanted("sdl-client", "SDLAudioP2", "RR", 20, None)]),
    # it asks for a property by a name that rtkit-daemon gave up in 2012
    Case("fluidsynth", ["fluidsynth", "pulseaudio"],
         [Wanted("fluidsynth", "", "RR", 20, None)], "Failed to set thread to high priority"),
    # Large packages, which ./dev test clients installs. What they use is up to their version: of
    # the browsers' threads the ones that do the sound are those that count.
    Case("firefox", ["firefox-esr", "pulseaudio", "dbus-run-session"], [
        Wanted("firefox-esr", "AudioIP~allback", "RR", 10, None)]),
    Case("webkit", [MINI_BROWSER, "Xvfb", "dbus-run-session"], [
        # and "Core: Scrolling", where WebKit has not given up after the 20 ms that it waits
        Wanted("WebKitNetworkProcess", "Storage", "RR", 5, None),
        Wanted("WebKitWebProcess", "EventDispatcher", "RR", 5, None)]),
    Case("easyeffects", ["easyeffects", "pipewire", "wireplumber", "Xvfb", "dbus-run-session"], [
        Wanted("easyeffects", "", "RR", 20, None)]),
]


class Rtgrantd:
    def __init__(self, programs, directory, bus):
        where = tempfile.mkdtemp(dir=directory)
        os.chmod(where, 0o755)
        self.daemon = Daemon(programs, where)
        self.daemon.start({
            "Broker": {"Authority": "polkit", "RealtimeKitRole": "desktop"},
            "Role desktop": {"AllowUsers": None, "PolkitAction": "org.rtgrant.realtime"},
        }, environment=bus.environment)
        wait_until(lambda: bus_module.owner_of(bus, KIT) == self.daemon.pid, 10, "the name")

    def log(self):
        return self.daemon.log()

    def close(self):
        self.daemon.take_as_base()
        self.daemon.close()


@pytest.fixture(scope="module")
def table(request):
    """{(client, program, thread): {broker: what it has, as words}}, for the last lines of the run."""
    rows = {}
    yield rows
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print(f"\n# {'client':13} {'program':21} {'thread':16} {BROKERS[0]:22} {BROKERS[1]}")
        for key, by_broker in sorted(rows.items()):
            has = [", ".join(sorted(by_broker.get(broker, {"-"}))) for broker in BROKERS]
            print(f"# {key[0]:13} {key[1]:21} {key[2]:16} {has[0]:22} {has[1]}")


def note(table, broker, client, program, thread, words):
    table.setdefault((client, program, thread), {}).setdefault(broker, set()).add(words)


@pytest.fixture(params=BROKERS)
def broker(request, programs, directory):
    """The name of the broker, its bus, what takes a process into a session on it, and itself."""
    bus, made = Bus(), None
    try:
        enter = bus.session(ALICE)
        made = (Rtgrantd(programs, directory, bus) if request.param == "rtgrantd"
                else RtkitDaemon(bus))
        yield request.param, bus, enter, made
    finally:
        if made:
            made.close()
        bus.close()


@pytest.fixture(scope="module")
def files(directory):
    """What the scripts find in their environment."""
    where = tempfile.mkdtemp(dir=directory)
    os.chmod(where, 0o755)
    shutil.copytree(CLIENTS, f"{where}/clients")
    if SDL_CLIENT.exists():
        shutil.copy(SDL_CLIENT, f"{where}/clients")
    with wave.open(f"{where}/silence.wav", "wb") as sound:
        sound.setparams((2, 2, 48000, 0, "NONE", None))
        sound.writeframes(bytes(48000 * 4 * 120))
    return {"BUS_SESSION": f"{where}/clients/session.conf", "SOUND": f"{where}/silence.wav",
            "SDL_CLIENT": f"{where}/clients/sdl-client", "SCRIPTS": f"{where}/clients"}


@pytest.fixture
def run(broker, directory, files):
    """Runs a script of tests/clients as alice; all that it started ends with the test."""
    _, bus, enter, _ = broker
    started = []

    def start(name, **values):
        home = tempfile.mkdtemp(dir=directory)
        os.chown(home, ALICE, ALICE)
        environment = {**files, "HOME": home, "XDG_RUNTIME_DIR": home,
                       "XDG_CACHE_HOME": f"{home}/.cache", "USER": "alice", "LOGNAME": "alice",
                       "LC_ALL": "C.UTF-8"}
        process = bus.run(
            {}, ["setpriv", f"--reuid={ALICE}", f"--regid={ALICE}", "--clear-groups",
                 "--inh-caps=-all", "--bounding-set=-all", f"{files['SCRIPTS']}/{name}.sh"],
            environment, start_new_session=True, preexec_fn=enter, cwd=home,
            stdin=subprocess.DEVNULL, text=True, **values)
        started.append(process)
        return process

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout:
            process.stdout.close()
        wait_until(lambda: not list(threads_of_session(process.pid)), 10, "the end of the clients")


def threads_of_session(session):
    """(program, name, policy, priority, nice) of all threads of a session of processes."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError, OSError):
            if os.getsid(int(pid)) != session:
                continue
            program = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
            for tid in kernel.threads(int(pid)):
                sched = kernel.sched_getattr(tid)
                name = pathlib.Path(f"/proc/{pid}/task/{tid}/comm").read_text("utf-8").strip()
                yield Wanted(program, name, POLICIES.get(sched.policy, str(sched.policy)),
                             sched.priority, sched.nice)


def is_like(thread, wanted):
    return (thread.program == wanted.program and wanted.name in ("", thread.name)
            and (thread.policy, thread.priority) == (wanted.policy, wanted.priority)
            and wanted.nice in (None, thread.nice))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_client(broker, run, files, table, case):
    missing = [program for program in case.needs if not shutil.which(program)]
    if missing:
        pytest.skip("not installed: " + " ".join(missing))
    if case.name.startswith("sdl") and not SDL_CLIENT.exists():
        pytest.skip("built without SDL2")
    name, bus, _, made = broker
    refused = name == "rtkit-daemon" and case.refused
    log = tempfile.NamedTemporaryFile("w")
    process = run(case.name, stdout=log, stderr=subprocess.STDOUT)

    def missing_threads():
        threads = list(threads_of_session(process.pid))
        return [one for one in case.wanted if not any(is_like(thread, one) for thread in threads)]

    def output():
        return pathlib.Path(log.name).read_text("utf-8", errors="replace")

    try:
        wait_until(lambda: refused in output() if refused else not missing_threads(),
                   START_TIMEOUT_S)
        assert not refused or missing_threads() == case.wanted
    except AssertionError:
        print(output()[-5000:], *threads_of_session(process.pid), sep="\n")
        print(bus.log()[-2000:], *made.log().splitlines()[-20:], sep="\n")
        raise AssertionError(f"not seen: {missing_threads()}") from None
    if case.name == "portal" and name == "rtgrantd":
        assert any("program=/usr/libexec/xdg-desktop-portal" in line for line in bus.asked())
    for each in threads_of_session(process.pid):
        if each.priority > 0:
            note(table, name, case.name, each.program, each.name, f"{each.policy} {each.priority}")
        elif each.nice < 0:
            note(table, name, case.name, each.program, each.name, f"{each.policy} nice {each.nice}")


def test_rtkit_test(broker, run, table):
    """rtkit-daemon's own test program."""
    if not os.path.exists("/usr/libexec/installed-tests/rtkit/rtkit-test"):
        pytest.skip("no rtkit-test")
    name, *_ = broker

    process = run("rtkit-test", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output, _ = process.communicate(timeout=20)

    assert process.returncode == 0, output
    for line, words in (("SCHED_OTHER with nice level: -10", "OTHER nice -10"),
                        ("SCHED_RR with priority 10", "RR 10")):
        assert line in output
        note(table, name, "rtkit-test", "rtkit-test", "as it says", words)
