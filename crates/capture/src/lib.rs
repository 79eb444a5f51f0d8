//! Recording in the kernel, with eBPF: who called what on which file, without stopping anybody.
//!
//! What lives here: the programs that run in the kernel (`bpf/`, in C, with the object made from them by
//! `scripts/build-bpf`), what they need to be permitted ([`permitted`]), loading and attaching them, choosing whom to
//! record, and draining their records ([`Recorder`]). What may not: what records mean (that is `trace::kernel`), and
//! where they go.
//!
//! Nothing waits for us: a program that is recorded pays for its tracepoints, and if nobody drains the records they are
//! counted as lost. When the recorder's process ends, however it ends, the kernel detaches the programs.

mod permitted;
mod recorder;
mod tracer;

pub use permitted::{Missing, permitted};
pub use recorder::{CaptureError, Loaded, Options, Recorder, Totals};
pub use tracer::Kernel;

/// The object made from `bpf/recorder.bpf.c`.
pub(crate) const OBJECT: &[u8] = aya::include_bytes_aligned!("bpf/recorder.bpf.o");
