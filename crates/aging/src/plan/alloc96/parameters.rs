//! What the workload is made of: published figures, what was calibrated on them, and what is estimated.

use crate::model::SizeParameters;
use serde::Serialize;

/// Days that were observed.
pub const DAYS: u32 = 300;

/// Space for data, bytes, of the file system that the parameters are for (as `df` counts it): 502 MB without
/// inodes and group headers. On another capacity, numbers of files and operations are in proportion.
pub const CAPACITY_BYTES: u64 = 510_000_128;

/// Files that stay for good unless space is needed.
///
/// Five parameters are calibrated, each on one published figure; see [`super::figures`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameters {
    /// Allocation groups, each with one directory: the original's paths are not known, only its inode numbers.
    /// Published.
    pub groups: u32,
    /// Use over the days, `[day, share of what users may use]`, straight lines between. Published: 9 % at first, above
    /// 70 % most of the time, 90 % at most; at the end 59.5 MB are 19 % of what is allocated, which is 72 %. The points
    /// between are estimates.
    pub utilisation: Vec<[f64; 2]>,
    /// Share of the capacity that users may use: the rest is the reserve, 10 % (newfs of 4.4BSD).
    pub usable_share: f64,

    /// Documents: sizes. The mean is calibrated on the number of files at the end.
    pub document_size: SizeParameters,
    /// Documents made a day besides those that the curve asks for. Calibrated, with the next, on the number of files
    /// modified in the last month.
    pub documents_per_day: f64,
    /// Documents written anew a day.
    pub rewrites_per_day: f64,
    /// Standard deviation of the logarithm of a rewritten file's size over its old one. Estimate.
    pub rewrite_sigma: f64,

    /// Data: files that projects need for weeks. Sizes; the mean is calibrated on the bytes modified in the last month.
    pub data_size: SizeParameters,
    /// Data files made a day. Estimate.
    pub data_per_day: f64,
    /// Their mean lifetime, exponential. Estimate.
    pub data_mean_days: f64,

    /// Short-lived files a day, never there at night. Calibrated on the number of operations.
    pub short_lived_per_day: f64,
    /// Their sizes. The mean is calibrated on the bytes written.
    pub short_lived_size: SizeParameters,
    /// Their lifetimes, `[share, median in seconds, standard deviation of the logarithm]`. Estimate: two thirds live
    /// for less than 30 s (Baker et al., Measurements of a Distributed File System, SOSP 1991, section 4.3), the rest
    /// for an hour or so.
    pub short_lived_lifetime: [[f64; 3]; 2],
    /// Short-lived files come in sessions of one directory: mean number. Estimate.
    pub session_files: f64,
    /// How long a session takes, `[median in seconds, standard deviation of the logarithm]`. Estimate.
    pub session_length: [f64; 2],

    /// Directories of the original, dealt out to the groups in turn, as its policy does. Estimate.
    pub directories: u32,
    /// Exponent of the Zipf distribution of lasting files over directories. Estimate.
    pub lasting_popularity: f64,
    /// The same of sessions, which keep to the busiest directories (section 6 of the method). Estimate.
    pub session_popularity: f64,
    /// Relative activity of the hours. Estimate: office hours.
    pub hours: [f64; 24],
    /// Relative activity of the weekdays from Monday. Estimate.
    pub weekdays: [f64; 7],
}

/// Standard deviation of the logarithm of file sizes. Estimate, between the surveys of the time and 2.46 of Agrawal et
/// al. (FAST 2009).
const SIZE_SIGMA: f64 = 2.2;

/// The largest file as a share of the capacity. Estimate: about 10 MB.
const LARGEST_SHARE: f64 = 0.02;

fn sizes(mu: f64) -> SizeParameters {
    SizeParameters {
        mu,
        sigma: SIZE_SIGMA,
        tail_share: 0.0,
        tail_alpha: 1.0,
        tail_min_bytes: 1.0,
        max_share: LARGEST_SHARE,
    }
}

impl Parameters {
    /// Those of the published workload.
    pub fn published() -> Parameters {
        Parameters {
            groups: 27,
            utilisation: vec![
                [0.0, 0.09],
                [20.0, 0.35],
                [60.0, 0.70],
                [90.0, 0.78],
                [120.0, 0.73],
                [170.0, 0.82],
                [215.0, 0.895],
                [240.0, 0.79],
                [270.0, 0.77],
                [300.0, 0.72],
            ],
            usable_share: 0.9,
            document_size: sizes(7.94),
            documents_per_day: 15.2,
            rewrites_per_day: 15.2,
            rewrite_sigma: 0.25,
            data_size: SizeParameters { sigma: 1.2, ..sizes(12.40) },
            data_per_day: 4.0,
            data_mean_days: 30.0,
            short_lived_per_day: 1268.0,
            short_lived_size: sizes(9.63),
            short_lived_lifetime: [[0.7, 10.0, 1.5], [0.3, 3600.0, 1.2]],
            session_files: 25.0,
            session_length: [3600.0, 0.7],
            directories: 600,
            lasting_popularity: 0.5,
            session_popularity: 1.0,
            hours: [
                1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 4.0, 8.0, 12.0, 14.0, 14.0, 10.0, 12.0, 14.0, 14.0, 12.0, 9.0, 6.0,
                5.0, 4.0, 3.0, 2.0, 1.0,
            ],
            weekdays: [10.0, 10.0, 10.0, 10.0, 9.0, 3.0, 3.0],
        }
    }
}
