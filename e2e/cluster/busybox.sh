#!/bin/sh
# Makes a usable system of an unpacked busybox: a hook of mmdebstrap, called with the folder.
set -eu
root=$1
for name in $(chroot "$root" /bin/busybox --list); do
    [ -e "$root/bin/$name" ] || ln -s busybox "$root/bin/$name"
done
mkdir -p "$root/usr/bin"
ln -s /bin/env "$root/usr/bin/env"
printf 'root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
# These came along with the C library.
rm -rf "$root/usr/share" "$root/usr/lib/"*-linux-gnu/gconv
