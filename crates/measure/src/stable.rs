//! Getting data onto stable storage: fsync, fdatasync and syncfs by what is dirty.
//!
//! Each call is preceded by the writes it has to make stable, and by nothing else that is dirty (other than what the
//! journal collected since the call before), in random order of all kinds and sizes. A device that has rested answers
//! later: each is made just after another sync has woken it, and what a rest costs is measured by itself.

use super::bench::{Bench, Dir};
use super::{Group, MeasureError, Mode};
use posix::{Call, Fd, OpenFlags, SyncRange};
use system::vector::Class;

const BLOCK_BYTES: u64 = 4096;
/// The files that are appended to: one for each size, and one for whatever else needs one. They are made again in each
/// round, as logs of programs are short and lie in few pieces: each piece more may be a block of the file's map to
/// write.
const BASE_FILES: usize = Class::FsyncAppend.points().len() + 1;
/// Files of which write-back is started one after the other, and their largest.
const STARTED: usize = 8;
const STARTED_BYTES: u64 = 64 << 10;
const OVERWRITE_BYTES: u64 = 16 << 20;
const APPEND_START_BYTES: u64 = 64 << 10;
/// The size of the files that other data is dirty in.
const OTHER_FILE_BYTES: u64 = 64 << 10;

#[derive(Clone, Copy)]
enum Item {
    Append(Class, u64),
    Overwrite(Class, u64),
    Create(Class, u64),
    Late(Class, u64),
    Log(u64),
    Start(u64),
    Clean,
    Directory(Class),
    Other(u64),
    Everything(u64),
    Rest(u64),
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Stable {
    overwritten_bytes: u64,
}

impl Group for Stable {
    fn name(&self) -> &'static str {
        "stable storage"
    }

