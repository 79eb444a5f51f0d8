//! strace's notation of a single call, for importers of texts that write nearly the same.
//!
//! What lives here: the door to this module's decoder. What may not: lines, time stamps, results; those differ.

use super::constants;
use super::decode::{Form, Forms, decode};
use super::lex::{Args, Return, split_args};
use super::reason::Reason;
use crate::syscalls::How;
use crate::track::Call;

/// Whether a call that has started keeps its place in the order until it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// It asks nothing of files.
    Nothing,
    /// It does, whatever it is about.
    Always,
    /// It does unless its descriptor is a pipe, a socket or the like, of which a read can take for ever.
    UnlessForeign,
}

/// The table of calls.
#[derive(Debug)]
pub(crate) struct Notation(Forms);

impl Notation {
    pub fn new() -> Self {
        Notation(Forms::new())
    }

    /// What a call asks, its arguments as strace would write them (`3</tmp/x>, "", 5)`). `None`: nothing that concerns
    /// files.
    pub fn call<'a>(&self, name: &[u8], args: &'a [u8], returned: Option<i64>) -> Result<Option<Call<'a>>, Reason> {
        let form = self.0.get(name);
        if form == Some(Form::Ignored) {
            return Ok(None);
        }
        let mut split = Args::default();
        split_args(args, &mut split)?;
        Ok(decode(form, &split, &Return { value: returned, ..Return::default() }))
    }

    /// Whether such a call keeps its place while it runs.
    pub fn keeps(&self, name: &[u8]) -> Keeps {
        match self.0.get(name) {
            None | Some(Form::Ignored | Form::NewFd | Form::Call(How::IoUringEnter | How::Unshare)) => Keeps::Nothing,
            Some(Form::Call(How::Close | How::Fork | How::Clone | How::Clone3)) => Keeps::Always,
            Some(_) => Keeps::UnlessForeign,
        }
    }

    /// The number of an error's name.
    pub fn errno(name: &[u8]) -> Result<u16, Reason> {
        constants::errno(name).ok_or("an error name that Linux does not have")
    }
}
