//! The text format of the thesis' system vectors: one `name value` per line, `#` comments.
//!
//! Units are the thesis': sizes `bc` in KB, `bs` and `fs` in bytes, `nc` in names, `mdc` in files; latencies in ms;
//! throughputs in KB/s (1 KB = 1024 bytes); `wr_<load>` in seconds with the load in KB/s; the sizes in its names are
//! KB, in ours bytes. How its names map to ours:
//!
//! | thesis | ours | |
//! |---|---|---|
//! | `bc nc mdc bs fs` | parameters | |
//! | `lus_bc lur_bc` | `lu_bc` | written twice; read as their mean |
//! | `lus_nc lur_nc lus_ac lur_ac` | same | |
//! | `rdo wro` | same | |
//! | `rdc` | `rdc_<size>` | latency = `rdo` + size / throughput |
//! | `wrc` | `wrc_<size>`, and `wra_<size>` when read | latency = `wro` + size / throughput |
//! | `rd_<size> rrd_<size>` | same | latency = size / throughput |
//! | `open cr stat mkdir rmdir rename chmod` | same | |
//! | `rm` | `rm_0`, `rmd_0`, `rmu_0` | |
//! | `tr_<size>` | `trc_<size>`; when read also `rm_<size>` and `rmd_<size>` | cached; unlink = truncate + `rm` |
//! | `trc_<size>` | `tr_<size>`; when read also `rmu_<size>` | uncached; the names are the other way round |
//! | `wr_<load>` | write load curve | |
//!
//! Our other entries have no name there and are not written; the thesis says nothing of fsync, so a profile read from
//! it cannot price one.

use super::{Entry, FORMAT_VERSION, Parameters, SystemProfile, WriteLoad};
use crate::vector::{Class, entry_name};
use fault::{Fault, Kind};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const KB: f64 = 1024.0;
const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;
/// The request size that a cached throughput is computed from: large, so that the call's overhead hardly counts.
const THROUGHPUT_BYTES: u64 = 1 << 20;
/// Latencies of one call, by the same name in both.
const LATENCIES: &[Class] = &[
    Class::LookupSeqMiss,
    Class::LookupRandMiss,
    Class::LookupSeqAttrHit,
    Class::LookupRandAttrHit,
    Class::ReadOverhead,
    Class::WriteOverhead,
    Class::Open,
    Class::Create,
    Class::Stat,
    Class::Mkdir,
    Class::Rmdir,
    Class::Rename,
    Class::Chmod,
];

/// Why a text is not a system vector of the thesis. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}:{line}: {problem}", path.display())]
pub struct ThesisError {
    /// The file.
    pub path: PathBuf,
    /// The line; 0 where the file as a whole is meant.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
}

impl Fault for ThesisError {
    fn kind(&self) -> Kind {
        Kind::BadInput
    }
}

/// Writes what of a profile the thesis' format can say.
pub fn export(profile: &SystemProfile) -> String {
    let mut out = Lines(format!("# {}\n# {}\n", one_line(&profile.name), one_line(&profile.provenance)));
    let p = &profile.parameters;
    out.put("bc", p.data_cache_bytes as f64 / KB);
    for (name, value) in [("nc", p.name_cache_entries), ("mdc", p.attribute_cache_files)] {
        if value > 0 {
            out.put(name, value as f64);
        }
    }
    out.put("bs", f64::from(p.block_bytes));
    out.put("fs", f64::from(p.fragment_bytes));
    let mean = |class, at| profile.entries.get(&entry_name(class, at)).map(|entry| entry.mean_ns);
    if let Some(ns) = mean(Class::LookupHit, 0) {
        out.put("lus_bc", ns / NS_PER_MS);
        out.put("lur_bc", ns / NS_PER_MS);
    }
    for &class in LATENCIES {
        if let Some(ns) = mean(class, 0) {
            out.put(class.name(), ns / NS_PER_MS);
        }
    }
    if let Some(ns) = mean(Class::Remove, 0) {
        out.put("rm", ns / NS_PER_MS);
    }
    for (class, overhead) in [(Class::ReadCached, Class::ReadOverhead), (Class::WriteCached, Class::WriteOverhead)] {
        let moving = mean(class, THROUGHPUT_BYTES).map(|ns| ns - mean(overhead, 0).unwrap_or(0.0));
        if let Some(ns) = moving.filter(|&ns| ns > 0.0) {
            out.put(class.name(), throughput(THROUGHPUT_BYTES, ns));
        }
    }
    for (name, entry) in ordered(profile) {
        let (class, at) = name;
        match class {
            Class::ReadSeq | Class::ReadRand if at > 0 && entry.mean_ns > 0.0 => {
                out.put(&sized_name(class.name(), at), throughput(at, entry.mean_ns));
            }
            Class::TruncateCached => out.put(&sized_name("tr", at), entry.mean_ns / NS_PER_MS),
            Class::TruncateUncached => out.put(&sized_name("trc", at), entry.mean_ns / NS_PER_MS),
            _ => {}
        }
    }
    for point in &profile.write_load {
        out.put(&format!("wr_{}", point.load_bytes_per_s / KB), point.time_s);
    }
    out.0
}

