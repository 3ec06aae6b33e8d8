# Sourced by scripts that try things in bare systems: a fresh Debian 12 each, which is gone at their end. Needs
# root and debootstrap; BASE=FILE names a tar of a bare system in its place. They lie in $TMPDIR.
work=$(mktemp -d)
chmod 755 "$work"
trap 'umount "$work"/*/proc 2>/dev/null; rm -rf --one-file-system "$work"' EXIT

# bare NAME PACKAGE...: makes the root folder $work/NAME of a Debian 12 with these packages
bare() {
  root=$work/$1
  shift
  mkdir -p "$root"
  tar -C "$root" -xf "$base"
  # the host's ways to the network
  for file in /etc/resolv.conf /etc/hosts /etc/apt/apt.conf.d/*proxy* /etc/apt/apt.conf.d/*registry*; do
    if [ -f "$file" ]; then cp "$file" "$root$file"; fi
  done
  mount -t proc proc "$root/proc"
  inside "$root" apt-get update -qq
  inside "$root" apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# inside ROOT COMMAND...
inside() {
  root=$1
  shift
  chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"
}

base=${BASE:-$work/base.tar}
if [ ! "${BASE:-}" ]; then
  debootstrap --variant=minbase bookworm "$work/base" "${MIRROR:-http://deb.debian.org/debian}" >/dev/null
  tar -C "$work/base" -cf "$base" .
fi
