# SPDX-License-Identifier: MIT
"""RLIMIT_MEMLOCK and RLIMIT_RTTIME of processes, kept in files for a broker that may not set them.

The broker's side of it is tools/fake-prlimit.c.
"""

import shutil
import tempfile
from pathlib import Path
from types import SimpleNamespace

UNLIMITED = 2**64 - 1


class Limit:
    """One limit of processes, as the broker sees it: soft and hard. What is not kept is real."""

    def __init__(self, directory, name, suffix):
        self.directory = directory
        self.name = name
        self.suffix = suffix

    def __call__(self, pid):
        try:
            return tuple(int(n) for n in self._file(pid).read_text().split())
        except FileNotFoundError:
            return self.real(pid)

    def real(self, pid):
        for line in Path(f"/proc/{pid}/limits").read_text().splitlines():
            if line.startswith(self.name):
                words = line.removeprefix(self.name).split()
                return tuple(UNLIMITED if n == "unlimited" else int(n) for n in words[:2])
        raise AssertionError("no such limit")

    def set(self, pid, soft, hard):
        self._file(pid).write_text(f"{soft} {hard}\n")

    def inherit(self, parent, child):
        """What the kernel does in fork(2)."""
        self.set(child, *self(parent))

    def _file(self, pid):
        return self.directory / f"{pid}{self.suffix}"


class Limits:
    def __init__(self, directory):
        self.directory = Path(tempfile.mkdtemp(dir=directory))
        self.memlock = Limit(self.directory, "Max locked memory", "")
        self.rttime = Limit(self.directory, "Max realtime timeout", ".rttime")

    def keep_for(self, daemon, policy=None, environment=None, **values):
        """Has that daemon keep limits here, whenever it starts. Returns it."""
        start = daemon.start
        environment = {**(environment or {}), "RTGRANT_TEST_LIMITS": str(self.directory)}
        daemon.programs = SimpleNamespace(
            **{**vars(daemon.programs), "rtgrantd": daemon.programs.rtgrantd_limits})
        daemon.start = lambda policy=policy: start(policy, environment=environment, **values)
        return daemon

    def close(self):
        shutil.rmtree(self.directory)
