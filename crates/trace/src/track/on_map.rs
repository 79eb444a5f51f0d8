//! Accesses to files through mappings, as a tracer in the kernel tells them: faults.

use super::call::{Outcome, Seen};
use super::resolve::{is_foreign, unescape_into};
use super::{Ctx, Tracker};
use crate::{Op, flag};

impl Tracker {
    /// A fault on a file's mapping. The file is what the tracer saw behind the mapping; no descriptor need be left.
    pub(super) fn access(&mut self, ctx: Ctx, write: bool, file: Option<Seen<'_>>, offset: u64, out: &Outcome<'_>) {
        let mut event = self.event(ctx, if write { Op::MapWrite } else { Op::MapRead }, out);
        event.offset = Some(offset);
        event.req_bytes = u64::try_from(out.ret).ok();
        match file {
            None => {}
            Some(Seen::Foreign) => event.flags |= flag::FOREIGN,
            Some(Seen::Unnamed(who)) => {
                if let Some(file) = self.names.with_inode(who.inode) {
                    self.describe_file(&mut event, file);
                }
            }
            Some(Seen::Path { raw, deleted, who }) => {
                let mut path = std::mem::take(&mut self.unescaped);
                unescape_into(raw, &mut path);
                if is_foreign(&path) {
                    event.flags |= flag::FOREIGN;
                } else if let Some(file) = who.and_then(|who| self.names.with_inode(who.inode)) {
                    self.describe_file(&mut event, file);
                } else if !deleted && let Some(node) = self.names.canonical(&path, true) {
                    self.describe_file(&mut event, self.names.file_of(node));
                }
                event.path = Some(self.out.intern(&path));
                self.unescaped = path;
            }
        }
        self.emit(ctx, event);
    }
}
