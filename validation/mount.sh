#!/bin/sh
# The mounted file systems before the suites of others: pjdfstest, fsx, fio, stress-ng, a tree of sources, and SIGKILL.
#
#     validation/mount.sh [--quick] WORKDIR [SYSTEM...]      as root; SYSTEM: ufs1, ufs2, noorder, softdep, softdep+j, journal, journal-sync, lfs (default: all)
#
# After each the image is checked with `fsage fsck`. WORKDIR gets the images and the logs; what is mounted is unmounted on every way out.
# FSAGE names the binary (default: fsage on the path), PJDFSTEST and FSX those of the crates pjdfstest and fsx (`cargo install pjdfstest fsx`).
# --quick: a twentieth of the work.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
PJDFSTEST=${PJDFSTEST:-pjdfstest}
FSX=${FSX:-fsx}

quick=
[ "${1:-}" != --quick ] || { quick=1 && shift; }
work=${1:?usage: validation/mount.sh [--quick] WORKDIR [SYSTEM...]}
shift
[ $# -gt 0 ] || set -- ufs1 ufs2 noorder softdep softdep+j journal journal-sync lfs
[ "$(id -u)" = 0 ] || die "only root can mount for everybody, and pjdfstest changes users"
mkdir -p "$work"
cd "$work"
work=$(pwd)
mkdir -p mnt

if [ -n "$quick" ]; then fsx_runs=3 stress_s=30 files=1000; else fsx_runs=50 stress_s=600 files=20000; fi
# Steps of one run of fsx, each with another seed: this fsx gives back about half of its mappings only, and every truncation walks all of them (a run of 140,000
# steps had 35,755, and took 11 minutes in the kernel).
fsx_steps=20000

trap 'mountpoint -q mnt && umount -l mnt || true' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

id tests >/dev/null 2>&1 || useradd -M tests
# pjd SYSTEM: the configuration of pjdfstest. UFS1 and LFS have times of 32 bits: what is beyond is the last that there is, so that utimensat::y2038 must fail.
pjd() {
    case $1 in ufs2) beyond= ;; *) beyond='"utimensat::y2038"' ;; esac
    cat >pjd.toml <<CONFIG
[features]
posix_fallocate = {}
utime_now = {}
utimensat = {}
[settings]
naptime = 0.01
allow_remount = false
expected_failures = [$beyond]
[dummy_auth]
entries = [["nobody", "nogroup"], ["tests", "tests"]]
CONFIG
}

# begin SYSTEM SIZE: a new image, mounted.
begin() {
    rm -f disk.img
    case $1 in
    ufs1) "$FSAGE" mkfs ffs disk.img --size "$2" >/dev/null && source=disk.img ;;
    ufs2) "$FSAGE" mkfs ffs disk.img --size "$2" --ufs 2 >/dev/null && source=disk.img ;;
    noorder | softdep | softdep+j) "$FSAGE" mkfs ffs disk.img --size "$2" >/dev/null && source=ffs:$1,image=disk.img ;;
    journal) "$FSAGE" mkfs ffs disk.img --size "$2" >/dev/null && source=ffs:journal=async,image=disk.img ;;
    journal-sync) "$FSAGE" mkfs ffs disk.img --size "$2" >/dev/null && source=ffs:journal=sync,image=disk.img ;;
    lfs) "$FSAGE" mkfs lfs disk.img --size "$2" >/dev/null && source=disk.img ;;
    *) die "there is no system $1" ;;
    esac
    "$FSAGE" mount --log "$1.log" "$source" mnt
}

# check SYSTEM WHAT: unmounts and checks.
check() {
    "$FSAGE" umount mnt
    if "$FSAGE" fsck disk.img >"$1.fsck" 2>&1; then echo "$1: $2: clean"; else
        echo "$1: $2: NOT CLEAN, see $work/$1.fsck"
        cp disk.img "$1-$2.broken.img"
        failed=1
    fi
}

