# SPDX-License-Identifier: MIT
"""Clients of org.rtgrant.Broker1 on a private bus."""

from types import SimpleNamespace

NAME = "org.rtgrant.Broker1"
PATH = "/org/rtgrant/Broker1"
ERROR = "org.rtgrant.Error."
TAKES_ID = ("Update", "Renew", "Release", "Revoke")
TIMEOUT_S = 60


def bare(value):
    """Without dbus-python's types."""
    import dbus

    if isinstance(value, dbus.Dictionary):
        return {str(key): bare(item) for key, item in value.items()}
    if isinstance(value, (dbus.Array, dbus.Struct, list, tuple)):
        return [bare(item) for item in value]
    if isinstance(value, dbus.Boolean):
        return bool(value)
    return str(value) if isinstance(value, str) else int(value) if isinstance(value, int) else value


def large(value):
    """A number that does not fit an Int32 in the type that it fits."""
    import dbus

    if not isinstance(value, int) or value <= 0x7fffffff:
        return value
    return dbus.Int64(value) if value < 1 << 63 else dbus.UInt64(value)


def speak(agent, address, interface, member, signature, arguments, stay):
    """(error, message, value) of a call from a client's process."""
    import dbus

    arguments = [{key: large(item) for key, item in one.items()} if isinstance(one, dict) else one
                 for one in arguments]
    connection = getattr(agent, "broker1", None)
    if connection is None:
        connection = dbus.bus.BusConnection(address)
        if stay:
            agent.broker1 = connection
    try:
        return "", "", bare(connection.call_blocking(NAME, PATH, interface, member, signature,
                                                     arguments, timeout=TIMEOUT_S))
    except dbus.DBusException as error:
        return error.get_dbus_name(), error.get_dbus_message(), None
    finally:
        if not stay:
            connection.close()


def leave(agent):
    agent.broker1.close()
    del agent.broker1




class Broker1:
    """An unprivileged client of it."""

    def __init__(self, bus, client):
        self.bus = bus
        self.client = client
        self.pid = client.pid

    def ask(self, member, options=None, id=None, stay=True, signature=None, arguments=None,
            interface=NAME):
        """(error, message, value): the error without its prefix."""
        if arguments is None:
            arguments = (options or {},) if id is None else (id, options or {})
            signature = "a{sv}" if id is None else "sa{sv}"
        error, message, value = self.client.run(speak, self.bus.address, interface, member,
                                                signature, arguments, stay)
        return SimpleNamespace(error=error.removeprefix(ERROR), message=message, value=value)

    def acquire(self, **options):
        return self.ask("Acquire", {key.replace("_", "-"): value
                                    for key, value in options.items()})

    def leave(self):
        self.client.run(leave)
