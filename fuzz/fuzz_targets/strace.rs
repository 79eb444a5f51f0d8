//! strace's text: any bytes are imported or refused, and every line is accounted for, wherever the bytes are cut.

#![no_main]

mod common;

use libfuzzer_sys::fuzz_target;
use trace::strace::Importer;

fuzz_target!(|text: &[u8]| common::every_line_is_accounted_for(text, Importer::new));
