//! What is read ahead while a program does something else.
//!
//! A system that sees a file read from end to end reads on before it is asked (Linux: 128 KB, of which the next part is
//! begun when the program comes to the part before). The classes of sequential reads are measured with nothing in
//! between, so that the program waits for nearly all of it. What a program does between two reads without the device
//! (its other calls, and where the pace is the recorded one its own work) passes while the device reads, and is taken
//! off the wait; at most as much as a part of that size takes.

use super::annotated::NodeId;

/// What is read ahead at a time, bytes (Linux's `read_ahead_kb`, if nobody changed it).
pub const PART_BYTES: u64 = 128 << 10;
/// Files that are followed at a time: those read last.
const STREAMS: usize = 8;

/// A file that is read from end to end.
#[derive(Clone, Copy, Debug)]
struct Stream {
    node: NodeId,
    /// The free time of the device when it was read last.
    free_ns: f64,
    /// What has been read ahead since, in time.
    ahead_ns: f64,
}

/// The files that one system reads ahead.
#[derive(Clone, Debug, Default)]
pub struct ReadAhead {
    /// How long the device has had nothing to do for the program, in all.
    free_ns: f64,
    /// Read last is last.
    streams: Vec<Stream>,
}

impl ReadAhead {
    /// Time passes in which the program does not use the device.
    #[inline]
    pub fn pass(&mut self, ns: f64) {
        self.free_ns += ns.max(0.0);
    }

    /// A file is read from the device, where nothing of it is being read ahead.
    pub fn begin(&mut self, node: NodeId) {
        self.take(node);
        self.put(Stream { node, free_ns: self.free_ns, ahead_ns: 0.0 });
    }

    /// A file is read on, for which a program would wait so long; a whole part takes `part_ns`. Answers how much of the
    /// wait has passed already.
    pub fn read_on(&mut self, node: NodeId, wait_ns: f64, part_ns: f64) -> f64 {
        let mut stream = self.take(node).unwrap_or(Stream { node, free_ns: self.free_ns, ahead_ns: 0.0 });
        let ahead_ns = (stream.ahead_ns + self.free_ns - stream.free_ns).min(part_ns);
        let passed_ns = ahead_ns.min(wait_ns).max(0.0);
        (stream.free_ns, stream.ahead_ns) = (self.free_ns, ahead_ns - passed_ns);
        self.put(stream);
        passed_ns
    }

    fn take(&mut self, node: NodeId) -> Option<Stream> {
        let at = self.streams.iter().position(|stream| stream.node == node)?;
        Some(self.streams.remove(at))
    }

    fn put(&mut self, stream: Stream) {
        if self.streams.len() == STREAMS {
            self.streams.remove(0);
        }
        self.streams.push(stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_between_reads_is_taken_off_once() {
        let mut ahead = ReadAhead::default();
        ahead.begin(NodeId(1));
        assert_eq!(ahead.read_on(NodeId(1), 10.0, 100.0), 0.0);
        ahead.pass(4.0);
        assert_eq!(ahead.read_on(NodeId(1), 10.0, 100.0), 4.0);
        ahead.pass(25.0);
        assert_eq!([0; 3].map(|_| ahead.read_on(NodeId(1), 10.0, 100.0)), [10.0, 10.0, 5.0]);
        assert_eq!(ahead.read_on(NodeId(1), 10.0, 100.0), 0.0);
    }

    #[test]
    fn no_more_than_a_part_is_read_ahead() {
        let mut ahead = ReadAhead::default();
        ahead.begin(NodeId(1));
        ahead.pass(1e9);
        assert_eq!([0; 3].map(|_| ahead.read_on(NodeId(1), 10.0, 25.0)), [10.0, 10.0, 5.0]);
    }

    #[test]
    fn files_are_read_ahead_beside_each_other_until_there_are_too_many() {
        let mut ahead = ReadAhead::default();
        ahead.begin(NodeId(1));
        ahead.begin(NodeId(2));
        ahead.pass(4.0);
        assert_eq!([1, 2].map(|node| ahead.read_on(NodeId(node), 10.0, 100.0)), [4.0, 4.0]);
        (10..18).for_each(|node| ahead.begin(NodeId(node)));
        ahead.pass(4.0);
        assert_eq!(ahead.read_on(NodeId(1), 10.0, 100.0), 0.0);
    }
}
