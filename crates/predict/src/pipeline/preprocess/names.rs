//! Calls that make, move and remove names.

use super::*;

impl Preprocess {
    pub(super) fn truncate(
        &mut self,
        event: &Event,
        to_bytes: Option<u64>,
        batch: &Batch,
        out: &mut Annotated,
        call: &mut CallNote,
    ) {
        let size = size_before(event);
        let Some(walked) = self.walk_event(event, batch, out, call, true, Must::All(FileKind::File, size)) else {
            return;
        };
        let to_bytes = to_bytes.unwrap_or(0).min(BYTES_MAX);
        out.steps.push(self.cut(walked.node, to_bytes, false));
    }

    pub(super) fn unlink(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let size = size_before(event);
        let Some(walked) = self.walk_event(event, batch, out, call, false, Must::All(FileKind::File, size)) else {
            return;
        };
        if walked.slot == SlotId::NONE || walked.node == NodeId::ROOT {
            call.surprise = true;
            return;
        }
        let record = *self.walker.tree.node(walked.node);
        let (last, open) = (record.links <= 1 && record.opens == 0, record.opens > 0);
        let size_bytes = if record.links <= 1 { record.size_bytes } else { 0 };
        self.walker.tree.detach(walked.slot);
        if record.kind != FileKind::File {
            self.walker.directory_epoch += 1;
        }
        let change = Change::Removed(walked.dir);
        let next = std::mem::replace(&mut self.changed, change) == change;
        out.steps.push(Step::Unlinked {
            next,
            dir: walked.dir,
            slot: walked.slot,
            node: walked.node,
            size_bytes,
            last,
            open,
        });
        self.reap(out, walked.node, false);
    }

    pub(super) fn rmdir(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let Some(walked) = self.walk_event(event, batch, out, call, false, Must::All(FileKind::Directory, 0)) else {
            return;
        };
        call.dir = walked.dir;
        if walked.slot == SlotId::NONE || walked.node == NodeId::ROOT {
            call.surprise = true;
            return;
        }
        self.changed = Change::Other;
        out.steps.push(Step::Call(Class::Rmdir));
        call.surprise |= self.walker.tree.node(walked.node).entries > 0;
        self.walker.tree.detach(walked.slot);
        self.walker.directory_epoch += 1;
        out.steps.push(Step::RemovedDirectory { dir: walked.dir, slot: walked.slot });
        self.reap(out, walked.node, false);
    }

    pub(super) fn make(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let Some(walked) = self.walk_event(event, batch, out, call, false, Must::Parents) else { return };
        let (kind, class) = match event.call {
            Call::Mkdir { .. } => (FileKind::Directory, Class::Mkdir),
            Call::Symlink { .. } => (FileKind::Symlink, Class::Symlink),
            _ => (FileKind::Special, Class::Create),
        };
        if walked.slot == SlotId::NONE {
            call.surprise = true;
            out.steps.push(Step::Call(class));
            return;
        }
        if walked.end == End::Found {
            // The trace made what we think is there: whoever removed it was not traced.
            call.surprise = true;
            self.walker.tree.detach(walked.slot);
            self.reap(out, walked.node, false);
            self.walker.directory_epoch += 1;
        }
        let node = self.make_at(out, &walked, kind, class);
        call.node = node;
        if let Call::Symlink { target: Some(target), .. } = event.call {
            let target = batch.paths.get(target);
            self.walker.tree.node_mut(node).size_bytes = target.len() as u64;
            self.walker.tree.set_link_target(node, target);
        }
    }

    /// Makes a file at the absent end of a walk.
    pub(super) fn make_at(&mut self, out: &mut Annotated, walked: &Walked, kind: FileKind, class: Class) -> NodeId {
        self.set_role(out, walked, Role::Makes);
        let node = self.walker.add(walked.slot, kind, 0);
        let change = Change::Made(walked.dir);
        let next = std::mem::replace(&mut self.changed, change) == change;
        let class = match class {
            Class::Create if next => Class::CreateNext,
            Class::Symlink if next => Class::SymlinkNext,
            class => class,
        };
        out.steps.push(Step::Call(class));
        let directory = kind == FileKind::Directory;
        out.steps.push(Step::Made { dir: walked.dir, slot: walked.slot, node, directory });
        node
    }

