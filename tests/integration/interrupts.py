# SPDX-License-Identifier: MIT
"""The interrupts of this machine that a kernel thread serves, and a policy that gives them."""

import contextlib
import os
import re
import shutil
import socket
import struct
import subprocess
import time
from pathlib import Path

import kernel
import wire


def real_threads():
    """{tid: irq} of the interrupt threads there are."""
    found = {}
    for status in Path("/proc/2/task/2").glob("children"):
        for tid in status.read_text(encoding="ascii").split():
            with contextlib.suppress(OSError):
                name = Path("/proc", tid, "comm").read_text(encoding="utf-8").strip()
                match = re.fullmatch(r"irq/(\d+)-.*", name)
                if match:
                    found[int(tid)] = int(match[1])
    return found


class Line:
    """An interrupt that one thread serves."""

    def __init__(self, tid, irq):
        self.tid, self.irq, self.device = tid, irq, f"irq:{irq}"
        self.before = self.sched()

    def sched(self):
        return kernel.sched_getattr(self.tid)[:2]

    def restore(self):
        kernel.sched_setattr(self.tid, *self.before)

    @property
    def affinity(self):
        """The CPUs that it is delivered to, as the kernel writes them."""
        return self.affinity_path().read_text(encoding="ascii").strip()

    @affinity.setter
    def affinity(self, cpus):
        self.affinity_path().write_text(cpus, encoding="ascii")

    def affinity_path(self):
        return Path(f"/proc/irq/{self.irq}/smp_affinity_list")


def rule(line, priority=90):
    return {"Device": line.device, "Priority": priority}


def grants(*devices, priority="86-94"):
    """Changes to the policy: the desktop role gives the interrupts of these."""
    return {"Role desktop": {"IrqPriority": priority, "IrqDevices": " ".join(devices)}}


def ask(client, device, priority=90, **values):
    return client.acquire(want=wire.WANT_IRQ, irq=device, irq_priority=priority, role="desktop",
                          **values)


class Irqbalance:
    """The real one, which balances the given interrupts alone, every second."""

    PROGRAM = shutil.which("irqbalance", path="/usr/sbin:/usr/bin")
    DIRECTORY = Path("/run/irqbalance")

    def __init__(self, lines):
        self.made = not self.DIRECTORY.exists()
        self.DIRECTORY.mkdir(mode=0o755, exist_ok=True)
        kept = {line.irq for line in lines}
        self.others = [int(path.name) for path in Path("/proc/irq").iterdir()
                       if path.name.isdigit() and int(path.name) not in kept]
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            [self.PROGRAM, "--foreground", "--interval=1", *(f"--banirq={n}" for n in self.others)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.path = self.DIRECTORY / f"irqbalance{self.process.pid}.sock"
        end = time.monotonic() + 10
        while not self.path.exists():
            assert time.monotonic() < end and self.process.poll() is None, "no irqbalance"
            time.sleep(0.02)

    def ask(self, message):
        """Like everybody, it waits its turn: one may wait there at a time."""
        while True:
            with contextlib.suppress(BlockingIOError):
                return self._ask_now(message)
            time.sleep(0.05)

    def _ask_now(self, message):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(20)
            assert self.process.poll() is None, f"irqbalance ended: {self.process.returncode}"
            connection.connect(str(self.path))
            connection.sendmsg([message.encode()], [(
                socket.SOL_SOCKET, socket.SCM_CREDENTIALS, struct.pack("3i", os.getpid(), 0, 0))])
            answer = b""
            while True:  # to its end: whoever hangs up before kills it
                data = connection.recv(4096)
                if not data:
                    return answer.decode()
                answer += data

    def banned(self):
        """What it leaves alone, but for what it was started with."""
        words = re.findall(r"IRQ (\d+) ", self.ask("setup"))
        return {int(word) for word in words} - set(self.others)

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(20)
            self.process = None
        for path in self.DIRECTORY.glob("irqbalance*.sock"):
            path.unlink()

    def close(self):
        self.stop()
        if self.made:
            self.DIRECTORY.rmdir()
