//! The survey of what was listed before: a tree whose files are told one by one, with their extents, as a snapshot with
//! block lists has them. The figures are those of the other surveys, from the same sums.

use crate::SurveyOptions;
use crate::collect::{Collector, DirectoryPlace, FileFacts, LinksLeft};
use crate::geometry::Groups;
use crate::map::{MapBuilder, Span};
use crate::survey::{Available, Source, Survey, Walked};
use crate::walk::shown_path;
use posix::Extent;

/// A regular file, as it was listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedFile {
    /// Its inode number.
    pub ino: u64,
    /// How many names it has.
    pub nlink: u32,
    /// Its length.
    pub size_bytes: u64,
    /// When it was last modified, nanoseconds since the epoch.
    pub mtime_ns: i64,
}

/// A survey being made of a list. Directories are entered and left, and files told, in the order of a walk depth first,
/// each directory in the order in which the system listed it: figures of distance follow that order.
pub struct Listed {
    source: Source,
    collector: Collector,
    walked: Walked,
    links_left: LinksLeft,
    stack: Vec<DirectoryPlace>,
}

impl Listed {
    /// Nothing told yet. `groups`: those that files are compared with, or why not; `span`: the addresses in use, for a
    /// map.
    pub fn new(source: Source, groups: Result<Groups, String>, span: Span, options: &SurveyOptions) -> Listed {
        let map = options.map.map(|order| MapBuilder::new(order, span));
        Listed {
            collector: Collector::new(source.block_bytes, groups, source.taken_unix_s, options, map),
            source,
            walked: Walked::default(),
            links_left: LinksLeft::default(),
            stack: Vec::new(),
        }
    }

    /// What was walked, to add what has no extents.
    pub fn walked(&mut self) -> &mut Walked {
        &mut self.walked
    }

    /// Goes into a directory.
    pub fn enter(&mut self) {
        self.walked.directories += 1;
        self.stack.push(DirectoryPlace::default());
    }

    /// Goes back to the one above.
    pub fn leave(&mut self) {
        self.stack.pop();
    }

    /// A name of a file in the directory it is in; `path`: from the root of the tree, without a slash before it. A
    /// further name of a file that was told before is counted as one.
    pub fn file(&mut self, file: ListedFile, extents: &[Extent], path: impl FnOnce() -> Vec<u8>) {
        if file.nlink > 1 && self.links_left.seen_before(file.ino, file.nlink) {
            self.walked.further_links += 1;
            return;
        }
        self.walked.files += 1;
        let facts = FileFacts { ino: file.ino, size_bytes: file.size_bytes, mtime_ns: file.mtime_ns };
        let mut place = self.stack.last().copied().unwrap_or_default();
        self.collector.file(&mut place, facts, extents, || shown_path(&path()));
        if let Some(here) = self.stack.last_mut() {
            *here = place;
        }
    }

    /// The survey. `no_extents`: why there are none at all, where that is so; `no_free`: why free space is not known.
    pub fn finished(self, no_extents: Option<String>, no_free: &str) -> Survey {
        let Listed { source, mut collector, walked, .. } = self;
        let map = collector.take_map().map(|map| match &no_extents {
            Some(why) => Available::Unavailable(why.clone()),
            None => Available::Known(map.finished(Err(no_free), &[])),
        });
        let files = match no_extents {
            Some(why) => Available::Unavailable(why),
            None => Available::Known(collector.finished()),
        };
        Survey { source, walked, files, free: Available::Unavailable(no_free.to_owned()), map }
    }
}
