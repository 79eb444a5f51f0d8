//! Calls on descriptors: what they do to offsets, lengths and tables.

use super::call::{Attrs, Call, Fd, Kind, Outcome, Spent};
use super::coverage::FAULT_AROUND_BYTES;
use super::descriptors::{Ofd, Slot};
use super::names::File;
use super::sequence::Draft;
use super::{Closing, Ctx, Place, Tracker};
use crate::profile::Row;
use crate::{Op, flag};

/// The most one read or write moves (`MAX_RW_COUNT`); asking for more returns less, short of the end or not.
const RW_BYTES_MAX: u64 = 0x7fff_f000;
/// `FALLOC_FL_KEEP_SIZE`
const KEEP_SIZE: u32 = 1;
/// `FALLOC_FL_PUNCH_HOLE`
const PUNCH_HOLE: u32 = 2;
/// `FALLOC_FL_COLLAPSE_RANGE`
const COLLAPSE_RANGE: u32 = 8;
/// `FALLOC_FL_INSERT_RANGE`
const INSERT_RANGE: u32 = 32;

impl Tracker {
    /// The event of a call on a descriptor, with what is known of the description.
    #[inline]
    fn fd_event(&mut self, ctx: Ctx, op: Op, fd: &Fd<'_>, out: &Outcome<'_>) -> (Draft, Option<Ofd>) {
        let mut event = self.event(ctx, op, out);
        let ofd = self.ofd(ctx, fd, out.errno);
        if let Some(ofd) = ofd {
            self.describe_ofd(&mut event, ofd);
        }
        (event, ofd)
    }

    fn file_of(&self, ofd: Option<Ofd>) -> Option<File> {
        ofd.and_then(|ofd| self.fds.ofd(ofd).file)
    }

    pub(super) fn on_fd(
        &mut self,
        ctx: Ctx,
        op: Op,
        fd: &Fd<'_>,
        (offset, len, mode): (Option<u64>, Option<u64>, Option<u16>),
        out: &Outcome<'_>,
    ) {
        let (mut event, ofd) = self.fd_event(ctx, op, fd, out);
        (event.offset, event.req_bytes, event.mode) = (offset, len, mode);
        if let (Some(file), true) = (self.file_of(ofd), out.ok()) {
            let state = self.names.file_mut(file);
            match op {
                Op::GetDents => {
                    state.kind = Kind::Directory;
                    if let Some(node) = self.names.node_of(file) {
                        self.names.touch(node);
                    }
                }
                Op::Fchmod => state.mode = mode.or(state.mode),
                _ => {}
            }
        }
        self.emit(ctx, event);
    }

    pub(super) fn transfer(&mut self, ctx: Ctx, call: &Call<'_>, out: &Outcome<'_>) {
        let &Call::Transfer { write, ref fd, len, offset, sync, append } = call else { return };
        let op = if write { Op::Write } else { Op::Read };
        let (mut event, ofd) = self.fd_event(ctx, op, fd, out);
        event.req_bytes = len;
        if offset.is_some() {
            event.flags |= flag::POSITIONAL;
        }
        if sync {
            event.flags |= flag::RWF_SYNC;
        }
        if let (Some(ofd), 0) = (ofd, event.flags & flag::FOREIGN) {
            let state = self.fds.ofd(ofd);
            let at_end = write && (append || state.append == Some(true));
            // pwrite on an O_APPEND description appends too, whatever offset it is given (write(2), BUGS).
            event.offset = if at_end { event.size_before } else { offset.or(state.offset) };
            self.transferred(ofd, &event, at_end, out);
        }
        self.emit(ctx, event);
    }

