# SPDX-License-Identifier: MIT
import dbus

broker = dbus.Interface(dbus.SystemBus().get_object("org.rtgrant.Broker1", "/org/rtgrant/Broker1"),
                        "org.rtgrant.Broker1")
try:
    lease = broker.Acquire({"policy": "fifo", "priority": 10, "reason": "an example"})
    print(lease["policy"], lease["priority"])
except dbus.DBusException as refusal:
    print(refusal.get_dbus_name(), refusal.get_dbus_message())
