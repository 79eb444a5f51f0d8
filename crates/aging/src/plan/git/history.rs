//! A repository's history as git tells it: `git log --raw`, `git ls-tree` and `git cat-file --batch-check`, streamed.

use crate::plan::PlanError;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// An object's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Hash(pub(super) Box<str>);

/// What a path is in a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    File,
    Symlink,
    /// A submodule: an empty directory for us.
    Submodule,
}

impl Mode {
    fn from_octal(text: &str) -> Option<Mode> {
        match text {
            "100644" | "100755" | "100664" => Some(Mode::File),
            "120000" => Some(Mode::Symlink),
            "160000" => Some(Mode::Submodule),
            _ => None,
        }
    }
}

/// One path of a commit that differs from the commit before; `None`: not there any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) path: Vec<u8>,
    pub(super) now: Option<(Mode, Hash)>,
}

/// One commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) hash: Hash,
    /// Committer's time, seconds since the epoch.
    pub(super) time_s: i64,
    pub(super) changed: Vec<Changed>,
}

/// What git says of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) bytes: u64,
    /// As it is stored; `None` where it is stored as a difference to another.
    pub(super) stored_bytes: Option<u64>,
}

/// A local repository.
pub(super) struct Repository {
    path: PathBuf,
}

impl Repository {
    /// Checks that there is git, and a repository.
    pub(super) fn open(path: &Path) -> Result<Repository, PlanError> {
        let repository = Repository { path: path.to_owned() };
        repository.output(["rev-parse", "--git-dir"])?;
        Ok(repository)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("git");
        command.arg("-C").arg(&self.path).args(["-c", "core.quotePath=false", "--no-pager"]);
        // Neither the user's language nor hooks of the environment may change what is printed or where it is looked
        // for.
        command.env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0");
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_EXTERNAL_DIFF"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn failed(&self, doing: &'static str) -> impl Fn(io::Error) -> PlanError {
        let path = self.path.clone();
        move |source| {
            let (doing, source) = match source.kind() {
                // Not the repository's fault: the kind "not found" would make it a bad input.
                io::ErrorKind::NotFound => {
                    ("run git, which must be installed to read a repository", io::Error::other("git is not installed"))
                }
                _ => (doing, source),
            };
            PlanError::Io(fault::refused(&path, doing)(source))
        }
    }

    fn refused(&self, stderr: &[u8]) -> PlanError {
        let text = String::from_utf8_lossy(stderr);
        PlanError::input(&self.path, "git", text.lines().next().unwrap_or("git failed without saying why"))
    }

