//! What the targets of importers share: any bytes are imported or refused, events come in order, and their paths are
//! their batch's.

#![allow(dead_code)] // Each target uses its part.

use columnar::FileError;
use trace::Batch;
use trace::analysis::Decode;
use trace::strace::{ImportOptions, Summary};

/// A sink that looks at everything it gets, and counts it.
pub fn counted(events: &mut u64) -> impl FnMut(Batch) -> Result<(), FileError> + '_ {
    |batch| {
        for event in &batch.events {
            assert_eq!(event.head.seq, *events);
            *events += 1;
            for id in [event.path(), event.path2(), event.caller_dir(), event.caller_dir2()].into_iter().flatten() {
                let _ = batch.paths.get(id);
            }
        }
        Ok(())
    }
}

/// Text is imported or refused, every line is accounted for, and it does not matter where the bytes are cut.
pub fn every_line_is_accounted_for<D: Decode>(text: &[u8], importer: impl Fn(ImportOptions) -> D) {
    let options = || ImportOptions { keep_removed: true, cwd: Some(b"/cwd".to_vec()), ..ImportOptions::default() };
    let import = |piece: usize| -> Option<Summary> {
        let mut importer = Box::new(importer(options()));
        let mut events = 0;
        let mut imported = {
            let mut sink = counted(&mut events);
            for piece in text.chunks(piece) {
                importer.bytes(piece, &mut sink).ok()?;
            }
            importer.finish(&mut sink).ok()?
        };
        let _ = imported.implied_snapshot();
        assert_eq!(imported.summary.events, events);
        Some(imported.summary)
    };
    let whole = import(usize::MAX);
    if let Some(summary) = &whole {
        let newlines = text.iter().filter(|&&b| b == b'\n').count() as u64;
        let last = u64::from(text.last().is_some_and(|&b| b != b'\n'));
        assert_eq!(summary.lines, newlines + last);
    }
    assert_eq!(whole, import(7));
}
