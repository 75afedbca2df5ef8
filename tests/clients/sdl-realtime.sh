#!/bin/sh
# SPDX-License-Identifier: MIT
SDL_THREAD_FORCE_REALTIME_TIME_CRITICAL=1 exec "$(dirname "$0")/sdl.sh"
