//! No change of cylinder group at the first indirect block.

use super::changed::{Change, aged_by_each};
use super::split::Split;
use super::thesis::{self, THESIS};
use super::{Side, describe, gain, rates_figure, side};
use crate::alloc96::{self, hot_files};
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use aging::plan::alloc96::Parameters;
use units::show::size_name;
use workload::Phase;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "hbench01/noswitch",
    title: "No change of cylinder group at a file's first indirect block",
    source: "Smith, Workload-Specific File System Benchmarks, PhD thesis, Harvard, 2001, chapter 3",
    runs: "seven months with realloc, with realloc,noswitch and with realloc,metaspace; the sequential benchmark \
           around the first indirect block on each, empty and aged; where the files of the aged ones begin, and the \
           same with other groups, directories and use, and with the file system, drive and days of alloc96; the files \
           of the last month, read and written over",
    run,
};

const K: u64 = 1 << 10;
/// Sizes just over the first indirect block.
const JUST_OVER: std::ops::RangeInclusive<u64> = 104 * K..=160 * K;

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let sizes: &[u64] = bench.pick(
        &[96 * K, 104 * K, 256 * K],
        &[
            16 * K,
            32 * K,
            48 * K,
            56 * K,
            64 * K,
            72 * K,
            80 * K,
            88 * K,
            96 * K,
            104 * K,
            112 * K,
            120 * K,
            128 * K,
            160 * K,
            192 * K,
            256 * K,
            512 * K,
            1024 * K,
            2048 * K,
            4096 * K,
        ],
    );
    let switch = side(bench, THESIS, "realloc", sizes)?;
    let noswitch = side(bench, THESIS, "realloc,noswitch", sizes)?;
    let metaspace = side(bench, THESIS, "realloc,metaspace", sizes)?;
    let sweep = sweep(bench)?;
    let mut outcome = Outcome::new();
    describe(&mut outcome, bench, &switch.aged);
    outcome
        .parameter("compared", "realloc against realloc,noswitch and realloc,metaspace")
        .parameter("other directories and use", bench.sweeps());
    throughput(&mut outcome, [&switch, &noswitch, &metaspace], sizes);
    split_files(&mut outcome, &switch, &noswitch, &sweep)?;
    swept(&mut outcome, &sweep);
    of_alloc96(bench, &mut outcome)?;
    hot(bench, &mut outcome, [&switch, &noswitch, &metaspace])?;
    Ok(outcome)
}

/// Names of the three, in the order in which they are handed about.
const NAMES: [&str; 3] = ["switch", "noswitch", "metaspace"];

fn throughput(outcome: &mut Outcome, sides: [&Side; 3], sizes: &[u64]) {
    let [switch, noswitch, metaspace] = sides;
    let on_empty = |size, phase| gain(&switch.on_empty, &noswitch.on_empty, size, phase).unwrap_or(0.0);
    let on_aged = |size, phase| gain(&switch.on_aged, &noswitch.on_aged, size, phase).unwrap_or(0.0);
    // One change against noswitch: the indirect block goes behind the twelfth block, not to the group's beginning.
    let behind_on_empty = |size, phase| gain(&switch.on_empty, &metaspace.on_empty, size, phase).unwrap_or(0.0);
    let behind_on_aged = |size, phase| gain(&switch.on_aged, &metaspace.on_aged, size, phase).unwrap_or(0.0);
    type Gain<'a> = &'a dyn Fn(u64, Phase) -> f64;
    let by: [(&str, [(&str, Gain<'_>); 2]); 2] = [
        ("noswitch", [("empty", &on_empty), ("aged", &on_aged)]),
        ("metaspace", [("empty", &behind_on_empty), ("aged", &behind_on_aged)]),
    ];
    for (name, on_either) in by {
        for phase in [Phase::Read, Phase::Create] {
            for size in [96 * K, 104 * K, 256 * K] {
                for (on, of) in on_either {
                    let what = format!("{}, {name} over switch, {on}, {} files", phase.name(), size_name(size));
                    outcome.row(Row::new(what, Unit::Ratio, Published::NONE, of(size, phase), Explain::Agrees));
                }
            }
        }
    }
    let best = |of: Gain<'_>| {
        let most = sizes.iter().map(|size| (of(*size, Phase::Read), *size)).max_by(|a, b| a.0.total_cmp(&b.0));
        most.unwrap_or((0.0, 0))
    };
    let mean = |of: Gain<'_>| {
        let over: Vec<f64> = sizes.iter().filter(|s| JUST_OVER.contains(s)).map(|s| of(*s, Phase::Read)).collect();
        over.iter().sum::<f64>() / over.len().max(1) as f64
    };
    let with_it_behind = |on: &str, of: Gain<'_>| {
        let (most, at) = best(of);
        Explain::because(format!(
            "as in 4.4BSD, the first indirect block is asked for at the beginning of the inode's group, so the arm \
             leaves the file at its 13th block all the same. With one change, the indirect block behind the twelfth \
             block (metaspace), 104 KB files are read {:.2} times as fast as with the switch on the {on} file system, \
             104 to 160 KB ones {:.2} times, and {} gain most ({most:.2} times)",
            of(104 * K, Phase::Read),
            mean(of),
            size_name(at),
        ))
    };
    let sides: [(&str, Gain<'_>, Gain<'_>); 2] =
        [("empty", &on_empty, &behind_on_empty), ("aged", &on_aged, &behind_on_aged)];
    for (on, of, behind) in sides {
        let (most, at) = best(of);
        outcome.claim(Claim::new(
            format!("read, {on}: files just over 96 KB gain most"),
            JUST_OVER.contains(&at) && most > 1.0,
            format!("{most:.2} times at {}", size_name(at)),
            with_it_behind(on, behind),
        ));
    }
    outcome.claim(Claim::new(
        "read, aged: files of 104 KB gain",
        on_aged(104 * K, Phase::Read) > 1.0,
        format!("{:.3} times", on_aged(104 * K, Phase::Read)),
        with_it_behind("aged", &behind_on_aged),
    ));
    let (empty, aged) = (mean(&on_empty), mean(&on_aged));
    outcome.claim(Claim::new(
        "read: files just over 96 KB gain, and less on an aged file system",
        1.0 < aged && aged < empty,
        format!("104 to 160 KB: on the mean {empty:.2} times on an empty one, {aged:.2} on an aged one"),
        with_it_behind("aged", &behind_on_aged),
    ));
    let sides = [(NAMES[0], switch), (NAMES[1], noswitch), (NAMES[2], metaspace)];
    outcome.figure(rates_figure("read", "Reading files", Phase::Read, sides));
    outcome.figure(rates_figure("create", "Creating files", Phase::Create, sides));
}

