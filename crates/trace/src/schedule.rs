//! When the threads of a workload had no processor, and who gave it back to them.
//!
//! What lives here: [`Turn`], a row of a profile's `schedule.parquet`. What may not: what follows for the time that a
//! workload takes (`predict::runtime`). Only the recorder in the kernel tells of turns; a profile of another tracer has
//! none.

/// Something that happened to a thread beside its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The thread.
    pub tid: u32,
    /// When, or from when on: nanoseconds since the trace began, on the clock of [`Head::t_ns`](crate::Head::t_ns).
    pub t_ns: u64,
    /// What.
    pub what: Happened,
}

/// What happened to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// It began: another made it. Who has the number afterwards is this one, whoever had it before.
    Began {
        /// The thread that made it.
        parent: u32,
    },
    /// It slept, in a call or in a fault. Times are those of [`Turn::t_ns`].
    Slept {
        /// When it was woken.
        woken_ns: u64,
        /// When it had a processor again.
        until_ns: u64,
        /// The recorded thread that woke it, by a call or by its end; `None`: a timer, a device, or somebody who is not
        /// recorded.
        waker: Option<u32>,
    },
    /// It was ready to run and had no processor.
    Waited {
        /// When it had one again.
        until_ns: u64,
    },
    /// The recorder itself had so much of the time on a processor that seems the thread's, outside calls: before this
    /// moment, since this was told last. What the recorder cannot see of itself is not in it.
    Recorder {
        /// How much, nanoseconds.
        own_ns: u64,
    },
    /// It left the processor for the last time.
    Ended,
}

impl Happened {
    /// The name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            Happened::Began { .. } => "began",
            Happened::Slept { .. } => "slept",
            Happened::Waited { .. } => "waited",
            Happened::Recorder { .. } => "recorder",
            Happened::Ended => "ended",
        }
    }
}

impl Turn {
    /// Why the times contradict each other, if they do.
    pub fn fault(&self) -> Option<&'static str> {
        match self.what {
            Happened::Slept { woken_ns, .. } if woken_ns < self.t_ns => Some("woken before it slept"),
            Happened::Slept { woken_ns, until_ns, .. } if until_ns < woken_ns => Some("ran before it was woken"),
            Happened::Waited { until_ns } if until_ns < self.t_ns => Some("ran before it waited"),
            _ => None,
        }
    }
}
