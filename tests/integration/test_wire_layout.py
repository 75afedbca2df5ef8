# SPDX-License-Identifier: MIT
"""wire.py against the header that the C code is built from."""

import subprocess

import pytest

import wire

pytestmark = pytest.mark.without_root


@pytest.fixture(scope="module")
def printed(programs):
    output = subprocess.run([programs.wire_layout], stdout=subprocess.PIPE, text=True, check=True)
    return [line.split() for line in output.stdout.splitlines()]


@pytest.mark.parametrize("record", [*wire.RECORDS, *wire.PARTS])
def test_record_is_as_in_c(printed, record):
    fields = [
        (words[2], int(words[3]), int(words[4]))
        for words in printed
        if words[:2] == ["field", record]
    ]
    (size,) = [int(words[2]) for words in printed if words[:2] == ["record", record]]
    ours = [(field, offset, width) for field, offset, width, _ in wire.layout(record)]
    if record in wire.RECORDS and record != "header":
        ours = ours[len(wire.HEADER) :]

    assert ours == fields
    assert wire.size_of(record) == size


def test_every_record_of_c_is_known(printed):
    assert {words[1] for words in printed if words[0] == "record"} == {*wire.RECORDS, *wire.PARTS}


def test_numbers_are_as_in_c(printed):
    numbers = [(words[1], int(words[2])) for words in printed if words[0] == "number"]

    assert numbers
    for name, value in numbers:
        assert getattr(wire, name) == value, name


def test_reasons_are_as_in_c(printed):
    reasons = {words[3]: int(words[2]) for words in printed if words[0] == "reason"}

    assert reasons == wire.REASONS