struct Lines(String);

impl Lines {
    fn put(&mut self, name: &str, value: f64) {
        // A String takes whatever is written to it.
        let _ = writeln!(self.0, "{name} {value}");
    }
}

fn one_line(text: &str) -> String {
    text.replace(units::text::is_hidden, " ")
}

fn throughput(bytes: u64, ns: f64) -> f64 {
    bytes as f64 / KB / (ns / NS_PER_S)
}

fn ordered(profile: &SystemProfile) -> Vec<((Class, u64), &Entry)> {
    let mut entries: Vec<_> =
        profile.entries.iter().filter_map(|(name, e)| Some((crate::vector::parse_entry_name(name)?, e))).collect();
    entries.sort_by_key(|&(key, _)| key);
    entries
}

/// Reads a system vector of the thesis. `path` is what errors name, and its stem the profile's name.
pub fn import(text: &str, path: &Path) -> Result<SystemProfile, ThesisError> {
    let wrong = |line, problem: String| ThesisError { path: path.to_owned(), line, problem };
    let mut values: BTreeMap<String, f64> = BTreeMap::new();
    for (number, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        let content = line.split_once('#').map_or(line, |(before, _)| before).trim();
        if content.is_empty() {
            continue;
        }
        let fields: Vec<&str> = content.split_whitespace().collect();
        let [name, value] = fields[..] else {
            return Err(wrong(number, format!("expected a name and a value, found {} fields", fields.len())));
        };
        let value = value.parse().ok().filter(|v: &f64| v.is_finite() && *v >= 0.0);
        let value = value.ok_or_else(|| wrong(number, format!("the value of {name} is not a number of 0 or more")))?;
        check_name(name, value).map_err(|problem| wrong(number, problem))?;
        if values.insert(name.to_owned(), value).is_some() {
            return Err(wrong(number, format!("{name} is given twice")));
        }
    }
    if values.is_empty() {
        return Err(wrong(0, "no value in it: not a system vector".to_owned()));
    }
    let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let mut profile = SystemProfile {
        format_version: FORMAT_VERSION,
        name,
        provenance: "imported from the thesis' text format".to_owned(),
        parameters: parameters(&values),
        ..SystemProfile::default()
    };
    import_entries(&values, &mut profile);
    import_write_load(&values, &mut profile).map_err(|problem| wrong(0, problem))?;
    profile.validate().map_err(|(what, problem)| wrong(0, format!("{what}: {problem}")))?;
    Ok(profile)
}

/// The stem of a name that ends in a size in KB, and that size in bytes.
fn sized(name: &str) -> Option<(&str, u64)> {
    let (stem, size) = name.rsplit_once('_')?;
    let kb: f64 = size.parse().ok().filter(|kb: &f64| kb.is_finite() && *kb >= 0.0)?;
    // Beyond 2^64 it saturates, which no file reaches.
    Some((stem, (kb * KB).round() as u64))
}

/// The other way round.
fn sized_name(stem: &str, bytes: u64) -> String {
    format!("{stem}_{}", bytes as f64 / KB)
}

