#!/bin/sh
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/await.sh"
"$(dirname "$0")/pulseaudio.sh" &
await test -S "$XDG_RUNTIME_DIR/pulse/native"
exec fluidsynth --audio-driver=pulseaudio --no-midi-in --no-shell --server
