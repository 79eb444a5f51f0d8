//! Machines: one that comes with the program with a few of its values changed is refused, or a file system runs on it.

#![no_main]

#[path = "common/documents.rs"]
mod documents;

use kernel::Machine;
use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;

const MACHINES: [&str; 3] = [
    include_str!("../../machines/pentium-120.toml"),
    include_str!("../../machines/sparcstation-2.toml"),
    include_str!("../../machines/today.toml"),
];

fuzz_target!(|input: &[u8]| {
    let Some(text) = documents::changed_toml(&MACHINES, &mut Unstructured::new(input)) else { return };
    let Ok(machine) = Machine::parse("machine.toml", &text) else { return };
    // What is taken is written and taken again.
    let again = toml::to_string(&machine).expect("a machine is TOML");
    assert_eq!(Machine::parse("again.toml", &again).expect("it was taken a moment ago"), machine);
    let _ = (machine.costs(), machine.transfers());
});
