//! Every figure and table of the sources, and the experiment that runs it again; or why none does.
//!
//! The one list of them: `fsage reproduce --list` shows it, and docs/experiments.md refers to it. Methods and systems
//! that a source describes without a figure or table are in docs/coverage.md. An experiment that runs a figure again
//! adds its key here.

use serde::Serialize;

/// A publication, or several that have their figures in common.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Source {
    /// What its experiments' keys begin with, or the first of several.
    pub key: &'static str,
    /// Author, title, place, year.
    pub title: &'static str,
    /// Its figures and tables, in order.
    pub items: &'static [Item],
}

/// A figure or table.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Item {
    /// `figure 3`, or what else it is called.
    pub name: &'static str,
    /// What it shows.
    pub shows: &'static str,
    /// What runs it again.
    pub covered: Covered,
}

/// What runs a figure or table again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Covered {
    /// These experiments show all of it.
    By(&'static [&'static str]),
    /// These experiments show some of it.
    Partly(&'static [&'static str], &'static str),
    /// It describes machines or settings, and is what experiments are set up by.
    SetUp(&'static str),
    /// None, and why.
    No(&'static str),
}

impl Covered {
    /// The experiments.
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Covered::By(keys) | Covered::Partly(keys, _) => keys,
            Covered::SetUp(_) | Covered::No(_) => &[],
        }
    }
}

/// All sources.
pub fn sources() -> &'static [Source] {
    SOURCES
}

use Covered::{By, No, Partly, SetUp};

const fn item(name: &'static str, shows: &'static str, covered: Covered) -> Item {
    Item { name, shows, covered }
}

