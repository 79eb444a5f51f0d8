//! Memory is bounded by what is live, whatever the length of the trace. Alone in its process, so that its memory can be
//! measured.

#[test]
fn memory_does_not_grow_with_the_trace() {
    // A million short-lived files, each under a name of its own: the tree must forget them.
    let mut importer = trace::strace::Importer::new(trace::strace::ImportOptions::default());
    let mut events = 0;
    let mut sink = |batch: trace::Batch| {
        events += batch.events.len();
        Ok(())
    };
    let resident = || {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        text.split(' ').nth(1).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 4096
    };
    let mut at_tenth = 0;
    for i in 0..200_000_u64 {
        for call in [
            format!("openat(AT_FDCWD</w>, \"tmp{i}\", O_RDWR|O_CREAT|O_EXCL, 0600) = 3</w/tmp{i}>"),
            format!("unlink(\"/w/tmp{i}\") = 0"),
            format!("access(\"/w/no{i}\", F_OK) = -1 ENOENT (No such file or directory)"),
            format!("close(3</w/tmp{i}>(deleted)) = 0"),
        ] {
            let line = format!("7 1700000000.000001 {call} <0.000001>");
            importer.line(line.as_bytes(), &mut sink).expect("a line");
        }
        if i == 20_000 {
            at_tenth = resident();
        }
    }
    let grown = resident().saturating_sub(at_tenth);
    importer.finish(&mut sink).expect("an import");
    assert_eq!(events, 800_000);
    assert!(grown < 16 << 20, "grew by {grown} bytes");
}
