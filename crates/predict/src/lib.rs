//! Workload-specific prediction: five pipeline stages over a trace, ranking, and how long the program itself takes.
//!
//! The method is that of Smith, *Workload-Specific File System Benchmarks* (Harvard, 2001), chapter 4; docs/method.md
//! says how each of its known limits is closed. A **system profile** ([`system::SystemProfile`]) holds what each
//! elementary operation costs on a system; the pipeline turns each traced call into a **request vector** (how many of
//! each it costs); the dot product is the call's predicted latency. What may not live here: measuring, replaying,
//! parsing of traces, rendering of results.
//!
//! `examples/predict.rs` predicts a workload on several systems: `cargo run -p fsage-predict --example predict`.

pub mod answer;
pub mod baseline;
pub mod cache_sizes;
pub mod explain;
pub mod pipeline;
pub mod present;
pub mod rank;
pub mod runtime;
pub mod tipping;
pub mod uncertainty;
