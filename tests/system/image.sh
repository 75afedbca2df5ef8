# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# For "run": makes what a machine is started from, $KERNEL_FILE and $SCRATCH/root.cpio, from packages
# of the Debian $SUITE. What is slow to make, and the same whatever is tested, is kept in $CACHE.

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

# debian VARIANT PACKAGES DIR — makes a Debian of those packages and what they need. Who can have the
# packages of this one cannot necessarily have those of another.
debian() {
        rm -rf --one-file-system "$3"
        mmdebstrap --variant="$1" --skip=check/qemu --include="$(tr ' ' , <<<"$2")" \
                --aptopt='Acquire::Languages "none"' --dpkgopt=force-unsafe-io \
                --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
                --dpkgopt='path-exclude=/usr/share/locale/*' "$SUITE" "$3" >"$SCRATCH/log" 2>&1 </dev/null && return
        sed 's/^/# /' "$SCRATCH/log" | tail -40
        [ "$SUITE" = "$HOST_SUITE" ] || skip "no packages of Debian's $SUITE: $2"
        fail "no packages of Debian's $SUITE: $2"
}

# The kernel as such, not packed: unpacking would be the longest part of the boot.
make_kernel() {
        local meta=linux-image-${KERNEL:+$KERNEL-}amd64 dir=$SCRATCH/kernel

        KERNEL_FILE=$CACHE/$SUITE-$meta
        [ ! -s "$KERNEL_FILE" ] || [ ! -d "$KERNEL_FILE.modules" ] || return 0
        debian extract "$meta" "$dir"
        python3 - "$dir"/boot/vmlinuz-* "$KERNEL_FILE.new" <<'PYTHON'
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
        rm -rf "$KERNEL_FILE.modules"
        mv "$(find "$dir" -path '*/lib/modules' -prune)" "$KERNEL_FILE.modules"
        mv "$KERNEL_FILE.new" "$KERNEL_FILE"
        rm -rf --one-file-system "$dir"
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

# cached NAME PACKAGES — its name in the cache: other packages, another one.
cached() {
        echo "$CACHE/$SUITE-$1$(sha256sum <<<"$2" | cut -c1-8)"
}

# The machine's Debian, without the product: an archive that the kernel unpacks as its root.
make_base() {
        local packages since=$SECONDS

        packages=$(xargs <<<"${PACKAGES[*]} ${EXTRA[*]}") # no gap where one is left out
        BASE=$(cached "" "$packages").cpio
        [ ! -s "$BASE" ] || [ ! -s "$BASE.made" ] || return 0

        debian essential "$packages" "$SCRATCH/base"
        rm -rf "$SCRATCH"/base/var/{cache/apt,lib/apt/lists}/*
        archive "$SCRATCH/base" >"$BASE.new"
        rm -rf --one-file-system "$SCRATCH/base"
        echo "$((SECONDS - since)) s, $(($(stat -c %s "$BASE.new") >> 20)) MiB" >"$BASE.made"
        mv "$BASE.new" "$BASE"
}

# For another Debian than this one the product is built as on that: in a folder of its packages, those
# that ./dev installs for this one.
make_builder() {
        local packages

        BUILDER=""
        [ "$SUITE" != "$HOST_SUITE" ] || return 0
        packages=$(sed -n '/^BUILD_PACKAGES=(/,/)/p' "$PROJECT/dev" | sed 's/.*(//; s/).*//' | xargs)
        BUILDER=$(cached build- "$packages")
        [ ! -d "$BUILDER" ] || return 0

        debian essential "$packages" "$BUILDER.new"
        mv "$BUILDER.new" "$BUILDER"
}

# on_suite COMMAND… — runs it on that Debian, with the project, the build and $SCRATCH at their places.
on_suite() {
        if [ -z "$BUILDER" ]; then
                "$@"
                return
        fi
        # shellcheck disable=SC2016 # the inner shell's
        unshare --mount sh -ec 'for dir in "$2" "$3" "$4" /proc; do
                                        mkdir -p "$1$dir"
                                        mount --rbind "$dir" "$1$dir"
                                done
                                root=$1
                                shift 4
                                exec chroot "$root" "$@"' sh "$BUILDER" "$PROJECT" "$BUILD" "$SCRATCH" "$@"
}

# As the README says to build it for an installation, and to be RealtimeKit.
build_product() {
        local setup options

        BUILT=$BUILD/$SUITE
        setup=$(sed -n 's/^ *meson setup [^ ]* *\(--prefix.*\)$/\1/p' "$PROJECT/README.md")
        [ -n "$setup" ] || fail "the README does not say how to install it"
        options="$setup -Drealtimekit=true -Dtests=false -Dsystemdunitdir=/usr/lib/systemd/system"
        [ "$(cat "$BUILT/options" 2>/dev/null)" = "$options" ] || rm -rf --one-file-system "$BUILT"
        if [ ! -f "$BUILT/options" ]; then
                mkdir -p "$BUILD"
                # shellcheck disable=SC2086 # they are words
                quietly "configuring" on_suite meson setup $options "$BUILT" "$PROJECT"
                echo "$options" >"$BUILT/options"
        fi
        quietly "building" on_suite ninja -C "$BUILT"
        quietly "building the target" on_suite gcc -O1 -pthread -D_GNU_SOURCE -o "$BUILT/target" \
                "$PROJECT/tests/tools/target.c"
}

# What comes on top: the product as it is installed, and the tests.
make_product() {
        local stage=$SCRATCH/stage tests=$SCRATCH/stage/opt/rtgrant-tests

        build_product
        mkdir -m 755 "$stage"
        DESTDIR=$stage quietly "installing" on_suite meson install -C "$BUILT" --no-rebuild

        mkdir -p "$tests" "$stage/etc/systemd/system"
        cp guest plain-init disk-init session on-terminal who-may lib.sh test-* "$BUILT/target" "$tests/"
        cp "$PROJECT/README.md" "$tests/readme"
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
