//! A laboratory that keeps a history of what it is asked for. Every driver runs on it as on any other file system.

use crate::history::{File, History};
use crate::stamp::Stamp;
use crate::{Content, CrashError, Found, Identity, Kind, Op, Subject, Tree};
use device::crash::{Event, Write};
use device::store::Frozen;
use kernel::{Ino, Lab, LogEntry, Volume};
use posix::{
    At, CacheState, Call, Contained, Errno, Fd, FileKind, FileSystem, Mode, OpenFlags, Outcome, Process, Reply, Step,
};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// A history takes no more memory than this, bytes: what comes after is left out, and the history says so.
const MOST_HELD_BYTES: u64 = 512 << 20;

/// An open file.
#[derive(Clone, Debug)]
struct Opened {
    id: Identity,
    /// Where it was opened; empty for the root.
    path: String,
    at_byte: u64,
    append: bool,
    /// Whether each write is promised when it returns.
    sync: bool,
}

/// A mounted file system whose history is kept.
#[derive(Debug)]
pub struct Watched<V: Volume> {
    lab: Lab<V>,
    history: History,
    tree: Arc<Tree>,
    opened: BTreeMap<Fd, Opened>,
    /// Files that the call under way has promised.
    promised: Vec<Identity>,
    /// Whether a log's checksums see the same in all data.
    pub alike: bool,
    /// Whether the history begins anew when the caches are emptied: what was done until then made the state that it
    /// begins with.
    pub begins_cold: bool,
}

/// What a laboratory has logged, as requests to a drive; the laboratory's log has had `before` entries already.
pub(crate) fn events(log: Vec<LogEntry>, before: u64) -> Vec<Event> {
    let event = |entry| match entry {
        LogEntry::Write(write) => {
            let bytes = write.contents.unwrap_or_default();
            assert_eq!(bytes.len() as u64, write.bytes, "a laboratory with every byte has logged a write without");
            Event::Write(Write {
                at_byte: write.pbn.bytes(),
                bytes: bytes.into(),
                submitted_after: write.submitted_after.saturating_sub(before),
                durable: write.durable,
            })
        }
        LogEntry::Flush { submitted_after, .. } => {
            Event::Flush { submitted_after: submitted_after.saturating_sub(before) }
        }
        LogEntry::Discard { pbn, bytes, .. } => Event::Discard { at_byte: pbn.bytes(), len_bytes: bytes },
    };
    log.into_iter().map(event).collect()
}

impl<V: Volume> Watched<V> {
    /// Mounts a disk that shows `seen`. What mounting writes is there before the history begins. The stamps of data
    /// name calls from `stamp_from` on.
    ///
    /// # Errors
    /// It cannot be mounted.
    pub fn mount<S: Subject<Volume = V>>(
        subject: &S,
        base: Frozen,
        seen: &Found,
        stamp_from: u32,
    ) -> Result<Watched<V>, CrashError> {
        let mut lab = subject.mount(base.clone())?;
        let log = events(lab.take_log(), 0);
        let base = after(&base, &log);
        let history = History::new(base, seen, stamp_from);
        let tree = Arc::new(seen.tree.clone());
        // Entries of mounting count in the laboratory's numbers.
        let mut watched = Watched {
            lab,
            history,
            tree,
            opened: BTreeMap::new(),
            promised: Vec::new(),
            alike: true,
            begins_cold: false,
        };
        watched.history.logged_before = log.len() as u64;
        watched.history.block_bytes = watched.lab.volume().block_bytes().into();
        watched.history.begun_ns = watched.lab.now_ns();
        Ok(watched)
    }

    /// The file system.
    pub fn volume(&self) -> &V {
        self.lab.volume()
    }

    /// The number that data is stamped with that the last call has written.
    pub fn calls(&self) -> u32 {
        self.history.stamp_from + self.history.last_call()
    }

    /// What has happened. The power fails here.
    pub fn into_history(self) -> History {
        self.history
    }