/// Groups from which on a file's data are far from its inode: behind the third step of the hash.
const FAR_GROUPS: u32 = 7;

/// What the workload's sizes of directories, or its use, are changed to, and what comes of it.
struct Swept {
    change: Change,
    switch: Split,
    noswitch: Split,
}

/// Exponents of Zipf's law for lasting files over the directories; the workload's own is 0.5, which makes the groups
/// nearly even.
const EXPONENTS: [f64; 4] = [1.2, 1.0, 0.8, 0.65];
/// The curve of use as a multiple of the workload's, whose highest point is 90 % of what users may use.
const USES: [f64; 3] = [0.9, 0.8, 1.05];

/// Ages both with one thing changed at a time; a change that fills the file system is left out.
fn sweep(bench: &mut Bench<'_>) -> Result<Vec<Swept>, ExperimentError> {
    let own = THESIS.workload;
    let exponents = bench.sweep(&EXPONENTS[1..2], &EXPONENTS[..1], &EXPONENTS[..]);
    let uses = bench.sweep(&USES[..0], &USES[..0], &USES[..]);
    let uneven = exponents.iter().map(|&exponent| {
        let parameters = Parameters { lasting_popularity: exponent, ..own() };
        Change::of_use(format!("directories by Zipf's law of exponent {exponent}"), THESIS, parameters)
    });
    let used = uses.iter().map(|&times| {
        let mut parameters = own();
        parameters.utilisation.iter_mut().for_each(|[_, share]| *share *= times);
        Change::of_use(format!("{times} times the use"), THESIS, parameters)
    });
    let changes: Vec<Change> = uneven.chain(used).chain(thesis::unknown(bench)).collect();
    let words = ["realloc,noorder", "realloc,noswitch,noorder"];
    let found = aged_by_each(bench, "aging with one thing changed", &changes, &words, Split::of)?;
    let swept = changes.iter().cloned().zip(found).filter_map(|(change, splits)| {
        let mut splits = splits.into_iter();
        let (switch, noswitch) = (splits.next()??, splits.next()??);
        Some(Swept { change, switch, noswitch })
    });
    Ok(swept.collect())
}

/// The gain at the first indirect block on the file system and the drive of the earlier study, after its 300 days.
fn of_alloc96(bench: &mut Bench<'_>, outcome: &mut Outcome) -> Result<(), ExperimentError> {
    let sides = ["realloc", "realloc,noswitch"].map(|words| side(bench, alloc96::STUDY, words, &[104 * K]));
    let [switch, noswitch] = sides;
    let (switch, noswitch) = (switch?, noswitch?);
    for (on, before, after) in
        [("empty", &switch.on_empty, &noswitch.on_empty), ("aged", &switch.on_aged, &noswitch.on_aged)]
    {
        let ours = gain(before, after, 104 * K, Phase::Read).unwrap_or(0.0);
        let what = format!("with the set-up of alloc96: read, noswitch over switch, {on}, 104 KB files");
        outcome.row(Row::new(what, Unit::Ratio, Published::NONE, ours, Explain::Agrees));
    }
    Ok(())
}

