#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""rtgrant-reasons(7) has every reason of policy/reason.h, by word and number, and no other."""

import re
import sys

DECLARED = re.compile(r'X\(\w+, (\d+), "([a-z-]+)"\)')
CELL = r":  .+\n(?:   .+\n)*"
ROW = re.compile(r"^\|  \*([a-z-]+)\* \((\d+)\)\n" + CELL + CELL, re.M)


def main():
    header, manual = (open(path, encoding="utf-8").read() for path in sys.argv[1:3])
    wanted = [(word, number) for number, word in DECLARED.findall(header)]
    found = [(word, number) for word, number in ROW.findall(manual)]

    assert len(wanted) > 30, "policy/reason.h is not understood"
    for word, number in wanted:
        assert (word, number) in found, f"{word} ({number}) has no row with a cause and a remedy"
    for word, number in found:
        assert (word, number) in wanted, f"{word} ({number}) is no reason"
    assert len(found) == len(set(found)) == manual.count("\n|  "), "a row is there twice, or is cut"
    print(len(found), "reasons")


main()
