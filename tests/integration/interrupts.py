# SPDX-License-Identifier: MIT
"""The interrupts of this machine that a kernel thread serves, and a policy that gives them."""

import contextlib
import re
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
