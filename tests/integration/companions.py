# SPDX-License-Identifier: MIT
"""Programs of the tests' own that run beside the broker, on its bus."""

import os
import pathlib
import queue
import subprocess
import sys
import threading

import pytest

PYTHON = "/usr/bin/python3"
HERE = pathlib.Path(__file__).resolve().parent


def has_gi():
    return subprocess.run([PYTHON, "-c", "from gi.repository import Gio"], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0


class Program:
    """A script beside this one, on the bus; what it says is read at once."""

    def __init__(self, bus, name, *arguments):
        self.process = subprocess.Popen([PYTHON, "-B", str(HERE / name), *map(str, arguments)],
                                        stdout=subprocess.PIPE, stderr=sys.stderr, text=True,
                                        env={**os.environ, **bus.environment})
        self.lines = []
        self._ready = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._ready.get(timeout=60), f"{name} did not start"

    def _read(self):
        for line in self.process.stdout:
            if line == "ready\n":
                self._ready.put(True)
            else:
                self.lines.append(line.strip())
        self._ready.put(False)

    def close(self):
        self.process.kill()
        self.process.wait()
        self._reader.join()
        self.process.stdout.close()


@pytest.fixture
def start():
    started = []

    def start_one(*arguments):
        started.append(Program(*arguments))
        return started[-1]

    yield start_one
    for each in started:
        each.close()


def start_time(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[19])


def agent_for(start, bus, client, mode):
    return start(bus, "authentication_agent.py", client.pid, start_time(client.pid), mode)
