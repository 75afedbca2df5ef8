# SPDX-License-Identifier: MIT
"""All that there is on the bus, found as a stranger would: what can be read, and nothing else."""

import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import pytest

import broker1
import bus as bus_module
from agent import CAROL
from bus import KIT, KIT_PATH, PROPERTIES
from ways import UNTOUCHED, Place, Socket, of_all, place  # noqa: F401

pytestmark = pytest.mark.skipif(not bus_module.is_here(),
                                reason="no dbus-daemon, polkitd or python3-dbus")

STANDARD = {"org.freedesktop.DBus.Peer", "org.freedesktop.DBus.Introspectable", PROPERTIES}
OWN = {broker1.PATH: broker1.NAME, KIT_PATH: KIT}

# what is answered to anybody who asks with the least that its types allow
READING = {"Ping", "GetMachineId", "Introspect", "GetAll", "Hello", "List", "Policy", "Watch",
           "Why"}

LEAST = {"s": "", "t": 0, "u": 0, "i": -1, "a{sv}": {}}


def values_for(signature):
    import dbus

    return [LEAST[str(one)] for one in dbus.Signature(signature)]


def call(connection, path, interface, member, signature, values):
    """The name of the error, "" if there is none; and the value."""
    import dbus

    try:
        return "", connection.call_blocking(KIT, path, interface, member, signature, values,
                                            timeout=bus_module.TIMEOUT_S)
    except dbus.DBusException as error:
        return error.get_dbus_name().rpartition(".")[2], None


def look(connection, path):
    """[(path, interface, its element)] of @path and all below."""
    error, text = call(connection, path, "org.freedesktop.DBus.Introspectable", "Introspect", "", [])
    if error:
        return []
    root = ElementTree.fromstring(str(text))
    found = [(path, interface.get("name"), interface) for interface in root.findall("interface")]
    for node in root.findall("node"):
        found += look(connection, f"{path.rstrip('/')}/{node.get('name')}")
    return found


def signature_of(method):
    return "".join(arg.get("type") for arg in method.findall("arg")
                   if arg.get("direction", "in") == "in")


def walk(agent, address):
    """Calls all methods and sets all properties that introspection tells of."""
    import dbus

    connection = dbus.bus.BusConnection(address)
    seen = look(connection, "/")
    methods, sets, crossed = {}, {}, {}
    for path, interface, element in seen:
        for method in element.findall("method"):
            name, signature = method.get("name"), signature_of(method)
            if "v" in signature.replace("a{sv}", ""):
                continue  # Set, below
            methods[path, interface, name] = call(connection, path, interface, name, signature,
                                                  values_for(signature))[0]
            if interface in OWN.values():
                for other in OWN:
                    if other != path:
                        crossed[name] = call(connection, other, interface, name, signature,
                                             values_for(signature))[0]
        for each in element.findall("property"):
            sets[interface, each.get("name"), each.get("access")] = call(
                connection, path, PROPERTIES, "Set", "ssv", [interface, each.get("name"), 1])[0]
    # who names no interface gets no further
    unnamed = {name: call(connection, path, None, name, "", [])[0] for path, name in (
        (KIT_PATH, "ResetKnown"), (KIT_PATH, "ResetAll"), (KIT_PATH, "Exit"),
        (KIT_PATH, "Suspend"), (KIT_PATH, "Resume"))}
    unnamed |= {name: call(connection, broker1.PATH, None, name, "a{sv}", [{}])[0]
                for name in ("Reload", "RestoreAll")}
    connection.close()
    return {"interfaces": {(path, interface) for path, interface, _ in seen}, "methods": methods,
            "sets": sets, "crossed": crossed, "unnamed": unnamed}


@pytest.fixture
def found(place):
    client = place.client(Socket, CAROL)  # whom polkit allows nothing
    before = place.daemon.status()
    seen = SimpleNamespace(**client.client.run(walk, place.bus.address))
    yield seen
    # whatever it called, nothing came of it
    after = place.daemon.status()
    assert client.sched() == UNTOUCHED
    assert after.n_leases == before.n_leases == 0
    assert after.policy_generation == before.policy_generation
    assert place.daemon.process.poll() is None


def test_S50_there_are_these_objects_and_interfaces(found):
    assert {pair for pair in found.interfaces if pair[1] not in STANDARD} == set(OWN.items())


def test_S50_a_stranger_can_read_and_do_nothing(found):
    done = {name for (_, _, name), error in found.methods.items() if not error}
    refused = {name: error for (_, _, name), error in found.methods.items() if error}

    assert done <= READING
    assert {"Hello", "List", "Policy", "Introspect", "GetAll"} <= done
    for name in ("ResetKnown", "ResetAll", "Exit", "Suspend", "Resume"):
        assert refused[name] == "AccessDenied"
    for name in ("Reload", "RestoreAll"):
        assert refused[name] == "AdminOnly"
    assert len(found.methods) > 25


def test_S50_no_property_can_be_set(found):
    assert len(found.sets) >= 8
    for (_, _, access), error in found.sets.items():
        assert access == "read" and error == "PropertyReadOnly"


def test_S50_no_interface_on_the_others_object(found):
    assert len(found.crossed) >= 20
    assert set(found.crossed.values()) <= {"UnknownMethod", "UnknownInterface"}


def test_S50_without_an_interface_the_rules_are_the_same(found):
    assert set(found.unnamed.values()) <= {"AccessDenied", "AdminOnly", "UnknownMethod",
                                         "UnknownObject"}
