//! A laboratory: a file system in virtual time, in the process.

use crate::errors::Raised;
use crate::interrupt::{Stop, long};
use crate::plan::Plan;
use crate::rows;
use crate::table::Table;
use crate::workload::json;
use aging::age::{self, AgeError, AgeOptions, Begin, Observer};
use lab::{Laboratory, Spec};
use layout::SurveyOptions;
use posix::{Call, Errno, Extent, Fd, FileKind, FileSystem, Mode, OpenFlags, Outcome};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// How much of a file's content is read at a time, bytes.
const CONTENT_AT_A_TIME: usize = 1 << 20;

/// What a call answered, and how long it took in virtual time, nanoseconds.
type Timed<T> = (T, u64);

/// A file system on a drive and a machine. Calls of several threads take turns.
#[pyclass(frozen, module = "fsage._fsage")]
pub struct Lab {
    /// As it was asked for.
    #[pyo3(get)]
    target: String,
    /// `None` once it is unmounted.
    open: Mutex<Option<Box<dyn Laboratory>>>,
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

impl Lab {
    /// Lets something happen on it, once nobody else's does.
    fn locked<T>(&self, act: impl FnOnce(&mut dyn Laboratory) -> Result<T, Raised>) -> Result<T, Raised> {
        // A call that panicked has left it in no known state.
        let broken = |_: PoisonError<_>| Raised::usage(format!("{}: a call on it has failed badly", self.target));
        let mut open = self.open.lock().map_err(broken)?;
        match open.as_mut() {
            Some(lab) => act(&mut **lab),
            None => Err(Raised::usage(format!("{}: is unmounted", self.target))),
        }
    }

    /// The same without the interpreter's lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut dyn Laboratory) -> Result<T, Raised> + Send,
    ) -> Result<T, Raised> {
        py.detach(|| self.locked(act))
    }

    fn call<T: Send>(
        &self,
        py: Python<'_>,
        what: &str,
        call: &Call<'_>,
        answer: impl FnOnce(&Outcome) -> Result<T, Errno> + Send,
    ) -> Result<Timed<T>, Raised> {
        self.with(py, |lab| {
            let outcome = lab.call(call);
            Ok((answer(&outcome).map_err(|errno| Raised::call(what, errno))?, outcome.dur_ns))
        })
    }

    fn done(&self, py: Python<'_>, what: &str, call: &Call<'_>) -> Result<u64, Raised> {
        Ok(self.call(py, what, call, |outcome| outcome.result)?.1)
    }
}

/// The flags of a list of words.
fn flags(words: &[String]) -> Result<OpenFlags, Raised> {
    let mut flags = OpenFlags::default();
    for word in words {
        let flag = match word.as_str() {
            "read" => &mut flags.read,
            "write" => &mut flags.write,
            "create" => &mut flags.create,
            "exclusive" => &mut flags.exclusive,
            "truncate" => &mut flags.truncate,
            "append" => &mut flags.append,
            "directory" => &mut flags.directory,
            "nofollow" => &mut flags.nofollow,
            "direct" => &mut flags.direct,
            "sync" => &mut flags.sync,
            "dsync" => &mut flags.dsync,
            "noatime" => &mut flags.noatime,
            other => return Err(Raised::usage(format!("{other:?} is no flag of open"))),
        };
        *flag = true;
    }
    Ok(flags)
}

fn kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Symlink => "symlink",
        FileKind::Special => "special",
    }
}

fn extents(found: &[Extent]) -> Table {
    let rows: Vec<Value> = found
        .iter()
        .map(
            |e| json!({"logical_bytes": e.logical_bytes, "physical_bytes": e.physical_bytes, "len_bytes": e.len_bytes}),
        )
        .collect();
    Table::new(rows::table(&rows))
}

#[pymethods]
impl Lab {
    #[new]
    fn open_target(py: Python<'_>, target: String) -> Result<Lab, Raised> {
        let spec = Spec::parse(&target).map_err(|wrong| Raised::usage(wrong.to_string()))?;
        let lab = py.detach(|| spec.open())?;
        Ok(Lab { target, open: Mutex::new(Some(lab)) })
    }

    /// Another in just this state.
    fn duplicate(&self, py: Python<'_>) -> Result<Lab, Raised> {
        let another = self
            .with(py, |lab| lab.another().ok_or_else(|| Raised::usage("it is watched, and there is only one such")))?;
        Ok(Lab { target: self.target.clone(), open: Mutex::new(Some(another)) })
    }