fn check_name(name: &str, value: f64) -> Result<(), String> {
    let single = ["bc", "nc", "mdc", "bs", "fs", "lus_bc", "lur_bc", "rdc", "wrc", "rm"];
    let divides = ["rdc", "wrc"].contains(&name) || matches!(sized(name), Some(("rd" | "rrd", _)));
    let known = single.contains(&name)
        || LATENCIES.iter().any(|class| class.name() == name)
        || matches!(sized(name), Some(("rd" | "rrd" | "tr" | "trc", _)))
        || name.strip_prefix("wr_").is_some_and(|load| load.parse::<f64>().is_ok_and(|l| l.is_finite() && l >= 0.0));
    if !known {
        return Err(format!("{name} is not a name of the thesis' system vector"));
    }
    if divides && value == 0.0 {
        return Err(format!("the throughput {name} is 0"));
    }
    Ok(())
}

fn parameters(values: &BTreeMap<String, f64>) -> Parameters {
    let get = |name: &str| values.get(name).copied();
    let default = Parameters::default();
    // Float to integer conversions saturate; validation refuses what is out of range.
    let block_bytes = get("bs").map_or(default.block_bytes, |v| v as u32);
    Parameters {
        data_cache_bytes: get("bc").map_or(0, |kb| (kb * KB).round() as u64),
        data_cache_is_lower_bound: !values.contains_key("bc"),
        name_cache_entries: get("nc").map_or(0, |v| v as u64),
        attribute_cache_files: get("mdc").map_or(0, |v| v as u64),
        block_bytes,
        fragment_bytes: get("fs").map_or(block_bytes, |v| v as u32),
        ..default
    }
}

fn import_entries(values: &BTreeMap<String, f64>, profile: &mut SystemProfile) {
    let get = |name: &str| values.get(name).copied();
    let mut put = |class: Class, at: u64, ns: f64| {
        profile.entries.insert(entry_name(class, at), Entry::exactly(ns));
    };
    let hits: Vec<f64> = ["lus_bc", "lur_bc"].into_iter().filter_map(get).collect();
    if !hits.is_empty() {
        put(Class::LookupHit, 0, hits.iter().sum::<f64>() / hits.len() as f64 * NS_PER_MS);
    }
    for &class in LATENCIES {
        if let Some(ms) = get(class.name()) {
            put(class, 0, ms * NS_PER_MS);
        }
    }
    for (name, overhead, classes) in
        [("rdc", "rdo", &[Class::ReadCached][..]), ("wrc", "wro", &[Class::WriteCached, Class::WriteAppend])]
    {
        let Some(kb_per_s) = get(name) else { continue };
        let overhead_ns = get(overhead).unwrap_or(0.0) * NS_PER_MS;
        for &class in classes {
            for &at in class.points() {
                put(class, at, overhead_ns + at as f64 / KB / kb_per_s * NS_PER_S);
            }
        }
    }
    let removal_ns = get("rm").map(|ms| ms * NS_PER_MS);
    for (class, at) in [Class::Remove, Class::RemoveDirty, Class::RemoveUncached].map(|class| (class, 0)) {
        if let Some(ns) = removal_ns {
            put(class, at, ns);
        }
    }
    for (name, &value) in values {
        let Some((stem, at)) = sized(name) else { continue };
        let latency_ns = value * NS_PER_MS;
        match stem {
            "rd" => put(Class::ReadSeq, at, at as f64 / KB / value * NS_PER_S),
            "rrd" => put(Class::ReadRand, at, at as f64 / KB / value * NS_PER_S),
            "tr" => put(Class::TruncateCached, at, latency_ns),
            "trc" => put(Class::TruncateUncached, at, latency_ns),
            _ => {}
        }
        let Some(removal_ns) = removal_ns.filter(|_| at > 0) else { continue };
        match stem {
            "trc" => put(Class::RemoveUncached, at, latency_ns + removal_ns),
            "tr" => {
                put(Class::Remove, at, latency_ns + removal_ns);
                put(Class::RemoveDirty, at, latency_ns + removal_ns);
            }
            _ => {}
        }
    }
}

