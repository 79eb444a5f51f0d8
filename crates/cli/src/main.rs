//! The fsage binary.
fn main() {}
