//! DiskSim's validation format: one request a line.
//!
//! `R|W ACTION LBN SECTORS RESPONSE THINK`, both times in microseconds; ACTION is what the drive said about its buffer
//! and is not used.

use crate::Request;
use fault::{Fault, Kind};
use std::path::Path;

/// A measured request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traced {
    /// What was asked.
    pub request: Request,
    /// The measured response time.
    pub response_ns: u64,
    /// From its completion to the next request.
    pub think_ns: u64,
}

/// What is wrong with a trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("cannot read {file}: {source}")]
    Io {
        /// Path.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// A line is not a request.
    #[error("{file}: line {line}: {why}; a line is `R|W ACTION LBN SECTORS RESPONSE THINK`, times in microseconds")]
    Line {
        /// Path.
        file: String,
        /// From 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// There is no request.
    #[error("{file}: holds no request")]
    Empty {
        /// Path.
        file: String,
    },
    /// A request that the drive could not take.
    #[error("{file}: request {request}: {why}; is this the drive's trace?")]
    Request {
        /// Path.
        file: String,
        /// From 1.
        request: usize,
        /// What is wrong.
        why: crate::RequestError,
    },
}

impl Fault for TraceError {
    fn kind(&self) -> Kind {
        Kind::BadInput
    }
}

/// No trace is longer: that of the longest validation has 10,000 requests.
const TRACE_BYTES_MAX: u64 = 1 << 30;

/// Reads a trace; empty lines are passed over.
pub fn read_trace(path: &Path) -> Result<Vec<Traced>, TraceError> {
    let file = path.display().to_string();
    let bytes = posix::input::read(path, TRACE_BYTES_MAX);
    let bytes = bytes.map_err(|source| TraceError::Io { file: file.clone(), source })?;
    parse_trace(&file, &String::from_utf8_lossy(&bytes))
}

/// Reads a trace from its text; `file` is for messages.
pub fn parse_trace(file: &str, text: &str) -> Result<Vec<Traced>, TraceError> {
    let mut trace = Vec::new();
    for (n, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let traced = parse_line(line).map_err(|why| TraceError::Line { file: file.to_owned(), line: n + 1, why })?;
        trace.push(traced);
    }
    if trace.is_empty() { Err(TraceError::Empty { file: file.to_owned() }) } else { Ok(trace) }
}

fn parse_line(line: &str) -> Result<Traced, String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let &[direction, _action, lbn, sectors, response, think] = fields.as_slice() else {
        return Err(format!("{} fields instead of 6", fields.len()));
    };
    let lbn: u64 = lbn.parse().map_err(|_| format!("LBN {lbn:?} is not a block number"))?;
    let sectors: u32 = sectors.parse().map_err(|_| format!("SECTORS {sectors:?} is not a number of blocks"))?;
    let request = match direction {
        "R" => Request::read(lbn, sectors),
        "W" => Request::write(lbn, sectors),
        other => return Err(format!("{other:?} instead of R or W")),
    };
    Ok(Traced { request, response_ns: microseconds("RESPONSE", response)?, think_ns: microseconds("THINK", think)? })
}

/// A year; longer times are not measurements, and sums of shorter ones do not overflow.
const LONGEST_US: f64 = 365.25 * 86_400e6;

fn microseconds(name: &str, text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(us) if (0.0..=LONGEST_US).contains(&us) => Ok((us * 1e3).round() as u64),
        _ => Err(format!("{name} {text:?} is not a time in microseconds")),
    }
}
