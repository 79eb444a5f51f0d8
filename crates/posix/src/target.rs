//! Targets: one grammar for every command.
//!
//! ```text
//! /mnt/data   ./here   data            a directory
//! ext4:8G                              a scratch file system of that size
//! xfs:8G,-m reflink=0                  options after commas: those that start with '-' go to mkfs
//! btrfs:8G,mount=noatime,mount=discard=async,backing=ram
//! ext4:8G,-E 'stride=4,stripe_width=16',mount="noatime,data=journal",backing="/data/a,b"
//! ffs:realloc,size=502M@st32430n       a laboratory file system: read by crates/lab
//! ```
//!
//! Quotes work as in a shell: inside `'…'` everything is itself; inside `"…"` a backslash quotes `"` and `\`;
//! outside, a backslash quotes any character. A comma inside quotes does not end an option. `mount=` may be repeated.
//! `backing=ram` keeps the image in memory; `backing=DIR` keeps it in that directory. Sizes are bytes, or have a suffix
//! `K`, `M`, `G` or `T` (powers of 1024).

use crate::grammar::{Piece, parse_size, split, words};
use std::fmt;
use std::path::{Path, PathBuf};

/// Where a run works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A directory on any mounted file system.
    Directory(PathBuf),
    /// A file system made for the run and removed after it.
    Scratch(ScratchSpec),
    /// A laboratory file system; parsed here, opened elsewhere.
    Lab(String),
}

/// A scratch file system as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScratchSpec {
    /// Which file system.
    pub kind: ScratchKind,
    /// Size of the image.
    pub size_bytes: u64,
    /// Further arguments of mkfs, as words.
    pub mkfs_options: Vec<String>,
    /// Mount options, each `name` or `name=value`.
    pub mount_options: Vec<String>,
    /// Where the image lies.
    pub backing: Backing,
    /// What the user wrote.
    pub text: String,
}

/// File systems that can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ScratchKind {
    Ext4,
    Xfs,
    Btrfs,
}

/// Where a scratch image lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// In `$TMPDIR` or `/var/tmp`, whichever has the space.
    Default,
    /// In memory: no device time at all, and a "cold" cache is read at the speed of memory.
    Ram,
    /// In this directory.
    Directory(PathBuf),
}

impl ScratchKind {
    /// All of them.
    pub const ALL: [ScratchKind; 3] = [ScratchKind::Ext4, ScratchKind::Xfs, ScratchKind::Btrfs];

    /// The type's name, as `mount(2)` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            ScratchKind::Ext4 => "ext4",
            ScratchKind::Xfs => "xfs",
            ScratchKind::Btrfs => "btrfs",
        }
    }

    /// The smallest image: what mkfs refuses to go below (mkfs.xfs 6: 300 MiB; mkfs.btrfs: 109 MiB), and for ext4
    /// what leaves room beside a journal.
    pub const fn min_bytes(self) -> u64 {
        match self {
            ScratchKind::Ext4 => 8 << 20,
            ScratchKind::Xfs => 300 << 20,
            ScratchKind::Btrfs => 109 << 20,
        }
    }
}

/// What is wrong with a target, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("target '{text}', character {position}: {problem}; {accepted}")]
pub struct TargetError {
    /// The target as written.
    pub text: String,
    /// Where, counted in characters from 1.
    pub position: usize,
    /// What is wrong.
    pub problem: String,
    /// What is accepted there.
    pub accepted: String,
}

const KINDS: &str = "accepted are a directory, ext4:SIZE, xfs:SIZE or btrfs:SIZE, and the laboratory's ffs and lfs";
const SIZES: &str = "a size is a number with K, M, G or T, as in 8G or 1.5G";
const OPTIONS: &str = "options are mkfs options (-…), mount=OPTION, backing=ram and backing=DIRECTORY; \
                       put an option that holds a comma in quotes";
const LAB: [&str; 2] = ["ffs", "lfs"];

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Directory(path) => write!(f, "{}", path.display()),
            Target::Scratch(spec) => f.write_str(&spec.text),
            Target::Lab(text) => f.write_str(text),
        }
    }
}

impl std::str::FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Target, TargetError> {
        Target::parse(text)
    }
}