    /// The history begins with what is there now, all of which is on the disk.
    fn begin_here(&mut self) -> io::Result<()> {
        if self.history.cut_short {
            return Err(io::Error::other("the state that it begins with takes too much memory"));
        }
        let base = after(&self.history.base, &self.history.log);
        let seen = Found {
            tree: (*self.tree).clone(),
            files: self.history.files.iter().map(|(id, file)| (*id, (file.kind, file.content()))).collect(),
        };
        let unknown: Vec<Identity> =
            self.history.files.iter().filter(|(_, file)| !file.known).map(|(id, _)| *id).collect();
        let (logged, calls) = (self.history.logged_before + self.history.log.len() as u64, self.calls());
        let (block_bytes, begun_ns) = (self.history.block_bytes, self.lab.now_ns());
        self.history = History { logged_before: logged, block_bytes, begun_ns, ..History::new(base, &seen, calls) };
        unknown.into_iter().for_each(|id| self.unknown(id));
        Ok(())
    }

    /// Unmounts it and gives the disk.
    ///
    /// # Errors
    /// The device refuses, or the image cannot be read.
    pub fn unmount(self) -> Result<Frozen, CrashError> {
        let len = self.history.base.0.len();
        let unmounted = self.lab.unmount_with_image();
        let (_, image) = unmounted.map_err(|errno| CrashError::Refused { op: "unmount".to_owned(), errno })?;
        let mut bytes = vec![0; len];
        image.store().read_at(0, &mut bytes)?;
        Ok(Frozen(bytes.into()))
    }

    /// Does one thing.
    ///
    /// # Errors
    /// It is refused.
    pub fn perform(&mut self, op: &Op) -> Result<(), Errno> {
        match op {
            Op::Create { path } => {
                let fd = self.open(path, OpenFlags::CREATE_NEW)?;
                self.close(fd)
            }
            Op::Mkdir { path } => self.done(&Call::Mkdir { at: path.as_str().into(), mode: Mode(0o755) }),
            Op::Symlink { target, path } => {
                self.done(&Call::Symlink { target: target.as_ref(), at: path.as_str().into() })
            }
            Op::Write { path, at_byte, len_bytes } => {
                let fd = self.open(path, OpenFlags::READ_WRITE)?;
                let call = Call::Write { fd, offset: Some(*at_byte), len_bytes: *len_bytes, data: None };
                let written = self.call(&call).count();
                self.close(fd)?;
                written.map(drop)
            }
            Op::Truncate { path, len_bytes } => {
                self.done(&Call::Truncate { at: path.as_str().into(), len_bytes: *len_bytes })
            }
            Op::Rename { from, to } => {
                let (from, to) = (from.as_str().into(), to.as_str().into());
                self.done(&Call::Rename { from, to, noreplace: false, exchange: false })
            }
            Op::Link { from, to } => {
                self.done(&Call::Link { from: from.as_str().into(), to: to.as_str().into(), follow: false })
            }
            Op::Unlink { path } => self.done(&Call::Unlink { at: path.as_str().into() }),
            Op::Rmdir { path } => self.done(&Call::Rmdir { at: path.as_str().into() }),
            Op::Fsync { path } => {
                let fd = self.open(path, OpenFlags::READ)?;
                let done = self.done(&Call::Fsync { fd });
                self.close(fd)?;
                done
            }
            Op::Sync => self.done(&Call::SyncFs),
            Op::Wait { ms } => {
                self.pause_ns(ms.saturating_mul(1_000_000));
                Ok(())
            }
        }
    }

    /// Opens a file as a process would that keeps it open.
    ///
    /// # Errors
    /// It is refused.
    pub fn open(&mut self, path: &str, flags: OpenFlags) -> Result<Fd, Errno> {
        self.call(&Call::Open { at: path.into(), flags, mode: Mode(0o644) }).fd()
    }

    /// Closes it.
    ///
    /// # Errors
    /// There is none.
    pub fn close(&mut self, fd: Fd) -> Result<(), Errno> {
        self.done(&Call::Close { fd })
    }

    fn done(&mut self, call: &Call<'_>) -> Result<(), Errno> {
        self.call(call).result.map(drop)
    }

    // ---- what a call has changed

