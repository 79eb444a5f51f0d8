//! Reading a Geriatrix profile: three text files of weights by age, size and depth.
//!
//! Each file is a count line and that many rows; whatever follows (the published ones explain their format there) is
//! ignored.

use crate::format::Input;
use crate::plan::PlanError;
use std::path::{Path, PathBuf};

/// Weight of the files up to an age. Ages have no unit: the oldest is the age of the file system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgeRow {
    /// Upper end of the class.
    pub age: f64,
    /// Weight of its files.
    pub weight: f64,
}

/// Weight of the files of a size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeRow {
    /// The size, bytes.
    pub bytes: u64,
    /// Weight of its files.
    pub weight: f64,
}

/// Weight of the files at a depth, and how many directories there are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DirRow {
    /// Depth of the directories; the root has 0.
    pub depth: u32,
    /// Weight of the files in them.
    pub weight: f64,
    /// Number of directories at this depth.
    pub directories: u32,
}

/// A profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Name of its directory.
    pub name: String,
    /// By age, ascending.
    pub ages: Vec<AgeRow>,
    /// By size, ascending.
    pub sizes: Vec<SizeRow>,
    /// By depth, ascending.
    pub dirs: Vec<DirRow>,
    /// The three files.
    pub inputs: Vec<Input>,
}

/// The files of a profile, in the order age, size, directories.
pub const FILES: [&str; 3] = ["age_distribution.txt", "size_distribution.txt", "dir_distribution.txt"];

/// More than any profile has; a larger file is none.
const FILE_BYTES_MAX: u64 = 16 << 20;
const ROWS_MAX: usize = 100_000;
/// Paths of deeper trees do not fit what POSIX systems take (PATH_MAX).
const DEPTH_MAX: f64 = 200.0;
const DIRECTORIES_MAX: f64 = 10_000_000.0;

impl Profile {
    /// Reads the directory of a profile.
    ///
    /// # Errors
    /// [`PlanError::Io`]; [`PlanError::Input`] naming file and line.
    pub fn read(directory: &Path) -> Result<Profile, PlanError> {
        let name = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let name = name.file_name().map_or_else(|| "profile".to_owned(), |n| n.to_string_lossy().into_owned());
        let mut inputs = Vec::new();
        let mut texts = Vec::new();
        for file in FILES {
            let path = directory.join(file);
            let text = read_text(&path)?;
            let crc32c = format!("{:08x}", crc32c::crc32c(text.as_bytes()));
            inputs.push(Input { name: file.to_owned(), bytes: text.len() as u64, crc32c });
            texts.push((path, text));
        }
        let [(age_path, ages), (size_path, sizes), (dir_path, dirs)] = &texts[..] else {
            return Err(PlanError::input(directory, "directory", "three files are expected"));
        };
        Ok(Profile {
            name,
            ages: parse_ages(age_path, ages)?,
            sizes: parse_sizes(size_path, sizes)?,
            dirs: parse_dirs(dir_path, dirs)?,
            inputs,
        })
    }
}

fn read_text(path: &Path) -> Result<String, PlanError> {
    let io = fault::refused(path, "read this file of a Geriatrix profile");
    let bytes = posix::input::read(path, FILE_BYTES_MAX).map_err(io)?;
    String::from_utf8(bytes).map_err(|e| {
        PlanError::input(path, format!("byte {}", e.utf8_error().valid_up_to()), "is no text: expected numbers")
    })
}

/// The rows of a file: line number and `N` numbers each.
struct Rows<const N: usize> {
    path: PathBuf,
    rows: Vec<(usize, [f64; N])>,
}

impl<const N: usize> Rows<N> {
    fn parse(path: &Path, text: &str, columns: &str) -> Result<Rows<N>, PlanError> {
        let bad = |line: usize, message: String| PlanError::input(path, format!("line {line}"), message);
        let mut lines = text.lines().enumerate().map(|(i, l)| (i + 1, l.trim())).filter(|(_, l)| !l.is_empty());
        let expected = "the number of rows is expected here";
        let (line, first) = lines.next().ok_or_else(|| bad(1, expected.into()))?;
        let count: usize = first.parse().map_err(|_| bad(line, format!("{first:?}: {expected}")))?;
        if !(1..=ROWS_MAX).contains(&count) {
            return Err(bad(line, format!("{count} rows are not in 1 to {ROWS_MAX}")));
        }
        let mut rows = Vec::with_capacity(count);
        for i in 0..count {
            let Some((line, text)) = lines.next() else {
                return Err(bad(line, format!("{count} rows are promised here; the file ends after {i}")));
            };
            let numbers: Vec<f64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
            let exact = text.split_whitespace().count() == N;
            let row = <[f64; N]>::try_from(numbers).ok().filter(|_| exact);
            let row = row.ok_or_else(|| {
                bad(line, format!("{text:?}: row {} of {count} should be `{columns}`, {N} numbers", i + 1))
            })?;
            if let Some(x) = row.iter().find(|x| !(x.is_finite() && **x >= 0.0)) {
                return Err(bad(line, format!("{x} is not a number of 0 or more")));
            }
            if let Some((_, before)) = rows.last().filter(|(_, before): &&(usize, [f64; N])| row[0] <= before[0]) {
                return Err(bad(line, format!("{} does not follow {} in ascending order", row[0], before[0])));
            }
            rows.push((line, row));
        }
        if !rows.iter().any(|(_, row)| row[1] > 0.0) {
            return Err(bad(line, "all weights below are 0".into()));
        }
        Ok(Rows { path: path.to_owned(), rows })
    }