    /// The effect of a read or write on offset and length.
    fn transferred(&mut self, ofd: Ofd, event: &Row, at_end: bool, out: &Outcome<'_>) {
        let Ok(moved) = u64::try_from(out.ret) else { return };
        if !out.ok() {
            return;
        }
        let end = event.offset.and_then(|offset| offset.checked_add(moved));
        if event.flags & flag::POSITIONAL == 0 && moved > 0 {
            self.fds.ofd_mut(ofd).offset = end;
        }
        let Some(file) = self.fds.ofd(ofd).file else { return };
        if event.op == Op::Write {
            if at_end && event.size_before.is_none() && moved > 0 {
                self.appended(file, moved);
            } else {
                self.written(file, event.offset, moved);
            }
        } else {
            self.read_short(file, event, moved);
        }
    }

    /// A write of `moved` bytes ended at a known place or not.
    fn written(&mut self, file: File, offset: Option<u64>, moved: u64) {
        if moved == 0 {
            return;
        }
        let state = self.names.file(file);
        let size = match (state.size, offset.and_then(|offset| offset.checked_add(moved))) {
            (Some(size), Some(end)) => Some(size.max(end)),
            _ => None,
        };
        self.set_size(file, size);
    }

    /// A short read of an ordinary file shows where it ends.
    fn read_short(&mut self, file: File, event: &Row, moved: u64) {
        let (Some(offset), Some(asked)) = (event.offset, event.req_bytes) else { return };
        let state = self.names.file(file);
        if moved > 0 && moved < asked.min(RW_BYTES_MAX) && state.kind == Kind::Regular && state.size.is_none() {
            self.saw_size(file, offset.saturating_add(moved));
        }
    }

    pub(super) fn seek(&mut self, ctx: Ctx, fd: &Fd<'_>, by: i64, whence: u32, out: &Outcome<'_>) {
        let (mut event, ofd) = self.fd_event(ctx, Op::Seek, fd, out);
        event.flags |= whence.min(0xff) << flag::SUB_SHIFT;
        if let (Some(ofd), true, Ok(to)) = (ofd, out.ok(), u64::try_from(out.ret)) {
            let is_dir = self.file_of(Some(ofd)).is_some_and(|f| self.names.file(f).kind == Kind::Directory);
            // A directory's offset is a cookie of the file system's, not a number of bytes.
            self.fds.ofd_mut(ofd).offset = if is_dir { None } else { Some(to) };
            const SEEK_END: u32 = 2;
            if let (SEEK_END, false, Some(file)) = (whence, is_dir, self.file_of(Some(ofd)))
                && let Some(size) = to.checked_add_signed(by.wrapping_neg())
            {
                self.saw_size(file, size);
            }
        }
        self.emit(ctx, event);
    }

    pub(super) fn ftruncate(&mut self, ctx: Ctx, fd: &Fd<'_>, len: u64, out: &Outcome<'_>) {
        let (mut event, ofd) = self.fd_event(ctx, Op::Ftruncate, fd, out);
        event.req_bytes = Some(len);
        if let (Some(file), true) = (self.file_of(ofd), out.ok()) {
            self.set_size(file, Some(len));
        }
        self.emit(ctx, event);
    }

    pub(super) fn fallocate(&mut self, ctx: Ctx, fd: &Fd<'_>, mode: u32, offset: u64, len: u64, out: &Outcome<'_>) {
        let (mut event, ofd) = self.fd_event(ctx, Op::Fallocate, fd, out);
        event.flags |= (mode & 0xff) << flag::SUB_SHIFT;
        (event.offset, event.req_bytes) = (Some(offset), Some(len));
        if let (Some(file), true) = (self.file_of(ofd), out.ok()) {
            let size = self.names.file(file).size;
            let new = if mode & COLLAPSE_RANGE != 0 {
                size.and_then(|size| size.checked_sub(len))
            } else if mode & INSERT_RANGE != 0 {
                size.and_then(|size| size.checked_add(len))
            } else if mode & (KEEP_SIZE | PUNCH_HOLE) != 0 {
                size
            } else {
                size.map(|size| size.max(offset.saturating_add(len)))
            };
            self.set_size(file, new);
        }
        self.emit(ctx, event);
    }