    /// Where a path leads, from the root on; `None` outside.
    fn path(&self, at: &At<'_>) -> Option<String> {
        let text = at.path.to_str()?;
        let base = match at.dir {
            Some(fd) if !text.starts_with('/') => self.opened.get(&fd)?.path.clone(),
            _ => String::new(),
        };
        let mut parts: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
        for part in text.split('/').filter(|part| !part.is_empty() && *part != ".") {
            match part {
                ".." => drop(parts.pop()),
                _ => parts.push(part),
            }
        }
        Some(parts.join("/"))
    }

    fn identity_of(&self, path: &str) -> Option<Identity> {
        if path.is_empty() { Some(self.identity(self.lab.volume().root())) } else { self.tree.get(path).copied() }
    }

    fn identity(&self, ino: Ino) -> Identity {
        (ino.0, self.lab.volume().attributes(ino).map_or(0, |attributes| attributes.generation))
    }

    /// The file that a path leads to now, over symbolic links.
    fn stat(&mut self, at: &At<'_>, follow: bool) -> Option<(Identity, Kind)> {
        let stat = self.lab.call(&Call::Stat { at: *at, follow }).stat().ok()?;
        let ino = Ino(u32::try_from(stat.ino).ok()?);
        let kind = match stat.kind {
            FileKind::File => Kind::File,
            FileKind::Directory => Kind::Directory,
            FileKind::Symlink => Kind::Symlink,
            FileKind::Special => Kind::Special,
        };
        Some((self.identity(ino), kind))
    }

    fn number(&self) -> u32 {
        self.history.trees.len() as u32
    }

    fn named(&mut self, id: Identity) {
        let call = self.number();
        if let Some(file) = self.history.files.get_mut(&id) {
            file.named.push(call);
        }
    }

    /// A name has come; its file too, if it is new.
    fn made(&mut self, path: String, id: Identity, kind: Kind, content: Content) {
        let call = self.number();
        self.history.files.entry(id).or_insert_with(|| File::new(call, kind, Arc::new(content)));
        self.named(id);
        Arc::make_mut(&mut self.tree).insert(path, id);
    }

    fn new_version(&mut self, id: Identity, change: impl FnOnce(&mut Content)) {
        let call = self.number();
        let Some(file) = self.history.files.get_mut(&id) else { return };
        let mut content = (*file.content()).clone();
        change(&mut content);
        file.versions.push((call, Arc::new(content)));
    }

    /// Nobody but the file system knows what it holds.
    fn unknown(&mut self, id: Identity) {
        if let Some(file) = self.history.files.get_mut(&id) {
            file.known = false;
        }
    }

    fn promise(&mut self, id: Identity) {
        let call = self.number();
        if let Some(file) = self.history.files.get_mut(&id) {
            file.promised.push((call, usize::MAX));
            self.promised.push(id);
        }
    }

    /// Below a directory that has moved everything has another path.
    fn moved(&mut self, from: &str, to: &str) {
        let below = format!("{from}/");
        let tree = Arc::make_mut(&mut self.tree);
        let moved: Vec<(String, Identity)> = tree
            .iter()
            .filter(|(path, _)| *path == from || path.starts_with(&below))
            .map(|(path, id)| (path.clone(), *id))
            .collect();
        tree.retain(|path, _| *path != from && !path.starts_with(&below));
        for (path, id) in moved {
            tree.insert(format!("{to}{}", path.get(from.len()..).unwrap_or_default()), id);
        }
        for opened in self.opened.values_mut() {
            if opened.path == from || opened.path.starts_with(&below) {
                opened.path = format!("{to}{}", opened.path.get(from.len()..).unwrap_or_default());
            }
        }
    }

    fn length(&self, id: Identity) -> u64 {
        self.history.files.get(&id).map_or(0, |file| file.content().len())
    }

    fn name_of(&self, id: Identity) -> Option<String> {
        self.tree.iter().find(|(_, of)| **of == id).map(|(path, _)| path.clone())
    }