const SOURCES: &[Source] = &[
    Source {
        key: "lfs92",
        title: "Rosenblum and Ousterhout, The Design and Implementation of a Log-Structured File System, TOCS 1992",
        items: &[
            item("layout", "two small files on the disk, LFS against FFS", By(&["lfs92/two-files"])),
            item(
                "write cost, theory",
                "write cost by the utilisation of segments, in theory",
                By(&["lfs92/write-cost"]),
            ),
            item(
                "write cost, simulated",
                "greedy, uniform and with locality",
                By(&["lfs92/simulator", "lfs92/write-cost", "beyond/lfs-sweep"]),
            ),
            item(
                "segments",
                "segment utilisations, greedy and cost-benefit",
                By(&["lfs92/simulator", "lfs92/write-cost"]),
            ),
            item("cost-benefit", "write cost with it", By(&["lfs92/simulator", "lfs92/write-cost"])),
            item("small files", "created, read, deleted", By(&["lfs92/smallfile"])),
            item("large file", "in five phases", By(&["lfs92/largefile"])),
            item("production", "cleaning of five production file systems", No("their traffic was not published")),
            item(
                "recovery",
                "time to recover after a crash",
                Partly(&["softdep99/fsck"], "rolls a log of ours forward by its length, not by files of given sizes"),
            ),
            item("log traffic", "what the blocks of a production log are", No("its traffic was not published")),
        ],
    },
    Source {
        key: "lfs95",
        title: "Seltzer, Smith, Balakrishnan, Chang, McMains and Padmanabhan, File System Logging Versus Clustering, \
            USENIX 1995",
        items: &[
            item(
                "tables of hardware",
                "SPARCstation II with DSP 3105, Sun-4 with WREN IV",
                SetUp("machines of their class; the WREN IV is not modelled"),
            ),
            item(
                "scale factors",
                "processor, bandwidth and access time, Sprite to BSD",
                Partly(
                    &["lfs95/scaled"],
                    "factors of the machines and disks described here; the study's hardware is of their class",
                ),
            ),
            item(
                "figure 1",
                "small files on four systems",
                Partly(&["lfs92/smallfile", "lfs95/scaled"], "LFS and FFS; Sprite's and SunOS's are other code"),
            ),
            item(
                "figure 2",
                "a large file on four systems",
                Partly(&["lfs92/largefile", "lfs95/scaled"], "LFS and FFS; Sprite's and SunOS's are other code"),
            ),
            item("figure 3", "create by file size", By(&["lfs95/file-size"])),
            item("figure 4", "read by file size", By(&["lfs95/file-size"])),
            item("figure 5", "overwrite by file size", By(&["lfs95/file-size"])),
            item("figure 6", "delete by file size", By(&["lfs95/file-size", "lfs95/m8r0-m8r2"])),
            item("figure 7", "TPC-B by utilisation", By(&["lfs95/tpcb"])),
            item(
                "table 5",
                "the six file systems",
                SetUp("file systems aged by personalities take their place; the six are not to be had"),
            ),
            item("table 6", "the machine of the fragmentation study", SetUp("another of its class")),
            item(
                "figures 8, 9",
                "aged over empty by date",
                Partly(
                    &["lfs95/by-date", "lfs95/fragmentation"],
                    "six file systems aged here; the utilisation of the study's is only drawn",
                ),
            ),
            item(
                "analysis",
                "how files of 2 and of 16 blocks lie; free space in fragments only",
                Partly(&["lfs95/fragmentation", "lfs95/fragments-only"], "the study's figures are not known to us"),
            ),
            item(
                "summary",
                "which file system wins where; cleaning in idle time",
                By(&["lfs95/regions", "lfs95/idle-cleaning"]),
            ),
        ],
    },
    Source {
        key: "alloc96",
        title: "Smith and Seltzer, A Comparison of FFS Disk Allocation Policies, USENIX 1996",
        items: &[
            item("figure 1", "real and simulated layout by day", By(&["aging97/verify"])),
            item(
                "table 1",
                "the file system and the machine",
                SetUp("as far as it was published; what was not is varied by alloc96/sensitivity"),
            ),
            item("figure 2", "layout by day, original and realloc", By(&["alloc96/aggregate"])),
            item("figure 3", "layout by file size", By(&["alloc96/by-size"])),
            item("figure 4", "throughput by file size, and the raw disk's", By(&["alloc96/sequential"])),
            item("figure 5", "layout of the benchmark's files by size", By(&["alloc96/sequential"])),
            item(
                "table 2",
                "hot files: layout, reading, overwriting",
                By(&["alloc96/hot-files", "alloc96/sensitivity"]),
            ),
            item("figure 6", "layout of hot files by size", By(&["alloc96/hot-files"])),
            item("section 3", "the workload's sums", By(&["alloc96/workload"])),
            item(
                "section 5",
                "the gain on a SPARCstation, and its bus",
                Partly(&["alloc96/old-machine"], "that computer, its bus and its file system are not described"),
            ),
        ],
    },
    Source {
        key: "hbench01",
        title: "Smith, Workload-Specific File System Benchmarks, thesis, Harvard, 2001; with Smith and Seltzer, File \
            System Aging, SIGMETRICS 1997",
        items: &[
            item("figure 3.1", "reading by size, empty and full", By(&["hbench01/empty-aged"])),
            item("figure 3.2", "two allocators, empty and aged", By(&["hbench01/empty-aged"])),
            item("figure 3.3", "real and simulated layout by day", By(&["aging97/verify"])),
            item("figure 3.4", "real and simulated layout by size", By(&["aging97/verify"])),
            item(
                "figure 3.5",
                "throughput and layout of test files",
                By(&["alloc96/sequential", "hbench01/empty-aged"]),
            ),
            item("figure 3.6", "noswitch, empty and aged", By(&["hbench01/noswitch"])),
            item("table 3.2", "split files and their distance", By(&["hbench01/noswitch"])),
            item("table 3.3", "hot files under noswitch", By(&["hbench01/noswitch"])),
            item("figure 3.7", "layout by size with smart fragments", By(&["hbench01/fragments"])),
            item("figure 3.8", "throughput by size with smart fragments", By(&["hbench01/fragments"])),
            item(
                "figure 4.1",
                "Andrew with several users, three systems",
                Partly(&["hbench01/andrew"], "its figures are only drawn; the tree and what computing costs are ours"),
            ),
            item(
                "figure 4.7",
                "totals, predicted and measured",
                Partly(&["hbench01/validation"], "the build is ssh-build's, not a kernel's"),
            ),
            item("figure 4.8", "time by call type, predicted and measured", By(&["hbench01/validation"])),
            item(
                "figures 4.9 to 4.13",
                "latencies of all requests and of each call type",
                By(&["hbench01/validation"]),
            ),
            item("figure 4.14", "SDET by the number of scripts, predicted and measured", By(&["hbench01/validation"])),
            item("table 4.8", "errors by system and workload", By(&["hbench01/validation"])),
            item("tables 4.9, 4.10", "mean errors by system, by workload", By(&["hbench01/validation"])),
        ],
    },
    Source {
        key: "softdep99",
        title: "McKusick and Ganger, Soft Updates, USENIX 1999; Ganger et al., TOCS 2000; Seltzer et al., Journaling \
            versus Soft Updates, USENIX 2000",
        items: &[
            item("create", "throughput by size", By(&["softdep99/noorder", "softdep99/softdep"])),
            item("delete", "files a second by size", By(&["softdep99/noorder", "softdep99/softdep"])),
            item("read", "throughput by size", By(&["softdep99/noorder", "softdep99/softdep"])),
            item("disk writes", "for each file created", By(&["softdep99/noorder", "softdep99/softdep"])),
            item("fsck", "time by fullness", By(&["softdep99/fsck", "softdep99/recovery"])),
            item("crashes", "what they leave", By(&["softdep99/crash"])),
            item("SDET", "with a log and with Soft Updates", By(&["jvsu00/sdet"])),
            item("ssh-build", "the same", By(&["jvsu00/ssh-build"])),
            item("netnews", "the same", By(&["jvsu00/netnews"])),
            item("PostMark", "the same", By(&["jvsu00/postmark"])),
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::all;

    #[test]
    fn keys_are_experiments_and_every_experiment_is_of_a_source() {
        let named: Vec<&str> = SOURCES.iter().flat_map(|s| s.items).flat_map(|i| i.covered.keys()).copied().collect();
        for key in &named {
            assert!(all().iter().any(|e| e.key == *key), "there is no experiment {key}");
        }
        for experiment in all().iter().filter(|e| !e.key.starts_with("beyond/")) {
            assert!(named.contains(&experiment.key), "{} runs no figure or table of a source", experiment.key);
        }
    }
}