    /// The rows, where each is as `valid` says.
    fn all(self, valid: impl Fn(&[f64; N]) -> Result<(), String>) -> Result<Vec<[f64; N]>, PlanError> {
        for (line, row) in &self.rows {
            valid(row).map_err(|message| PlanError::input(&self.path, format!("line {line}"), message))?;
        }
        Ok(self.rows.into_iter().map(|(_, row)| row).collect())
    }
}

fn whole(what: &str, x: f64, max: f64) -> Result<(), String> {
    if x.fract() == 0.0 && x <= max { Ok(()) } else { Err(format!("{what} {x} is not a whole number up to {max}")) }
}

fn weight(x: f64) -> Result<(), String> {
    if x <= 1e15 { Ok(()) } else { Err(format!("weight {x} is above 1e15")) }
}

/// Parses `age weight` rows.
pub fn parse_ages(path: &Path, text: &str) -> Result<Vec<AgeRow>, PlanError> {
    let rows = Rows::<2>::parse(path, text, "age weight")?;
    let rows = rows.all(|[age, w]| {
        if *age > 0.0 && *age <= 1e15 { weight(*w) } else { Err(format!("age {age} is not above 0 and at most 1e15")) }
    })?;
    Ok(rows.into_iter().map(|[age, weight]| AgeRow { age, weight }).collect())
}

/// Parses `size weight` rows.
pub fn parse_sizes(path: &Path, text: &str) -> Result<Vec<SizeRow>, PlanError> {
    let rows = Rows::<2>::parse(path, text, "size weight")?;
    let rows = rows.all(|[size, w]| whole("size", *size, 2f64.powi(53)).and(weight(*w)))?;
    Ok(rows.into_iter().map(|[bytes, weight]| SizeRow { bytes: bytes as u64, weight }).collect())
}

/// Parses `depth weight directories` rows.
pub fn parse_dirs(path: &Path, text: &str) -> Result<Vec<DirRow>, PlanError> {
    let rows = Rows::<3>::parse(path, text, "depth weight subdirs")?;
    let rows = rows.all(|[depth, w, n]| {
        whole("depth", *depth, DEPTH_MAX).and(weight(*w)).and(whole("number of directories", *n, DIRECTORIES_MAX))
    })?;
    let row = |[depth, weight, n]: [f64; 3]| DirRow { depth: depth as u32, weight, directories: n as u32 };
    Ok(rows.into_iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_and_the_rest_is_not() {
        let path = Path::new("x/age_distribution.txt");
        let ages = parse_ages(path, "2\n10.74 1\n\n31 2\n\nFormat:\n<number>\n").expect("a good file");
        assert_eq!(ages, [AgeRow { age: 10.74, weight: 1.0 }, AgeRow { age: 31.0, weight: 2.0 }]);
        let dirs = parse_dirs(path, "1\n0 1 0").expect("a good file");
        assert_eq!(dirs, [DirRow { depth: 0, weight: 1.0, directories: 0 }]);
    }

    #[test]
    fn errors_name_file_and_line() {
        let path = Path::new("x/size_distribution.txt");
        for (text, line, says) in [
            ("", 1, "number of rows"),
            ("ten\n", 1, "number of rows"),
            ("0\n", 1, "not in 1"),
            ("2\n1 1\n", 1, "ends after 1"),
            ("2\n1 1\nFormat:\n", 3, "row 2 of 2"),
            ("1\n1\n", 2, "2 numbers"),
            ("1\n1 2 3\n", 2, "2 numbers"),
            ("1\n1 -2\n", 2, "0 or more"),
            ("1\nnan 1\n", 2, "0 or more"),
            ("2\n5 1\n5 1\n", 3, "ascending"),
            ("1\n5 0\n", 1, "weights"),
            ("1\n5.5 1\n", 2, "whole number"),
            ("1\n5 1e30\n", 2, "1e15"),
        ] {
            let error = parse_sizes(path, text).expect_err(text).to_string();
            assert!(error.contains(&format!("x/size_distribution.txt: line {line}: ")), "{text:?}: {error}");
            assert!(error.contains(says), "{text:?}: {error}");
        }
        assert!(parse_ages(path, "1\n0 1").is_err());
        assert!(parse_dirs(path, "1\n1.5 1 1").is_err());
        assert!(parse_dirs(path, "1\n1000 1 1").is_err());
    }
}
