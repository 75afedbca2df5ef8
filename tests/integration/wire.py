# SPDX-License-Identifier: MIT
"""The wire of client/protocol.h a second time, so that a fault in the C code cannot hide itself.

Written from the header by hand; test_wire_layout.py compares both.
"""

import struct
from types import SimpleNamespace

VERSION = 1
RECORD_MAX = 4096

HELLO = 1
ACQUIRE = 2
UPDATE = 3
RENEW = 4
RELEASE = 5
LIST = 6
WATCH = 7
REVOKE = 8
RELOAD = 9
RESTORE_ALL = 10
POLICY = 11
WHY = 12
OBSERVE = 13
OCCUPANTS = 14
REPLY = 0x8000
EVENT = 0x4000

WANT_SCHED = 1
WANT_NICE = 2
WANT_MEMLOCK = 4
WANT_CPU_LATENCY = 8
WANT_IRQ = 16
WANT_BLOCK_QUEUE = 32

LIFETIME_THREAD = 0
LIFETIME_CONNECTION = 1
LIFETIME_SECONDS = 2

ACQUIRE_DRY_RUN = 1
ACQUIRE_CLAMP = 2
ACQUIRE_MAY_ASK = 1 << 2
ACQUIRE_PIDFD = 8
ACQUIRE_RELATIVE = 16
ACQUIRE_OR_LESS = 32

HELLO_ADMIN = 1
HELLO_MAY_ASK = 2
LIST_ALL = 1

ANSWER_CLAMPED = 1
ANSWER_DRY_RUN = 2
ANSWER_UPDATED = 4
ANSWER_NOTED = 8

STATE_DEGRADED = 1
STATE_ADMIN = 2
STATE_POLICY_BROKEN = 4
STATE_OLD_KERNEL = 8

LEASE_IN_FORCE = 0
LEASE_CHANGED = 1
LEASE_DEMOTED = 2

EVENT_GRANTED = 1
EVENT_UPDATED = 2
EVENT_ENDED = 3
EVENT_REVOKED = 4
EVENT_CHANGED = 5
EVENT_LOWERED = 6
EVENT_DEMOTED = 7
EVENT_RESTORED = 8
EVENT_OVER_BUDGET = 9
EVENT_RESTARTED = 10

OFFERS_MAX = 16
LEASES_MAX = 11
POLICY_ENTRIES_MAX = 9
STEPS_MAX = 22
OCCUPANTS_MAX = 5
OBSERVE_MAY_ASK = 1

REASONS = {
    "none": 0,
    "malformed": 1,
    "version": 2,
    "invalid": 3,
    "unsupported": 4,
    "no-such-thread": 10,
    "target-privileged": 11,
    "namespace": 12,
    "target-changed": 13,
    "no-such-lease": 14,
    "not-connector": 15,
    "not-allowed": 20,
    "denied": 21,
    "no-such-role": 22,
    "policy-not-in-role": 23,
    "priority-limit": 24,
    "nice-limit": 25,
    "lifetime-limit": 26,
    "user-namespace": 27,
    "admin-only": 28,
    "not-authorized": 29,
    "authority-unavailable": 30,
    "authority-busy": 31,
    "needs-authorization": 32,
    "rttime": 33,
    "no-active-session": 34,
    "admission": 35,
    "above-server": 36,
    "rttime-lethal": 37,
    "threads-per-user": 40,
    "threads-per-role": 41,
    "threads-total": 42,
    "rate": 43,
    "connections-per-user": 44,
    "connections-total": 45,
    "resources": 46,
    "resource-not-in-role": 50,
    "resource-limit": 51,
    "memlock-quota": 52,
    "resource-unavailable": 53,
    "no-such-device": 54,
    "on-battery": 55,
    "irq-not-in-role": 56,
    "irq-not-threaded": 57,
    "irq-not-threadable": 58,
    "irq-ambiguous": 59,
    "kernel-capability": 60,
    "kernel-rt-group": 61,
    "kernel-seccomp": 62,
    "kernel-lsm": 63,
    "kernel-other": 64,
    "kernel-mismatch": 65,
    "degraded": 66,
    "released": 80,
    "thread-ended": 81,
    "disconnected": 82,
    "expired": 83,
    "revoked": 84,
    "shutdown": 85,
    "changed-by-others": 86,
    "credentials-changed": 87,
    "policy-reload": 88,
    "restart": 89,
    "ran-on": 90,
    "cpu-share": 91,
    "cpu-per-user": 92,
    "cpu-reserve": 93,
    "starved": 96,
    "back-off": 94,
    "back-off-over": 95,
    "reload-failed": 100,
}
REASON_WORDS = {number: word for word, number in REASONS.items()}

