//! strace text: any bytes are imported or refused, and every line is accounted for.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trace::strace::{ImportOptions, Importer};

fuzz_target!(|text: &[u8]| {
    let mut importer = Importer::new(ImportOptions { keep_removed: true, ..ImportOptions::default() });
    let mut events = 0u64;
    let mut sink = |batch: trace::Batch| {
        for event in &batch.events {
            assert_eq!(event.seq, events);
            events += 1;
            for id in [event.path, event.path2, event.caller_dir, event.caller_dir2].into_iter().flatten() {
                let _ = batch.paths.get(id);
            }
        }
        Ok(())
    };
    if importer.read(text, &mut sink).is_err() {
        return;
    }
    let Ok(mut imported) = importer.finish(&mut sink) else { return };
    let newlines = text.iter().filter(|&&b| b == b'\n').count() as u64;
    let last = u64::from(text.last().is_some_and(|&b| b != b'\n'));
    assert_eq!(imported.summary.lines, newlines + last);
    assert_eq!(imported.summary.events, events);
    let _ = imported.implied_snapshot();
});