    pub(super) fn output<I: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = I>) -> Result<Vec<u8>, PlanError> {
        let out = self.command().args(args).output().map_err(self.failed("run git"))?;
        if out.status.success() { Ok(out.stdout) } else { Err(self.refused(&out.stderr)) }
    }

    /// How many commits there are, first parents only.
    pub(super) fn count(&self, branch: &str, max: Option<u32>) -> Result<u64, PlanError> {
        let mut args = vec!["rev-list".to_owned(), "--first-parent".into(), "--count".into()];
        args.extend(max.map(|n| format!("--max-count={n}")));
        // What follows is a revision, whatever it looks like.
        args.extend(["--end-of-options".into(), branch.to_owned(), "--".into()]);
        let text = String::from_utf8_lossy(&self.output(args)?).trim().to_owned();
        text.parse()
            .map_err(|_| PlanError::input(&self.path, "git rev-list", format!("{text:?} is not a number of commits")))
    }

    /// Every path of a commit.
    pub(super) fn tree(&self, commit: &Hash) -> Result<Vec<Changed>, PlanError> {
        let out = self.output(["ls-tree", "-r", "-z", "--full-tree", &commit.0])?;
        let bad = |text: &[u8]| self.malformed("git ls-tree", text);
        out.split(|b| *b == 0)
            .filter(|line| !line.is_empty())
            .map(|line| tree_line(line).ok_or_else(|| bad(line)))
            .collect()
    }

    fn malformed(&self, what: &str, text: &[u8]) -> PlanError {
        PlanError::input(&self.path, what, format!("{:?} is not understood", String::from_utf8_lossy(text)))
    }

    /// The commits of a branch, oldest first, first parents only: each with what it changes against the one before.
    pub(super) fn log(&self, branch: &str, max: Option<u32>) -> Result<Log<'_>, PlanError> {
        let mut command = self.command();
        command.args(["log", "--first-parent", "--diff-merges=first-parent", "--reverse", "--raw", "--root", "-z"]);
        command.args([
            "--no-abbrev",
            "--no-renames",
            "--no-color",
            "--no-show-signature",
            "--no-notes",
            "--format=%x01%H %ct",
        ]);
        command.args(max.map(|n| format!("--max-count={n}")));
        command.args(["--end-of-options", branch, "--"]);
        let mut child = command.spawn().map_err(self.failed("run git log"))?;
        let out = child.stdout.take().map(BufReader::new);
        Ok(Log { repository: self, child, out, next: None })
    }

    /// A process that tells lengths of objects.
    pub(super) fn sizes(&self) -> Result<Sizes<'_>, PlanError> {
        let mut command = self.command();
        command.args(["cat-file", "--batch-check=%(objectname) %(objectsize) %(objectsize:disk) %(deltabase)"]);
        let mut child = command.stdin(Stdio::piped()).spawn().map_err(self.failed("run git cat-file"))?;
        let (input, out) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Ok(Sizes { repository: self, child, input, out })
    }
}

/// `MODE TYPE HASH<tab>PATH`
fn tree_line(line: &[u8]) -> Option<Changed> {
    let tab = line.iter().position(|b| *b == b'\t')?;
    let mut fields = std::str::from_utf8(&line[..tab]).ok()?.split(' ');
    let mode = Mode::from_octal(fields.next()?)?;
    let hash = Hash(fields.nth(1)?.into());
    Some(Changed { path: line[tab + 1..].to_vec(), now: Some((mode, hash)) })
}

/// `:OLDMODE NEWMODE OLDHASH NEWHASH STATUS`
fn raw_line(line: &str) -> Option<Option<(Mode, Hash)>> {
    let mut fields = line.strip_prefix(':')?.split(' ');
    let mode = fields.nth(1)?;
    let hash = fields.nth(1)?;
    let _status = fields.next()?;
    if mode == "000000" {
        return Some(None);
    }
    Some(Some((Mode::from_octal(mode)?, Hash(hash.into()))))
}

/// The commits, as git prints them.
pub(super) struct Log<'a> {
    repository: &'a Repository,
    child: Child,
    out: Option<BufReader<ChildStdout>>,
    next: Option<(Hash, i64)>,
}

/// No path is longer, and no field.
const FIELD_BYTES_MAX: u64 = 1 << 20;

impl Log<'_> {
    /// The next field, up to a NUL; `None` at the end.
    fn field(&mut self) -> Result<Option<Vec<u8>>, PlanError> {
        let Some(out) = &mut self.out else { return Ok(None) };
        let mut field = Vec::new();
        let n =
            out.take(FIELD_BYTES_MAX).read_until(0, &mut field).map_err(self.repository.failed("read from git log"))?;
        if n == 0 {
            self.out = None;
            let mut stderr = Vec::new();
            if let Some(mut err) = self.child.stderr.take() {
                let _ = err.read_to_end(&mut stderr);
            }
            let status = self.child.wait().map_err(self.repository.failed("wait for git log"))?;
            return if status.success() { Ok(None) } else { Err(self.repository.refused(&stderr)) };
        }
        if field.last() == Some(&0) {
            field.pop();
        }
        Ok(Some(field))
    }

    /// The next commit.
    pub(super) fn next(&mut self) -> Result<Option<Commit>, PlanError> {
        let mut current = self.next.take().map(|(hash, time_s)| Commit { hash, time_s, changed: Vec::new() });
        while let Some(field) = self.field()? {
            let start = field.iter().position(|b| *b != b'\n').unwrap_or(field.len());
            let text = std::str::from_utf8(&field[start..]).unwrap_or_default();
            let bad = || self.repository.malformed("git log", &field);
            if let Some(header) = text.strip_prefix('\u{1}') {
                let (hash, time) = header.trim_end().split_once(' ').ok_or_else(bad)?;
                let begun = (Hash(hash.into()), time.parse().map_err(|_| bad())?);
                if current.is_some() {
                    self.next = Some(begun);
                    return Ok(current);
                }
                current = Some(Commit { hash: begun.0, time_s: begun.1, changed: Vec::new() });
            } else if !text.is_empty() || start < field.len() {
                let now = raw_line(text).ok_or_else(bad)?;
                let path = self.field()?.ok_or_else(bad)?;
                current.as_mut().ok_or_else(bad)?.changed.push(Changed { path, now });
            }
        }
        Ok(current)
    }
}