fn split_files(outcome: &mut Outcome, switch: &Side, noswitch: &Side, sweep: &[Swept]) -> Result<(), ExperimentError> {
    let (before, after) = (Split::of(&switch.aged)?, Split::of(&noswitch.aged)?);
    for (name, split) in [("switch", &before), ("noswitch", &after)] {
        let mut row = |what: &str, unit, ours: Option<f64>| {
            // Where no file is split, there is no distance.
            if let Some(ours) = ours {
                outcome.row(Row::new(format!("{what}, {name}"), unit, Published::NONE, ours, Explain::Agrees));
            }
        };
        row("split files at the end", Unit::Count, Some(split.count()));
        row("split files at the end, of all", Unit::Share, Some(split.share()));
        row("split files: groups away, mean", Unit::Number, split.mean_distance());
        row("split files: more than 7 groups away", Unit::Share, split.beyond(FAR_GROUPS));
    }
    let ratios = sweep.iter().filter_map(|s| Some((&s.change.name, s.noswitch.over(&s.switch)?, s)));
    let seen: Vec<String> = ratios
        .map(|(name, ratio, s)| {
            format!("{name}: {ratio:.2} ({:.0} and {:.0} files)", s.switch.count(), s.noswitch.count())
        })
        .collect();
    if let Some(ratio) = after.over(&before) {
        outcome.row(Row::new(
            "split files at the end, noswitch over switch",
            Unit::Ratio,
            Published::about(2.0),
            ratio,
            Explain::because(format!(
                "which groups are full depends on how the directories are dealt out to them, and on how even their \
                 sizes are. With one thing changed at a time: {}",
                seen.join("; ")
            )),
        ));
    }
    outcome.claim(Claim::new(
        "noswitch splits more files",
        after.share() > before.share(),
        format!("{:.2} % of files against {:.2} %", after.share() * 100.0, before.share() * 100.0),
        Explain::Agrees,
    ));
    let far = |split: &Split| split.beyond(FAR_GROUPS).unwrap_or(0.0);
    outcome.claim(Claim::new(
        "with noswitch a larger share of split files is many groups away",
        far(&after) > far(&before),
        format!("{:.0} % beyond {FAR_GROUPS} groups against {:.0} %", far(&after) * 100.0, far(&before) * 100.0),
        Explain::Agrees,
    ));
    let groups = switch.aged.volume.geometry().ncg;
    let curve = |split: &Split| (1..groups).map(|far| (f64::from(far), split.within(far))).collect::<Vec<_>>();
    outcome.figure(Figure {
        name: "split".to_owned(),
        title: "Split files at most so many groups away".to_owned(),
        x: Axis::Number("cylinder groups".to_owned()),
        y: Axis::Number("files".to_owned()),
        series: vec![Series::new("switch", curve(&before)), Series::new("noswitch", curve(&after))],
    });
    Ok(())
}

/// A row for what each change does to the number of split files and to their distance.
fn swept(outcome: &mut Outcome, sweep: &[Swept]) {
    for Swept { change, switch, noswitch } in sweep {
        let name = &change.name;
        let mut row = |what: String, unit, ours: Option<f64>| {
            if let Some(ours) = ours {
                outcome.row(Row::new(what, unit, Published::NONE, ours, Explain::Agrees));
            }
        };
        row(format!("{name}: split files of all, switch"), Unit::Share, Some(switch.share()));
        row(format!("{name}: split files of all, noswitch"), Unit::Share, Some(noswitch.share()));
        row(format!("{name}: split files, noswitch over switch"), Unit::Ratio, noswitch.over(switch));
        row(format!("{name}: more than 7 groups away, switch"), Unit::Share, switch.beyond(FAR_GROUPS));
        row(format!("{name}: more than 7 groups away, noswitch"), Unit::Share, noswitch.beyond(FAR_GROUPS));
    }
}

/// The thesis's table 3.3: the files of the last month.
fn hot(bench: &mut Bench<'_>, outcome: &mut Outcome, sides: [&Side; 3]) -> Result<(), ExperimentError> {
    for (name, side) in NAMES.into_iter().zip(sides) {
        let found = hot_files::measure(bench, &side.aged)?;
        let split = Split::of_hot(&side.aged)?;
        let mut row = |what: &str, unit, ours| {
            let what = format!("files of the last month: {what}, {name}");
            outcome.row(Row::new(what, unit, Published::NONE, ours, Explain::Agrees));
        };
        row("layout score", Unit::Score, found.score());
        row("split files", Unit::Count, split.count());
        row("reading", Unit::MibPerS, found.read_mib_per_s);
        row("writing over them", Unit::MibPerS, found.overwrite_mib_per_s);
    }
    Ok(())
}