    pub(super) fn fstat(&mut self, ctx: Ctx, fd: &Fd<'_>, attrs: Option<Attrs>, out: &Outcome<'_>) {
        let (mut event, ofd) = self.fd_event(ctx, Op::Fstat, fd, out);
        if let (Some(attrs), true, Some(ofd)) = (attrs, out.ok(), ofd) {
            if attrs.kind == Kind::Special {
                let state = self.fds.ofd_mut(ofd);
                state.foreign = true;
                event.flags |= flag::FOREIGN;
            } else if let Some(file) = self.fds.ofd(ofd).file {
                self.saw_attrs(file, attrs);
                if attrs.kind == Kind::Regular {
                    event.size_before = attrs.size;
                }
            }
        }
        self.emit(ctx, event);
    }

    /// A stat told a file's attributes.
    pub(super) fn saw_attrs(&mut self, file: File, attrs: Attrs) {
        let state = self.names.file_mut(file);
        state.kind = attrs.kind;
        state.mode = Some(attrs.mode);
        if let (Some(size), Kind::Regular) = (attrs.size, attrs.kind) {
            self.saw_size(file, size);
        }
    }

    pub(super) fn copy(&mut self, ctx: Ctx, call: &Call<'_>, out: &Outcome<'_>) {
        let Call::Copy { from, from_offset, to, to_offset, len, reflink } = call else { return };
        let (mut event, source) = self.fd_event(ctx, Op::Copy, from, out);
        let source_foreign = event.flags & flag::FOREIGN != 0;
        let target = self.ofd(ctx, to, out.errno);
        let mut target_event = event;
        target_event.flags &= !flag::FOREIGN;
        if let Some(target) = target {
            self.describe_ofd(&mut target_event, target);
            event.ofd2 = target_event.ofd;
        }
        let target_foreign = target_event.flags & flag::FOREIGN != 0;
        if !(source_foreign && target_foreign) {
            event.flags &= !flag::FOREIGN;
        }
        if *reflink {
            event.flags |= flag::SHARED;
        }
        event.req_bytes = *len;
        if source_foreign {
            event.path = None;
        } else {
            if from_offset.is_some() {
                event.flags |= flag::SOURCE_OFFSET;
            }
            event.offset = from_offset.or_else(|| source.and_then(|ofd| self.fds.ofd(ofd).offset));
        }
        if !target_foreign {
            if to_offset.is_some() {
                event.flags |= flag::TARGET_OFFSET;
            }
            event.path2 = target_event.path;
            event.offset2 = to_offset.or_else(|| target.and_then(|ofd| self.fds.ofd(ofd).offset));
        }
        let moved = if *reflink { len.unwrap_or(0) } else { u64::try_from(out.ret).unwrap_or(0) };
        if out.ok() {
            let advance = |offset: Option<u64>| offset.and_then(|offset| offset.checked_add(moved));
            if let (Some(ofd), None, false) = (source, from_offset, *reflink) {
                self.fds.ofd_mut(ofd).offset = advance(event.offset);
            }
            if let (Some(ofd), false) = (target, target_foreign) {
                if to_offset.is_none() && !reflink {
                    self.fds.ofd_mut(ofd).offset = advance(event.offset2);
                }
                if let Some(file) = self.file_of(Some(ofd)) {
                    // A whole-file clone (FICLONE) makes the destination as long as the source at least.
                    let whole = if *reflink && len.is_none() { event.size_before } else { Some(moved) };
                    match whole {
                        Some(bytes) => self.written(file, event.offset2, bytes),
                        None => self.set_size(file, None),
                    }
                }
            }
        }
        self.emit(ctx, event);
    }

