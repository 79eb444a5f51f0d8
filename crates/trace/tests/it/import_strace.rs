//! The tracker against the kernel: a program under the machine's strace tells what it sees.

use crate::import_common::{Row, import_with};
use std::path::Path;
use std::process::Command;
use testkit::{Need, Tool};
use trace::Op;
use trace::strace::ImportOptions;

/// What the kernel said at one point.
#[derive(Debug, PartialEq)]
struct Told {
    offset: Option<u64>,
    size: Option<u64>,
    path: Vec<u8>,
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// Compiles and traces the games; gives the trace and what they printed. `None` where that cannot be done.
fn play(dir: &Path, options: &[&str]) -> Option<(Vec<u8>, Vec<Told>)> {
    if !testkit::needs(&[Need::Tool(Tool::Strace), Need::Tool(Tool::Cc)]) {
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/games.c");
    let program = dir.join("games");
    let work = dir.join("work");
    std::fs::create_dir(&work).expect("a directory");
    let built = Command::new("cc").arg("-o").arg(&program).arg(&source).status().expect("cc runs");
    assert!(built.success());
    let output = Command::new("strace")
        .args(["-f", "-ttt", "-T", "-s0"])
        .args(options)
        .arg("-o")
        .arg(dir.join("trace"))
        .arg(&program)
        .arg(&work)
        .current_dir(dir)
        .output()
        .expect("strace runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("Operation not permitted") {
        testkit::skip(format!("strace may not trace here: {said}"));
        return None;
    }
    assert!(output.status.success(), "{said}");
    let told = output
        .stdout
        .split(|&b| b == 0)
        .filter(|line| !line.is_empty())
        .map(|line| {
            let mut parts = line.splitn(4, |&b| b == b' ').skip(1);
            let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
            let (offset, size) = (number(&text()), number(&text()));
            Told { offset, size, path: parts.next().unwrap_or_default().to_vec() }
        })
        .collect();
    Some((std::fs::read(dir.join("trace")).expect("the trace"), told))
}

/// Takes away what the probes of `tell` would teach: `lseek(fd, 0, SEEK_CUR)` becomes a read of nothing, the length
/// in fstat is hidden.
fn blind(trace: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in trace.split_inclusive(|&b| b == b'\n') {
        // Lines of paths with invalid UTF-8 are escaped by strace, so all are text.
        let text = String::from_utf8_lossy(line);
        let tell = [", 0, SEEK_CUR) = ", ", 0, 0x1) = ", ", 0, 0x1 /* SEEK_CUR */) = "];
        let asked = tell.iter().find_map(|tell| text.split_once(tell)).filter(|(head, _)| head.contains(" lseek("));
        if let Some((head, tail)) = asked {
            let duration = tail.rfind('<').map_or("", |i| &tail[i..]);
            let head = head.replacen("lseek(", "read(", 1);
            out.extend_from_slice(format!("{head}, \"\", 0) = 0 {duration}").as_bytes());
        } else if let (Some(open), Some(close)) = (text.find("{st_mode="), text.find("...}")) {
            out.extend_from_slice(format!("{}0x7f{}", &text[..open], &text[close + 4..]).as_bytes());
        } else {
            out.extend_from_slice(line);
        }
    }
    out
}

/// The probes as the tracker sees them.
fn probes(rows: &[Row], below: &Path) -> Vec<Told> {
    let below = below.to_str().expect("UTF-8").as_bytes();
    // Without -y, a nameless file (O_TMPFILE) has no path.
    let ours = |r: &&Row| r.path.as_ref().is_none_or(|p| p.starts_with(below));
    let offsets = rows.iter().filter(ours).filter(|r| r.event.op == Op::Read && r.event.req_bytes == Some(0));
    let sizes = rows.iter().filter(ours).filter(|r| r.event.op == Op::Fstat);
    offsets
        .zip(sizes)
        .map(|(read, stat)| Told {
            offset: read.event.offset,
            size: stat.event.size_before,
            path: stat.path.clone().unwrap_or_default(),
        })
        .collect()
}

fn compare(options: &[&str], paths_too: bool) {
    let dir = tempfile::tempdir().expect("a directory");
    let real = std::fs::canonicalize(dir.path()).expect("its path");
    let Some((trace, told)) = play(&real, options) else { return };
    assert!(told.len() > 40, "{} probes", told.len());
    let import = import_with(
        &blind(&trace),
        ImportOptions {
            cwd: Some(real.to_str().expect("UTF-8").into()),
            problems_listed: 100,
            ..ImportOptions::default()
        },
    )
    .expect("an import");
    assert_eq!(import.summary.problems, []);
    let seen = probes(&import.rows, &real.join("work"));
    assert_eq!(seen.len(), told.len());
    let mut unknown = 0;
    for (i, (seen, told)) in seen.iter().zip(&told).enumerate() {
        let at = format!("probe {i} {}", told.path.escape_ascii());
        assert_eq!(seen.offset, told.offset, "{at}");
        match seen.size {
            Some(size) => assert_eq!(Some(size), told.size, "{at}"),
            None => unknown += 1,
        }
        if paths_too {
            let path = told.path.strip_suffix(b" (deleted)").unwrap_or(&told.path);
            // The kernel gives no path longer than a page.
            if !path.starts_with(b"(unreachable)") && path.len() < 4000 {
                assert_eq!(seen.path.escape_ascii().to_string(), path.escape_ascii().to_string(), "probe {i}");
            }
        }
    }
    // A file opened with O_CREAT alone, in a directory that was there before, may have been there too.
    assert!(unknown <= 1, "{unknown} lengths unknown");
    assert_eq!(import.summary.coverage.resynchronised_descriptors, 0);
}

#[test]
fn offsets_lengths_and_paths_are_the_kernels() {
    compare(&["-yy", "-e", "abbrev=!readv,writev,preadv,pwritev"], true);
}

#[test]
fn raw_constants_mean_the_same() {
    compare(&["-yy", "-X", "raw"], true);
    compare(&["-y", "-X", "verbose"], true);
}

#[test]
fn without_printed_paths_offsets_and_lengths_are_still_the_kernels() {
    compare(&[], false);
}