# Each record after its header: field name and struct(3) format, in order.
RECORDS = {
    "header": (),
    "hello": (("flags", "Q"),),
    "acquire": (
        ("flags", "Q"),
        ("pid", "Q"),
        ("tid", "Q"),
        ("want", "I"),
        ("policy", "I"),
        ("priority", "i"),
        ("nice", "i"),
        ("lifetime", "I"),
        ("lifetime_s", "I"),
        ("role", "32s"),
        ("reason", "64s"),
        ("period_ns", "Q"),
        ("computation_ns", "Q"),
        ("deadline_ns", "Q"),
        ("memlock_bytes", "Q"),
        ("cpu_latency_us", "I"),
        ("block_max_sectors_kb", "I"),
        ("irq_priority", "i"),
        ("padding", "I"),
        ("irq", "64s"),
        ("block", "64s"),
        ("feeds_tid", "Q"),
        ("relative", "i"),
        ("padding2", "I"),
        ("feeds", "64s"),
        ("pidfd_inode", "Q"),
    ),
    "update": (
        ("id", "16b"),
        ("flags", "Q"),
        ("want", "I"),
        ("policy", "I"),
        ("priority", "i"),
        ("nice", "i"),
        ("period_ns", "Q"),
        ("computation_ns", "Q"),
        ("deadline_ns", "Q"),
    ),
    "lease_ref": (("id", "16b"), ("lifetime_s", "I"), ("padding", "I")),
    "plain": (),
    "list": (("flags", "Q"), ("after", "Q")),
    "observe": (("flags", "Q"), ("cpu", "I"), ("padding", "I")),
    "occupants": (("from_ns", "Q"), ("to_ns", "Q")),
    "answer": (
        ("reason", "I"),
        ("flags", "I"),
        ("id", "16b"),
        ("pid", "Q"),
        ("tid", "Q"),
        ("policy", "I"),
        ("priority", "i"),
        ("nice", "i"),
        ("reset_on_fork", "I"),
        ("previous_policy", "I"),
        ("previous_priority", "i"),
        ("previous_nice", "i"),
        ("count", "I"),
        ("role", "32s"),
        ("memlock_bytes", "Q"),
        ("memlock_locked", "Q"),
        ("cpu_latency_us", "I"),
        ("block_max_sectors_kb", "I"),
        ("irq_priority", "i"),
        ("granted_want", "I"),
        ("rung", "I"),
        ("padding", "I"),
        ("explanation", "explanation"),
    ),
    "hello_reply": (
        ("reason", "I"),
        ("state", "I"),
        ("features", "Q"),
        ("kinds", "I"),
        ("uid", "I"),
        ("pid", "Q"),
        ("n_leases", "I"),
        ("n_users", "I"),
        ("n_leases_own", "I"),
        ("n_leases_max", "I"),
        ("n_connections", "I"),
        ("policy_generation", "I"),
        ("started_ms", "Q"),
        ("version", "32s"),
        ("policy_error", "256s"),
        ("n_offers", "I"),
        ("offer_size", "I"),
        ("offers", OFFERS_MAX, "offer"),
        ("back_off_ms", "I"),
        ("n_users_in_back_off", "I"),
    ),
    "list_reply": (
        ("reason", "I"),
        ("n_leases", "I"),
        ("next", "Q"),
        ("lease_size", "I"),
        ("padding", "I"),
        ("leases", LEASES_MAX, "lease"),
    ),
    "policy_reply": (
        ("reason", "I"),
        ("n_entries", "I"),
        ("next", "Q"),
        ("policy_generation", "I"),
        ("entry_size", "I"),
        ("entries", POLICY_ENTRIES_MAX, "policy_entry"),
    ),
    "why_reply": (
        ("reason", "I"),
        ("n_steps", "I"),
        ("step_size", "I"),
        ("padding", "I"),
        ("steps", STEPS_MAX, "step"),
    ),
    "occupants_reply": (
        ("reason", "I"),
        ("n_occupants", "I"),
        ("since_ns", "Q"),
        ("until_ns", "Q"),
        ("occupant_size", "I"),
        ("padding", "I"),
        ("occupants", OCCUPANTS_MAX, "occupant"),
    ),
    "event": (
        ("kind", "I"),
        ("reason", "I"),
        ("n_lost", "Q"),
        ("lease", "lease"),
        ("text", "256s"),
    ),
}
HEADER = (("size", "I"), ("version", "H"), ("verb", "H"), ("serial", "Q"))

# What lies inside records; these have no header.
PARTS = {
    "explanation": (
        ("asked", "q"),
        ("limit", "q"),
        ("retry_after_ms", "I"),
        ("padding", "I"),
        ("rule", "160s"),
        ("text", "320s"),
        ("help", "320s"),
    ),
    "offer": (
        ("role", "32s"),
        ("reason", "I"),
        ("policies", "I"),
        ("priority_min", "i"),
        ("priority_max", "i"),
        ("nice_min", "i"),
        ("threads_held", "I"),
        ("threads_max", "I"),
        ("padding", "I"),
    ),
    "lease": (
        ("id", "16b"),
        ("pid", "Q"),
        ("tid", "Q"),
        ("since_ms", "Q"),
        ("expires_ms", "Q"),
        ("period_ns", "Q"),
        ("computation_ns", "Q"),
        ("deadline_ns", "Q"),
        ("uid", "I"),
        ("state", "I"),
        ("policy", "I"),
        ("priority", "i"),
        ("nice", "i"),
        ("granted_want", "I"),
        ("granted_policy", "I"),
        ("granted_priority", "i"),
        ("granted_nice", "i"),
        ("transport", "I"),
        ("lifetime", "I"),
        ("irq_priority", "i"),
        ("memlock_bytes", "Q"),
        ("cpu_latency_us", "I"),
        ("block_max_sectors_kb", "I"),
        ("comm", "64s"),
        ("role", "32s"),
        ("reason", "64s"),
        ("irq", "32s"),
        ("block", "32s"),
    ),
    "step": (
        ("role", "32s"),
        ("rule", "120s"),
        ("reason", "I"),
        ("flags", "I"),
        ("asked", "q"),
        ("limit", "q"),
    ),
    "occupant": (("ns", "Q"), ("comm", "64s")),
    "policy_entry": (("section", "40s"), ("key", "32s"), ("value", "200s"), ("origin", "160s")),
}