    pub(super) fn mmap(&mut self, ctx: Ctx, call: &Call<'_>, out: &Outcome<'_>) {
        let Call::Mmap { fd, offset, len, shared_write, image } = call else { return };
        let (mut event, ofd) = self.fd_event(ctx, Op::Mmap, fd, out);
        (event.offset, event.req_bytes) = (Some(*offset), Some(*len));
        if *shared_write {
            event.flags |= flag::SHARED;
        }
        if out.ok() && event.flags & flag::FOREIGN == 0 {
            // Pages past the end of the file cannot be touched.
            let bytes = event.size_before.map_or(*len, |size| (*len).min(size.saturating_sub(*offset)));
            let is_system = ofd.is_some_and(|ofd| is_system_file(self.fds.ofd(ofd).path.bytes()));
            if *image || (is_system && !shared_write) {
                self.coverage.image_maps += 1;
                self.coverage.image_mapped_bytes += bytes;
            } else {
                self.coverage.data_maps += 1;
                self.coverage.data_mapped_bytes += bytes;
                if !self.coverage.accesses_seen {
                    self.coverage.data_map_accesses += bytes.div_ceil(FAULT_AROUND_BYTES);
                }
            }
        }
        self.emit(ctx, event);
    }

    pub(super) fn dup(&mut self, ctx: Ctx, fd: &Fd<'_>, to: Option<i32>, cloexec: bool, out: &Outcome<'_>) {
        let (event, ofd) = self.fd_event(ctx, Op::Dup, fd, out);
        self.emit(ctx, event);
        let (Some(ofd), true, Ok(new)) = (ofd, out.ok(), i32::try_from(out.ret)) else { return };
        if to == Some(fd.number) {
            return; // dup2 onto itself does nothing.
        }
        if let Some(old) = self.fds.put(ctx.thread.table, new, Slot { ofd, cloexec }) {
            self.implied_close(ctx, old);
        }
    }

    /// The kernel took away a descriptor without a close: exec, exit, or another put in its place. Tells of it if
    /// it was the description's last.
    pub(super) fn implied_close(&mut self, ctx: Ctx, ofd: Ofd) {
        if self.fds.is_last(ofd) && !self.fds.ofd(ofd).foreign {
            let out = Outcome { ret: 0, errno: 0, dur_ns: 0, seen: None, unfinished: false };
            let mut event = self.event(ctx, Op::Close, &out);
            event.flags |= flag::LAST | flag::IMPLIED;
            self.describe_ofd(&mut event, ofd);
            self.coverage.count(&event);
            self.out.put_behind(ctx.place, &event);
        }
        self.fds.release(ofd, &mut self.names);
    }

    /// The event of a fcntl that reads or sets flags of the descriptor or its description.
    fn flags_event(&mut self, ctx: Ctx, fd: &Fd<'_>, out: &Outcome<'_>) -> (Draft, Option<Ofd>) {
        let (mut event, ofd) = self.fd_event(ctx, Op::Fcntl, fd, out);
        event.flags |= flag::DESCRIPTOR_FLAGS;
        (event, ofd)
    }

    pub(super) fn control(&mut self, ctx: Ctx, fd: &Fd<'_>, about: u32, out: &Outcome<'_>) {
        let (mut event, _) = self.fd_event(ctx, Op::Fcntl, fd, out);
        event.flags |= about;
        self.emit(ctx, event);
    }

    pub(super) fn set_fd(&mut self, ctx: Ctx, fd: &Fd<'_>, cloexec: bool, out: &Outcome<'_>) {
        let (event, _) = self.flags_event(ctx, fd, out);
        if out.ok() {
            self.fds.set_cloexec(ctx.thread.table, fd.number, cloexec);
        }
        self.emit(ctx, event);
    }

    pub(super) fn set_fl(&mut self, ctx: Ctx, fd: &Fd<'_>, append: bool, out: &Outcome<'_>) {
        let (event, ofd) = self.flags_event(ctx, fd, out);
        if let (Some(ofd), true) = (ofd, out.ok()) {
            self.fds.ofd_mut(ofd).append = Some(append);
        }
        self.emit(ctx, event);
    }

    /// A close takes effect when it starts: another thread can be given the number before it returns.
    pub(crate) fn begin_close(&mut self, tid: u32, t_ns: u64, fd: &Fd<'_>) -> Closing {
        let ctx = Ctx { tid, thread: self.thread(tid), t_ns, place: None };
        let event = self.close(ctx, fd);
        Closing(self.out.park(event))
    }

