#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
--help, the manual page and the completions know every option of a program, and no other; the help
fits a terminal of 90 columns and has at least five examples.
"""

import re
import subprocess
import sys

DECLARED = re.compile(r'^ +\{ "([a-z-]+)", (?:no|required)_argument', re.M)
EXAMPLE = re.compile(r"^  rtgrant(?:ctl|-latency)? ", re.M)
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]+)")


def main():
    program, source, manual, *completions = sys.argv[1:]
    text = subprocess.run([program, "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    with open(source, encoding="utf-8") as file:
        options = {f"--{name}" for name in DECLARED.findall(file.read())}
    assert len(options) > 5, "the source is not understood"

    assert all(len(line) <= 90 for line in text.splitlines()), "a line of the help is too long"
    assert len(EXAMPLE.findall(text.split("Examples:")[1])) >= 5, "too few examples"
    for path in [None, manual, *completions]:
        words = text
        if path:
            with open(path, encoding="utf-8") as file:
                words = file.read()
        for option in options:
            assert option in OPTION.findall(words), f"{path or '--help'} lacks {option}"
    unknown = set(OPTION.findall(text)) - options - {"--sched-runtime"}
    if program.endswith("ctl"):
        unknown -= {"--nice", "--role"}  # of rtgrant, for `why`
    assert not unknown, f"the help has {unknown}"


main()
