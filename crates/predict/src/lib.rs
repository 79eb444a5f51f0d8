//! Workload-specific prediction: micro-benchmarks of a system, five pipeline stages over a trace, and the check
//! against the truth.
//!
//! The method is that of Smith, *Workload-Specific File System Benchmarks* (Harvard, 2001), chapter 4; docs/method.md says
//! how each of its known limits is closed. A **system profile** ([`SystemProfile`]) holds what each elementary operation
//! costs on a system; the pipeline turns each traced call into a **request vector** (how many of each it costs); the dot
//! product is the call's predicted latency. What may not live here: parsing of traces, rendering of results.

pub mod baseline;
pub mod cache_sizes;
pub mod explain;
pub mod measure;
pub mod pipeline;
pub mod rank;
pub mod replay;
pub mod residuals;
pub mod runtime;
pub mod system;
pub mod tipping;
pub mod uncertainty;
pub mod validate;
pub mod vector;

pub use system::{Entry, Parameters, PriceTable, SystemProfile, SystemProfileError};
pub use vector::Class;