    /// What a successful call has done; the operation that does it again, if it changed something.
    #[allow(clippy::too_many_lines)]
    fn note(&mut self, call: &Call<'_>, reply: &Reply, before: Before) -> Option<Op> {
        match (call, reply) {
            (Call::Open { at, flags, .. }, Reply::Fd(fd)) => self.opened(at, *flags, *fd, before),
            (Call::Close { fd }, _) => {
                self.opened.remove(fd);
                None
            }
            (Call::Read { fd, offset: None, .. }, Reply::Count(n)) => {
                if let Some(opened) = self.opened.get_mut(fd) {
                    opened.at_byte += n;
                }
                None
            }
            (Call::Seek { fd, .. }, Reply::Count(n)) => {
                if let Some(opened) = self.opened.get_mut(fd) {
                    opened.at_byte = *n;
                }
                None
            }
            (Call::Write { fd, offset, data, .. }, Reply::Count(n)) => {
                let opened = self.opened.get_mut(fd)?;
                if offset.is_none() {
                    opened.at_byte = before.write_at + n;
                }
                let (id, sync) = (opened.id, opened.sync);
                let len = usize::try_from(*n).ok()?;
                let bytes = data.and_then(|data| data.get(..len)).unwrap_or_default();
                self.new_version(id, |content| content.write(before.write_at, bytes));
                if sync {
                    self.promise(id);
                }
                let path = self.name_of(id)?;
                Some(Op::Write { path, at_byte: before.write_at, len_bytes: *n })
            }
            (Call::Truncate { at, len_bytes }, _) => {
                let (id, _) = self.stat(at, true)?;
                self.new_version(id, |content| content.set_len(*len_bytes));
                Some(Op::Truncate { path: self.name_of(id)?, len_bytes: *len_bytes })
            }
            (Call::Ftruncate { fd, len_bytes }, _) => {
                let id = self.opened.get(fd)?.id;
                self.new_version(id, |content| content.set_len(*len_bytes));
                Some(Op::Truncate { path: self.name_of(id)?, len_bytes: *len_bytes })
            }
            (Call::Fallocate { fd, .. } | Call::CopyRange { to: fd, .. }, _) => {
                let id = self.opened.get(fd)?.id;
                self.unknown(id);
                None
            }
            (Call::Mkdir { at, .. }, _) => {
                let path = self.path(at)?;
                let (id, kind) = self.stat(at, false)?;
                self.made(path.clone(), id, kind, Content::default());
                Some(Op::Mkdir { path })
            }
            (Call::Mknod { at, .. }, _) => {
                let path = self.path(at)?;
                let (id, kind) = self.stat(at, false)?;
                self.made(path.clone(), id, kind, Content::default());
                (kind == Kind::File).then_some(Op::Create { path })
            }
            (Call::Symlink { target, at }, _) => {
                let path = self.path(at)?;
                let (id, kind) = self.stat(at, false)?;
                let target = target.to_str()?.to_owned();
                self.made(path.clone(), id, kind, Content::of(target.as_bytes()));
                Some(Op::Symlink { target, path })
            }
            (Call::Unlink { at }, _) => {
                let path = self.path(at)?;
                let id = Arc::make_mut(&mut self.tree).remove(&path)?;
                self.named(id);
                Some(Op::Unlink { path })
            }
            (Call::Rmdir { at }, _) => {
                let path = self.path(at)?;
                Arc::make_mut(&mut self.tree).remove(&path)?;
                Some(Op::Rmdir { path })
            }
            (Call::Link { to, .. }, _) => {
                let path = self.path(to)?;
                let (id, kind) = self.stat(to, false)?;
                let from = self.name_of(id);
                self.made(path.clone(), id, kind, Content::default());
                Some(Op::Link { from: from?, to: path })
            }
            (Call::LinkFd { fd, to }, _) => {
                let path = self.path(to)?;
                let id = self.opened.get(fd)?.id;
                let from = self.name_of(id);
                self.made(path.clone(), id, Kind::File, Content::default());
                Some(Op::Link { from: from?, to: path })
            }
            (Call::Rename { from, to, exchange, .. }, _) => self.renamed(from, to, *exchange),
            (Call::Fsync { fd } | Call::Fdatasync { fd }, _) => {
                let opened = self.opened.get(fd)?.clone();
                self.promise(opened.id);
                Some(Op::Fsync { path: self.name_of(opened.id)? })
            }
            (Call::SyncFs, _) => {
                let call = self.number();
                self.history.synced.push((call, usize::MAX));
                Some(Op::Sync)
            }
            _ => None,
        }
    }

