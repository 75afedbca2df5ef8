# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# For "run": makes what a machine is started from, $KERNEL_FILE and $SCRATCH/root.cpio. What is slow
# to make, and the same whatever is tested, is kept in $CACHE.

TOOLS=(qemu-system-x86 mmdebstrap cpio kmod python3)
PACKAGES=(systemd systemd-sysv login passwd mount util-linux procps jq
          libcairo2 libglib2.0-0 libjson-c5 libpolkit-gobject-1-0 libseccomp2 libsystemd0)

# quietly WHAT COMMAND… — shows what the command said if it fails.
quietly() {
        local what=$1
        shift

        "$@" >"$SCRATCH/log" 2>&1 </dev/null || {
                sed 's/^/# /' "$SCRATCH/log" | tail -40
                fail "$what failed"
        }
}

install_tools() {
        local package missing=()

        for package in "${TOOLS[@]}"; do
                dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed ||
                        missing+=("$package")
        done
        [ ${#missing[@]} -gt 0 ] || return 0

        export DEBIAN_FRONTEND=noninteractive
        { apt-get -qq update && apt-get -qq install -y --no-install-recommends "${missing[@]}"; } \
                >"$SCRATCH/log" 2>&1 </dev/null ||
                skip "missing, and not to be installed: ${missing[*]}: $(tail -n 1 "$SCRATCH/log")"
}

# The kernel as such, not packed: unpacking would be the longest part of the boot.
make_kernel() {
        local meta=linux-image-${KERNEL:+$KERNEL-}amd64 package dir=$SCRATCH/kernel-$KERNEL

        KERNEL_FILE=$CACHE/$meta
        [ ! -s "$CACHE/$meta" ] || [ ! -d "$CACHE/$meta.modules" ] || return 0
        apt-cache show "$meta" >/dev/null 2>&1 || quietly "apt-get update" apt-get -qq update
        package=$(apt-cache depends "$meta" | awk '/Depends:/ { print $2; exit }')
        [ -n "$package" ] || fail "there is no package $meta"

        mkdir "$dir"
        chmod 755 "$dir"
        (cd "$dir" && quietly "downloading $package" apt-get -qq download "$package")
        quietly "unpacking $package" dpkg-deb -x "$dir"/*.deb "$dir"
        python3 - "$dir"/boot/vmlinuz-* "$CACHE/$meta.new" <<'PYTHON'
import lzma
import re
import sys

packed = open(sys.argv[1], "rb").read()
unpacked = packed  # qemu takes that too
for start in re.finditer(rb"\xfd7zXZ\x00", packed):
    try:
        content = lzma.LZMADecompressor().decompress(packed[start.start():])
    except lzma.LZMAError:
        continue
    if content.startswith(b"\x7fELF"):
        unpacked = content
        break
open(sys.argv[2], "wb").write(unpacked)
PYTHON
        rm -rf "$CACHE/$meta.modules"
        mv "$dir/lib/modules" "$CACHE/$meta.modules"
        mv "$CACHE/$meta.new" "$CACHE/$meta"
}

# make_modules DIR — those of the kernel that the machine needs, and what these need.
make_modules() {
        local to=$1 from version

        [ -n "$MODULES" ] || return 0
        from=$(echo "$KERNEL_FILE".modules/*)
        version=${from##*/}
        mkdir -p "$SCRATCH/depmod/lib"
        ln -sfn "$KERNEL_FILE.modules" "$SCRATCH/depmod/lib/modules"
        [ -s "$from/modules.dep" ] || quietly depmod depmod -b "$SCRATCH/depmod" "$version"

        mkdir -p "$to/usr/lib/modules/$version"
        awk -F: -v wanted="$MODULES" '$1 ~ wanted { print $1; n = split($2, needed, " ")
                                                    for (i = 1; i <= n; i++) print needed[i] }' \
                "$from/modules.dep" | sort -u |
                (cd "$from" && cpio --quiet -pdm "$to/usr/lib/modules/$version")
        cp "$from"/modules.{builtin,builtin.modinfo,order} "$to/usr/lib/modules/$version/"
        mkdir -p "$SCRATCH/depmod-guest"
        ln -sfn "$to/usr/lib" "$SCRATCH/depmod-guest/lib"
        quietly depmod depmod -b "$SCRATCH/depmod-guest" "$version"
}

