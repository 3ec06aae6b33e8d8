# Sourced by quickstart and check. `need PACKAGE...` installs those Debian packages that are missing.
# Needs root or sudo only if something is missing.

have_package() {
  [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

need() {
  missing=
  for package in "$@"; do
    have_package "$package" || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" = 0 ]; then
    as_root=
  elif command -v sudo >/dev/null; then
    as_root=sudo
  else
    echo "$0: please install as root:$missing" >&2
    exit 3
  fi
  echo "==> installing$missing"
  $as_root apt-get update -qq
  # shellcheck disable=SC2086  # a list of words
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

# `want PACKAGE...`: those without which some tests are skipped, where they can be had.
want() {
  (need "$@") || echo "==> going on without:$(for package in "$@"; do have_package "$package" || printf ' %s' "$package"; done)"
}

# What building needs; why is in README.md.
build_packages="gcc libc6-dev meson ninja-build pkgconf python3 protobuf-c-compiler libprotobuf-c-dev
  libdnnl-dev zlib1g-dev libjpeg-dev libpng-dev libjansson-dev libcmocka-dev"
