//! Mounts of fsage whose server ends or has died, where others have mounted, moved or bound something. The judge is
//! what the kernel has mounted afterwards, and what is in it.

use crate::common::apart;
use testkit::{Need, Tool, need};

/// Runs a script on a new image, `disk.img`, and a directory; `mounted` mounts it, with its server's number in `server`
/// and its messages in `said`. A line that fails says which.
#[track_caller]
fn with_a_mount(script: &str) {
    if !need(Need::Fuse) || !need(Need::Mount) {
        return;
    }
    let d = tempfile::tempdir().expect("a directory");
    let functions = r#"
        failed() { echo "line: $1"; cat said err list 2>/dev/null; exit 20; }
        on() { grep -q "$PWD/$1 $2" /proc/self/mounts; }
        mounted() {
            "$FSAGE" mount --foreground disk.img "$1" >/dev/null 2>said & server=$!
            until mountpoint -q "$1"; do kill -0 $server || return 1; sleep 0.05; done
        }
        FSAGE=$1
        "$FSAGE" mkfs ffs disk.img --size 8M >list && mkdir mnt || exit 10
    "#;
    let checked: Vec<String> = script
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| format!("{{ {line}; }} || failed '{}'", line.replace('\'', r"'\''")))
        .collect();
    apart(d.path(), &format!("{functions}\n{}", checked.join("\n")));
}

/// What is below another's mount was forgotten, and stayed when that went.
#[test]
fn a_mount_below_anothers_goes_with_the_next_run() {
    with_a_mount(
        r#"
        mounted mnt && mount -t tmpfs over mnt && echo precious >mnt/precious
        kill -TERM $server; wait $server
        grep -q 'tmpfs is mounted over it' said
        "$FSAGE" drive list >list 2>err && [ "$(cat mnt/precious)" = precious ]
        umount mnt && on mnt fuse.fsage
        "$FSAGE" drive list >list 2>err
        ! on mnt && "$FSAGE" fsck disk.img >list
        "#,
    );
}

/// What is mounted below a dead mount went with it, whosever it was.
#[test]
fn what_is_mounted_below_a_dead_mount_stays() {
    with_a_mount(
        r#"
        mounted mnt && mkdir mnt/below && mount -t tmpfs precious mnt/below
        kill -KILL $server; wait $server; true
        "$FSAGE" drive list >list 2>err && grep -q 'is below it' err
        on mnt fuse.fsage && on mnt/below tmpfs
        umount -l mnt/below && "$FSAGE" drive list >list 2>err
        ! on mnt
        "#,
    );
}

/// What was moved over it has the older line in the table of mounts: it was unmounted, with what was in it.
#[test]
fn what_is_moved_over_a_mount_stays() {
    with_a_mount(
        r#"
        mkdir other && mount -t tmpfs other other && echo precious >other/precious
        mounted mnt
        mount --move other mnt
        "$FSAGE" umount mnt 2>err && false; [ $? = 2 ]
        kill -TERM $server; wait $server
        grep -q 'tmpfs is mounted over it' said
        [ "$(cat mnt/precious)" = precious ]
        "$FSAGE" drive list >list 2>err && grep -q 'tmpfs is mounted over it' err
        [ "$(cat mnt/precious)" = precious ]
        umount mnt && on mnt fuse.fsage
        "$FSAGE" drive list >list 2>err
        ! on mnt
        "#,
    );
}

/// The dead mount was forgotten: the sweep had asked what was mounted over the directory above it.
#[test]
fn a_dead_mount_below_a_covered_directory_goes_with_a_later_run() {
    with_a_mount(
        r#"
        mkdir -p p/mnt && mounted p/mnt
        kill -KILL $server; wait $server; true
        mount -t tmpfs over p && mkdir p/mnt
        "$FSAGE" drive list >list 2>err && grep -q 'tmpfs is mounted over a directory above it' err
        rmdir p/mnt && "$FSAGE" drive list >list 2>err && grep -q 'its name does not lead there' err
        umount p && on p/mnt fuse.fsage
        "$FSAGE" drive list >list 2>err
        ! on p/mnt
        "#,
    );
}

/// The kernel itself answers whoever has another group: a dead mount was taken for one that is served, and forgotten.
#[test]
fn a_dead_mount_is_not_forgotten_by_another_group() {
    if !need(Need::Tool(Tool::Fusermount)) {
        return;
    }
    with_a_mount(
        r#"
        cp "$FSAGE" fsage && mkdir state && chown -R 65534:65534 .
        mkdir dev && mount -t tmpfs -o dev,mode=755 dev dev && mknod -m 666 dev/fuse c 10 229
        mount --bind dev/fuse /dev/fuse
        as() { group=$1; shift; XDG_STATE_HOME=$PWD/state setpriv --reuid 65534 --regid $group --clear-groups "$@"; }
        as 65534 ./fsage mount disk.img mnt && on mnt fuse.fsage
        pkill -KILL -f "^$PWD/fsage mount" && while pgrep -f "^$PWD/fsage mount" >list; do sleep 0.05; done
        as 12345 ./fsage drive list >list 2>err && grep -q 'left as it is' err
        on mnt fuse.fsage
        as 65534 ./fsage drive list >list 2>err
        ! on mnt
        "#,
    );
}

