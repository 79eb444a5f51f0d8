//! Capture: draining a tracer into a spool, which can hardly fail.
//!
//! Two threads, and nothing between the program and them but the tracer: `hear` drains the tracer into a queue of fixed
//! size, `store` packs what is in it and writes the spool. Neither looks at what the bytes mean, neither waits for
//! analysis, and neither gives up:
//!
//! * A disk that is full, or fails: what cannot be written is counted and left out, and each later frame is tried
//!   again.
//! * A disk that hangs, or is too slow: the queue fills; after a second's wait what does not fit is counted and left
//!   out, so that the program, which the tracer stops when nobody listens, waits no longer than that for us, once.

use super::now_ns;
use super::queue::{Popped, Queue};
use super::source::{Drained, Ending, Tracing};
use crate::spool::{Lost, Writer};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What waits to be written, at most.
const QUEUE_BYTES: usize = 64 << 20;
/// Records are written when so many have gathered, or after [`FLUSH`].
const FRAME_BYTES: usize = 1 << 20;
/// How old records may get before they are written, which is what a SIGKILL of ours loses.
const FLUSH: Duration = Duration::from_millis(500);
/// How long the tracer may be kept waiting for a disk that takes nothing, before records are left out.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the wish to stop is looked for.
const POLL: Duration = Duration::from_millis(20);
/// How long a tracer that was asked to stop may go on telling what it still has. What comes later is drained and left
/// out.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A capture at work.
#[derive(Debug)]
pub(super) struct Capture {
    stop: Arc<AtomicBool>,
    hear: JoinHandle<Heard>,
    store: JoinHandle<Stored>,
    /// Takes the tracer once it has been heard, and lets it end. There from the start: a command can take every process
    /// that may be made.
    end: SyncSender<Box<dyn Tracing>>,
    ending: JoinHandle<Ending>,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Captured {
    /// At the end of the records.
    pub writer: Writer,
    /// Records that are missing in the spool, and why, in words; 0 if none.
    pub lost_records: u64,
    pub why: String,
    /// The tracer's end, to be joined once everything else is done: it may take a while to let go.
    pub ending: JoinHandle<Ending>,
    /// The tracer ended by itself.
    pub ended: bool,
    /// The tracer could not be heard any more.
    pub error: Option<String>,
}

struct Heard {
    tracing: Box<dyn Tracing>,
    ended: bool,
    error: Option<String>,
}

struct Stored {
    writer: Writer,
    lost_records: u64,
    why: String,
}

impl Capture {
    /// Begins to drain. `count` tells how many records there are in some bytes.
    pub fn start(tracing: Box<dyn Tracing>, writer: Writer, count: fn(&[u8]) -> u64) -> std::io::Result<Capture> {
        let stop = Arc::new(AtomicBool::new(false));
        let queue = Arc::new(Queue::new(QUEUE_BYTES));
        let (end, heard) = sync_channel::<Box<dyn Tracing>>(1);
        let ending = std::thread::Builder::new()
            .name("end".into())
            .spawn(move || heard.recv().map_or_else(|_| Ending::default(), |tracing| tracing.end()))?;
        let store = {
            let queue = Arc::clone(&queue);
            std::thread::Builder::new().name("store".into()).spawn(move || store(writer, &queue, count))?
        };
        let hear = {
            let stop = Arc::clone(&stop);
            std::thread::Builder::new().name("hear".into()).spawn(move || hear(tracing, &queue, &stop, count))?
        };
        Ok(Capture { stop, hear, store, end, ending })
    }

    /// Asks the tracer to let go. Capture is [finished](Capture::is_finished) when it has told the rest.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether everything has been drained and written.
    pub fn is_finished(&self) -> bool {
        self.hear.is_finished() && self.store.is_finished()
    }

