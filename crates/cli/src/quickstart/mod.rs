//! What `fsage quickstart` carries with it: the workload's script and a recording of it.

pub mod present;
pub mod recording;
