//! Calls that move data or change how much of it there is.

use super::super::pages::PAGE_BYTES;
use super::*;
use posix::SyncRange;

impl Preprocess {
    pub(super) fn read(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let Some(node) = self.file_of(event.ofd(), event.path(), batch, out, call) else { return };
        let len_bytes = transferred(event);
        let offset = self.position(event.ofd(), event.offset());
        if len_bytes == 0 {
            out.steps.push(Step::Call(Class::ReadOverhead));
            return;
        }
        let direct = self.flags_of(event.ofd()) & flag::DIRECT != 0;
        self.read_step(out, call, node, offset, len_bytes, direct, Transfer::Process);
        if event.head.flags & flag::POSITIONAL == 0 {
            self.advance(event.ofd(), offset + len_bytes);
        }
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn read_step(
        &mut self,
        out: &mut Annotated,
        call: &mut CallNote,
        node: NodeId,
        offset: u64,
        len_bytes: u64,
        direct: bool,
        transfer: Transfer,
    ) {
        let end = offset.saturating_add(len_bytes);
        if end > self.walker.tree.node(node).size_bytes {
            // The file was longer than we knew: its length was unknown, or someone untraced wrote it.
            call.surprise |= self.walker.tree.node(node).size_bytes > 0;
            self.walker.tree.node_mut(node).size_bytes = end;
        }
        let size_bytes = self.walker.tree.node(node).size_bytes;
        let hole_bytes = len_bytes - self.walker.tree.data_in(node, offset, len_bytes).min(len_bytes);
        out.steps.push(Step::Read { node, offset, len_bytes, size_bytes, hole_bytes, direct, transfer });
    }

    pub(super) fn write(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let Some(node) = self.file_of(event.ofd(), event.path(), batch, out, call) else { return };
        let len_bytes = transferred(event);
        if len_bytes == 0 {
            out.steps.push(Step::Call(Class::WriteOverhead));
            return;
        }
        let flags = self.flags_of(event.ofd());
        let append = flags & flag::APPEND != 0;
        let offset = match event.offset() {
            Some(offset) => offset.min(BYTES_MAX),
            None if append => self.walker.tree.node(node).size_bytes,
            None => self.position(event.ofd(), None),
        };
        let stable = if flags & flag::SYNC != 0 {
            Stable::All
        } else if flags & flag::DSYNC != 0 || event.head.flags & flag::RWF_SYNC != 0 {
            Stable::Data
        } else {
            Stable::No
        };
        self.write_step(out, node, offset, len_bytes, flags & flag::DIRECT != 0, Transfer::Process, stable);
        if let Some(file) = event.ofd().and_then(|ofd| self.files.get_mut(&ofd)) {
            file.written = true;
        }
        if event.head.flags & flag::POSITIONAL == 0 {
            self.advance(event.ofd(), offset + len_bytes);
        }
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn write_step(
        &mut self,
        out: &mut Annotated,
        node: NodeId,
        offset: u64,
        len_bytes: u64,
        direct: bool,
        transfer: Transfer,
        stable: Stable,
    ) {
        let size_bytes = self.walker.tree.node(node).size_bytes;
        let holds = |at: u64| self.walker.tree.data_in(node, at / BLOCK_BYTES * BLOCK_BYTES, BLOCK_BYTES) > 0;
        let (head_holds, tail_holds) = (holds(offset), holds(offset.saturating_add(len_bytes)));
        let new_bytes = self.walker.tree.write_range(node, offset, len_bytes, BLOCK_BYTES);
        out.steps.push(Step::Write {
            node,
            offset,
            len_bytes,
            size_bytes,
            new_bytes,
            head_holds,
            tail_holds,
            direct,
            transfer,
            stable,
        });
    }

    /// copy_file_range, sendfile, splice, FICLONE: a file at one or both ends.
    pub(super) fn copy(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let known = |ofd: Option<OfdId>, files: &FxHashMap<OfdId, OpenFile>| {
            ofd.and_then(|ofd| files.get(&ofd)).map(|file| file.node)
        };
        let to = known(event.ofd2(), &self.files);
        let from = match known(event.ofd(), &self.files) {
            None if event.ofd().is_some() || to.is_none() => self.file_of(event.ofd(), event.path(), batch, out, call),
            found => found,
        };
        call.node = to.or(from).unwrap_or(NodeId::NONE);
        if call.node == NodeId::NONE {
            call.status = Status::Unidentified;
            return;
        }
        call.dir = self.walker.tree.node(call.node).dir;
        let reflink = event.head.flags & flag::SHARED != 0 && event.head.ret == 0;
        let len_bytes = match (reflink, from) {
            (true, Some(from)) => event.req_bytes().unwrap_or(self.walker.tree.node(from).size_bytes).min(BYTES_MAX),
            _ => transferred(event),
        };
        if len_bytes == 0 {
            out.steps.push(Step::Call(Class::ReadOverhead));
            return;
        }
        let (from_offset, to_offset) =
            (self.position(event.ofd(), event.offset()), self.position(event.ofd2(), event.offset2()));
        let transfer = match (from, to) {
            (Some(_), Some(_)) if reflink => {
                out.steps.push(Step::CallAt(Class::CopyRange, 0));
                Transfer::Blocks
            }
            (Some(from), Some(_)) => {
                // As vfs_copy_file_range has it: whole blocks, but for the end of the source.
                let whole = |bytes: u64| bytes.is_multiple_of(BLOCK_BYTES);
                let to_the_end = from_offset.saturating_add(len_bytes) >= self.walker.tree.node(from).size_bytes;
                let blocks = whole(from_offset) && whole(to_offset) && (whole(len_bytes) || to_the_end);
                let transfer = if blocks { Transfer::Blocks } else { Transfer::Bytes };
                out.steps.push(Step::Copy { from, len_bytes, transfer });
                transfer
            }
            _ => Transfer::Process,
        };
        if let Some(from) = from.filter(|_| !reflink) {
            self.read_step(out, call, from, from_offset, len_bytes, false, transfer);
        }
        if let Some(to) = to {
            if reflink {
                self.walker.tree.write_range(to, to_offset, len_bytes, BLOCK_BYTES);
                out.steps.push(Step::Allocate { node: to, grew: true });
            } else {
                self.write_step(out, to, to_offset, len_bytes, false, transfer, Stable::No);
            }
            if let Some(file) = event.ofd2().and_then(|ofd| self.files.get_mut(&ofd)) {
                file.written = true;
            }
        }
        if !reflink {
            if event.head.flags & flag::SOURCE_OFFSET == 0 {
                self.advance(event.ofd(), from_offset + len_bytes);
            }
            if event.head.flags & flag::TARGET_OFFSET == 0 {
                self.advance(event.ofd2(), to_offset + len_bytes);
            }
        }
    }

    pub(super) fn position(&self, ofd: Option<OfdId>, offset: Option<u64>) -> u64 {
        let own = || ofd.and_then(|ofd| self.files.get(&ofd)).map_or(0, |file| file.position);
        offset.unwrap_or_else(own).min(BYTES_MAX)
    }

    pub(super) fn advance(&mut self, ofd: Option<OfdId>, to: u64) {
        if let Some(file) = ofd.and_then(|ofd| self.files.get_mut(&ofd)) {
            file.position = to;
        }
    }

    pub(super) fn flags_of(&self, ofd: Option<OfdId>) -> u32 {
        ofd.and_then(|ofd| self.files.get(&ofd)).map_or(0, |file| file.flags)
    }

    pub(super) fn seek(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        self.file_of(event.ofd(), event.path(), batch, out, call);
        out.steps.push(Step::Call(Class::Seek));
        call.status = Status::Modelled;
        if let (Ok(to), Some(file)) =
            (u64::try_from(event.head.ret), event.ofd().and_then(|ofd| self.files.get_mut(&ofd)))
        {
            file.position = to;
            if to == 0 {
                file.listed_bytes = 0;
            }
        }
    }

    pub(super) fn get_dents(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let Some(node) = self.file_of(event.ofd(), event.path(), batch, out, call) else { return };
        let returned = transferred(event);
        let listed = event.ofd().and_then(|ofd| self.files.get(&ofd)).map_or(0, |f| f.listed_bytes);
        let directory = self.walker.tree.node(node);
        // The directory may be larger than we know of: without a snapshot the trace is all there is.
        let total_bytes = directory.dirent_bytes.max(listed + returned);
        let known = u64::from(directory.entries);
        let mean_bytes = directory.dirent_bytes.saturating_sub(48).checked_div(known).unwrap_or(32);
        let entries = known.max(total_bytes.saturating_sub(48) / mean_bytes.max(24));
        out.steps.push(Step::ReadDir {
            node,
            entries,
            share_bytes: returned,
            total_bytes,
            first: listed == 0 && returned > 0,
            end: returned == 0,
        });
        if let Some(file) = event.ofd().and_then(|ofd| self.files.get_mut(&ofd)) {
            file.listed_bytes = if returned == 0 { 0 } else { (listed + returned).min(BYTES_MAX) };
        }
    }

    pub(super) fn sync(&mut self, event: &Event, of: &Opened, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let Some(node) = self.file_of(of.ofd, of.path, batch, out, call) else { return };
        if event.head.errno.is_some() {
            out.steps.push(Step::Call(Class::FsyncClean));
            return;
        }
        let directory = self.walker.tree.node(node).kind == FileKind::Directory;
        out.steps.push(match event.call {
            // Where a trace does not say what was asked for, it was waited for.
            Call::SyncRange { how, .. } => {
                Step::SyncRange { node, how: how.and_then(SyncRange::from_bits).unwrap_or(SyncRange::WAITED) }
            }
            Call::Fdatasync(_) => Step::Sync { node, data_only: true, directory },
            _ => Step::Sync { node, data_only: false, directory },
        });
    }

    /// Pages are given up whole: the kernel leaves those alone of which the range has only a part.
    pub(super) fn dont_need(&self, range: &Range, node: NodeId) -> Step {
        let (offset, len) = (range.offset.unwrap_or(0), range.bytes.unwrap_or(0));
        let end = if len == 0 { u64::MAX } else { offset.saturating_add(len) };
        let last = if end >= self.walker.tree.node(node).size_bytes { u64::MAX } else { end / PAGE_BYTES };
        Step::DontNeed { node, first_page: offset.div_ceil(PAGE_BYTES), end_page: last }
    }

    /// Sets a file's length.
    pub(super) fn cut(&mut self, node: NodeId, to_bytes: u64, opened: bool) -> Step {
        let from_bytes = self.walker.tree.node(node).size_bytes;
        let freed_bytes = self.walker.tree.data_in(node, to_bytes, from_bytes.saturating_sub(to_bytes));
        self.walker.tree.set_size(node, to_bytes, BLOCK_BYTES);
        Step::Truncate { node, from_bytes, to_bytes, freed_bytes, opened }
    }

    /// ftruncate and fallocate, of so many bytes.
    pub(super) fn change_space(
        &mut self,
        event: &Event,
        of: &Opened,
        bytes: Option<u64>,
        batch: &Batch,
        out: &mut Annotated,
        call: &mut CallNote,
    ) {
        let Some(node) = self.file_of(of.ofd, of.path, batch, out, call) else { return };
        let bytes = bytes.unwrap_or(0).min(BYTES_MAX);
        if event.head.errno.is_some() {
            out.steps.push(Step::Call(Class::Fstat));
            return;
        }
        let from_bytes = self.walker.tree.node(node).size_bytes;
        let Call::Fallocate(range) = &event.call else {
            out.steps.push(self.cut(node, bytes, false));
            return;
        };
        // The kernel's mode bits: linux/falloc.h.
        const KEEP_SIZE: u32 = 1;
        const PUNCH_HOLE: u32 = 2;
        const COLLAPSE_RANGE: u32 = 8;
        let mode = event.head.flags >> flag::SUB_SHIFT;
        let offset = range.offset.unwrap_or(0).min(BYTES_MAX);
        if mode & PUNCH_HOLE != 0 {
            let freed = self.walker.tree.data_in(node, offset, bytes);
            out.steps.push(Step::CallAt(Class::TruncateCached, freed));
            self.walker.tree.punch(node, offset, bytes, BLOCK_BYTES);
            out.steps.push(Step::Allocate { node, grew: true });
        } else if mode & COLLAPSE_RANGE != 0 {
            out.steps.push(Step::CallAt(Class::TruncateCached, bytes));
            self.walker.tree.node_mut(node).size_bytes = from_bytes.saturating_sub(bytes);
            out.steps.push(Step::Allocate { node, grew: true });
        } else {
            let new = self.walker.tree.allocate(node, offset, bytes, mode & KEEP_SIZE != 0, BLOCK_BYTES);
            out.steps.push(Step::CallAt(Class::Fallocate, new));
            out.steps.push(Step::Allocate { node, grew: new > 0 });
        }
    }
}