impl Drop for Log<'_> {
    fn drop(&mut self) {
        if self.out.take().is_some() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Lengths of objects, asked a few hundred at a time: so many questions and answers fit into the pipes, and neither
/// side waits for the other for ever.
pub(super) struct Sizes<'a> {
    repository: &'a Repository,
    child: Child,
    input: Option<ChildStdin>,
    out: Option<BufReader<ChildStdout>>,
}

const ASKED_AT_ONCE: usize = 256;

impl Sizes<'_> {
    /// The objects of these names, in their order.
    pub(super) fn of(&mut self, hashes: &[&Hash]) -> Result<Vec<Object>, PlanError> {
        let failed = self.repository.failed("ask git cat-file");
        let mut objects = Vec::with_capacity(hashes.len());
        let (Some(input), Some(out)) = (&mut self.input, &mut self.out) else { return Ok(objects) };
        for some in hashes.chunks(ASKED_AT_ONCE) {
            let mut question = String::new();
            for hash in some {
                question.push_str(&hash.0);
                question.push('\n');
            }
            input.write_all(question.as_bytes()).and_then(|()| input.flush()).map_err(&failed)?;
            for hash in some {
                let mut line = String::new();
                out.read_line(&mut line).map_err(&failed)?;
                let object = answer(line.trim_end(), hash);
                objects.push(object.ok_or_else(|| self.repository.malformed("git cat-file", line.as_bytes()))?);
            }
        }
        Ok(objects)
    }
}

/// `NAME SIZE STORED BASE`
fn answer(line: &str, hash: &Hash) -> Option<Object> {
    let mut fields = line.split(' ');
    if fields.next()? != &*hash.0 {
        return None;
    }
    let bytes = fields.next()?.parse().ok()?;
    let stored: u64 = fields.next()?.parse().ok()?;
    let whole = fields.next()?.bytes().all(|b| b == b'0');
    Some(Object { bytes, stored_bytes: whole.then_some(stored) })
}

impl Drop for Sizes<'_> {
    fn drop(&mut self) {
        // Without input it ends by itself.
        self.input = None;
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_git_are_understood() {
        let hash = "0123456789012345678901234567890123456789";
        let line = format!(":100644 120000 {hash} {hash} T");
        assert_eq!(raw_line(&line), Some(Some((Mode::Symlink, Hash(hash.into())))));
        assert_eq!(raw_line(&format!(":100644 000000 {hash} {hash} D")), Some(None));
        for bad in ["", ":", ":100644", "100644 100644 a b M", ":100644 040000 a b M"] {
            assert_eq!(raw_line(bad), None, "{bad}");
        }
        let tree = tree_line(format!("100755 blob {hash}\ta b\n").as_bytes()).unwrap();
        assert_eq!((tree.path.as_slice(), tree.now), (&b"a b\n"[..], Some((Mode::File, Hash(hash.into())))));
        let object = answer(&format!("{hash} 10 7 0000"), &Hash(hash.into())).unwrap();
        assert_eq!(object, Object { bytes: 10, stored_bytes: Some(7) });
        assert_eq!(answer(&format!("{hash} missing"), &Hash(hash.into())), None);
    }
}