impl Target {
    /// Reads a target. Only a name that is none of the above is looked up on disk, to see whether it is a directory.
    pub fn parse(text: &str) -> Result<Target, TargetError> {
        let error = |position, problem: String, accepted: &str| {
            Err(TargetError { text: text.to_string(), position, problem, accepted: accepted.to_string() })
        };
        if text.is_empty() {
            return error(1, "it is empty".into(), KINDS);
        }
        if text.starts_with(['/', '.']) {
            return Ok(Target::Directory(PathBuf::from(text)));
        }
        let name = text.split([':', '@', ',']).next().unwrap_or(text);
        if let Some(kind) = ScratchKind::ALL.into_iter().find(|kind| kind.name() == name) {
            return match text.get(name.len() + 1..) {
                Some(rest) if text.as_bytes().get(name.len()) == Some(&b':') => scratch(text, kind, rest),
                _ if Path::new(text).is_dir() => Ok(Target::Directory(PathBuf::from(text))),
                _ => error(name.len() + 1, format!("{name} needs a size, as in {name}:8G"), SIZES),
            };
        }
        if LAB.contains(&name) {
            return Ok(Target::Lab(text.to_string()));
        }
        if !text.contains(':') || Path::new(text).exists() {
            return Ok(Target::Directory(PathBuf::from(text)));
        }
        let known = ScratchKind::ALL.into_iter().map(ScratchKind::name).chain(LAB);
        let tip = units::similar::tip(name, known);
        error(1, format!("'{name}' is no file system that can be made, and '{text}' is no directory{tip}"), KINDS)
    }
}

fn scratch(text: &str, kind: ScratchKind, rest: &str) -> Result<Target, TargetError> {
    let error = |position: usize, problem: String, accepted: &str| TargetError {
        text: text.to_string(),
        position,
        problem,
        accepted: accepted.to_string(),
    };
    let skipped = text.len() - rest.len();
    let pieces = split(rest, skipped + 1, ',').map_err(|(position, problem)| {
        error(position, problem.to_string(), "quotes come in pairs, and a backslash quotes the next character")
    })?;
    let mut pieces = pieces.into_iter();
    let size = pieces.next().unwrap_or(Piece { text: "", position: skipped + 1 });
    let size_bytes =
        parse_size(size.text).map_err(|(offset, problem)| error(size.position + offset, problem.to_string(), SIZES))?;
    if size_bytes < kind.min_bytes() {
        let least = kind.min_bytes() >> 20;
        let problem = format!("{} is too small for {}", size.text, kind.name());
        return Err(error(size.position, problem, &format!("it needs at least {least}M")));
    }
    let mut spec = ScratchSpec {
        kind,
        size_bytes,
        mkfs_options: Vec::new(),
        mount_options: Vec::new(),
        backing: Backing::Default,
        text: text.to_string(),
    };
    for piece in pieces {
        let position = piece.position;
        option(&mut spec, &piece).map_err(|problem| error(position, problem, OPTIONS))?;
    }
    Ok(Target::Scratch(spec))
}