    /// Writes everything back, and the file system into a new image where one is named. Nothing can be called after it.
    #[pyo3(signature = (image = None))]
    fn unmount(&self, py: Python<'_>, image: Option<PathBuf>) -> Result<(), Raised> {
        py.detach(|| {
            let taken = self.open.lock().map(|mut open| open.take()).unwrap_or_default();
            let lab = taken.ok_or_else(|| Raised::usage(format!("{}: is unmounted", self.target)))?;
            Ok(lab.unmount(image.as_deref())?)
        })
    }

    #[getter]
    fn is_open(&self) -> bool {
        self.open.lock().is_ok_and(|open| open.is_some())
    }

    fn now_ns(&self, py: Python<'_>) -> Result<u64, Raised> {
        self.with(py, |lab| Ok(lab.now_ns()))
    }

    fn date_ns(&self, py: Python<'_>) -> Result<i64, Raised> {
        self.with(py, |lab| Ok(lab.date_ns()))
    }

    fn pause_ns(&self, py: Python<'_>, ns: u64) -> Result<(), Raised> {
        self.with(py, |lab| {
            lab.pause_ns(ns);
            Ok(())
        })
    }

    fn open(&self, py: Python<'_>, path: PathBuf, words: Vec<String>, mode: u16) -> Result<Timed<u32>, Raised> {
        let call = Call::Open { at: path.as_path().into(), flags: flags(&words)?, mode: Mode(mode) };
        self.call(py, &format!("open {}", shown(&path)), &call, |outcome| Ok(outcome.fd()?.0))
    }

    fn close(&self, py: Python<'_>, fd: u32) -> Result<u64, Raised> {
        self.done(py, "close", &Call::Close { fd: Fd(fd) })
    }

    #[pyo3(signature = (fd, len_bytes, offset = None))]
    fn read(&self, py: Python<'_>, fd: u32, len_bytes: u64, offset: Option<u64>) -> Result<Timed<u64>, Raised> {
        self.call(py, "read", &Call::Read { fd: Fd(fd), offset, len_bytes }, Outcome::count)
    }

    #[pyo3(signature = (fd, len_bytes, offset = None, data = None))]
    fn write(
        &self,
        py: Python<'_>,
        fd: u32,
        len_bytes: u64,
        offset: Option<u64>,
        data: Option<&[u8]>,
    ) -> Result<Timed<u64>, Raised> {
        self.call(py, "write", &Call::Write { fd: Fd(fd), offset, len_bytes, data }, Outcome::count)
    }

    fn fsync(&self, py: Python<'_>, fd: u32, data_only: bool) -> Result<u64, Raised> {
        let fd = Fd(fd);
        let call = if data_only { Call::Fdatasync { fd } } else { Call::Fsync { fd } };
        self.done(py, "fsync", &call)
    }

    fn sync(&self, py: Python<'_>) -> Result<u64, Raised> {
        self.done(py, "sync", &Call::SyncFs)
    }

    fn truncate(&self, py: Python<'_>, path: PathBuf, len_bytes: u64) -> Result<u64, Raised> {
        let what = format!("truncate {}", shown(&path));
        self.done(py, &what, &Call::Truncate { at: path.as_path().into(), len_bytes })
    }

    fn ftruncate(&self, py: Python<'_>, fd: u32, len_bytes: u64) -> Result<u64, Raised> {
        self.done(py, "ftruncate", &Call::Ftruncate { fd: Fd(fd), len_bytes })
    }

    fn mkdir(&self, py: Python<'_>, path: PathBuf, mode: u16) -> Result<u64, Raised> {
        let what = format!("mkdir {}", shown(&path));
        self.done(py, &what, &Call::Mkdir { at: path.as_path().into(), mode: Mode(mode) })
    }

    fn rmdir(&self, py: Python<'_>, path: PathBuf) -> Result<u64, Raised> {
        self.done(py, &format!("rmdir {}", shown(&path)), &Call::Rmdir { at: path.as_path().into() })
    }

    fn unlink(&self, py: Python<'_>, path: PathBuf) -> Result<u64, Raised> {
        self.done(py, &format!("unlink {}", shown(&path)), &Call::Unlink { at: path.as_path().into() })
    }

