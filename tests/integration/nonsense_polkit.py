# SPDX-License-Identifier: MIT
"""Stands in polkit's place and answers as the real one would not.

nonsense_polkit.py MODE: "yes", "error", "nothing" (an answer without a word), "text" (of another
type), "half" (without the part that says whether), "challenge" (not yet), "late" (yes, once it was
told that nobody wants to know any more). Writes "ready", and a line for each question: "asked KIND KEY=TYPE:VALUE…".
"""

import sys
import threading

import gi

gi.require_version("Gio", "2.0")
from gi.repository import Gio, GLib  # noqa: E402

NAME = "org.freedesktop.PolicyKit1"
YES = ("((bba{ss}))", ((True, False, {}),))
ANSWERS = {
    "yes": YES,
    "late": YES,
    "nothing": None,
    "text": ("(s)", ("yes",)),
    "half": ("((a{ss}))", (({},),)),
    "challenge": ("((bba{ss}))", ((False, True, {}),)),
}


def say(*words):
    print(*words, flush=True)


def reply_to(bus, message, answer):
    reply = Gio.DBusMessage.new_method_reply(message)
    if answer:
        reply.set_body(GLib.Variant(*answer))
    bus.send_message(reply, Gio.DBusSendMessageFlags.NONE)


def main(mode):
    bus = Gio.bus_get_sync(Gio.BusType.SYSTEM)
    waiting, lock = [], threading.Lock()

    def check(message):
        kind, details = message.get_body().unpack()[0]
        types = message.get_body().get_child_value(0).get_child_value(1)
        of = {types.get_child_value(i).get_child_value(0).get_string():
              types.get_child_value(i).get_child_value(1).get_variant().get_type_string()
              for i in range(types.n_children())}
        say("asked", kind, *(f"{key}={of[key]}:{details[key]}" for key in sorted(details)))
        if mode == "error":
            bus.send_message(Gio.DBusMessage.new_method_error_literal(
                message, "org.freedesktop.PolicyKit1.Error.Failed", "no"),
                Gio.DBusSendMessageFlags.NONE)
        elif mode == "late":
            with lock:
                waiting.append(message)
        else:
            reply_to(bus, message, ANSWERS[mode])

    def on_message(_bus, message, incoming):
        if not incoming or message.get_message_type() != Gio.DBusMessageType.METHOD_CALL:
            return message
        member = message.get_member()
        if member == "CheckAuthorization":
            check(message)
        elif member == "CancelCheckAuthorization":
            with lock:
                for each in waiting:
                    reply_to(bus, each, YES)
                waiting.clear()
            reply_to(bus, message, None)
            say("cancelled")
        elif member == "GetAll":
            reply_to(bus, message, ("(a{sv})", ({},)))
        else:
            return message
        return None

    bus.add_filter(on_message)
    taken = bus.call_sync("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                          "RequestName", GLib.Variant("(su)", (NAME, 4)), None,
                          Gio.DBusCallFlags.NONE, -1)
    assert taken.unpack() == (1,)
    say("ready")
    GLib.MainLoop().run()


if __name__ == "__main__":
    main(sys.argv[1])