failed=
for system; do
    if command -v "$PJDFSTEST" >/dev/null 2>&1; then
        begin "$system" 256M
        chmod 755 mnt
        pjd "$system"
        "$PJDFSTEST" -c pjd.toml -p "$work/mnt" >"$system.pjdfstest" 2>&1 || failed=1
        echo "$system: pjdfstest: $(grep -i 'passed' "$system.pjdfstest" | tail -1)"
        check "$system" pjdfstest
    else echo "$system: pjdfstest is missing: not run"; fi
    if command -v "$FSX" >/dev/null 2>&1; then
        begin "$system" 256M
        seed=0
        while [ $seed -lt $fsx_runs ] && "$FSX" -N "$fsx_steps" -S $seed mnt/fsx >"$system.fsx" 2>&1; do
            seed=$((seed + 1))
            rm -f mnt/fsx*
        done
        if [ $seed = $fsx_runs ]; then echo "$system: fsx: $((fsx_runs * fsx_steps)) operations, seeds 0 to $((seed - 1))"; else
            echo "$system: fsx: FAILED with seed $seed, see $work/$system.fsx" && failed=1
        fi
        check "$system" fsx
    else echo "$system: fsx is missing: not run"; fi
    need fio fio
    begin "$system" 256M
    if fio --name=v --directory=mnt --size=32m --rw=randwrite --bs=4k-64k --verify=crc32c --verify_fatal=1 --ioengine=psync \
        >"$system.fio" 2>&1; then echo "$system: fio: verified"; else echo "$system: fio: FAILED" && failed=1; fi
    check "$system" fio
    need stress-ng stress-ng
    begin "$system" 512M
    # What makes and removes names, and what writes and reads: on four processes for a share of the time each.
    each=$((stress_s / 6))
    for stressor in dentry dir hdd rename link filename; do
        stress-ng "--$stressor" 2 --timeout "$each" --temp-path mnt --hdd-bytes 16M --verify >"$system.$stressor" 2>&1 ||
            { echo "$system: stress-ng $stressor: FAILED, see $work/$system.$stressor" && failed=1; }
    done
    echo "$system: stress-ng: dentry dir hdd rename link filename, $each s each"
    check "$system" stress
    # A tree: unpacked, built in, compared after a remount, removed.
    if [ ! -d tree ]; then
        mkdir tree
        n=0
        while [ $n -lt $files ]; do
            d=tree/d$((n % 97))/e$((n % 13))
            mkdir -p "$d"
            printf 'int f%d(int x) { return x + %d; }\n' $n $n >"$d/f$n.c"
            n=$((n + 1))
        done
        tar -cf tree.tar tree
    fi
    begin "$system" 512M
    tar -xf tree.tar -C mnt
    if command -v cc >/dev/null 2>&1; then
        (cd mnt/tree/d0/e0 && for f in *.c; do cc -c "$f" -o "${f%.c}.o"; done && ar rc all.a ./*.o && rm ./*.o ./all.a)
    fi
    check "$system" unpacked
    "$FSAGE" mount "$source" mnt
    if diff -r tree mnt/tree; then echo "$system: tree: $files files, the same after a remount"; else failed=1; fi
    rm -r mnt/tree
    check "$system" removed
    # Killed: what was synced is there.
    begin "$system" 128M
    "$FSAGE" umount mnt
    "$FSAGE" mount --foreground "$source" mnt &
    server=$!
    while ! mountpoint -q mnt; do sleep 0.1; done
    dd if=tree.tar of=mnt/synced bs=1M count=8 conv=fsync 2>/dev/null
    sync -d mnt 2>/dev/null || true
    tar -xf tree.tar -C mnt 2>/dev/null &
    tar=$!
    sleep 1
    kill -KILL $server
    wait $server 2>/dev/null || true
    wait $tar 2>/dev/null || true
    "$FSAGE" drive list >/dev/null 2>&1
    mountpoint -q mnt && { echo "$system: the dead mount is left" && failed=1; }
    [ "$system" = lfs ] || "$FSAGE" fsck disk.img --repair --in-place >"$system.repair" 2>&1 || [ $? = 1 ]
    "$FSAGE" fsck disk.img >/dev/null || { echo "$system: killed: not repaired" && failed=1; }
    "$FSAGE" mount "$source" mnt
    if head -c 8M tree.tar | cmp -s - mnt/synced; then echo "$system: killed: repaired, what was synced is there"; else
        echo "$system: killed: WHAT WAS SYNCED IS LOST" && failed=1
    fi
    check "$system" killed
done
[ -z "$failed" ]
