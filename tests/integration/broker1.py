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


# ---- a client by GIO, which knows the flag, and signals ----


def gio_connection(agent, address):
    from gi.repository import Gio

    if not hasattr(agent, "gio"):
        agent.gio = Gio.DBusConnection.new_for_address_sync(
            address, Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT |
            Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION, None, None)
        agent.gio.set_exit_on_close(False)
    return agent.gio


def gio_variant(value):
    from gi.repository import GLib

    kind = ("b" if isinstance(value, bool) else "x" if isinstance(value, int) and value < 0 else
            "t" if isinstance(value, int) else "s")
    return GLib.Variant(kind, value)


def gio_arguments(id, options):
    from gi.repository import GLib

    options = {key.replace("_", "-"): gio_variant(value) for key, value in options.items()}
    return (GLib.Variant("(a{sv})", (options,)) if id is None else
            GLib.Variant("(sa{sv})", (id, options)))


def gio_call(agent, address, member, id, options, may_ask, wait):
    """(error, message, value); without @wait nothing."""
    from gi.repository import Gio, GLib

    flags = (Gio.DBusCallFlags.ALLOW_INTERACTIVE_AUTHORIZATION if may_ask else
             Gio.DBusCallFlags.NONE)
    call = (NAME, PATH, NAME, member, gio_arguments(id, options), None, flags, 60000, None)
    if not wait:
        gio_connection(agent, address).call(*call, None, None)
        return gio_connection(agent, address).flush_sync(None)
    try:
        value = gio_connection(agent, address).call_sync(*call).unpack()
        return "", "", value[0] if len(value) == 1 else value
    except GLib.Error as error:
        name = Gio.DBusError.get_remote_error(error)
        assert name, error
        return name, error.message, None


def gio_leave(agent):
    agent.gio.close_sync(None)
    del agent.gio


def gio_listen(agent, address):
    """From now on all signals of the interface that reach this client are kept."""
    agent.signals = []
    gio_connection(agent, address).signal_subscribe(
        None, NAME, None, None, None, 0,
        lambda _bus, _sender, _path, _interface, member, arguments:
            agent.signals.append((member, arguments.unpack())))


def gio_signals(agent):
    from gi.repository import GLib

    while GLib.MainContext.default().iteration(False):
        pass
    return agent.signals


class Gio1:
    """The same by GIO, which knows the message's flag, and signals."""

    def __init__(self, bus, client):
        self.bus = bus
        self.client = client
        self.pid = client.pid

    def ask(self, member, options=None, id=None, may_ask=False, wait=True):
        reply = self.client.run(gio_call, self.bus.address, member, id, options or {}, may_ask,
                                wait)
        if wait:
            error, message, value = reply
            return SimpleNamespace(error=error.removeprefix(ERROR), message=message, value=value)

    def acquire(self, may_ask=False, wait=True, **options):
        return self.ask("Acquire", options, may_ask=may_ask, wait=wait)

    def listen(self):
        self.client.run(gio_listen, self.bus.address)

    def signals(self):
        """(event, reason, lease) of those so far."""
        signals = self.client.run(gio_signals)
        assert {member for member, _ in signals} <= {"LeaseChanged"}
        return [(event, reason, lease) for _, (event, reason, _text, lease) in signals]

    def leave(self):
        self.client.run(gio_leave)
