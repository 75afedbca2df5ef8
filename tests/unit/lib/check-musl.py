#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""M01: the library in a static program of musl, whose sched_* functions are stubs, gets its grant.

A broker of a few lines makes the thread real-time indeed; the program is docs/examples/promote.c,
run as an unprivileged user.
"""

import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile

NOBODY = 65534
SKIP = 77
REPLY = 0x8000
HEADER = "<IHHQ"  # size, version, verb, serial
ACQUIRE = HEADER + "QQQIIii"  # flags, pid, tid, want, policy, priority, nice
ANSWER = HEADER + "II16sQQIiiI"  # reason, flags, id, pid, tid, policy, priority, nice, reset


def serve(listener):
    """One client: a hello, then one request."""
    client, _ = listener.accept()
    client.settimeout(10)
    _, version, verb, serial = struct.unpack_from(HEADER, client.recv(4096))
    client.send(struct.pack(HEADER + "II", 24, version, verb | REPLY, serial, 0, 0))

    request = struct.unpack_from(ACQUIRE, client.recv(4096))
    _, version, verb, serial, _, pid, tid, _, policy, priority, nice = request
    os.sched_setscheduler(tid, policy | os.SCHED_RESET_ON_FORK, os.sched_param(priority))
    size = struct.calcsize(ANSWER)
    client.send(struct.pack(ANSWER, size, version, verb | REPLY, serial, 0, 0, bytes(16), pid, tid,
                            policy, priority, nice, 1))
    client.recv(4096)


def main(program):
    if os.geteuid() != 0:
        print("SKIP: needs root")
        return SKIP

    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        path = os.path.join(directory, "socket")
        # The build's own directory may be closed to others.
        program = shutil.copy(program, directory)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(path)
            os.chmod(path, 0o666)
            listener.listen()
            listener.settimeout(10)
            with subprocess.Popen([program], user=NOBODY, group=NOBODY, extra_groups=[],
                                  env={"RTGRANT_SOCKET": path}, stdout=subprocess.PIPE,
                                  text=True) as process:
                serve(listener)
                output = process.communicate(timeout=10)[0]

    print(output, end="")
    return 0 if output == "real-time, priority 65\n" else 1


sys.exit(main(sys.argv[1]))
