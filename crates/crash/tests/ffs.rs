//! Crashes of the Fast File System.

#![allow(clippy::unwrap_used)]

use crash::{Class, FfsSubject, Search, Settings, run_ops, search, sequence, shown_ops, start};
use device::crash::Plan;
use lab::Spec;

const TARGET: &str = "size=640K,bsize=4096,fsize=512,ipg=64,groups=2";

fn subject(words: &str) -> (FfsSubject, Vec<u8>) {
    let spec = Spec::parse(&format!("ffs:{words},{TARGET}")).unwrap();
    let image = spec.image_in_memory(1 << 20, 1 << 26).unwrap();
    (FfsSubject::new(spec).unwrap(), image.0)
}

fn short(subject: &FfsSubject, image: Vec<u8>, length: u32, settings: &Settings) -> Search {
    let begin = start(subject, image, &sequence::prologue(4096)).unwrap();
    let all = sequence::all(length, 4096);
    let history = |number: u64| match all.get(number as usize) {
        Some(ops) => run_ops(subject, &begin, ops, true).map(Some),
        None => Ok(None),
    };
    search(subject, history, 1, settings, &mut |_| true).unwrap()
}

fn show(found: &Search) {
    println!("{:#?}", found.tally);
    for failure in &found.failures {
        let (state, again) = (failure.state, failure.again);
        println!("{:?} {state} {again:?}: {}\n    {}", failure.verdict.class, failure.verdict.why, shown_ops(&failure.ops));
    }
}

#[test]
fn conventional_updates_of_one_operation() {
    let (subject, image) = subject("conventional");
    let settings = Settings { plan: Plan { most_of_a_point: 64, ..Plan::default() }, ..Settings::default() };
    let found = short(&subject, image, 1, &settings);
    show(&found);
    assert_eq!(found.tally.failed(), 0);
    assert!(found.tally.of(Class::Repaired) > 10);
}
