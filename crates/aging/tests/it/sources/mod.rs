//! A tree that lives in memory, and the replay of a plan there.
#![allow(dead_code)] // Each test binary uses a part.

pub mod model;
pub mod replay;
