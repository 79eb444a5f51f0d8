//! Drives, DiskSim's parameters and traces: any text is refused or read, and a drive that is taken serves requests.

#![no_main]

use device::import::import_with;
use device::validate::parse_trace;
use device::{Drive, Request};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|text: &str| {
    let _ = parse_trace("trace", text);
    // Every file that is named has the same text.
    let _ = import_with(Path::new("drive.parv"), None, None, &|_| Ok(text.to_owned()));
    let Ok(drive) = Drive::parse("drive", "drive.toml", text) else { return };
    let mut device = drive.device();
    let mut now_ns = 0;
    for n in 0..16u64 {
        let lbn = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % device.capacity_sectors();
        let request = if n % 2 == 0 { Request::write(lbn, 1) } else { Request::read(lbn, 1) };
        let done = device.serve(now_ns, request).expect("a sector that is there");
        assert!(done.at_ns >= now_ns);
        now_ns = done.at_ns;
    }
});
