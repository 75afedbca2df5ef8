# SPDX-License-Identifier: MIT
"""An authentication agent of polkit's, as a desktop has one: a program of root's on the bus.

authentication_agent.py PID START-TIME yes|no|dismiss|never|late: for that process. "no": as who
types a wrong password; "late": a yes for a question that is taken back. Writes "ready", then "asked" for each question, "cancelled" for each
that is taken back, and "answered" for each late yes.
"""

import contextlib
import os
import sys

import gi

gi.require_version("Gio", "2.0")
from gi.repository import Gio, GLib  # noqa: E402

PATH = "/org/example/agent"
AUTHORITY = ("org.freedesktop.PolicyKit1", "/org/freedesktop/PolicyKit1/Authority",
             "org.freedesktop.PolicyKit1.Authority")
INTERFACE = """<node><interface name="org.freedesktop.PolicyKit1.AuthenticationAgent">
  <method name="BeginAuthentication">
    <arg type="s" direction="in"/><arg type="s" direction="in"/><arg type="s" direction="in"/>
    <arg type="a{ss}" direction="in"/><arg type="s" direction="in"/>
    <arg type="a(sa{sv})" direction="in"/>
  </method>
  <method name="CancelAuthentication"><arg type="s" direction="in"/></method>
</interface></node>"""


def say(*words):
    print(*words, flush=True)


def main(pid, start_time, mode):
    bus = Gio.bus_get_sync(Gio.BusType.SYSTEM)
    waiting = []

    def call(member, arguments):
        return bus.call_sync(*AUTHORITY, member, arguments, None, Gio.DBusCallFlags.NONE, -1)

    def answer_yes(arguments):
        """The program that asks for the password does this, and it is root's too."""
        _, _, _, _, cookie, ((kind, details), *_) = arguments.unpack()
        call("AuthenticationAgentResponse2", GLib.Variant(
            "(us(sa{sv}))", (os.getuid(), cookie,
                             (kind, {"uid": GLib.Variant("u", details["uid"])}))))

    def on_call(_bus, _sender, _path, _interface, member, arguments, invocation):
        if member == "CancelAuthentication":
            say("cancelled")
            invocation.return_value(None)
            for each in waiting:
                with contextlib.suppress(GLib.Error):  # polkit knows nothing of it any more
                    answer_yes(each)
                say("answered")
            waiting.clear()
            return
        say("asked")
        if mode == "never":
            return  # nor is the call answered
        if mode == "late":
            waiting.append(arguments)
            return
        if mode == "dismiss":
            invocation.return_dbus_error("org.freedesktop.PolicyKit1.Error.Cancelled", "no time")
            return
        if mode == "yes":
            answer_yes(arguments)
        invocation.return_value(None)

    bus.register_object(PATH, Gio.DBusNodeInfo.new_for_xml(INTERFACE).interfaces[0], on_call,
                        None, None)
    subject = ("unix-process", {"pid": GLib.Variant("u", pid),
                                "start-time": GLib.Variant("t", start_time)})
    call("RegisterAuthenticationAgent",
         GLib.Variant("((sa{sv})ss)", (subject, "C", PATH)))
    say("ready")
    GLib.MainLoop().run()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