archive() {
        (cd "$1" && find . | cpio --quiet -o -H newc)
}

# The machine's Debian, without the product: an archive that the kernel unpacks as its root.
make_base() {
        local suite=$1 base since packages

        read -r -a packages <<<"${PACKAGES[*]} ${EXTRA[*]}"

        base=$CACHE/$suite-$(echo "${packages[@]}" | sha256sum | cut -c1-8).cpio
        BASE=$base
        [ ! -s "$base" ] || [ ! -s "$base.made" ] || return 0

        since=$SECONDS
        quietly "mmdebstrap" mmdebstrap --variant=essential --skip=check/qemu \
                --include="$(IFS=, && echo "${packages[*]}")" \
                --aptopt='Acquire::Languages "none"' --dpkgopt=force-unsafe-io \
                --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
                --dpkgopt='path-exclude=/usr/share/locale/*' "$suite" "$SCRATCH/base"
        rm -rf "$SCRATCH"/base/var/{cache/apt,lib/apt/lists}/*
        archive "$SCRATCH/base" >"$base.new"
        rm -rf --one-file-system "$SCRATCH/base"
        echo "$((SECONDS - since)) s, $(($(stat -c %s "$base.new") >> 20)) MiB" >"$base.made"
        mv "$base.new" "$base"
}

# As the README says to build it for an installation, and to be RealtimeKit.
build_product() {
        local setup options

        setup=$(sed -n 's/^ *meson setup [^ ]* *\(--prefix.*\)$/\1/p' ../../README.md)
        [ -n "$setup" ] || fail "the README does not say how to install it"
        options="$setup -Drealtimekit=true -Dtests=false -Dsystemdunitdir=/usr/lib/systemd/system"
        [ "$(cat "$BUILD/options" 2>/dev/null)" = "$options" ] || rm -rf --one-file-system "$BUILD"
        if [ ! -f "$BUILD/options" ]; then
                # shellcheck disable=SC2086 # they are words
                quietly "configuring" meson setup $options "$BUILD" ../..
                echo "$options" >"$BUILD/options"
        fi
        quietly "building" ninja -C "$BUILD"
        quietly "building the target" gcc -O1 -pthread -D_GNU_SOURCE -o "$BUILD/target" ../tools/target.c
}

# What comes on top: the product as it is installed, and the tests.
make_product() {
        local stage=$SCRATCH/stage tests=$SCRATCH/stage/opt/rtgrant-tests

        build_product
        mkdir -m 755 "$stage"
        DESTDIR=$stage quietly "installing" meson install -C "$BUILD" --no-rebuild

        mkdir -p "$tests" "$stage/etc/systemd/system"
        cp guest plain-init disk-init session lib.sh test-* "$BUILD/target" "$tests/"
        cp ../../README.md "$tests/readme"
        printf '%s\n' "$@" >"$tests/selected"
        make_modules "$stage"
        cp guest.service "$stage/etc/systemd/system/rtgrant-tests.service"
        cp guest.sysusers "$stage/usr/lib/sysusers.d/rtgrant-tests.conf"
        for unit in getty@tty1 serial-getty@ttyS0; do
                ln -s /dev/null "$stage/etc/systemd/system/$unit.service"
        done
        # A login starts them by itself; here tests do.
        mkdir -p "$stage/etc/systemd/user"
        for unit in pulseaudio.s{ervice,ocket} pipewire{,-pulse}.s{ervice,ocket} wireplumber.service; do
                ln -s /dev/null "$stage/etc/systemd/user/$unit"
        done
        [ "$VARIANT" != hidepid ] || echo "proc /proc proc hidepid=2 0 0" >"$stage/etc/fstab"
        find "$stage" -type d -exec chmod 755 {} +

        { cat "$BASE" && archive "$stage"; } >"$SCRATCH/root.cpio"
        rm -rf "$stage"
}