REQUESTS = {
    HELLO: "hello",
    ACQUIRE: "acquire",
    UPDATE: "update",
    RENEW: "lease_ref",
    RELEASE: "lease_ref",
    LIST: "list",
    WATCH: "list",
    REVOKE: "lease_ref",
    RELOAD: "plain",
    RESTORE_ALL: "plain",
    POLICY: "list",
    WHY: "acquire",
    OBSERVE: "observe",
    OCCUPANTS: "occupants",
}
REPLIES = {HELLO: "hello_reply", LIST: "list_reply", POLICY: "policy_reply", WHY: "why_reply",
           OCCUPANTS: "occupants_reply"}


def layout(name):
    """(field, offset, size, kind) of each field; kind is a format or the name of a part."""
    if name in PARTS:
        fields, offset = PARTS[name], 0
    else:
        fields, offset = HEADER + RECORDS[name], 0
    for field, *count, kind in fields:
        size = size_of(kind) * (count[0] if count else 1)
        yield field, offset, size, kind
        offset += size


def size_of(kind):
    if kind in PARTS or kind in RECORDS:
        return sum(size for _, _, size, _ in layout(kind))
    return 16 if kind == "16b" else struct.calcsize("=" + kind)


def encode(verb, serial=1, record=None, version=VERSION, size=None, tail=b"", **values):
    """The request @verb as bytes; fields that are not named are 0."""
    record = record or REQUESTS[verb]
    total = size_of(record) + len(tail)
    values.update(size=total if size is None else size, version=version, verb=verb, serial=serial)
    data = bytearray()
    for field, _, width, kind in layout(record):
        value = values.pop(field, None)
        if kind == "16b":
            data += (value or b"").ljust(width, b"\0")
        elif kind.endswith("s"):
            text = value or b""
            data += (text.encode() if isinstance(text, str) else text).ljust(width, b"\0")[:width]
        else:
            data += struct.pack("=" + kind, value or 0)
    assert not values, f"no such field: {values}"
    return bytes(data) + tail


def decode_part(name, data):
    """@name from the start of @data; what @data is too short for is 0."""
    data = data.ljust(size_of(name), b"\0")
    values = {}
    for field, offset, size, kind in layout(name):
        piece = data[offset : offset + size]
        if kind in PARTS and size == size_of(kind):
            values[field] = decode_part(kind, piece)
        elif kind in PARTS:
            values[field] = piece  # an array; decode() knows its step
        elif kind == "16b":
            values[field] = piece
        elif kind.endswith("s"):
            text, end, _ = piece.partition(b"\0")
            assert end, f"{name}.{field} is not terminated"
            values[field] = text.decode("utf-8")
        else:
            (values[field],) = struct.unpack("=" + kind, piece)
    return SimpleNamespace(**values)


def decode(data):
    """A record of the broker as an object; `reason` is its word."""
    size, version, verb, _ = struct.unpack_from("=IHHQ", data)
    assert size == len(data), f"the broker says {size} bytes, and sent {len(data)}"
    assert version == VERSION
    if verb == EVENT:
        name = "event"
    else:
        assert verb & REPLY, f"not a reply: verb {verb:#x}"
        name = REPLIES.get(verb & ~REPLY, "answer")
        if struct.unpack_from("=I", data, 16)[0] and len(data) <= size_of("answer"):
            name = "answer"  # a refusal, whatever was asked
    record = decode_part(name, data)
    record.reason = REASON_WORDS[record.reason]
    if name == "hello_reply":
        record.offers = array("offer", record.offers, record.n_offers, record.offer_size)
    elif name == "list_reply":
        record.leases = array("lease", record.leases, record.n_leases, record.lease_size)
    elif name == "why_reply":
        record.steps = array("step", record.steps, record.n_steps, record.step_size)
    elif name == "occupants_reply":
        record.occupants = array("occupant", record.occupants, record.n_occupants,
                                 record.occupant_size)
    elif name == "policy_reply":
        record.entries = array("policy_entry", record.entries, record.n_entries, record.entry_size)
    return record


def array(name, data, count, step):
    if count:
        assert step >= size_of(name) and count * step <= len(data)
    return [decode_part(name, data[i * step : (i + 1) * step]) for i in range(count)]
