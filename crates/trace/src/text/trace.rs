//! A trace as comma-separated values (RFC 4180), one line per event, the columns of `trace.parquet` in its order.
//!
//! Nulls are empty fields. Paths are escaped as in Parquet ([`crate::profile::escape`]) and quoted; flags are
//! hexadecimal.

use crate::profile::{Reader, Row, escape};
use crate::{Batch, PathId};
use columnar::FileError;
use fault::{Fault, Kind};
use std::borrow::Cow;
use std::io::{self, Write};

/// Why a trace could not be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The profile cannot be read.
    #[error(transparent)]
    Profile(#[from] FileError),
    /// The output cannot be written.
    #[error("cannot write the export: {0}")]
    Output(#[from] io::Error),
}

impl Fault for ExportError {
    fn kind(&self) -> Kind {
        match self {
            ExportError::Profile(e) => e.kind(),
            ExportError::Output(_) => Kind::Environment,
        }
    }
}

/// The header line.
pub const HEADER: &str = "seq,t_ns,dur_ns,pid,tid,op,ofd_id,ofd_id2,file_id,parent_id,path,path2,offset,offset2,\
                          req_bytes,ret,errno,flags,mode,size_before,caller_dir,caller_dir2,running_ns,blocked_ns";

/// Writes a whole trace.
///
/// # Errors
/// The profile is damaged, or the output cannot be written.
pub fn write_csv(reader: &Reader, mut out: impl Write) -> Result<(), ExportError> {
    writeln!(out, "{HEADER}")?;
    let mut batches = reader.batches()?;
    let mut batch = Batch::default();
    while batches.next_into(&mut batch)? {
        for event in &batch.events {
            write_row(&batch, &Row::from(event), &mut out)?;
        }
    }
    Ok(out.flush()?)
}

/// What a spreadsheet would compute begins with a byte in the other way that a path can be written (OWASP, *CSV
/// Injection*).
fn no_formula(text: &str) -> Cow<'_, str> {
    match text.as_bytes() {
        [first @ (b'=' | b'+' | b'-' | b'@'), ..] => Cow::Owned(format!("\\x{first:02X}{}", &text[1..])),
        _ => Cow::Borrowed(text),
    }
}

fn write_row(batch: &Batch, e: &Row, out: &mut impl Write) -> io::Result<()> {
    let n = |value: Option<u64>| value.map_or_else(String::new, |v| v.to_string());
    let path = |id: Option<PathId>| match id {
        Some(id) => format!("\"{}\"", no_formula(&escape(batch.paths.get(id)).replace('"', "\"\""))),
        None => String::new(),
    };
    write!(out, "{},{},{},{},{},{},", e.seq, e.t_ns, e.dur_ns, e.pid, e.tid, e.op.name())?;
    write!(
        out,
        "{},{},{},{},",
        n(e.ofd.map(|i| i.0)),
        n(e.ofd2.map(|i| i.0)),
        n(e.file.map(|i| i.0)),
        n(e.parent.map(|i| i.0))
    )?;
    write!(out, "{},{},{},{},{},", path(e.path), path(e.path2), n(e.offset), n(e.offset2), n(e.req_bytes))?;
    write!(out, "{},{},0x{:x},{},{},", e.ret, e.errno, e.flags, n(e.mode.map(u64::from)), n(e.size_before))?;
    writeln!(out, "{},{},{},{}", path(e.caller_dir), path(e.caller_dir2), n(e.running_ns), n(e.blocked_ns))
}