    fn classes(&self) -> &'static [Class] {
        use Class::*;
        &[
            FsyncClean,
            FsyncAppend,
            FsyncOverwrite,
            FsyncCreate,
            FdatasyncAppend,
            FdatasyncOverwrite,
            FdatasyncCreate,
            FsyncContiguous,
            FsyncLate,
            FdatasyncContiguous,
            FdatasyncLate,
            FsyncLog,
            FsyncOther,
            SyncIdle,
            FsyncDir,
            FdatasyncDir,
            FsyncDirClean,
            SyncRangeStart,
            SyncFs,
        ]
    }

    fn prepare(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        b.make_dir("stable")?;
        if b.is_virtual() {
            b.sheet.give_up(Class::SyncIdle.name().to_owned(), "drives in virtual time do not rest".to_owned());
        }
        self.overwritten_bytes = b.large_file_bytes(OVERWRITE_BYTES)?;
        b.make_file("stable/overwritten".into(), self.overwritten_bytes)?;
        b.make_file("stable/woken".into(), BLOCK_BYTES)?;
        b.sync()
    }

    fn round(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        let dir = b.open_dir("stable")?;
        let overwritten = b.open(dir.at("overwritten"), OpenFlags::READ_WRITE)?;
        b.read_all(overwritten, self.overwritten_bytes)?;
        let woken = b.open(dir.at("woken"), OpenFlags::READ_WRITE)?;
        let flags = OpenFlags { append: true, ..OpenFlags::WRITE };
        let mut appended = Vec::new();
        let mut bases = Vec::new();
        for _ in 0..BASE_FILES {
            let name = b.new_name("appended");
            b.make_file(dir.at(&name), APPEND_START_BYTES)?;
            let fd = b.open(dir.at(&name), flags)?;
            // The first sync of a new file gets its name to the disk too.
            b.quiet(&Call::Fsync { fd })?;
            appended.push(fd);
            bases.push(name);
        }
        let mut made = Vec::new();
        let mut items = items(b.mode, b.is_virtual());
        b.shuffle(&mut items);
        b.sync()?;
        for item in items {
            if !b.go_on()? {
                break;
            }
            let chosen = match item {
                Item::Append(class, size) => class.points().iter().position(|point| *point == size),
                _ => None,
            };
            let append_to = appended[chosen.unwrap_or(BASE_FILES - 1)];
            match item {
                Item::Append(class, size) => {
                    self.wake_early(b, woken)?;
                    append(b, append_to, size)?;
                    self.wake_late(b, woken)?;
                    b.timed(class, size, &stable(class, append_to))?;
                }
                Item::Overwrite(class, size) => {
                    self.wake_early(b, woken)?;
                    match class {
                        Class::FsyncContiguous | Class::FdatasyncContiguous => self.overwrite(b, overwritten, size)?,
                        _ => self.scatter(b, overwritten, size)?,
                    }
                    self.wake_late(b, woken)?;
                    b.timed(class, size, &stable(class, overwritten))?;
                }
                Item::Create(class, size) => {
                    let name = b.new_name("new");
                    self.wake_early(b, woken)?;
                    let fd = b.open(dir.at(&name), OpenFlags::CREATE_NEW)?;
                    append(b, fd, size)?;
                    self.wake_late(b, woken)?;
                    b.timed(class, size, &stable(class, fd))?;
                    b.close(fd)?;
                    made.push(name);
                }
                Item::Late(class, size) => {
                    // Both are made before either is synced, as by programs that make many and then sync each.
                    let mut files = Vec::new();
                    for _ in 0..2 {
                        let name = b.new_name("late");
                        let fd = b.open(dir.at(&name), OpenFlags::CREATE_NEW)?;
                        append(b, fd, size)?;
                        files.push(fd);
                        made.push(name);
                    }
                    if let &[first, second] = files.as_slice() {
                        b.quiet(&stable(class, first))?;
                        b.timed(class, size, &stable(class, second))?;
                    }
                    for fd in files {
                        b.close(fd)?;
                    }
                }
                Item::Log(names) => {
                    self.wake_early(b, woken)?;
                    let plain_ns = self.append_and_sync(b, append_to, woken)?;
                    b.sheet.record(Class::FsyncAppend, BLOCK_BYTES, plain_ns);
                    let path = format!("stable/{}", b.new_name("names"));
                    let other = b.new_dir(&path)?;
                    let of_round = made.len();
                    for _ in 0..names {
                        let name = b.new_name("empty");
                        b.make_file(other.at(&name), 0)?;
                        made.push(name);
                    }
                    let ns = self.append_and_sync(b, append_to, woken)?;
                    b.sheet.record(Class::FsyncLog, names, ns - plain_ns);
                    for name in made.drain(of_round..) {
                        b.unlink(other.at(&name))?;
                    }
                    b.close(other.fd)?;
                    b.quiet(&Call::Rmdir { at: path.as_str().into() })?;
                    b.sync()?;
                }
                Item::Start(size) => {
                    // Several one after the other, as a package manager's: the first wakes the device. In a laboratory,
                    // whose device never sleeps, they came out many times as dear on a log as replays found them; why
                    // is not known.
                    let several = size <= STARTED_BYTES && !b.is_virtual();
                    let mut files = Vec::new();
                    for _ in 0..if several { STARTED } else { 1 } {
                        let name = b.new_name("started");
                        let fd = b.open(dir.at(&name), OpenFlags::CREATE_NEW)?;
                        append(b, fd, size)?;
                        let how = SyncRange::STARTED;
                        let call = Call::SyncRange { fd, offset: 0, len_bytes: 0, how };
                        b.try_timed(Class::SyncRangeStart, size, &call)?;
                        files.push(fd);
                        made.push(name);
                    }
                    for fd in files {
                        b.quiet(&Call::Fdatasync { fd })?;
                        b.close(fd)?;
                    }
                }
                Item::Clean => {
                    // The kind before may have left a time of modification to write (fdatasync does).
                    b.quiet(&Call::Fsync { fd: append_to })?;
                    b.timed(Class::FsyncClean, 0, &Call::Fsync { fd: append_to })?;
                }
                Item::Directory(class) => self.sync_directory(b, class, (dir, woken), &mut made)?,
                Item::Rest(rest_ns) => {
                    self.wake(b, woken)?;
                    let woken_ns = self.overwrite_and_sync(b, overwritten, 0)?;
                    let rested_ns = self.overwrite_and_sync(b, overwritten, rest_ns)?;
                    b.sheet.record(Class::SyncIdle, rest_ns, rested_ns - woken_ns);
                }
                Item::Other(size) => {
                    // A plain one just before, since what a device needs changes from minute to minute.
                    self.wake_early(b, woken)?;
                    let plain_ns = self.append_and_sync(b, append_to, woken)?;
                    b.sheet.record(Class::FsyncAppend, BLOCK_BYTES, plain_ns);
                    make_others(b, dir, size, &mut made)?;
                    let ns = self.append_and_sync(b, append_to, woken)?;
                    b.sheet.record(Class::FsyncOther, size, ns - plain_ns);
                    b.sync()?;
                }
                Item::Everything(size) => {
                    b.sync()?;
                    make_others(b, dir, size, &mut made)?;
                    b.timed(Class::SyncFs, size, &Call::SyncFs)?;
                }
            }
        }
        for fd in appended.into_iter().chain([overwritten, woken]) {
            b.close(fd)?;
        }
        for name in made.into_iter().chain(bases) {
            b.unlink(dir.at(&name))?;
        }
        b.close(dir.fd)?;
        b.sync()
    }
}

