# SPDX-License-Identifier: MIT
"""What leases share, read from the kernel: the latency of the machine, disks made of files."""

import os
import struct
import subprocess
from pathlib import Path

DEVICE = "/dev/cpu_dma_latency"


class Latency:
    """What is in force for the whole machine; our own descriptor asks for nothing."""

    def __init__(self):
        self.fd = os.open(DEVICE, os.O_RDWR)
        self.before = self()

    def __call__(self):
        (value,) = struct.unpack("i", os.pread(self.fd, 4, 0))
        return value

    def close(self):
        os.close(self.fd)


class Disk:
    """A loop device on a file of its own."""

    def __init__(self, directory):
        self.file = Path(directory) / "disk"
        with open(self.file, "wb") as file:
            file.truncate(16 << 20)
        self.path = subprocess.run(["losetup", "-f", "--show", self.file], check=True, text=True,
                                   capture_output=True).stdout.strip()
        self.name = os.path.basename(self.path)
        self.queue = Path(f"/sys/block/{self.name}/queue/max_sectors_kb")
        self.before = self()
        assert self.before > 512

    def __call__(self):
        return int(self.queue.read_text())

    def number(self):
        return f"{os.major(os.stat(self.path).st_rdev)}:{os.minor(os.stat(self.path).st_rdev)}"

    def close(self):
        self.queue.write_text(str(self.before))
        subprocess.run(["losetup", "-d", self.path], check=True)
        self.file.unlink()
