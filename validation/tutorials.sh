#!/bin/bash
# Pastes a tutorial into a fresh shell, as a reader does: every block of commands (```sh) of docs/tutorial-*.md, in order, in a
# clean directory; the first command that fails ends it. Needs root, and `fsage` on the path.
#
#     PATH=$PWD/target/release:$PATH validation/tutorials.sh               all of them
#     PATH=$PWD/target/release:$PATH validation/tutorials.sh docs/tutorial-laboratory.md
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || set -- "$here"/../docs/tutorial-*.md
[ ! -e /tmp/fsage-tutorial ] || { echo "/tmp/fsage-tutorial is there already; remove it first" >&2; exit 3; }
for tutorial; do
    blocks=$(awk '/^```sh$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$tutorial")
    [ -n "$blocks" ] || { echo "$tutorial has no blocks of commands" >&2; exit 1; }
    start=$SECONDS
    if ! (cd / && bash -eu -c "$blocks" >/dev/null); then
        echo "$tutorial: a command failed; its files are in /tmp/fsage-tutorial" >&2
        exit 1
    fi
    echo "$tutorial: every command worked, in $((SECONDS - start)) s"
done
