#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""librtgrant(3) names all functions and reasons of the header; its example is the compiled one."""

import re
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


manual, header, example = map(read, sys.argv[1:])
# In scdoc a backslash escapes, in code too.
manual = manual.replace("\\\\", "\\")
faults = []

for function in sorted(set(re.findall(r"^[\w* ]*\b(rtgrant_\w+)\(", header, re.MULTILINE))):
    if f"*{function}*(" not in manual:
        faults.append(f"{function}() is missing")

for reason in re.findall(r"^ +RTGRANT_REASON_(\w+) =", header, re.MULTILINE):
    if reason != "NONE" and not re.search(rf"\b{reason}\b", manual):
        faults.append(f"reason {reason} is missing")

code = example.split("\n", 1)[1].strip()
if code not in manual:
    faults.append("the example is another than docs/examples/promote.c")

sys.exit("\n".join(faults) or 0)
