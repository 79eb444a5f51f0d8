//! The recorder in the kernel as a tracer that `trace::record` can record with.

use crate::{CaptureError, Options, Recorder, Subject, permitted};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::time::Duration;
use trace::analysis::Decode;
use trace::kernel::{Importer, wire};
use trace::profile;
use trace::record::{Drained, Ending, RecordError, Target, Tracer, Tracing};
use trace::spool::Notation;
use trace::strace::ImportOptions;

/// How often the buffer is emptied at least: it holds many times what a machine's processors call in that time.
const ROUND: Duration = Duration::from_millis(5);

/// The recorder in the kernel, which is permitted here.
#[derive(Debug)]
pub struct Kernel(());

impl Kernel {
    /// Whether it can be tried here.
    ///
    /// # Errors
    /// [`RecordError::CannotTrace`] with all that is missing.
    pub fn find() -> Result<Kernel, RecordError> {
        permitted().map(|()| Kernel(())).map_err(|missing| RecordError::CannotTrace { said: missing.to_string() })
    }
}

impl Tracer for Kernel {
    fn notation(&self) -> Notation {
        Notation::Kernel
    }

    fn describe(&self) -> profile::Tracer {
        let version = env!("CARGO_PKG_VERSION").into();
        profile::Tracer { name: "ebpf".into(), version, options: Vec::new() }
    }

    fn clock(&self) -> String {
        "CLOCK_MONOTONIC in the kernel, nanoseconds".into()
    }

    fn check(&self, target: &Target) -> Result<(), RecordError> {
        subject(target).map(drop)
    }

    fn start(&mut self, target: &Target) -> Result<Box<dyn Tracing>, RecordError> {
        let subject = subject(target)?;
        let mut watched = Vec::new();
        if let Subject::Processes(pids) = &subject {
            for &pid in pids {
                let known = i32::try_from(pid).ok().and_then(Pid::from_raw);
                let opened = known.map(|known| pidfd_open(known, PidfdFlags::empty()));
                watched.push(opened.and_then(Result::ok).ok_or(RecordError::NoProcess { pid })?);
            }
        }
        let recorder = Recorder::start(&Options::of(subject)).map_err(refused)?;
        Ok(Box::new(Running { recorder: Some(recorder), watched, stop: false, said: String::new() }))
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

fn subject(target: &Target) -> Result<Subject, RecordError> {
    match target {
        // It waits before its first call: it is a process that runs already.
        Target::Command(pid) => Ok(Subject::Processes(vec![*pid])),
        Target::Processes(pids) => Ok(Subject::Processes(pids.clone())),
        Target::Cgroup(_) | Target::Mount(_) => Err(RecordError::CannotTrace {
            said: "the recorder in the kernel does not choose by control group or file system yet".into(),
        }),
    }
}

fn refused(error: CaptureError) -> RecordError {
    match error {
        CaptureError::NoProcess { pid } => RecordError::NoProcess { pid },
        other => RecordError::CannotTrace { said: other.to_string() },
    }
}

/// A recording at work. Dropped, the kernel detaches its programs.
struct Running {
    recorder: Option<Recorder>,
    /// The processes whose end is that of the recording.
    watched: Vec<OwnedFd>,
    stop: bool,
    said: String,
}

impl Running {
    /// Waits for the end of the watched processes, at most so long; `true` once all have ended.
    fn ended(&mut self, wait: Duration) -> io::Result<bool> {
        let wait =
            Timespec { tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX), tv_nsec: wait.subsec_nanos().into() };
        let mut fds: Vec<PollFd<'_>> = self.watched.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        match poll(&mut fds, Some(&wait)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(false),
            Err(e) => return Err(e.into()),
        }
        let over: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut over = over.into_iter();
        self.watched.retain(|_| !over.next().unwrap_or(false));
        Ok(self.watched.is_empty())
    }
}

impl Tracing for Running {
    fn drain(&mut self, wait: Duration, take: &mut dyn FnMut(&[u8])) -> io::Result<Drained> {
        // Asked before draining: what a process did until its end is in the buffer when the end is seen.
        let over = self.stop || self.ended(wait.min(ROUND))?;
        let Some(recorder) = &mut self.recorder else { return Ok(Drained::Ended) };
        recorder.drain(take);
        if !over {
            return Ok(Drained::Open);
        }
        if let Some(recorder) = self.recorder.take() {
            let totals = recorder.finish(take);
            if totals.without_memory > 0 {
                self.said = format!("the kernel had no memory to record {} threads", totals.without_memory);
            }
        }
        Ok(Drained::Ended)
    }

    fn stop(&mut self) {
        self.stop = true;
    }

    fn end(self: Box<Self>) -> Ending {
        Ending { lost: false, said: self.said }
    }
}
