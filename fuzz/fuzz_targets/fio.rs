//! A log of fio's: any bytes are imported or refused, and every line is accounted for, wherever the bytes are cut.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trace::analysis::Decode;
use trace::fio::Importer;
use trace::strace::ImportOptions;

fuzz_target!(|text: &[u8]| {
    let options = || ImportOptions { keep_removed: true, cwd: Some(b"/cwd".to_vec()), ..ImportOptions::default() };
    let import = |piece: usize| {
        let mut importer = Box::new(Importer::new(options()));
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
        for piece in text.chunks(piece) {
            importer.bytes(piece, &mut sink).ok()?;
        }
        let mut imported = importer.finish(&mut sink).ok()?;
        let _ = imported.implied_snapshot();
        assert_eq!(imported.summary.events, events);
        Some(imported.summary)
    };
    let Some(summary) = import(usize::MAX) else { return };
    let newlines = text.iter().filter(|&&b| b == b'\n').count() as u64;
    let last = u64::from(text.last().is_some_and(|&b| b != b'\n'));
    assert_eq!(summary.lines, newlines + last);
    assert_eq!(Some(summary), import(7));
});
