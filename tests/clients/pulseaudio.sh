#!/bin/sh
# SPDX-License-Identifier: MIT
exec pulseaudio -n --daemonize=no --exit-idle-time=-1 \
        --load=module-null-sink --load=module-native-protocol-unix