    /// Waits for the rest. Makes no thread: there may be no room for one any more.
    pub fn finish(self) -> Captured {
        // Both threads are ours alone: a panic in them breaks an invariant of this file.
        let heard = self.hear.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let stored = self.store.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // Its receiver waits for this alone.
        let _ = self.end.send(heard.tracing);
        Captured {
            writer: stored.writer,
            lost_records: stored.lost_records,
            why: stored.why,
            ending: self.ending,
            ended: heard.ended,
            error: heard.error,
        }
    }
}

/// Closes the queue on every way out, or the other thread would wait for ever.
struct Closing<'q>(&'q Queue);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Drains the tracer into the queue.
fn hear(mut tracing: Box<dyn Tracing>, queue: &Queue, stop: &AtomicBool, count: fn(&[u8]) -> u64) -> Heard {
    let _closing = Closing(queue);
    // Once a chunk found no room in time, the next do not wait: the tracer has waited enough.
    let mut wait = PATIENCE;
    let mut asked: Option<Instant> = None;
    let (ended, error) = loop {
        if asked.is_none() && stop.load(Ordering::Relaxed) {
            tracing.stop();
            asked = Some(Instant::now());
        }
        if asked.is_some_and(|at| at.elapsed() > LAST_WORDS) {
            break (false, None);
        }
        let drained = tracing.drain(POLL, &mut |chunk| {
            if queue.push(chunk, wait) {
                wait = PATIENCE;
            } else {
                wait = Duration::ZERO;
                queue.lose(count(chunk));
            }
        });
        queue.lose(tracing.lost());
        match drained {
            Ok(Drained::Open) => {}
            Ok(Drained::Ended) => break (asked.is_none(), None),
            Err(e) => break (asked.is_none(), Some(e.to_string())),
        }
    };
    Heard { tracing, ended, error }
}

/// Writes what is in the queue.
fn store(writer: Writer, queue: &Queue, count: fn(&[u8]) -> u64) -> Stored {
    let mut store = Store { writer, count, lost_records: 0, why: String::new(), pending: None };
    let mut gathered: Vec<u8> = Vec::with_capacity(FRAME_BYTES);
    let mut flush_at = Instant::now() + FLUSH;
    loop {
        let popped = queue.pop(flush_at);
        if let Popped::Chunk(chunk) = &popped {
            if gathered.is_empty() {
                flush_at = Instant::now() + FLUSH;
            }
            gathered.extend_from_slice(chunk);
        }
        let closed = popped == Popped::Closed;
        if closed || gathered.len() >= FRAME_BYTES || Instant::now() >= flush_at {
            store.missing(queue.take_lost(), "they came faster than they could be stored");
            store.write(&gathered);
            gathered.clear();
            flush_at = Instant::now() + FLUSH;
        }
        if closed {
            return Stored { writer: store.writer, lost_records: store.lost_records, why: store.why };
        }
    }
}

struct Store {
    writer: Writer,
    count: fn(&[u8]) -> u64,
    /// Records left out in all.
    lost_records: u64,
    /// Why, the first time.
    why: String,
    /// A gap that is not on record yet.
    pending: Option<Lost>,
}

impl Store {
    fn write(&mut self, records: &[u8]) {
        if let Some(lost) = &self.pending {
            // What is missing is on record before what follows, or what follows is left out too.
            match self.writer.lost(lost) {
                Ok(()) => self.pending = None,
                Err(e) => return self.missing((self.count)(records), &e.to_string()),
            }
        }
        if records.is_empty() {
            return;
        }
        if let Err(e) = self.writer.records(records) {
            self.missing((self.count)(records), &e.to_string());
        }
    }

    fn missing(&mut self, records: u64, why: &str) {
        if records == 0 {
            return;
        }
        if self.why.is_empty() {
            why.clone_into(&mut self.why);
        }
        self.lost_records = self.lost_records.saturating_add(records);
        let new = || Lost { at_unix_ns: now_ns(), records: 0, why: why.to_owned() };
        let pending = self.pending.get_or_insert_with(new);
        pending.records = pending.records.saturating_add(records);
    }
}
