//! Writing a profile's trace beside the work that makes its events.
//!
//! Turning events into Parquet takes as long as making them does, so it has a thread of its own. What may not live
//! here: how a profile is written ([`Writer`]).

use super::Writer;
use crate::Batch;
use columnar::FileError;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Batches that wait to be written: with the one being made and the one being written, all that is in memory.
const WAITING: usize = 2;

/// A [`Writer`] in a thread of its own. Dropped before [`finish`](WriterBeside::finish), it ends the thread and removes
/// what was written, as the writer itself does.
#[derive(Debug)]
pub struct WriterBeside {
    batches: Option<SyncSender<Batch>>,
    thread: Option<JoinHandle<Result<Writer, FileError>>>,
}

impl WriterBeside {
    /// Moves a writer into a thread.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn start(writer: Writer) -> Result<WriterBeside, FileError> {
        let directory = writer.partial().to_owned();
        let (batches, waiting) = sync_channel(WAITING);
        let thread = std::thread::Builder::new()
            .name("profile".into())
            .spawn(move || write(writer, &waiting))
            .map_err(FileError::io(&directory, "start a thread to write"))?;
        Ok(WriterBeside { batches: Some(batches), thread: Some(thread) })
    }

    /// Hands over events, in `seq` order; waits while two batches wait to be written.
    ///
    /// # Errors
    /// Those of [`Writer::push`], of this batch or of one before.
    pub fn push(&mut self, batch: Batch) -> Result<(), FileError> {
        let taken = self.batches.as_ref().is_some_and(|batches| batches.send(batch).is_ok());
        if taken {
            return Ok(());
        }
        // Only a writer that failed stops taking batches.
        self.join().map(|_| ())
    }

    /// Waits until all is written and gives the writer back.
    ///
    /// # Errors
    /// Those of [`Writer::push`].
    pub fn finish(mut self) -> Result<Writer, FileError> {
        self.join()
    }

    fn join(&mut self) -> Result<Writer, FileError> {
        self.batches = None;
        let thread = self.thread.take().expect("nobody goes on with a writer that failed");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for WriterBeside {
    fn drop(&mut self) {
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            // Whoever drops this has an error or a panic of their own to tell; the writer removes its files when it
            // goes.
            let _ = thread.join();
        }
    }
}

fn write(mut writer: Writer, batches: &Receiver<Batch>) -> Result<Writer, FileError> {
    for batch in batches {
        writer.push(&batch)?;
    }
    Ok(writer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::WriterOptions;
    use crate::{Event, Op};

    fn batch(seq: u64) -> Batch {
        Batch { events: vec![Event::new(seq, 0, Op::Sync)], ..Batch::default() }
    }

    fn start(directory: &std::path::Path) -> WriterBeside {
        let writer = Writer::create(&directory.join("a.workload"), WriterOptions::default()).unwrap();
        WriterBeside::start(writer).unwrap()
    }

    #[test]
    fn an_error_of_the_thread_is_told_and_nothing_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = start(directory.path());
        // The second event 5 is refused, and so many batches do not fit into the queue behind it.
        let told = (0..10).try_for_each(|_| writer.push(batch(5)));
        assert!(matches!(told, Err(FileError::Invalid { .. })), "{told:?}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_error_in_the_last_batch_is_told_at_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = start(directory.path());
        writer.push(batch(5)).unwrap();
        let told = writer.push(batch(4)).and_then(|()| writer.finish().map(|_| ()));
        assert!(matches!(told, Err(FileError::Invalid { .. })), "{told:?}");
    }

    #[test]
    fn a_writer_given_up_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = start(directory.path());
        writer.push(batch(0)).unwrap();
        drop(writer);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
