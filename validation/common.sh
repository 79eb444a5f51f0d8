# What the recording scripts share. Sourced, not run. POSIX sh.
#
# Each workload script is called as  SCRIPT OUTDIR WORKDIR : it prepares in WORKDIR (untraced), records with
# `fsage record`, leaves OUTDIR/NAME.workload, and nothing else. FSAGE names the binary (default: fsage on the path).

set -eu

FSAGE=${FSAGE:-fsage}

die() {
    echo "$0: $*" >&2
    exit 3
}

# need COMMAND PACKAGE...: makes sure that a command is there; as root, on Debian and Ubuntu, installs it.
need() {
    command=$1
    shift
    command -v "$command" >/dev/null 2>&1 && return
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "installing $*" >&2
        { apt-get install -y --no-install-recommends "$@" || { apt-get update && apt-get install -y --no-install-recommends "$@"; }; } \
            >/dev/null 2>&1 </dev/null || die "cannot install $*: run 'apt-get install $*' to see why"
    fi
    command -v "$command" >/dev/null 2>&1 || die "$command is missing: install the package '$*'"
}

# on_images NAME DIR: for scripts that mount file systems on images in DIR. As root; makes SCRATCH there, which is taken down in the end with all that
# is mounted in it; FSAGE is a path.
on_images() {
    [ "$(id -u)" = 0 ] || die "needs root: it mounts file systems"
    [ -d "$2" ] || die "$2: no such directory"
    FSAGE=$(command -v "$FSAGE") || die "fsage: not found; build it (cargo build --release) and set FSAGE to its path"
    FSAGE=$(realpath "$FSAGE")
    SYSTEMS=${SYSTEMS:-ext4 xfs btrfs}
    SCRATCH=$(mktemp -d "$(cd "$2" && pwd)/fsage-$1.XXXXXX")
    trap take_down EXIT
    trap 'exit 130' INT TERM HUP
}

take_down() {
    cd /
    for place in "$SCRATCH"/*; do
        # Who was stopped with the script may still be at its own end there.
        ! mountpoint -q "$place" || umount "$place" 2>/dev/null || { sleep 2; umount "$place"; } || umount -l "$place" || true
    done
    rm -rf --one-file-system "$SCRATCH"
}

# new_system SYSTEM PLACE: a new file system of 4 GB on PLACE.img, which is sparse, mounted on PLACE.
new_system() {
    case $1 in xfs) need mkfs.xfs xfsprogs ;; btrfs) need mkfs.btrfs btrfs-progs ;; esac
    truncate -s 4G "$2.img"
    case $1 in
    ext4) mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$2.img" ;;
    *) "mkfs.$1" -q "$2.img" >/dev/null ;;
    esac
    mkdir "$2"
    mount -o loop "$2.img" "$2"
}

# fetch_crate NAME VERSION FILE: the source archive of a crate, a gzipped tar, through cargo.
fetch_crate() {
    name=$1 version=$2 file=$3
    need cargo cargo
    fetch=$(mktemp -d "${TMPDIR:-/tmp}/fsage-fetch.XXXXXX")
    mkdir "$fetch/src"
    : >"$fetch/src/lib.rs"
    cat >"$fetch/Cargo.toml" <<MANIFEST
[package]
name = "fetch"
version = "0.0.0"
edition = "2021"

[dependencies]
$name = "=${version%%+*}"

[workspace]
MANIFEST
    # A cargo home of its own, so that nothing is left in the user's; the user's settings (a mirror) still hold.
    home=${CARGO_HOME:-$HOME/.cargo}
    mkdir "$fetch/home"
    for settings in config.toml config; do
        [ ! -f "$home/$settings" ] || cp "$home/$settings" "$fetch/home/"
    done
    if ! CARGO_HOME=$fetch/home RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup} \
        cargo fetch --quiet --manifest-path "$fetch/Cargo.toml" >"$fetch/log" 2>&1; then
        cat "$fetch/log" >&2
        rm -rf "$fetch"
        die "cannot fetch the source of $name $version from the crate registry"
    fi
    mv "$fetch"/home/registry/cache/*/"$name-$version.crate" "$file" || { rm -rf "$fetch"; die "$name $version: not in the registry"; }
    rm -rf "$fetch"
}

# begin NAME "$@": checks the arguments, makes WORK below WORKDIR and removes it in the end.
begin() {
    NAME=$1
    shift
    [ $# = 2 ] || { echo "usage: $0 OUTDIR WORKDIR" >&2; exit 2; }
    command -v "$FSAGE" >/dev/null 2>&1 || die "$FSAGE: not found; build it (cargo build --release) and set FSAGE to its path"
    need strace strace
    [ -d "$1" ] || die "$1: no such directory"
    [ -d "$2" ] || die "$2: no such directory"
    OUT=$(cd "$1" && pwd)/$NAME.workload
    WORK=$(mktemp -d "$(cd "$2" && pwd)/fsage-$NAME.XXXXXX")
    trap 'cd / && rm -rf "$WORK"' EXIT
    trap 'exit 130' INT TERM HUP
    cd "$WORK"
}

# settle: what was prepared is on disk and, as root, out of the caches, so that the traced run starts as a replay does.
settle() {
    sync
    if [ "$(id -u)" = 0 ] && [ -w /proc/sys/vm/drop_caches ]; then
        echo 3 2>/dev/null >/proc/sys/vm/drop_caches || true
    fi
}

# record COMMAND...: traces it.
record() {
    settle
    echo "recording $NAME: $*" >&2
    "$FSAGE" record -o "$OUT" -- "$@"
}