    fn opened(&mut self, at: &At<'_>, flags: OpenFlags, fd: Fd, before: Before) -> Option<Op> {
        let stat = self.lab.call(&Call::Fstat { fd }).stat().ok()?;
        let id = self.identity(Ino(u32::try_from(stat.ino).ok()?));
        let path = self.path(at).unwrap_or_default();
        let sync = flags.sync || flags.dsync;
        let known = self.name_of(id);
        let shown = known.clone().unwrap_or_else(|| path.clone());
        self.opened.insert(fd, Opened { id, path: shown, at_byte: 0, append: flags.append, sync });
        if flags.tmpfile {
            let call = self.number();
            self.history.files.entry(id).or_insert_with(|| File::new(call, Kind::File, Arc::default()));
            return None;
        }
        if flags.create && known.is_none() && stat.kind == FileKind::File && !before.existed {
            self.made(path.clone(), id, Kind::File, Content::default());
            return Some(Op::Create { path });
        }
        if flags.truncate && self.length(id) > 0 {
            self.new_version(id, |content| content.set_len(0));
            return Some(Op::Truncate { path: known?, len_bytes: 0 });
        }
        None
    }

    fn renamed(&mut self, from: &At<'_>, to: &At<'_>, exchange: bool) -> Option<Op> {
        let (old, new) = (self.path(from)?, self.path(to)?);
        let id = self.tree.get(&old).copied()?;
        let replaced = self.tree.get(&new).copied();
        if replaced == Some(id) {
            return None;
        }
        self.named(id);
        replaced.into_iter().for_each(|replaced| self.named(replaced));
        if exchange {
            let between = format!("{new}\0");
            self.moved(&new, &between);
            self.moved(&old, &new);
            self.moved(&between, &old);
            return None;
        }
        Arc::make_mut(&mut self.tree).remove(&new);
        self.moved(&old, &new);
        Some(Op::Rename { from: old, to: new })
    }

    /// A call is over: what it has written, what it has promised.
    fn end_of_call(&mut self, op: Option<Op>) {
        let call = self.number();
        let log = self.lab.take_log();
        let history = &mut self.history;
        if history.cut_short {
            return;
        }
        history.completed_ns.extend(completed_ns(&log));
        let new = events(log, history.logged_before);
        history.held_bytes += new.iter().map(Event::held_bytes).sum::<u64>();
        history.call_of.resize(history.log.len() + new.len(), call);
        history.log.extend(new);
        let len = history.log.len();
        // Promises made in this call hold from what is in the log by now.
        for id in self.promised.drain(..) {
            let Some(file) = history.files.get_mut(&id) else { continue };
            file.promised.iter_mut().rev().take_while(|(_, at)| *at == usize::MAX).for_each(|(_, at)| *at = len);
        }
        history.synced.iter_mut().rev().take_while(|(_, at)| *at == usize::MAX).for_each(|(_, at)| *at = len);
        history.returned.push(len);
        if !history.trees.last().is_some_and(|last| Arc::ptr_eq(last, &self.tree)) {
            history.held_bytes += self.tree.len() as u64 * 96;
        }
        history.trees.push(self.tree.clone());
        history.ops.extend(op.map(|op| (call, op)));
        history.cut_short = history.held_bytes > MOST_HELD_BYTES;
    }

    /// What has to be known of the state before a call.
    fn before(&self, call: &Call<'_>) -> Before {
        let mut before = Before::default();
        match call {
            Call::Open { at, .. } => {
                let path = self.path(at);
                before.existed = path.is_some_and(|path| self.identity_of(&path).is_some());
            }
            Call::Write { fd, offset, .. } => {
                if let Some(opened) = self.opened.get(fd) {
                    before.file = Some(opened.id);
                    before.write_at = match offset {
                        _ if opened.append => self.length(opened.id),
                        Some(offset) => *offset,
                        None => opened.at_byte,
                    };
                }
            }
            _ => {}
        }
        before
    }
}

/// What was so before a call.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    existed: bool,
    file: Option<Identity>,
    write_at: u64,
}

/// When each entry of a laboratory's log was complete (a discard: handed over), nanoseconds.
fn completed_ns(log: &[LogEntry]) -> impl Iterator<Item = u64> {
    log.iter().map(|entry| match entry {
        LogEntry::Write(write) => write.completed_ns,
        LogEntry::Flush { completed_ns, .. } => *completed_ns,
        LogEntry::Discard { submitted_ns, .. } => *submitted_ns,
    })
}

