//! What turns a tracer's bytes into events: one trait, an implementation for each notation.
//!
//! What lives here: [`Decode`]. What may not: any tracer's notation, and where the bytes come from (a spool that grows,
//! a finished one, a test).

use crate::strace::imported::Imported;
use crate::strace::sink::Sink;
use crate::strace::summary::ImportError;

/// Decodes what a tracer emitted, a stretch at a time, and hands over events as they are finished.
///
/// Analysis runs apart from capture: an implementation may fail, panic or never return, and what is recorded stays
/// whole.
pub trait Decode: Send {
    /// Takes in the next bytes: any stretch of a text, whole records of the kernel's recorder.
    ///
    /// # Errors
    /// The bytes are of no use at all, or the sink fails. Single lines or records that are not understood are counted
    /// instead.
    fn bytes(&mut self, chunk: &[u8], sink: &mut Sink<'_>) -> Result<(), ImportError>;

    /// Ends the trace: hands over the last events, and gives the state it ended in.
    ///
    /// # Errors
    /// The sink fails, or there was nothing of use.
    fn finish(self: Box<Self>, sink: &mut Sink<'_>) -> Result<Imported, ImportError>;
}
