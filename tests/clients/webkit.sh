#!/bin/sh
# SPDX-License-Identifier: MIT
# WebKitGTK's own small browser, on a screen that nobody sees.
. "$(dirname "$0")/await.sh"
here() {
        # no display number is ours: Xvfb finds a free one and tells it
        Xvfb -displayfd 3 -screen 0 640x480x24 -nolisten tcp 3>"$XDG_RUNTIME_DIR/display" &
        await test -s "$XDG_RUNTIME_DIR/display"
        DISPLAY=:$(cat "$XDG_RUNTIME_DIR/display")
        export DISPLAY GDK_BACKEND=x11 WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS=1 NO_AT_BRIDGE=1
        exec /usr/lib/*/webkit2gtk-4.1/MiniBrowser "file://$(dirname "$0")/tone.html"
}
if [ -n "${DBUS_SESSION_BUS_ADDRESS:-}" ]; then here; fi
exec dbus-run-session --config-file="$BUS_SESSION" "$0"