    fn rename(&self, py: Python<'_>, old: PathBuf, new: PathBuf) -> Result<u64, Raised> {
        let what = format!("rename {} {}", shown(&old), shown(&new));
        let (from, to) = (old.as_path().into(), new.as_path().into());
        self.done(py, &what, &Call::Rename { from, to, noreplace: false, exchange: false })
    }

    fn link(&self, py: Python<'_>, old: PathBuf, new: PathBuf) -> Result<u64, Raised> {
        let what = format!("link {} {}", shown(&old), shown(&new));
        let (from, to) = (old.as_path().into(), new.as_path().into());
        self.done(py, &what, &Call::Link { from, to, follow: false })
    }

    fn symlink(&self, py: Python<'_>, target: PathBuf, path: PathBuf) -> Result<u64, Raised> {
        let what = format!("symlink {}", shown(&path));
        self.done(py, &what, &Call::Symlink { target: &target, at: path.as_path().into() })
    }

    /// The attributes as JSON.
    fn stat(&self, py: Python<'_>, path: PathBuf, follow: bool) -> Result<Timed<String>, Raised> {
        let call = Call::Stat { at: path.as_path().into(), follow };
        let (stat, ns) = self.call(py, &format!("stat {}", shown(&path)), &call, Outcome::stat)?;
        let fields = json!({
            "ino": stat.ino, "kind": kind(stat.kind), "mode": stat.mode.0, "uid": stat.uid, "gid": stat.gid,
            "nlink": stat.nlink,
            "size_bytes": stat.size_bytes, "allocated_bytes": stat.allocated_bytes, "atime_ns": stat.atime_ns,
            "mtime_ns": stat.mtime_ns, "ctime_ns": stat.ctime_ns,
        });
        Ok((fields.to_string(), ns))
    }

    /// The names in an open directory and what they are, without time passing.
    fn entries(&self, py: Python<'_>, fd: u32) -> Result<Vec<(std::ffi::OsString, &'static str)>, Raised> {
        self.with(py, |lab| {
            let found = lab.entries(Fd(fd)).map_err(|errno| Raised::call("read the directory", errno))?;
            Ok(found.into_iter().map(|(name, of)| (name, kind(of))).collect())
        })
    }

    /// Reads an open directory to its end as programs do, and says how long that took.
    fn scan(&self, py: Python<'_>, fd: u32) -> Result<u64, Raised> {
        /// What the C library asks for at a time.
        const BUFFER_BYTES: u64 = 32 << 10;
        let mut ns = 0;
        loop {
            let call = Call::GetDents { fd: Fd(fd), len_bytes: BUFFER_BYTES };
            let (bytes, took_ns) = self.call(py, "read the directory", &call, Outcome::count)?;
            ns += took_ns;
            if bytes == 0 {
                return Ok(ns);
            }
        }
    }

    /// Bytes of an open file, without time passing.
    fn content(&self, py: Python<'_>, fd: u32, offset: u64, len_bytes: usize) -> Result<Vec<u8>, Raised> {
        self.with(py, |lab| {
            // As much as there is, whatever was asked for: a terabyte that is not there ended Python.
            let mut bytes = Vec::new();
            while bytes.len() < len_bytes {
                let at = bytes.len();
                bytes.resize(at + (len_bytes - at).min(CONTENT_AT_A_TIME), 0);
                let place = offset.saturating_add(at as u64);
                let some = bytes.get_mut(at..).unwrap_or_default();
                let read = lab.read_into(Fd(fd), place, some).map_err(|errno| Raised::call("read", errno))?;
                bytes.truncate(at + read);
                if read == 0 {
                    break;
                }
            }
            Ok(bytes)
        })
    }

    fn drop_caches(&self, py: Python<'_>) -> Result<(), Raised> {
        self.with(py, |lab| Ok(lab.drop_caches().map(drop)?))
    }

    fn evict(&self, py: Python<'_>, fd: u32) -> Result<(), Raised> {
        self.with(py, |lab| Ok(lab.evict(Fd(fd)).map(drop)?))
    }

    /// Where an open file's data lies.
    fn extents(&self, py: Python<'_>, fd: u32) -> Result<Table, Raised> {
        let found = self.with(py, |lab| lab.extents(Fd(fd)).map_err(|why| Raised::usage(why.to_string())))?;
        Ok(extents(&found))
    }

    /// The free space, in the order of addresses.
    fn free_extents(&self, py: Python<'_>) -> Result<Table, Raised> {
        let found = self.with(py, |lab| lab.free_extents().map_err(|why| Raised::usage(why.to_string())))?;
        let rows: Vec<Value> =
            found.iter().map(|e| json!({"physical_bytes": e.physical_bytes, "len_bytes": e.len_bytes})).collect();
        Ok(Table::new(rows::table(&rows)))
    }

