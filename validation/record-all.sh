#!/bin/sh
# Records the four workloads of docs/validation.md:  record-all.sh OUTDIR [WORKDIR]
#
# They run in WORKDIR. Without one, as root, they run on a scratch ext4 file system (16 GB at most, sparse) in an image beside
# the output, unmounted and removed in the end; without root, WORKDIR must be given. FSAGE names the binary; ONLY="untar sqlite"
# records some of them.
. "$(dirname "$0")/common.sh"
HERE=$(cd "$(dirname "$0")" && pwd)
[ $# = 1 ] || [ $# = 2 ] || { echo "usage: $0 OUTDIR [WORKDIR]" >&2; exit 2; }
mkdir -p "$1"
OUT=$(cd "$1" && pwd)

if [ $# = 2 ]; then
    WORK=$2
else
    [ "$(id -u)" = 0 ] || die "not root, so no scratch file system can be made: give a directory to work in, best on ext4"
    need mkfs.ext4 e2fsprogs
    need mount mount
    SCRATCH=$(mktemp -d "$OUT/.scratch.XXXXXX")
    undo() {
        ! mountpoint -q "$SCRATCH/mnt" || umount "$SCRATCH/mnt" || umount -l "$SCRATCH/mnt"
        rm -rf --one-file-system "$SCRATCH"
    }
    trap undo EXIT
    trap 'exit 130' INT TERM HUP
    mkdir "$SCRATCH/mnt"
    truncate -s 16G "$SCRATCH/image"
    mkfs.ext4 -q -F "$SCRATCH/image"
    mount -o loop "$SCRATCH/image" "$SCRATCH/mnt"
    WORK=$SCRATCH/mnt
fi

for workload in ${ONLY:-untar compile sqlite postmark}; do
    FSAGE=$FSAGE "$HERE/$workload.sh" "$OUT" "$WORK"
done