/// A disk with everything of a log on it.
fn after(base: &Frozen, log: &[Event]) -> Frozen {
    if log.is_empty() {
        return base.clone();
    }
    let mut bytes = base.0.to_vec();
    for event in log {
        if let Event::Write(write) = event
            && let Some(place) = bytes.get_mut(write.at_byte as usize..write.at_byte as usize + write.bytes.len())
        {
            place.copy_from_slice(&write.bytes);
        }
    }
    Frozen(bytes.into())
}

impl<V: Volume> FileSystem for Watched<V>
where
    Lab<V>: FileSystem,
{
    fn call(&mut self, call: &Call<'_>) -> Outcome {
        let before = self.before(call);
        let stamped;
        let mut made = *call;
        if let Call::Write { fd, offset, len_bytes, data: None } = *call
            && let Some(id) = before.file
        {
            // More than the disk has is never written: what a recording says is no reason to take memory for it.
            let len_bytes = len_bytes.min(self.history.base.0.len() as u64);
            let mut bytes = vec![0; usize::try_from(len_bytes).unwrap_or(0)];
            let number = self.history.stamp_from + self.number();
            Stamp::fill(id, number, before.write_at, self.alike, &mut bytes);
            stamped = bytes;
            made = Call::Write { fd, offset, len_bytes, data: Some(&stamped) };
        }
        let outcome = self.lab.call(&made);
        match &outcome.result {
            Ok(reply) => {
                let op = self.note(&made, reply, before);
                self.end_of_call(op);
            }
            Err(errno) => {
                self.history.out_of_space += u32::from(*errno == Errno::ENOSPC);
                self.end_of_call(None);
            }
        }
        outcome
    }

    fn pause_ns(&mut self, ns: u64) {
        self.lab.pause_ns(ns);
        let op = Op::Wait { ms: ns / 1_000_000 };
        self.end_of_call((ns >= 1_000_000).then_some(op));
    }

    /// Processes take turns, call by call.
    fn run(&mut self, processes: Vec<Box<dyn Process + '_>>) -> io::Result<()> {
        // Of each the outcome of its last call, and whether a pause of it is over: that is progress, too, which others
        // may wait for.
        let mut processes: Vec<(Box<dyn Process + '_>, Option<Outcome>, bool)> =
            processes.into_iter().map(|process| (process, None, false)).collect();
        while !processes.is_empty() {
            posix::interrupt::check()?;
            let (mut progress, mut at) = (false, 0);
            while let Some((process, last, paused)) = processes.get_mut(at) {
                let outcome = last.take();
                progress |= std::mem::take(paused);
                match process.next(outcome.as_ref()) {
                    Step::Call(call) => {
                        *last = Some(self.call(&call));
                        progress = true;
                    }
                    Step::PauseNs(ns) => {
                        self.pause_ns(ns);
                        (*paused, progress) = (true, true);
                    }
                    Step::Blocked => {}
                    Step::Done => {
                        drop(processes.remove(at));
                        progress = true;
                        continue;
                    }
                }
                at += 1;
            }
            if !progress {
                return Err(io::Error::other("every process waits for another"));
            }
        }
        Ok(())
    }

    fn contained(&mut self, work: &mut Contained<'_>) -> io::Result<()> {
        self.lab.set_contained(true);
        work(self);
        self.lab.set_contained(false);
        Ok(())
    }

    fn drop_caches(&mut self) -> io::Result<CacheState> {
        let state = self.lab.drop_caches()?;
        self.end_of_call(None);
        if std::mem::take(&mut self.begins_cold) {
            self.begin_here()?;
        }
        Ok(state)
    }

    fn evict(&mut self, fd: Fd) -> io::Result<CacheState> {
        let state = self.lab.evict(fd)?;
        self.end_of_call(None);
        Ok(state)
    }

    fn is_deterministic(&self) -> bool {
        true
    }

    posix::delegate! { |me| me.lab =>
        now_ns, date_ns, read_into, entries, generation, usage, extents, free_extents, environment, shape, memory
    }
}
