#!/bin/sh
# Installs the programs, other than Python packages, that some tests start: Chromium and npm. `make test-all` calls it.
set -eu

missing=
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
    missing="$missing chromium"
command -v npm >/dev/null || missing="$missing npm"
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
    echo "make test-all needs on the path:$missing. It can install them with apt-get only, which is not here;" \
        "install them by other means and call it again." >&2
    exit 1
fi
if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null; then
    as_root=sudo
else
    echo "make test-all needs the packages:$missing. Installing them takes root or sudo; have them installed by" \
        "\`apt-get install$missing\` and call it again." >&2
    exit 1
fi
$as_root apt-get update --quiet
# shellcheck disable=SC2086 # one word for each package
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends $missing
