//! The recorder in the kernel as a tracer of `trace::record`.
//!
//! What may not live here: the recorder itself ([`Recorder`]).

use crate::{CaptureError, Loaded, Options, Recorder, permitted};
use std::io;
use std::time::{Duration, Instant};
use trace::analysis::Decode;
use trace::kernel::{Importer, wire};
use trace::profile;
use trace::record::{Drained, Ending, RecordError, Target, Tracer, Tracing};
use trace::spool::Notation;
use trace::strace::ImportOptions;

/// How long records gather before they are read. Nobody is woken for a record: waking costs the program's processor
/// more than the record does.
const GATHER: Duration = Duration::from_millis(5);

/// The recorder in the kernel, found to be permitted.
#[derive(Debug)]
pub struct Kernel {
    options: Options,
    loaded: Option<Loaded>,
}

impl Kernel {
    /// Finds out whether recording in the kernel is permitted.
    ///
    /// # Errors
    /// It is not: what is missing.
    pub fn find(options: Options) -> Result<Kernel, CaptureError> {
        permitted()?;
        Ok(Kernel { options, loaded: None })
    }
}

fn cannot(error: CaptureError) -> RecordError {
    match error {
        CaptureError::NoProcess { pid } => RecordError::NoProcess { pid },
        other => RecordError::CannotTrace { said: other.to_string() },
    }
}

impl Tracer for Kernel {
    fn notation(&self) -> Notation {
        Notation::Kernel
    }

    fn describe(&self) -> profile::Tracer {
        profile::Tracer {
            name: "ebpf".into(),
            version: wire::VERSION.to_string(),
            options: vec![format!("buffer_bytes={}", self.options.buffer_bytes)],
        }
    }

    fn clock(&self) -> String {
        "CLOCK_MONOTONIC in the kernel, nanoseconds".into()
    }

    fn check(&self, _: &Target) -> Result<(), RecordError> {
        Ok(())
    }

    fn prepare(&mut self, target: Option<&Target>) -> Result<(), RecordError> {
        self.loaded = Some(Loaded::new(target, &self.options).map_err(cannot)?);
        Ok(())
    }

    fn start(&mut self, target: &Target) -> Result<Box<dyn Tracing>, RecordError> {
        let recorder = match self.loaded.take() {
            Some(loaded) => loaded.start(target),
            None => Recorder::start(target, &self.options),
        };
        let recorder = recorder.map_err(cannot)?;
        Ok(Box::new(Running { recorder, stopped: false }))
    }

    fn counter(&self) -> fn(&[u8]) -> u64 {
        |mut records| {
            let mut count = 0;
            while let Ok(Some(_)) = wire::next(&mut records) {
                count += 1;
            }
            count
        }
    }

    fn decoder(&self, options: ImportOptions) -> Box<dyn Decode> {
        Box::new(Importer::new(options))
    }
}

#[derive(Debug)]
struct Running {
    recorder: Recorder,
    stopped: bool,
}

impl Tracing for Running {
    fn drain(&mut self, wait: Duration, take: &mut dyn FnMut(&[u8])) -> io::Result<Drained> {
        let until = Instant::now() + wait;
        loop {
            // Asked before the records are drained: what ended has told everything by then.
            let ended = self.stopped || self.recorder.has_ended();
            let drained = self.recorder.drain(take);
            if ended {
                self.recorder.tell_losses(take);
                return Ok(Drained::Ended);
            }
            let left = until.saturating_duration_since(Instant::now());
            if drained > 0 || left.is_zero() {
                // Even when records keep coming they gather for a while.
                std::thread::sleep(GATHER.min(wait));
                return Ok(Drained::Open);
            }
            std::thread::sleep(GATHER.min(left));
        }
    }

    fn stop(&mut self) {
        self.recorder.stop();
        self.stopped = true;
    }

    fn end(self: Box<Self>) -> Ending {
        Ending { notes: self.recorder.totals().notes(), ..Ending::default() }
    }
}