fn import_write_load(values: &BTreeMap<String, f64>, profile: &mut SystemProfile) -> Result<(), String> {
    let mut points: Vec<(f64, f64)> = values
        .iter()
        .filter_map(|(name, &time_s)| Some((name.strip_prefix("wr_")?.parse::<f64>().ok()? * KB, time_s)))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some(&(load, unloaded_s)) = points.first() else { return Ok(()) };
    if load != 0.0 || unloaded_s <= 0.0 {
        return Err(
            "wr_0, the time without load, is missing or 0: the other wr_ values have nothing to be compared with"
                .to_owned(),
        );
    }
    profile.write_load = points
        .into_iter()
        .map(|(load_bytes_per_s, time_s)| WriteLoad { load_bytes_per_s, time_s, slowdown: time_s / unloaded_s })
        .collect();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# a disk of 1999\nbc 65536\nnc 5000\nbs 8192\nfs 1024\nlus_bc 0.01\nlur_bc 0.03 # farther\n\
                        rdo 0.002\nwro 0.003\nrdc 102400\nwrc 51200\nrd_8 8192\nrrd_8 819.2\nopen 0.05\nrm 0.2\n\
                        tr_64 0.5\ntrc_64 20\nwr_0 2\nwr_1000 3\n";

    fn read(text: &str) -> SystemProfile {
        import(text, Path::new("dir/old.vector")).expect("a vector")
    }

    fn close(a: Option<&Entry>, ns: f64) -> bool {
        a.is_some_and(|entry| (entry.mean_ns / ns - 1.0).abs() < 1e-12)
    }

    #[test]
    fn units_and_names() {
        let p = read(TEXT);
        assert_eq!(
            (p.name.as_str(), p.parameters.data_cache_bytes, p.parameters.fragment_bytes),
            ("old", 64 << 20, 1024)
        );
        let entry = |name: &str| p.entries.get(name);
        assert!(close(entry("lu_bc"), 20_000.0));
        assert!(close(entry("rdc_1048576"), 2_000.0 + 1e9 * 1024.0 / 102_400.0));
        assert!(close(entry("wra_4096"), 3_000.0 + 1e9 * 4.0 / 51_200.0));
        assert!(close(entry("rd_8192"), 1e9 * 8.0 / 8192.0));
        assert!(close(entry("rmu_65536"), 20_200_000.0) && close(entry("rm_65536"), 700_000.0));
        // There, tr is of cached data and trc of uncached.
        assert!(close(entry("trc_65536"), 500_000.0) && close(entry("tr_65536"), 20_000_000.0));
        let text = export(&p);
        assert!(["tr_64 0.5\n", "trc_64 20\n", "rd_8 8192\n"].iter().all(|line| text.contains(line)), "{text}");
        assert_eq!(p.write_load[1].slowdown, 1.5);
        assert_eq!(p.write_load[1].load_bytes_per_s, 1_024_000.0);
    }

    #[test]
    fn round_trip() {
        let first = read(TEXT);
        let text = export(&first);
        let mut second = read(&text);
        (second.name, second.provenance) = (first.name.clone(), first.provenance.clone());
        for (name, entry) in &first.entries {
            let again = second.entries.get(name).unwrap_or_else(|| panic!("{name} is lost"));
            assert!((again.mean_ns / entry.mean_ns - 1.0).abs() < 1e-9, "{name}");
        }
        assert_eq!(second.entries.len(), first.entries.len());
        assert_eq!(second.parameters, first.parameters);
        assert_eq!(second.write_load, first.write_load);
        assert_eq!(export(&second).lines().skip(2).count(), text.lines().skip(2).count());
    }

    #[test]
    fn refusals_name_the_line() {
        let refusal = |text: &str| import(text, Path::new("x")).expect_err("refused").to_string();
        assert_eq!(refusal("open 1\nopne 2\n"), "x:2: opne is not a name of the thesis' system vector");
        assert_eq!(refusal("open\n"), "x:1: expected a name and a value, found 1 fields");
        assert!(refusal("# c\n\nopen fast\n").starts_with("x:3: the value of open"));
        assert!(refusal("open -1\n").starts_with("x:1:"));
        assert!(refusal("open 1\nopen 2\n").contains("x:2: open is given twice"));
        assert!(refusal("rdc 0\n").contains("throughput"));
        assert!(refusal("").contains("no value"));
        assert!(refusal("wr_100 2\n").contains("wr_0"));
        assert!(refusal("bs 0\n").contains("block"));
    }
}
