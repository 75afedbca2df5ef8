#!/bin/sh
# SPDX-License-Identifier: MIT
# The server, its session manager, and a program that plays.
. "$(dirname "$0")/await.sh"
pipewire &
await test -S "$XDG_RUNTIME_DIR/pipewire-0"
dbus-run-session --config-file="$BUS_SESSION" wireplumber &
exec pw-cat --playback --target 0 "$SOUND"
