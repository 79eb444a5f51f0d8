//! The survey of an image: the same walk as of a mounted tree, in the same order, with the same result.

use super::error::{Ext4Error, damaged};
use super::features;
use super::free::free_extents;
use super::image::Image;
use super::inode::{INLINE_DATA, Inode, ROOT};
use super::map::{Budget, Mapper};
use super::superblock::Superblock;
use crate::collect::{Collector, DirectoryPlace, FileFacts, LinksLeft};
use crate::map::{MapBuilder, Span};
use crate::scores::free::FreeSpace;
use crate::survey::{AddressSpace, Available, GroupCount, Method, Source, Survey, Walked};
use crate::walk::shown_path;
use crate::{Progress, SurveyOptions};
use posix::{Extent, ExtentFlags, FileKind};
use rustc_hash::FxHashSet;

struct Frame {
    name: Vec<u8>,
    rest: std::vec::IntoIter<super::directory::Entry>,
    place: DirectoryPlace,
}

struct Walk<'a> {
    mapper: Mapper<'a>,
    collector: Collector,
    walked: Walked,
    stack: Vec<Frame>,
    directories: FxHashSet<u64>,
    links_left: LinksLeft,
    unordered: u64,
}

/// Surveys an image. `target` names it in the result; `progress` is told now and then and stops the survey by answering
/// `false`.
pub fn survey_image(
    image: &Image,
    target: &str,
    options: &SurveyOptions,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Survey, Ext4Error> {
    let sb = Superblock::read(image)?;
    let groups = sb.group_geometry();
    let taken_unix_s = options.taken_unix_s.unwrap_or(sb.written_unix_s);
    let span = Span { start_bytes: 0, len_bytes: sb.blocks.saturating_mul(sb.block_bytes) };
    let map = options.map.map(|order| MapBuilder::new(order, span));
    let mut budget = Budget::new(&sb);
    let mut walk = Walk {
        mapper: Mapper { image, sb: &sb, budget: &mut budget },
        collector: Collector::new(sb.block_bytes, Ok(groups.clone()), taken_unix_s, options, map),
        walked: Walked::default(),
        stack: Vec::new(),
        directories: FxHashSet::default(),
        links_left: LinksLeft::default(),
        unordered: 0,
    };
    let root = Inode::read(image, &sb, ROOT)?;
    if root.kind() != FileKind::Directory {
        return Err(damaged(root.at_byte, "the root inode is not a directory"));
    }
    walk.enter(Vec::new(), &root)?;
    walk.run(progress)?;
    let Walk { mut collector, walked, unordered, .. } = walk;
    let so_far = Progress { files: walked.files, directories: walked.directories };
    let free = free_extents(image, &sb, &mut || !posix::interrupt::requested() && progress(so_far))?;
    let mut notes = sb.notes();
    if unordered > 0 {
        notes
            .push(format!("{unordered} directories with case folding were read in their order on disk, not readdir's"));
    }
    Ok(Survey {
        source: Source {
            target: target.to_owned(),
            method: Method::Ext4Image,
            fs_type: sb.fs_type().into(),
            options: features::of(sb.compat, sb.incompat, sb.ro_compat),
            block_bytes: sb.block_bytes,
            total_bytes: sb.blocks * sb.block_bytes,
            free_bytes: sb.free_blocks.saturating_mul(sb.block_bytes),
            taken_unix_s,
            addresses: AddressSpace::Device,
            groups: Some(GroupCount { kind: groups.kind, count: groups.count(), per_flex: groups.per_flex }),
            notes,
        },
        walked,
        map: collector.take_map().map(|map| Available::Known(map.finished(Ok(&free), &[]))),
        files: Available::Known(collector.finished()),
        free: Available::Known(FreeSpace::of(&free, Some(&groups))),
    })
}

impl Walk<'_> {
    fn run(&mut self, progress: &mut dyn FnMut(Progress) -> bool) -> Result<(), Ext4Error> {
        let mut steps = 0u64;
        while let Some(frame) = self.stack.last_mut() {
            steps += 1;
            let so_far = Progress { files: self.walked.files, directories: self.walked.directories };
            if !so_far.told(steps, progress) {
                return Err(Ext4Error::Interrupted);
            }
            let Some(entry) = frame.rest.next() else {
                self.stack.pop();
                continue;
            };
            let inode = Inode::read(self.mapper.image, self.mapper.sb, entry.ino)?;
            match inode.kind() {
                FileKind::Directory => self.enter(entry.name, &inode)?,
                FileKind::File => self.file(&entry.name, &inode)?,
                FileKind::Symlink | FileKind::Special => self.walked.others += 1,
            }
        }
        Ok(())
    }

    fn enter(&mut self, name: Vec<u8>, inode: &Inode) -> Result<(), Ext4Error> {
        if !self.directories.insert(inode.ino) {
            return Err(damaged(inode.at_byte, format!("directory inode {} has more than one name", inode.ino)));
        }
        let listing = self.mapper.listing(inode)?;
        self.walked.directories += 1;
        self.unordered += u64::from(!listing.ordered);
        self.stack.push(Frame { name, rest: listing.entries.into_iter(), place: DirectoryPlace::default() });
        Ok(())
    }

    fn file(&mut self, name: &[u8], inode: &Inode) -> Result<(), Ext4Error> {
        if inode.links > 1 && self.links_left.seen_before(inode.ino, inode.links) {
            self.walked.further_links += 1;
            return Ok(());
        }
        self.walked.files += 1;
        let mut extents = self.mapper.extents(inode)?;
        if inode.is(INLINE_DATA) && inode.size_bytes > 0 {
            let flags = ExtentFlags { inline: true, ..ExtentFlags::default() };
            let len_bytes = inode.size_bytes;
            extents.push(Extent { logical_bytes: 0, physical_bytes: inode.at_byte + 0x28, len_bytes, flags });
        }
        let facts = FileFacts { ino: inode.ino, size_bytes: inode.size_bytes, mtime_ns: inode.mtime_ns };
        let stack = &self.stack;
        let path = || {
            let names = stack.iter().skip(1).map(|frame| frame.name.as_slice()).chain([name]);
            shown_path(&names.collect::<Vec<_>>().join(&b'/'))
        };
        let mut place = stack.last().map(|f| f.place).unwrap_or_default();
        self.collector.file(&mut place, facts, &extents, path);
        if let Some(frame) = self.stack.last_mut() {
            frame.place = place;
        }
        Ok(())
    }
}