    /// Space and inodes as JSON.
    fn usage(&self, py: Python<'_>) -> Result<String, Raised> {
        json(&self.with(py, |lab| Ok(lab.usage()?))?)
    }

    /// How it was made, in the words of the targets' grammar.
    fn made(&self, py: Python<'_>) -> Result<String, Raised> {
        self.with(py, |lab| Ok(lab.made()))
    }

    /// What went on below the calls, as JSON.
    fn counters(&self, py: Python<'_>) -> Result<String, Raised> {
        let c = self.with(py, |lab| Ok(lab.counters()))?;
        let counters = json!({
            "cache": {"hits": c.cache.hits, "misses": c.cache.misses, "prefetched": c.cache.prefetched,
                "evicted": c.cache.evicted},
            "names": {"hits": c.names.hits, "misses": c.names.misses},
            "device": {
                "reads": c.device.reads, "read_bytes": c.device.read_bytes, "writes": c.device.writes,
                "write_bytes": c.device.write_bytes, "flushes": c.device.flushes, "discards": c.device.discards,
                "discarded_bytes": c.device.discarded_bytes,
            },
            "busy": {"processors_ns": c.busy.processors_ns, "device_ns": c.busy.device_ns},
        });
        Ok(counters.to_string())
    }

    /// Layout and free space, as JSON (the schema of `fsage layout`).
    fn survey(&self, py: Python<'_>, hot_days: f64, worst_files: usize, map: Option<u32>) -> PyResult<String> {
        let map = map.map(|side| {
            layout::MapOrder::of_side(side)
                .ok_or_else(|| Raised::usage(format!("map={side}: a power of two up to 1024")))
        });
        let options =
            SurveyOptions { hot_days: Some(hot_days), worst_files, map: map.transpose()?, taken_unix_s: None };
        let survey =
            long(py, |stop| self.locked(|lab| Ok(layout::survey_handle(lab, &options, &mut |_| !stop.requested())?)))?;
        Ok(json(&survey)?)
    }

    /// Replays an aging plan. The result of it as JSON, and surveys on the way as JSON, each with its day.
    fn age(
        &self,
        py: Python<'_>,
        plan: &Plan,
        days: Option<u32>,
        survey_days: Option<f64>,
        seed: u64,
    ) -> PyResult<(String, Vec<String>)> {
        long(py, |stop| {
            self.locked(|lab| {
                let usage = lab.usage()?;
                let (room, note) = age::room(plan.reader.meta(), &usage, &self.target, true, None)?;
                let options = AgeOptions { days, survey_days, seed, room, ..AgeOptions::default() };
                let plan_identity = age::identity(plan.reader.path())?;
                let begin = Begin { plan: plan_identity, groups: layout::groups_of_handle(&*lab), resume: None };
                let mut watch = Watch { stop, plan, surveys: Vec::new() };
                let mut fs: &mut dyn Laboratory = lab;
                let mut result = age::age(&mut fs, &plan.reader, &options, begin, &mut watch)?;
                result.notes.extend(note);
                Ok((json(&result)?, watch.surveys))
            })
        })
    }
}

/// Takes surveys of a laboratory that is aged, and ends it when asked to.
struct Watch<'a> {
    stop: &'a Stop,
    plan: &'a Plan,
    surveys: Vec<String>,
}

impl<F: FileSystem> Observer<F> for Watch<'_> {
    fn progress(&mut self, at: &age::Progress) -> Result<(), AgeError> {
        if !self.stop.requested() {
            return Ok(());
        }
        let day = u32::try_from(at.simulated_ns / aging::DAY_NS).unwrap_or(u32::MAX);
        Err(AgeError::Interrupted { day, days: self.plan.reader.meta().days, operations: at.operations })
    }

    fn survey(&mut self, fs: &mut F, simulated_ns: u64) -> Result<(), AgeError> {
        let failed = |source| AgeError::Survey { doing: "cannot survey the laboratory", source };
        let survey = layout::survey_handle(fs, &SurveyOptions::default(), &mut |_| true).map_err(failed)?;
        let day = simulated_ns as f64 / aging::DAY_NS as f64;
        self.surveys.push(json!({ "day": day, "survey": survey }).to_string());
        Ok(())
    }
}
