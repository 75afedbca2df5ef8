#!/bin/sh
# SPDX-License-Identifier: MIT
# As a service of a session that has PipeWire.
. "$(dirname "$0")/await.sh"
here() {
        pipewire &
        await test -S "$XDG_RUNTIME_DIR/pipewire-0"
        wireplumber &
        Xvfb -displayfd 3 -screen 0 640x480x24 -nolisten tcp 3>"$XDG_RUNTIME_DIR/display" &
        await test -s "$XDG_RUNTIME_DIR/display"
        DISPLAY=:$(cat "$XDG_RUNTIME_DIR/display")
        export DISPLAY GDK_BACKEND=x11 GSETTINGS_BACKEND=memory NO_AT_BRIDGE=1
        exec easyeffects --gapplication-service
}
if [ -n "${DBUS_SESSION_BUS_ADDRESS:-}" ]; then here; fi
exec dbus-run-session --config-file="$BUS_SESSION" "$0"
