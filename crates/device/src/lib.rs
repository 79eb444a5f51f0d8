//! Storage devices in virtual time: when a request completes, and where its bytes are.
//!
//! What lives here: hard disks ([`disk`]), arrays ([`mod@array`]), two drives behind one address
//! ([`beside`]), a part of one ([`partition`]), flash drives ([`ssd`]), a device with a fixed time ([`fixed`]), their
//! descriptions as TOML files with the source of every figure ([`Drive`]), the check of a disk model against a measured
//! trace ([`validate`]), stores for the bytes ([`store`]), with what changes to one replaced ([`undo`]), and what a
//! power failure may leave of them ([`crash`]). What may not: file systems,
//! caches of the host, event engines. No model keeps a clock or draws a random number, so the same requests at the
//! same times complete at the same times, always. Drives of ours come from measured traces ([`extract`]), from timed
//! reads ([`measure`]) and from DiskSim's parameters ([`import`]).

pub mod array;
pub mod beside;
pub mod crash;
mod device;
pub mod disk;
mod drive;
pub mod extract;
pub mod fixed;
mod flash;
pub mod import;
pub mod measure;
pub mod partition;
pub mod present;
mod request;
pub mod ssd;
pub mod store;
pub mod undo;
pub mod validate;

pub use device::Device;
pub use drive::{Description, Drive, DriveError, Fact, Figure, Model, Quantity, ZoneFact, catalogue, written};
pub use flash::FlashCounts;
pub use request::{Completion, Lbn, Operation, Request, RequestError};
