#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What librtgrant shows to the world is what its header declares, and it needs libc alone."""

import re
import subprocess
import sys

library, header, nm, readelf, sanitize = sys.argv[1:]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported():
    lines = run(nm, "-D", "--defined-only", library).splitlines()
    symbols = (line.split()[1:] for line in lines)
    return {name.split("@")[0] for kind, name in symbols if kind != "A"}


def declared():
    text = re.sub(r"/\*.*?\*/", "", open(header).read(), flags=re.DOTALL)
    text = re.sub(r"^\s*#.*$|\btypedef\b[^;]*;", "", text, flags=re.MULTILINE)
    return set(re.findall(r"\b(rtgrant_\w+)\(", text))


def dynamic(tag):
    return set(re.findall(rf"\({tag}\).*\[(.*)\]", run(readelf, "-d", library)))


faults = []
for name in sorted(exported() ^ declared()):
    where = "exported but not declared" if name in exported() else "declared but not exported"
    faults.append(f"{name}: {where}")
if len(declared()) < 20:
    faults.append(f"{header}: only {len(declared())} functions found")
needed = {name for name in dynamic("NEEDED") if not name.startswith("ld-linux")}
if needed != {"libc.so.6"} and sanitize == "none":
    faults.append(f"needs {sorted(needed)}")
if dynamic("SONAME") != {"librtgrant.so.0"}:
    faults.append(f"is named {sorted(dynamic('SONAME'))}")

sys.exit("\n".join(faults) or 0)
