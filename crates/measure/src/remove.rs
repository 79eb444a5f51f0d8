//! Removing and truncating files whose data is cached, by size.
//!
//! The uncached counterparts, which need caches dropped, are in `cold`.

use super::bench::{Bench, Dir};
use super::{Group, MeasureError};
use posix::{At, Call, OpenFlags};
use std::collections::BTreeSet;
use system::vector::Class;

/// Directories the files are spread over.
const DIRS: usize = 48;

/// Files of one directory that are removed one after the other.
pub(super) const RUN: usize = 3;

/// How many files of a size a round removes: fewer of the large ones, which cost time and device bandwidth to make.
pub(super) fn files_of(size: u64) -> usize {
    match size {
        0..=16_384 => 32,
        16_385..=65_536 => 12,
        65_537..=262_144 => 6,
        262_145..=1_048_576 => 3,
        _ => 2,
    }
}

#[derive(Clone, Copy)]
enum Item {
    Remove,
    RemoveDirty,
    Truncate,
    Rewrite,
    RewriteEmpty,
    Cut,
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct Remove {
    dirs: Vec<String>,
}

impl Group for Remove {
    fn name(&self) -> &'static str {
        "removing and truncating"
    }

    fn classes(&self) -> &'static [Class] {
        &[
            Class::Remove,
            Class::RemoveDirty,
            Class::RemoveNext,
            Class::RemoveDirtyNext,
            Class::TruncateCached,
            Class::TruncateDirty,
            Class::CloseTruncated,
            Class::CloseTruncatedEmpty,
        ]
    }

    fn prepare(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        b.make_dir("remove")?;
        for number in 0..DIRS {
            let path = format!("remove/d{number}");
            b.make_dir(&path)?;
            self.dirs.push(path);
        }
        Ok(())
    }

    fn round(&mut self, b: &mut Bench<'_>) -> Result<(), MeasureError> {
        let mut dirs = Vec::with_capacity(self.dirs.len());
        for path in &self.dirs {
            dirs.push(b.open_dir(path)?);
        }
        let mut items = Vec::new();
        for (class, item) in [
            (Class::Remove, Item::Remove),
            (Class::RemoveDirty, Item::RemoveDirty),
            (Class::TruncateCached, Item::Truncate),
            (Class::CloseTruncated, Item::Rewrite),
            (Class::CloseTruncatedEmpty, Item::RewriteEmpty),
            (Class::TruncateDirty, Item::Cut),
        ] {
            for &size in class.points() {
                let run = run_of(item, size);
                items.extend((0..files_of(size).div_ceil(run)).map(|_| (item, size, run)));
            }
        }
        b.shuffle(&mut items);
        // The files that are to be clean are made first and written back together.
        let mut files = Vec::with_capacity(items.len());
        for (number, &(item, size, run)) in items.iter().enumerate() {
            let names: Vec<String> = (0..run).map(|_| b.new_name("file")).collect();
            let Some(&dir) = dirs.get(number % dirs.len().max(1)) else { break };
            // On a slow device a round makes fewer files rather than overrun its time.
            if !matches!(item, Item::RemoveDirty) {
                if !b.go_on()? {
                    break;
                }
                let size = if matches!(item, Item::RewriteEmpty | Item::Cut) { 0 } else { size };
                names.iter().try_for_each(|name| b.make_file(dir.at(name), size))?;
            }
            files.push((item, size, dir, names));
        }
        b.sync()?;
        // And then those that are to be dirty, all before any is removed: a file made a moment ago is still in the
        // processor's caches, which those that a program removes are not.
        let mut made_dirty = BTreeSet::new();
        for (item, size, dir, names) in &files {
            if matches!(item, Item::RemoveDirty) {
                if !b.go_on()? {
                    break;
                }
                names.iter().try_for_each(|name| b.make_file(dir.at(name), *size))?;
                made_dirty.extend(names.iter().map(String::as_str));
            }
        }
        for (item, size, dir, names) in &files {
            let Some(at) = names.first().map(|name| dir.at(name)) else { continue };
            match item {
                Item::Remove => remove_run(b, [Class::Remove, Class::RemoveNext], *size, *dir, names)?,
                Item::Truncate => {
                    b.timed(Class::TruncateCached, *size, &Call::Truncate { at, len_bytes: 0 })?;
                    b.unlink(at)?;
                }
                Item::Rewrite => rewrite(b, at, Class::CloseTruncated, *size)?,
                Item::RewriteEmpty => rewrite(b, at, Class::CloseTruncatedEmpty, *size)?,
                Item::Cut => {
                    let fd = b.open(at, OpenFlags::WRITE)?;
                    b.fill(fd, 0, *size)?;
                    b.timed(Class::TruncateDirty, *size, &Call::Ftruncate { fd, len_bytes: *size })?;
                    b.close(fd)?;
                    b.unlink(at)?;
                }
                Item::RemoveDirty if names.iter().all(|name| made_dirty.contains(name.as_str())) => {
                    remove_run(b, [Class::RemoveDirty, Class::RemoveDirtyNext], *size, *dir, names)?;
                }
                Item::RemoveDirty => {}
            }
        }
        for dir in dirs {
            b.close(dir.fd)?;
        }
        Ok(())
    }
}

/// How many files are removed one after the other in one directory.
fn run_of(item: Item, size: u64) -> usize {
    let removes = matches!(item, Item::Remove | Item::RemoveDirty);
    if removes && Class::RemoveNext.points().contains(&size) { RUN } else { 1 }
}

/// Removes files of a directory: the first after whatever came before, the others after one of their own.
fn remove_run(
    b: &mut Bench<'_>,
    classes: [Class; 2],
    size: u64,
    dir: Dir,
    names: &[String],
) -> Result<(), MeasureError> {
    for (number, name) in names.iter().enumerate() {
        b.timed(classes[number.min(1)], size, &Call::Unlink { at: dir.at(name) })?;
    }
    Ok(())
}

/// Empties a file by opening it, writes it anew, and times the close; then removes it.
fn rewrite(b: &mut Bench<'_>, at: At<'_>, class: Class, size: u64) -> Result<(), MeasureError> {
    let fd = b.open(at, OpenFlags { truncate: true, ..OpenFlags::WRITE })?;
    b.fill(fd, 0, size)?;
    b.timed(class, size, &Call::Close { fd })?;
    b.unlink(at)
}