impl Stable {
    /// Overwrites distinct blocks, `size` bytes of them, scattered over the file as a database's pages are.
    fn scatter(&self, b: &mut Bench<'_>, fd: Fd, size: u64) -> Result<(), MeasureError> {
        let blocks = self.overwritten_bytes / BLOCK_BYTES;
        let wanted = (size / BLOCK_BYTES).clamp(1, blocks);
        let stride = blocks / wanted;
        for number in 0..wanted {
            let block = number * stride + b.pick(usize::try_from(stride).unwrap_or(1)) as u64;
            let offset = Some(block * BLOCK_BYTES);
            b.quiet(&Call::Write { fd, offset, len_bytes: BLOCK_BYTES, data: None })?;
        }
        Ok(())
    }

    /// Overwrites blocks side by side, at a random place, in requests of up to 64 KB.
    fn overwrite(&self, b: &mut Bench<'_>, fd: Fd, size: u64) -> Result<(), MeasureError> {
        let size = size.min(self.overwritten_bytes);
        let places = (self.overwritten_bytes - size) / BLOCK_BYTES + 1;
        let start = b.pick(usize::try_from(places).unwrap_or(1)) as u64 * BLOCK_BYTES;
        let mut done = 0;
        while done < size {
            let len_bytes = (size - done).min(64 << 10);
            b.quiet(&Call::Write { fd, offset: Some(start + done), len_bytes, data: None })?;
            done += len_bytes;
        }
        Ok(())
    }

    /// Has the device do something small, so that it does not rest: a block of another file is overwritten and synced.
    fn wake(&self, b: &mut Bench<'_>, woken: Fd) -> Result<(), MeasureError> {
        if b.is_virtual() {
            return Ok(());
        }
        b.quiet(&Call::Write { fd: woken, offset: Some(0), len_bytes: BLOCK_BYTES, data: None })?;
        b.quiet(&Call::Fdatasync { fd: woken }).map(|_| ())
    }

    /// The same before a change whose sync is timed, where that sync of another file would commit the change (ext4 with
    /// `data=journal`).
    fn wake_early(&self, b: &mut Bench<'_>, woken: Fd) -> Result<(), MeasureError> {
        if b.any_sync_commits { self.wake(b, woken) } else { Ok(()) }
    }

    /// The same after the change, straight before the sync: elsewhere.
    fn wake_late(&self, b: &mut Bench<'_>, woken: Fd) -> Result<(), MeasureError> {
        if b.any_sync_commits { Ok(()) } else { self.wake(b, woken) }
    }

    /// The time of an fsync after appending a block, with what was changed before.
    fn append_and_sync(&self, b: &mut Bench<'_>, fd: Fd, woken: Fd) -> Result<f64, MeasureError> {
        append(b, fd, BLOCK_BYTES)?;
        self.wake_late(b, woken)?;
        sync_ns(b, &Call::Fsync { fd })
    }

    /// The time of an fdatasync after overwriting a block. Before that, for so long, calls are made that need nothing
    /// of the device.
    fn overwrite_and_sync(&self, b: &mut Bench<'_>, fd: Fd, rest_ns: u64) -> Result<f64, MeasureError> {
        let began_ns = b.fs.now_ns();
        while b.fs.now_ns() - began_ns < rest_ns {
            b.quiet(&Call::Fstat { fd })?;
        }
        self.scatter(b, fd, BLOCK_BYTES)?;
        sync_ns(b, &Call::Fdatasync { fd })
    }

