#!/bin/sh
# SPDX-License-Identifier: MIT
# PipeWire, which asks the desktop's portal where there is one, and that asks for it.
. "$(dirname "$0")/await.sh"
here() {
        /usr/libexec/xdg-desktop-portal &
        await gdbus call --session --dest org.freedesktop.portal.Desktop \
                --object-path /org/freedesktop/portal/desktop \
                --method org.freedesktop.DBus.Properties.Get \
                org.freedesktop.portal.Realtime RTTimeUSecMax
        exec pipewire
}
if [ -n "${DBUS_SESSION_BUS_ADDRESS:-}" ]; then here; fi
exec dbus-run-session --config-file="$BUS_SESSION" "$0"