fn option(spec: &mut ScratchSpec, piece: &Piece<'_>) -> Result<(), String> {
    let words = words(piece.text);
    if piece.text.starts_with('-') {
        spec.mkfs_options.extend(words);
        return Ok(());
    }
    let [word] = words.as_slice() else {
        return Err(if words.is_empty() {
            "an option is empty".to_string()
        } else {
            format!("'{}' is no option", piece.text)
        });
    };
    match word.split_once('=') {
        Some(("mount", "")) => Err("mount= needs an option".to_string()),
        Some(("mount", value)) => {
            spec.mount_options.extend(value.split(',').filter(|o| !o.is_empty()).map(str::to_string));
            Ok(())
        }
        Some(("backing", "")) => Err("backing= needs 'ram' or a directory".to_string()),
        Some(("backing", _)) if spec.backing != Backing::Default => Err("backing= is given twice".to_string()),
        Some(("backing", "ram")) => {
            spec.backing = Backing::Ram;
            Ok(())
        }
        Some(("backing", directory)) => {
            spec.backing = Backing::Directory(PathBuf::from(directory));
            Ok(())
        }
        _ => Err(format!(
            "'{word}' is no option{}",
            units::similar::tip(word.split('=').next().unwrap_or(word), ["mount", "backing"])
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> ScratchSpec {
        match Target::parse(text) {
            Ok(Target::Scratch(spec)) => spec,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("ext4:8G", 8 << 30),
            ("ext4:300M", 300 << 20),
            ("ext4:1t", 1 << 40),
            ("ext4:1.5G", 1536 << 20),
            ("ext4:9000000", 9_000_000),
        ] {
            assert_eq!(spec(text).size_bytes, bytes, "{text}");
        }
    }

    #[test]
    fn options_go_where_they_belong() {
        let s = spec("xfs:8G,-m reflink=0,mount=noatime,mount=logbufs=8,backing=ram,-L 'a b'");
        assert_eq!(s.kind, ScratchKind::Xfs);
        assert_eq!(s.mkfs_options, ["-m", "reflink=0", "-L", "a b"]);
        assert_eq!(s.mount_options, ["noatime", "logbufs=8"]);
        assert_eq!(s.backing, Backing::Ram);
    }

    #[test]
    fn a_comma_in_quotes_belongs_to_its_option() {
        let s = spec(r#"ext4:8G,-E 'stride=4,stripe_width=16',mount="noatime,discard",backing="/data/a,b""#);
        assert_eq!(s.mkfs_options, ["-E", "stride=4,stripe_width=16"]);
        assert_eq!(s.mount_options, ["noatime", "discard"]);
        assert_eq!(s.backing, Backing::Directory("/data/a,b".into()));
        assert_eq!(spec(r"ext4:8G,backing=/a\,b\ c").backing, Backing::Directory("/a,b c".into()));
        assert_eq!(spec(r#"ext4:8G,-L "a\"b\c""#).mkfs_options, ["-L", r#"a"b\c"#]);
    }

    #[test]
    fn directories_and_the_laboratory() {
        for text in ["/mnt/a:b", "./ext4", "data", "/", ".", "..", "ext4fs"] {
            assert_eq!(Target::parse(text), Ok(Target::Directory(text.into())), "{text}");
        }
        for text in ["ffs", "ffs:realloc,softdep,bsize=8k@st32430n", "lfs@cheetah9lp"] {
            assert_eq!(Target::parse(text), Ok(Target::Lab(text.into())), "{text}");
        }
    }

    #[test]
    fn every_target_is_shown_as_it_was_written() {
        for text in ["/mnt", "ext4:8G,-O '^has_journal'", "lfs:x@y", "xfs:8G,mount=noatime"] {
            assert_eq!(Target::parse(text).map(|t| t.to_string()).as_deref(), Ok(text));
        }
    }

    #[test]
    fn errors_name_the_place_and_what_is_accepted() {
        for (text, position, says) in [
            ("", 1, "empty"),
            ("ext4", 5, "needs a size"),
            ("ext4:", 6, "a size is missing"),
            ("ext4:8Q", 7, "no unit"),
            ("ext4:99999999999T", 6, "too large"),
            ("xfs:8M", 5, "at least 300M"),
            ("btrfs:100M", 7, "at least 109M"),
            ("ext4:8G,noatime", 9, "'noatime' is no option"),
            ("ext4:8G,,", 9, "an option is empty"),
            ("ext4:8G,mount=", 9, "mount= needs"),
            ("ext4:8G,backing=ram,backing=/x", 21, "twice"),
            ("ext4:8G,-E stride=4,stripe_width=16", 21, "in quotes"),
            ("ext4:8G,-L 'abc", 12, "not closed"),
            ("ext4:8G,-L abc\\", 15, "backslash"),
            ("ext3:8G", 1, "btrfs:SIZE"),
        ] {
            let error = Target::parse(text).expect_err(text);
            assert_eq!(error.position, position, "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_parsed_or_refused_with_a_place_in_it(text in "(ext4:|xfs:|btrfs:|ffs:|)[0-9]{0,9}[KMGT]?[ \
            -~é\"',\\\\=]{0,40}") {
            match Target::parse(&text) {
                Ok(target) => proptest::prop_assert_eq!(target.to_string(), text),
                Err(error) => proptest::prop_assert!(error.position <= text.chars().count() + 1, "{}", error),
            }
        }

        #[test]
        fn quoting_an_option_gives_it_back(option in "[ -~]{1,30}", quoted_with in 0..3) {
            let quoted = match quoted_with {
                0 => format!("'{}'", option.replace('\'', "'\\''")),
                1 => format!("\"{}\"", option.replace('\\', "\\\\").replace('"', "\\\"")),
                _ => option.chars().flat_map(|c| ['\\', c]).collect(),
            };
            let parsed = spec(&format!("ext4:1G,-L {quoted},backing=ram"));
            proptest::prop_assert_eq!(parsed.mkfs_options, vec!["-L".to_string(), option]);
            proptest::prop_assert_eq!(parsed.backing, Backing::Ram);
        }
    }
}
