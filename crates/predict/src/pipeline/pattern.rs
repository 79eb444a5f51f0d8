//! Stage 3: sequential or random, for what goes to disk.

use super::annotated::{Found, Mark, NodeId, Pattern, Step};

/// Remembers where the previous disk-bound request was.
#[derive(Clone, Debug, Default)]
pub struct PatternStage {
    /// Per file: the offset after the previous disk-bound read, 0 before any.
    reads: Vec<u64>,
    previous_directory: Option<NodeId>,
    /// The file whose start was read last.
    previous_first: Option<NodeId>,
}

/// Files with numbers not farther apart were made one after the other: numbers are given in the order of making.
const NEXT: u32 = 2;

impl PatternStage {
    /// Decides the pattern of one step's mark.
    #[inline]
    pub fn apply(&mut self, step: &Step, mark: &mut Mark) {
        match (step, mark) {
            (
                Step::Lookup { dir, .. },
                Mark::Lookup { found: Found::Miss | Found::AttributesHit, directory_cached, pattern, .. },
            ) => {
                // A directory whose blocks are in memory is as good as the one before: what is left is the inode.
                let sequential = *directory_cached || self.previous_directory == Some(*dir);
                *pattern = if sequential { Pattern::Sequential } else { Pattern::Random };
                self.previous_directory = Some(*dir);
            }
            (
                Step::Read { node, offset, len_bytes, direct: false, .. },
                Mark::Read { disk_bytes, window_bytes, pattern, .. },
            ) if *disk_bytes > 0 => {
                let before = if *offset == 0 { self.previous_first.replace(*node) } else { None };
                let end = self.end_of(*node);
                *pattern = if *offset == 0 {
                    let next = before.is_some_and(|before| (1..=NEXT).contains(&node.0.wrapping_sub(before.0)));
                    if next { Pattern::FirstNext } else { Pattern::First }
                } else if *end > 0 && *offset <= *end && offset.saturating_add(*len_bytes) >= *end {
                    Pattern::Sequential
                } else {
                    Pattern::Random
                };
                *end = offset.saturating_add((*window_bytes).max(*len_bytes));
            }
            (Step::Made { node, .. }, _) => {
                *self.end_of(*node) = 0;
                self.previous_first = None;
            }
            (Step::Freed { node, .. } | Step::Adopted { node, .. }, _) => *self.end_of(*node) = 0,
            // What is written in between takes a drive elsewhere.
            (Step::Unlinked { .. } | Step::Renamed { .. } | Step::Linked { .. } | Step::Sync { .. }, _) => {
                self.previous_first = None;
            }
            _ => {}
        }
    }

    fn end_of(&mut self, node: NodeId) -> &mut u64 {
        let at = node.index();
        if at >= self.reads.len() {
            self.reads.resize(at + 1 + at / 2, 0);
        }
        &mut self.reads[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::annotated::{Role, SlotId, Transfer};
    use crate::pipeline::near::{Distance, FarPages};

    fn read(stage: &mut PatternStage, node: u32, offset: u64, len_bytes: u64, window_bytes: u64) -> Pattern {
        let node = NodeId(node);
        let step = Step::Read {
            node,
            offset,
            len_bytes,
            size_bytes: 1 << 20,
            hole_bytes: 0,
            direct: false,
            transfer: Transfer::Process,
        };
        let (pattern, far) = (Pattern::None, FarPages::default());
        let mut mark = Mark::Read { cached_bytes: 0, disk_bytes: len_bytes, window_bytes, pattern, far };
        stage.apply(&step, &mut mark);
        let Mark::Read { pattern, .. } = mark else { unreachable!() };
        pattern
    }

    #[test]
    fn reads_of_one_file_are_sequential_whatever_happens_to_others() {
        let mut stage = PatternStage::default();
        assert_eq!(read(&mut stage, 1, 0, 4096, 16384), Pattern::First);
        assert_eq!(read(&mut stage, 2, 8192, 4096, 4096), Pattern::Random);
        assert_eq!(read(&mut stage, 1, 16384, 4096, 4096), Pattern::Sequential);
        assert_eq!(read(&mut stage, 2, 12288, 4096, 4096), Pattern::Sequential);
        assert_eq!(read(&mut stage, 2, 40960, 4096, 4096), Pattern::Random);
    }

    #[test]
    fn lookups_are_sequential_in_a_directory_that_is_cached_or_the_last() {
        let mut stage = PatternStage::default();
        let mut look = |dir: u32, directory_cached: bool| {
            let step = Step::Lookup {
                dir: NodeId(dir),
                slot: SlotId(0),
                page: 0,
                entries: 40,
                child: NodeId(9),
                role: Role::Walk,
                first: true,
            };
            let far = Distance::default();
            let mut mark =
                Mark::Lookup { found: Found::Miss, directory_cached, pattern: Pattern::None, far, inode_distance: 1 };
            stage.apply(&step, &mut mark);
            let Mark::Lookup { pattern, .. } = mark else { unreachable!() };
            pattern
        };
        assert_eq!(look(1, false), Pattern::Random);
        assert_eq!(look(1, false), Pattern::Sequential);
        assert_eq!(look(2, false), Pattern::Random);
        assert_eq!(look(1, true), Pattern::Sequential);
    }
}
