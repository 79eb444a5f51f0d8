#![allow(clippy::unwrap_used)]
use crash::{sequence, *};
#[test]
fn tmp() {
    let words = std::env::var("WORDS").unwrap_or("conventional".into());
    let spec = lab::Spec::parse(&format!("ffs:{words},size=640K,bsize=4096,fsize=512,ipg=64,groups=2")).unwrap();
    let image = spec.image_in_memory(1 << 20, 1 << 26).unwrap();
    let subject = FfsSubject::new(spec).unwrap();
    let begin = start(&subject, image.0, &sequence::prologue(4096)).unwrap();
    let settings = Settings { failures: 1, recovery_of: 0, ..Settings::default() };
    let from: u64 = std::env::var("FROM").map_or(1, |n| n.parse().unwrap());
    let to: u64 = std::env::var("TO").map_or(13, |n| n.parse().unwrap());
    for number in from..to {
        let mix = &sequence::MIXES[number as usize % 6];
        let ops: Vec<Op> = sequence::Drawn::new(number, mix, &begin.seen, 0, 4096).take(60).collect();
        let history = |n: u64| if n == 0 { run_ops(&subject, &begin, &ops, false).map(Some) } else { Ok(None) };
        let found = search(&subject, history, 1, &settings, &mut |_| true).unwrap();
        println!("{number}: {:?}", found.tally.by_class);
        for failure in found.failures.iter().filter(|f| f.verdict.class >= Class::Unresolvable) {
            let small = minimise(&subject, &begin, failure, &settings, &|| true).unwrap();
            println!("  {:?} {} {}: {}\n    {}", small.failure.verdict.class, small.failure.state, small.lost_sectors, small.failure.verdict.why, shown_ops(&small.failure.ops));
        }
    }
}
