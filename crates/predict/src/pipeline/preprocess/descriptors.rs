//! Opening and closing: from descriptions to files.

use super::*;

impl Preprocess {
    /// The file behind a descriptor; one that was open before the trace began is found by its path.
    pub(super) fn file_of(
        &mut self,
        ofd: Option<OfdId>,
        path: Option<PathId>,
        batch: &Batch,
        out: &mut Annotated,
        call: &mut CallNote,
    ) -> Option<NodeId> {
        let node = match ofd.and_then(|ofd| self.files.get(&ofd)) {
            Some(file) => Some(file.node),
            None => path.map(|path| {
                let node = self.walker.silent(out, batch, path, FileKind::File, 0);
                if let Some(ofd) = ofd {
                    self.install(ofd, node, 0);
                }
                node
            }),
        };
        match node {
            Some(node) => {
                call.node = node;
                let record = self.walker.tree.node(node);
                call.dir = if record.kind == FileKind::Directory { node } else { record.dir };
            }
            None => call.status = Status::Unidentified,
        }
        node
    }

    pub(super) fn install(&mut self, ofd: OfdId, node: NodeId, flags: u32) {
        let file = OpenFile { node, flags, written: false, position: 0, listed_bytes: 0 };
        self.walker.tree.node_mut(node).opens += 1;
        if let Some(old) = self.files.insert(ofd, file) {
            // Never re-used within a trace; if it is all the same, the old one is closed.
            let node = self.walker.tree.node_mut(old.node);
            node.opens = node.opens.saturating_sub(1);
        }
    }

    pub(super) fn open(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let Some(path) = event.path() else {
            call.status = Status::Unidentified;
            return;
        };
        let has = |bits: u32| event.head.flags & bits != 0;
        let kind = if has(flag::DIRECTORY | flag::TMPFILE) { FileKind::Directory } else { FileKind::File };
        let must =
            if has(flag::CREATE) && !has(flag::TMPFILE) { Must::Parents } else { Must::All(kind, size_before(event)) };
        let walked = self.walker.walk(out, batch, path, event.caller_dir(), self.follows(event), must);
        self.note(call, &walked);
        let mut node = walked.node;
        if has(flag::TMPFILE) {
            node = self.walker.tree.new_node(FileKind::File, 0);
            self.walker.tree.node_mut(node).dir = walked.node;
            out.steps.push(Step::Call(Class::Create));
            out.steps.push(Step::Made { dir: walked.node, slot: SlotId::NONE, node, directory: false });
            call.node = node;
        } else if walked.end == End::Absent {
            node = self.make_at(out, &walked, FileKind::File, Class::Create);
            call.node = node;
        } else if walked.end == End::Broken {
            // Only a loop of links can do this to a call that succeeded.
            call.surprise = true;
            out.steps.push(Step::Call(Class::Open));
            return;
        } else {
            call.surprise |= has(flag::CREATE) && has(flag::EXCL);
            let directory = self.walker.tree.node(node).kind == FileKind::Directory;
            out.steps.push(Step::Call(if directory { Class::OpenDir } else { Class::Open }));
            if has(flag::TRUNC) && !directory {
                out.steps.push(self.cut(node, 0, true));
            }
        }
        if let Some(ofd) = event.ofd() {
            self.install(ofd, node, event.head.flags);
        }
    }

    pub(super) fn close(&mut self, event: &Event, out: &mut Annotated, call: &mut CallNote) {
        let Some(file) = event.ofd().and_then(|ofd| self.files.get(&ofd).copied()) else {
            // Opened before the trace or of no interest: a close that frees nothing we know of.
            if event.head.flags & flag::IMPLIED == 0 {
                out.steps.push(Step::Call(Class::Close));
            }
            return;
        };
        call.node = file.node;
        call.dir = self.walker.tree.node(file.node).dir;
        let last = event.head.flags & flag::LAST != 0;
        let written = last && file.written;
        let implied = event.head.flags & flag::IMPLIED != 0;
        if !implied {
            out.steps.push(if written { Step::CloseWritten { node: file.node } } else { Step::Call(Class::Close) });
        }
        if last && let Some(ofd) = event.ofd() {
            self.files.remove(&ofd);
            let node = self.walker.tree.node_mut(file.node);
            node.opens = node.opens.saturating_sub(1);
            self.reap(out, file.node, !implied);
        }
    }

    pub(super) fn reap(&mut self, out: &mut Annotated, node: NodeId, on_close: bool) {
        let mut forgotten = Vec::new();
        let gone = self.walker.tree.reap(node, &mut forgotten);
        out.steps.extend(forgotten.into_iter().map(|slot| Step::Forgotten { slot }));
        if let Some(gone) = gone {
            out.steps.push(Step::Freed { node, size_bytes: gone.size_bytes, on_close });
        }
    }
}
