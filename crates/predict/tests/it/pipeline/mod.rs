//! The pipeline on tiny traces, against request vectors computed by hand.

mod builder;
mod data;
mod names;
mod stable;
mod whole;
