#!/bin/sh
# SPDX-License-Identifier: MIT
SDL_AUDIODRIVER=dummy exec dbus-run-session --config-file="$BUS_SESSION" "$SDL_CLIENT"
