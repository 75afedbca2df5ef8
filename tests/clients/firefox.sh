#!/bin/sh
# SPDX-License-Identifier: MIT
# A page of our own that makes a tone, in a profile of our own.
. "$(dirname "$0")/await.sh"
here() {
        "$(dirname "$0")/pulseaudio.sh" &
        await test -S "$XDG_RUNTIME_DIR/pulse/native"
        mkdir -p "$HOME/profile"
        cat >"$HOME/profile/user.js" <<'PREFERENCES'
user_pref("media.autoplay.default", 0);
user_pref("media.autoplay.blocking_policy", 0);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("app.update.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("network.proxy.type", 1);
user_pref("network.proxy.http", "127.0.0.1");
user_pref("network.proxy.http_port", 9);
user_pref("network.proxy.ssl", "127.0.0.1");
user_pref("network.proxy.ssl_port", 9);
PREFERENCES
        MOZ_HEADLESS=1 exec firefox-esr --headless --no-remote --profile "$HOME/profile" \
                "file://$(dirname "$0")/tone.html"
}
if [ -n "${DBUS_SESSION_BUS_ADDRESS:-}" ]; then here; fi
exec dbus-run-session --config-file="$BUS_SESSION" "$0"