    pub(super) fn rename(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let Some((from, to)) = self.walk_two(event, batch, out, call) else { return };
        self.changed = Change::Other;
        let moved = self.walker.tree.slot(from.slot).node;
        if to.end == End::Found && to.node == moved {
            // One file, by one name or two: POSIX says that nothing happens, and so does Linux of an exchange.
            out.steps.push(Step::Call(Class::Access));
            return;
        }
        if event.head.flags & flag::EXCHANGE != 0 && to.end == End::Found && to.slot != SlotId::NONE {
            out.steps.push(Step::Call(Class::Rename));
            let (a, b) = (self.walker.tree.detach(from.slot), self.walker.tree.detach(to.slot));
            self.walker.tree.attach(from.slot, b);
            self.walker.tree.attach(to.slot, a);
            self.walker.directory_epoch += 1;
            out.steps.push(Step::Exchanged { from_dir: from.dir, to_dir: to.dir });
            return;
        }
        let over = if to.end == End::Found { to.node } else { NodeId::NONE };
        let (mut over_bytes, mut over_last) = (0, false);
        // Where the file has other names it stays, and only this name changes: package managers keep the old file by a
        // link.
        let mut class = Class::Rename;
        if over != NodeId::NONE {
            let record = *self.walker.tree.node(over);
            over_last = record.links <= 1 && record.opens == 0;
            over_bytes = if over_last { record.size_bytes } else { 0 };
            if record.links <= 1 {
                class = Class::RenameOver;
            }
            self.walker.tree.detach(to.slot);
        } else {
            self.set_role(out, &to, Role::Makes);
        }
        out.steps.push(Step::Call(class));
        self.walker.tree.detach(from.slot);
        self.walker.tree.attach(to.slot, moved);
        if self.walker.tree.node(moved).kind == FileKind::Directory {
            self.walker.tree.node_mut(moved).report = u32::MAX;
        }
        let is_file = |id: NodeId| id == NodeId::NONE || self.walker.tree.node(id).kind == FileKind::File;
        if !is_file(moved) || !is_file(over) {
            self.walker.directory_epoch += 1;
        }
        call.node = moved;
        out.steps.push(Step::Renamed {
            moved,
            from_dir: from.dir,
            from_slot: from.slot,
            to_dir: to.dir,
            to_slot: to.slot,
            over,
            over_bytes,
            over_last,
            class,
        });
        if over != NodeId::NONE {
            self.reap(out, over, false);
        }
    }

    pub(super) fn link(&mut self, event: &Event, batch: &Batch, out: &mut Annotated, call: &mut CallNote) {
        let (from, to) = if event.ofd().is_some() {
            // By a descriptor: the file may never have had a name.
            let Some(node) = self.file_of(event.ofd(), event.path(), batch, out, call) else { return };
            let Some(to) = self.walk_second(event, batch, out, call) else { return };
            (node, to)
        } else {
            let Some((from, to)) = self.walk_two(event, batch, out, call) else { return };
            (from.node, to)
        };
        if to.end == End::Found {
            call.surprise = true;
            self.walker.tree.detach(to.slot);
            self.reap(out, to.node, false);
            self.walker.directory_epoch += 1;
        } else {
            self.set_role(out, &to, Role::Makes);
        }
        self.changed = Change::Other;
        out.steps.push(Step::Call(Class::Link));
        self.walker.tree.attach(to.slot, from);
        call.node = from;
        out.steps.push(Step::Linked { dir: to.dir, slot: to.slot, node: from });
    }

    /// The walk of a successful one-path call; `None` if there is nothing to go on.
    pub(super) fn walk_event(
        &mut self,
        event: &Event,
        batch: &Batch,
        out: &mut Annotated,
        call: &mut CallNote,
        follow: bool,
        must: Must,
    ) -> Option<Walked> {
        let Some(path) = event.path() else {
            call.status = Status::Unidentified;
            return None;
        };
        let walked = self.walker.walk(out, batch, path, event.caller_dir(), follow, must);
        self.note(call, &walked);
        if walked.end == End::Broken {
            call.surprise = true;
            out.steps.push(Step::Call(Class::Access));
            return None;
        }
        Some(walked)
    }

    /// Both walks of a successful rename or link: the first leads to a named file, the second to a name.
    pub(super) fn walk_two(
        &mut self,
        event: &Event,
        batch: &Batch,
        out: &mut Annotated,
        call: &mut CallNote,
    ) -> Option<(Walked, Walked)> {
        if event.path2().is_none() {
            call.status = Status::Unidentified;
            return None;
        }
        let (size, follow) = (size_before(event), self.follows(event));
        let from = self.walk_event(event, batch, out, call, follow, Must::All(FileKind::File, size))?;
        let to = self.walk_second(event, batch, out, call)?;
        if from.slot == SlotId::NONE {
            call.surprise = true;
            out.steps.push(Step::Call(Class::Access));
            return None;
        }
        Some((from, to))
    }

    /// The walk to a new name.
    fn walk_second(
        &mut self,
        event: &Event,
        batch: &Batch,
        out: &mut Annotated,
        call: &mut CallNote,
    ) -> Option<Walked> {
        let Some(path2) = event.path2() else {
            call.status = Status::Unidentified;
            return None;
        };
        let to = self.walker.walk(out, batch, path2, event.caller_dir2(), false, Must::Parents);
        self.note(call, &to);
        call.dir = to.dir;
        if to.slot == SlotId::NONE || to.end == End::Broken {
            call.surprise = true;
            out.steps.push(Step::Call(Class::Access));
            return None;
        }
        Some(to)
    }
}