    /// The close has returned.
    pub(crate) fn end_close(&mut self, closing: Closing, place: Option<Place>, out: &Outcome<'_>) {
        let event = self.out.unpark(closing.0);
        self.closed(event, place, out);
    }

    /// The close has returned, and where its time went is known.
    pub(crate) fn end_timed_close(&mut self, closing: Closing, place: Option<Place>, out: &Outcome<'_>, spent: Spent) {
        self.spent = Some(spent);
        self.end_close(closing, place, out);
        self.spent = None;
    }

    /// The close is not told of: what the tracer said of its return was not understood.
    pub(crate) fn drop_close(&mut self, closing: Closing) {
        self.out.unpark(closing.0);
    }

    pub(super) fn close(&mut self, ctx: Ctx, fd: &Fd<'_>) -> Draft {
        let out = Outcome { ret: -1, errno: 0, dur_ns: 0, seen: None, unfinished: true };
        let (mut event, ofd) = self.fd_event(ctx, Op::Close, fd, &out);
        if let Some(ofd) = ofd {
            if self.fds.is_last(ofd) {
                event.flags |= flag::LAST;
            }
            if let Some(ofd) = self.fds.take(ctx.thread.table, fd.number) {
                self.fds.release(ofd, &mut self.names);
            }
        }
        event
    }

    pub(super) fn closed(&mut self, mut event: Draft, place: Option<Place>, out: &Outcome<'_>) {
        (event.ret, event.errno, event.dur_ns) = (out.ret, out.errno, out.dur_ns);
        if let (Some(spent), true) = (self.spent, out.dur_ns > 0) {
            (event.running_ns, event.blocked_ns) = (Some(spent.running_ns), Some(spent.blocked_ns));
        }
        if !out.unfinished {
            event.flags &= !flag::UNFINISHED;
        }
        if out.errno == super::EBADF {
            event.flags &= !flag::LAST;
            event.ofd = None;
        }
        self.coverage.count(&event);
        self.out.put(place, &event);
    }

    /// One more close of a call that closes several.
    fn closed_too(&mut self, mut event: Draft, place: Option<Place>) {
        (event.ret, event.errno, event.dur_ns) = (0, 0, 0);
        event.flags &= !flag::UNFINISHED;
        self.coverage.count(&event);
        self.out.put_behind(place, &event);
    }

    pub(super) fn close_range(
        &mut self,
        ctx: Ctx,
        (first, last): (u32, u32),
        cloexec: bool,
        unshare: bool,
        out: &Outcome<'_>,
    ) {
        let mut ctx = ctx;
        if !out.ok() {
            return self.skip(ctx);
        }
        if unshare {
            self.unshare_table(ctx.tid);
            ctx.thread = self.thread(ctx.tid);
        }
        let fds = self.fds.range(ctx.thread.table, first, last);
        if cloexec || fds.is_empty() {
            for fd in fds {
                self.fds.set_cloexec(ctx.thread.table, fd, true);
            }
            return self.skip(ctx);
        }
        // The call's time belongs to the whole range: it goes to the first close.
        for (i, number) in fds.into_iter().enumerate() {
            let event = self.close(ctx, &Fd { number, seen: None });
            match i {
                0 => self.closed(event, ctx.place, out),
                _ => self.closed_too(event, ctx.place),
            }
        }
    }
}

/// Files of the system that every program maps to start or to speak a language (the loader's cache, locales): they
/// count as part of loading a program.
fn is_system_file(path: &[u8]) -> bool {
    const PLACES: [&[u8]; 7] = [
        b"/etc/ld.so.cache",
        b"/usr/lib/",
        b"/usr/lib64/",
        b"/lib/",
        b"/lib64/",
        b"/usr/share/locale/",
        b"/nix/store/",
    ];
    PLACES.iter().any(|place| path.starts_with(place))
}
