//! The cleaner's rules of order, each broken on purpose: crashes at every moment of runs in which the cleaner works
//! must find it.
//!
//! A small disk is filled with files, and some are taken out of it; that is the beginning. Then a file goes, two
//! checkpoints make clean what it leaves, and new files fill the disk, so that segments are cleaned or holes plugged.
//! One log relies on a drive that does each request wholly or not at all, in any order; the other on flushes only.

use crash::{LfsSubject, Op, Search, Settings, Start, parse_ops, run_ops, search, start};
use device::crash::{Plan, UnderWay, WriteCache};
use device::fixed::{Choice, FixedDevice};
use kernel::{Machine, Setup};
use lab::Spec;
use lfs::planted::Bug;
use lfs::{Options, Planted};

const SHAPE: &str = "size=2176K,segment=64K,bsize=4K,fsize=512";

fn subject(words: &str, planted: Planted) -> LfsSubject {
    let mut options = Options::default();
    assert!(words.split(',').all(|word| options.set(word)), "{words}");
    let mut machine = Machine::load("pentium3-500").unwrap();
    machine.memory.buffer_cache_bytes.value = 512 << 10;
    machine.io.largest_transfer_bytes.value = 1 << 20;
    let setup = Setup { machine, target: "lfs".into(), drive: "fixed".into(), epoch_ns: 820_000_000_000_000_000 };
    let device = move || -> Result<Box<dyn device::Device>, lab::OpenError> {
        Ok(Box::new(FixedDevice::with_distance(4 << 20, 3_000_000, 100_000, Choice::Nearest)))
    };
    LfsSubject::with(options, setup, Box::new(device)).planted(planted)
}

fn plan(words: &str) -> Plan {
    let (cache, under_way) = match words.contains("barrier") {
        true => (WriteCache::On, UnderWay::Torn),
        false => (WriteCache::Off, UnderWay::Whole),
    };
    Plan { cache, under_way, most_of_a_point: 8, seed: 1 }
}

fn make(name: &str, bytes: u32) -> String {
    format!("create {name}; write {name} 0 {bytes}; ")
}

/// Sixty files, of which every fifth is gone again.
fn beginning(words: &str) -> Start {
    let spec = Spec::parse(&format!("lfs:{SHAPE}")).unwrap();
    let mut text: String = (0..60).map(|n| make(&format!("f{n}"), 20_000)).collect();
    text += "sync; ";
    text += &(0..60).filter(|n| n % 5 == 2).map(|n| format!("unlink f{n}; ")).collect::<String>();
    text += "sync; sync";
    let blank = spec.image_in_memory(1 << 20, 1 << 26).unwrap().0;
    start(&subject(words, Planted::NONE), blank, &parse_ops(&text).unwrap()).unwrap()
}

/// The disk is filled until it takes no more.
fn filling() -> Vec<Op> {
    let mut text = "unlink f0; sync; sync; ".to_owned();
    for n in 0..20 {
        text += &make(&format!("g{n}"), 16_000);
        if n % 4 == 3 {
            text += &format!("fsync g{n}; rename f{} h{n}; ", n + 1);
        }
    }
    text += "sync; unlink f1; unlink f6; sync; sync; ";
    text += &(0..10).map(|n| make(&format!("k{n}"), 12_000)).collect::<String>();
    text += "sync";
    parse_ops(&text).unwrap()
}

/// Files are written over, half of each, until the log is full.
fn writing_over() -> Vec<Op> {
    let there = (3..60).filter(|n| n % 5 != 2);
    let text: String = there
        .map(|n| format!("write f{n} 0 10000; {}", if n % 7 == 0 { format!("fsync f{n}; ") } else { String::new() }))
        .collect();
    parse_ops(&format!("{text}sync; {text}sync")).unwrap()
}

/// Looks at every moment; with a bug until it is found.
fn crashed(words: &str, begin: &Start, planted: Planted) -> Search {
    let subject = subject(words, planted);
    let settings = Settings { plan: plan(words), recovery_of: 0, ..Settings::default() };
    let ops = if words.contains("cleaning=all") { writing_over() } else { filling() };
    let parts = 16;
    let history = |number: u64| if number == 0 { run_ops(&subject, begin, &ops, false).map(Some) } else { Ok(None) };
    let mut go_on = |tally: &crash::Tally| planted == Planted::NONE || tally.failed() == 0;
    search(&subject, history, parts, &settings, &mut go_on).unwrap()
}

/// A rule of the cleaner is broken: without it nothing is wrong, and with it something is.
fn found(words: &str, worked: &str, bugs: &[Bug]) {
    let begin = beginning(words);
    let sound = crashed(words, &begin, Planted::NONE);
    assert_eq!(sound.tally.failed(), 0, "{words}: {:#?}", sound.failures);
    // A run in which the cleaner has nothing to do tests nothing.
    assert!(sound.tally.events.get(worked).is_some_and(|n| *n > 0), "{words}: {:#?}", sound.tally);
    for bug in bugs {
        let failed = crashed(words, &begin, Planted::all(&[*bug])).tally.failed();
        assert!(failed > 0, "{words}: nobody notices {bug:?}");
    }
}

#[test]
fn a_checkpoint_waits_for_what_the_cleaner_has_moved() {
    found("cleaner=greedy,plug=0", "segments cleaned", &[Bug::SuperblockFirst]);
}

#[test]
fn a_segment_is_clean_when_both_superblocks_know_it() {
    let words = "cleaner=greedy,plug=0,order=barrier,discard=on";
    found(words, "segments cleaned", &[Bug::CleanAfterOne, Bug::DiscardFirst]);
}

/// All of the log at once, with a checkpoint only where there is no room for the next segments.
#[test]
fn a_log_is_cleaned_as_a_whole_by_the_same_rules() {
    let words = "cleaner=greedy,cleaning=all,plug=0,order=barrier,discard=on";
    found(words, "times all was cleaned", &[Bug::CleanAfterOne, Bug::DiscardFirst]);
}

#[test]
fn holes_are_plugged_between_two_checkpoints() {
    let bugs = [Bug::PlugWithoutCheckpoint, Bug::CheckpointBeforeHoles];
    found("cleaner=greedy,plug=1", "blocks into holes", &bugs);
}
