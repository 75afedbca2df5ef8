#!/bin/sh
# SPDX-License-Identifier: MIT
exec /usr/libexec/installed-tests/rtkit/rtkit-test