    /// Makes a name, or removes one, and gets its directory onto stable storage.
    fn sync_directory(
        &self,
        b: &mut Bench<'_>,
        class: Class,
        (dir, woken): (Dir, Fd),
        made: &mut Vec<String>,
    ) -> Result<(), MeasureError> {
        self.wake_early(b, woken)?;
        // A path-only descriptor cannot be synced.
        let dir_fd = b.open("stable".into(), OpenFlags::DIRECTORY)?;
        match made.pop() {
            Some(name) if b.pick(2) == 0 => b.unlink(dir.at(&name))?,
            popped => {
                made.extend(popped);
                let name = b.new_name("entry");
                b.make_file(dir.at(&name), 0)?;
                made.push(name);
            }
        }
        self.wake_late(b, woken)?;
        let sync = stable(class, dir_fd);
        if b.try_timed(class, 0, &sync)?.is_some() && class == Class::FsyncDir {
            b.try_timed(Class::FsyncDirClean, 0, &sync)?;
        }
        b.close(dir_fd)
    }
}

fn items(mode: Mode, is_virtual: bool) -> Vec<Item> {
    let mut items = Vec::new();
    let more = if mode == Mode::Quick { 1 } else { 2 };
    for (class, make) in [
        (Class::FsyncAppend, Item::Append as fn(Class, u64) -> Item),
        (Class::FdatasyncAppend, Item::Append),
        (Class::FsyncOverwrite, Item::Overwrite),
        (Class::FdatasyncOverwrite, Item::Overwrite),
        (Class::FsyncCreate, Item::Create),
        (Class::FdatasyncCreate, Item::Create),
    ] {
        for &size in class.points() {
            // Small transactions are what databases wait for, and vary most.
            let repeats = if size <= 16 << 10 { 3 } else { 1 };
            items.extend((0..repeats * more).map(|_| make(class, size)));
        }
    }
    for class in [Class::FsyncContiguous, Class::FdatasyncContiguous] {
        for &size in class.points() {
            items.extend((0..more).map(|_| Item::Overwrite(class, size)));
        }
    }
    for class in [Class::FsyncLate, Class::FdatasyncLate] {
        for &size in class.points() {
            items.extend((0..more).map(|_| Item::Late(class, size)));
        }
    }
    for &names in Class::FsyncLog.points() {
        items.extend((0..more).map(|_| Item::Log(names)));
    }
    for &size in Class::FsyncOther.points() {
        items.extend((0..more).map(|_| Item::Other(size)));
    }
    if !is_virtual {
        for &rest_ns in Class::SyncIdle.points() {
            items.extend((0..2 * more).map(|_| Item::Rest(rest_ns)));
        }
    }
    for &size in Class::SyncRangeStart.points() {
        items.extend((0..more).map(|_| Item::Start(size)));
    }
    for &size in Class::SyncFs.points() {
        items.extend((0..more).map(|_| Item::Everything(size)));
    }
    for _ in 0..2 * more {
        items.extend([Item::Clean, Item::Directory(Class::FsyncDir), Item::Directory(Class::FdatasyncDir)]);
    }
    items
}

fn stable(class: Class, fd: Fd) -> Call<'static> {
    match class {
        Class::FdatasyncAppend
        | Class::FdatasyncOverwrite
        | Class::FdatasyncCreate
        | Class::FdatasyncContiguous
        | Class::FdatasyncLate
        | Class::FdatasyncDir => Call::Fdatasync { fd },
        _ => Call::Fsync { fd },
    }
}

/// Writes new data at the end in requests of up to 64 KB.
fn append(b: &mut Bench<'_>, fd: Fd, size: u64) -> Result<(), MeasureError> {
    let mut left = size;
    while left > 0 {
        let len_bytes = left.min(64 << 10);
        b.quiet(&Call::Write { fd, offset: None, len_bytes, data: None })?;
        left -= len_bytes;
    }
    Ok(())
}

/// The time of a sync.
fn sync_ns(b: &mut Bench<'_>, call: &Call<'_>) -> Result<f64, MeasureError> {
    let outcome = b.outcome(call);
    outcome.result.map_err(|errno| MeasureError::call(call, errno))?;
    Ok(outcome.dur_ns as f64)
}

/// New dirty data, `size` bytes of it, in files of their own.
fn make_others(b: &mut Bench<'_>, dir: Dir, size: u64, made: &mut Vec<String>) -> Result<(), MeasureError> {
    for _ in 0..size / OTHER_FILE_BYTES {
        let name = b.new_name("other");
        b.make_file(dir.at(&name), OTHER_FILE_BYTES)?;
        made.push(name);
    }
    Ok(())
}