/// One of two mounts went, and the other stayed, dead, without a word.
#[test]
fn a_second_mount_of_the_same_file_system_is_named() {
    with_a_mount(
        r#"
        mkdir bound && mounted mnt && mount --bind mnt bound
        kill -TERM $server; wait $server
        grep -q 'bound: a second mount' said && umount bound
        mounted mnt && mount --bind mnt bound
        kill -KILL $server; wait $server; true
        "$FSAGE" drive list >list 2>err && grep -q ': a second mount' err
        ! on mnt && on bound && umount bound
        "$FSAGE" fsck disk.img --repair --in-place >list; [ $? -le 1 ]
        mounted mnt && mount --bind mnt bound && echo precious >mnt/precious
        timeout -s KILL 60 "$FSAGE" umount mnt 2>err && grep -q 'still mounted on .*/bound' err
        [ "$(cat bound/precious)" = precious ]
        "$FSAGE" umount bound && wait $server && "$FSAGE" fsck disk.img >list
        "#,
    );
}

/// Where mounts are shared, several go at once: unmounting took one of them for still there, and did not wait until the
/// last was written.
#[test]
fn a_mount_that_goes_with_another_is_not_said_to_be_there() {
    with_a_mount(
        r#"
        mkdir shared also && mount -t tmpfs shared shared && mount --make-shared shared && mount --bind shared also
        mkdir shared/mnt && mounted shared/mnt && on also/mnt fuse.fsage && echo precious >shared/mnt/precious
        "$FSAGE" umount shared/mnt 2>err && [ ! -s err ] && ! on also/mnt
        "$FSAGE" fsck disk.img >list && wait $server
        "#,
    );
}

/// A server that was to end asked itself whether it answers, which it does not while it writes back: its mount stayed.
#[test]
fn a_server_that_writes_back_takes_its_mount_along() {
    if !need(Need::Tool(Tool::Strace)) {
        return;
    }
    with_a_mount(
        r#"
        slow="-e trace=fsync,fdatasync -e inject=fsync,fdatasync:delay_enter=5000000"
        { strace -f -qq -o trace $slow "$FSAGE" mount --foreground disk.img mnt >list 2>said & tracer=$!; }
        until mountpoint -q mnt; do kill -0 $tracer || break; sleep 0.05; done
        echo precious >mnt/precious && { sync mnt & synced=$!; } && sleep 0.1
        pkill -TERM -f "^$FSAGE mount" && wait $tracer && wait $synced
        ! on mnt && ! grep "gives no answer" said && "$FSAGE" fsck disk.img >list
        "#,
    );
}

/// Unmounting returned before the last was written, where the image had another name by then.
#[test]
fn an_image_that_was_renamed_is_not_said_to_be_written() {
    with_a_mount(
        r#"
        mounted mnt && mv disk.img renamed.img && echo precious >mnt/precious
        "$FSAGE" umount mnt 2>err && false; [ $? = 3 ]
        grep -q 'disk.img: cannot see whether the last of it is written' err
        wait $server && "$FSAGE" fsck renamed.img >list
        "#,
    );
}

/// One run that was stopped while it swept held up all others.
#[test]
fn a_sweep_that_does_not_end_holds_no_run_up() {
    with_a_mount(
        r#"
        mkfifo held && { flock /run/fsage sh -c 'echo >held; exec sleep 600' & holder=$!; read x <held; }
        timeout -s KILL 120 "$FSAGE" drive list >list 2>err && grep -q 'other runs have been sweeping' err
        pkill -P $holder; wait $holder; true
        "#,
    );
}

/// What was kept was unmounted and removed by the next run, if its own was killed.
#[test]
fn a_scratch_file_system_that_is_kept_outlives_a_kill() {
    if !need(Need::LoopDevices) || !need(Need::Tool(Tool::MkfsExt4)) {
        return;
    }
    with_a_mount(
        r#"
        { TMPDIR=$PWD/mnt "$FSAGE" measure ext4:1100M --keep --budget 600s -o kept.system >list 2>err & measure=$!; }
        until ls mnt/fsage-*/mnt/fsage-*/* >list 2>err; do kill -0 $measure && sleep 0.05 || break; done
        kill -KILL $measure; wait $measure; [ $? = 137 ]
        "$FSAGE" drive list >list 2>err && [ ! -s err ]
        umount "$PWD"/mnt/fsage-*/mnt && [ -e "$(ls -d mnt/fsage-*/)" ]
        "#,
    );
}

/// Killed where names cannot be exchanged, between two steps: the next run removed the new result, and the old one had
/// another name.
#[test]
fn what_is_replaced_in_steps_is_put_back_after_a_kill() {
    if !need(Need::Tool(Tool::Strace)) {
        return;
    }
    with_a_mount(
        r#"
        mounted mnt && echo '1 1700000000.000001 mkdir("/a", 0777) = 0 <0.1>' >calls
        "$FSAGE" import calls -o mnt/w.workload >list 2>err && cp -r mnt/w.workload before
        again="import calls -o mnt/w.workload --overwrite" && second='partial-[0-9a-f]*",.*workload") = 0'
        strace -f -qq -o trace -e trace=/^rename "$FSAGE" $again >list 2>err
        pid=$(grep "$second" trace | cut -d' ' -f1) && call=$(grep "$second" trace | sed 's/^[0-9 ]*//; s/(.*//')
        nth=$(grep "^$pid  *$call(" trace | grep -n "$second" | cut -d: -f1) && [ "$nth" -ge 2 ]
        killed="-e inject=$call:signal=KILL:when=$nth"
        strace -f -qq -o trace -e trace=$call $killed "$FSAGE" $again >list 2>err; [ $? != 0 ]
        [ ! -e mnt/w.workload ]
        "$FSAGE" drive list >list 2>err && grep -q 'w.workload: put back' err
        diff -r before mnt/w.workload && [ "$(ls -A mnt)" = w.workload ]
        "$FSAGE" $again >list 2>err && [ "$(ls -A mnt)" = w.workload ]
        kill -TERM $server; wait $server && "$FSAGE" fsck disk.img >list
        "#,
    );
}
