//! What DiskSim's blocks mean as a drive of ours: `disksim_disk` (electronics, buffer), `dm_disk` with `dm_layout_g1`
//! and `dm_mech_g1` (geometry, arm, rotation), and the `disksim_bus` that the drive is on.
//!
//! Meanings are those of the manuals: Bucy, Schindler, Schlosser and Ganger, "The DiskSim Simulation Environment
//! Version 4.0 Reference Manual", CMU-PDL-08-101, 2008, and "Diskmodel" of the same release.

use super::libparam::{Block, File, Place, Read, Setting, Value};
use super::{ImportError, Imported, seek};
use crate::disk::Scheduler;
use crate::disk::spec::{
    BusSpec, CacheSpec, ControllerSpec, DiskSpec, ExtraDisconnectSpec, HeadOrder, ReadAhead, SeekSpec, Sparing,
    WriteReport, ZoneSpec,
};
use crate::{Drive, written};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

/// DiskSim knows no other.
const SECTOR_BYTES: u32 = 512;

/// Blocks that the drive is made of.
const DESCRIBE: [&str; 7] =
    ["disksim_disk", "disksim_bus", "disksim_ioqueue", "dm_disk", "dm_layout_g1", "dm_layout_g1_zone", "dm_mech_g1"];

/// A list and where it stands.
type Listed<'a> = (&'a Place, &'a [(Value, Place)]);

/// A block that remembers what it was asked for.
struct Reader<'a> {
    block: &'a Block,
}

impl<'a> Reader<'a> {
    fn find(&self, key: &str) -> Option<&'a Setting> {
        let setting = self.block.setting(key)?;
        setting.used.set(true);
        Some(setting)
    }

    fn need(&self, key: &str) -> Result<&'a Setting, ImportError> {
        self.find(key).ok_or_else(|| {
            let name = self.block.name.as_deref().map_or_else(String::new, |name| format!(" {name}"));
            self.block.place.error(format!("{}{name} has no {key:?}", self.block.kind))
        })
    }

    /// A number of a range.
    fn number(&self, key: &str, least: f64, most: f64) -> Result<f64, ImportError> {
        number_of(self.need(key)?, least, most)
    }

    fn ms(&self, key: &str) -> Result<f64, ImportError> {
        self.number(key, 0.0, 60_000.0)
    }

    /// A whole number of a range.
    fn whole(&self, key: &str, least: u32, most: u32) -> Result<u32, ImportError> {
        whole_of(self.need(key)?, least, most)
    }

    fn flag(&self, key: &str) -> Result<bool, ImportError> {
        Ok(self.whole(key, 0, 1)? == 1)
    }

    fn list(&self, key: &str) -> Result<Listed<'a>, ImportError> {
        let setting = self.need(key)?;
        match &setting.value {
            Value::List(list) => Ok((&setting.place, list)),
            other => Err(setting.place.error(format!("{key} = {other}: a list is expected"))),
        }
    }

    /// A list of numbers.
    fn numbers(&self, key: &str, most: f64) -> Result<(&'a Place, Vec<f64>), ImportError> {
        let (place, list) = self.list(key)?;
        let number = |(value, place): &(Value, Place)| match parsed(value).filter(|x| x.abs() <= most) {
            Some(number) => Ok(number),
            None => Err(place.error(format!("{value} in {key}: a number up to {most} is expected"))),
        };
        Ok((place, list.iter().map(number).collect::<Result<_, _>>()?))
    }

    /// A block, or the name of one.
    fn block(&self, key: &str, file: &'a File) -> Result<Reader<'a>, ImportError> {
        let setting = self.need(key)?;
        let block: &Rc<Block> = match &setting.value {
            Value::Block(block) => block,
            Value::Word(name) => file.named(name).ok_or_else(|| {
                setting.place.error(format!("{key} = {name}: no block of this name stands before it"))
            })?,
            other => return Err(setting.place.error(format!("{key} = {other}: a block is expected"))),
        };
        Ok(Reader { block })
    }
}

fn parsed(value: &Value) -> Option<f64> {
    let Value::Word(word) = value else { return None };
    match word.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok().map(f64::from),
        None => word.parse::<f64>().ok().filter(|number| number.is_finite()),
    }
}

fn number_of(setting: &Setting, least: f64, most: f64) -> Result<f64, ImportError> {
    match parsed(&setting.value).filter(|number| (least..=most).contains(number)) {
        Some(number) => Ok(number),
        None => {
            Err(setting.place.error(format!("{} = {}: a number from {least} to {most}", setting.key, setting.value)))
        }
    }
}

fn whole_of(setting: &Setting, least: u32, most: u32) -> Result<u32, ImportError> {
    let number = number_of(setting, f64::from(least), f64::from(most))?;
    // A number in this range is a u32 if it is whole.
    if number.fract() == 0.0 {
        Ok(number as u32)
    } else {
        Err(setting.place.error(format!("{} = {}: a whole number is expected", setting.key, setting.value)))
    }
}

/// What was not taken over.
#[derive(Default)]
struct Warnings {
    list: Vec<String>,
}

impl Warnings {
    fn about(&mut self, setting: &Setting, why: &str) {
        self.list.push(format!("{}: {} = {}: {why}", setting.place, setting.key, setting.value));
    }

    /// A setting of which the model has one value only.
    fn only(&mut self, reader: &Reader<'_>, key: &str, modelled: f64, why: &str) -> Result<(), ImportError> {
        let setting = reader.need(key)?;
        let value = parsed(&setting.value)
            .ok_or_else(|| setting.place.error(format!("{key} = {}: a number is expected", setting.value)))?;
        if value != modelled {
            self.about(setting, &format!("not modelled: {why}"));
        }
        Ok(())
    }

    /// What nobody asked for.
    fn rest(&mut self, reader: &Reader<'_>) {
        for setting in reader.block.effective() {
            if !setting.used.get() {
                self.about(setting, "not taken over: the model has nothing for it");
            }
        }
    }
}

/// The drive of a file.
pub(super) fn drive(
    path: &Path,
    file: &File,
    seek: Option<&Path>,
    name: Option<&str>,
    read: Read<'_>,
) -> Result<Imported, ImportError> {
    let shown = path.display().to_string();
    let block = chosen(&shown, file, name)?;
    let reader = Reader { block };
    let mut warnings = Warnings::default();
    let model = reader.block("Model", file)?;
    expect_kind(&model, "dm_disk")?;
    let layout = model.block("Layout Model", file)?;
    expect_kind(&layout, "dm_layout_g1")?;
    let mechanics = model.block("Mechanical Model", file)?;
    expect_kind(&mechanics, "dm_mech_g1")?;

    let heads = model.whole("Number of data surfaces", 1, 1024)?;
    let cylinders = model.whole("Number of cylinders", 1, crate::disk::spec::MAX_CYLINDERS)?;
    let capacity_sectors = Some(u64::from(model.whole("Block count", 1, u32::MAX)?));
    let (sparing, range_cylinders, head_order) = layout_of(&layout, &mut warnings)?;
    let zones = zones_of(&layout, file, &mut warnings)?;
    let rpm = mechanics.number("Rotation speed (in rpms)", 100.0, 100_000.0)?;
    let seek = seek_of(path, &mechanics, cylinders, seek, read, &mut warnings)?;
    let scale = reader.number("Time scale for overheads", 0.0, 1000.0)?;
    let controller = controller_of(&reader, file, scale, &mut warnings)?;
    let cache = cache_of(&reader, &mut warnings)?;
    let (bus, bus_source) = bus_of(&reader, file, &mut warnings)?;
    for reader in [&mechanics, &layout, &model, &reader] {
        warnings.rest(reader);
    }
    let others: Vec<&str> =
        file.blocks.iter().filter(|block| !DESCRIBE.contains(&&*block.kind)).map(|block| &*block.kind).collect();
    if !others.is_empty() {
        warnings.list.push(format!("{shown}: not about the drive, and not taken over: {}", others.join(", ")));
    }

    let spec = DiskSpec {
        sector_bytes: SECTOR_BYTES,
        capacity_sectors,
        heads,
        rpm,
        retry_share: 0.0,
        retry_revolutions: 0,
        sparing,
        range_cylinders,
        head_order,
        zones,
        seek,
        controller,
        cache,
        bus,
    };
    let title = block.name.clone().unwrap_or_else(|| block.kind.clone());
    let sources: BTreeMap<String, String> = [
        ("disk", format!("imported from DiskSim 4.0's parameters: disksim_disk {title} ({})", block.place)),
        ("disk.sector_bytes", "DiskSim 4.0 knows sectors of 512 bytes only".to_owned()),
        ("disk.bus", bus_source),
        ("disk.bus.max_transfer_sectors", "ANSI X3.131-1994 (SCSI-2), READ(10): 16-bit transfer length".to_owned()),
        ("disk.bus.queue_depth", format!("imported: \"Max queue length\" of {title}")),
    ]
    .map(|(key, source)| (key.to_owned(), source))
    .into();
    let summary = format!("A disk of {heads} surfaces and {rpm} rpm, imported from DiskSim's parameters.");
    let text = written(&title, &summary, &[], &spec, &sources);
    let drive = Drive::parse(&title, &shown, &text).map_err(|source| ImportError::Drive { file: shown, source })?;
    Ok(Imported { text, drive, warnings: warnings.list })
}

/// The disk that is meant: the only one, the only one that is instantiated, or the one that is named.
fn chosen<'a>(shown: &str, file: &'a File, name: Option<&str>) -> Result<&'a Block, ImportError> {
    let disks: Vec<&Rc<Block>> = file.blocks.iter().filter(|block| block.kind == "disksim_disk").collect();
    let names =
        |disks: &[&Rc<Block>]| disks.iter().filter_map(|disk| disk.name.as_deref()).collect::<Vec<_>>().join(", ");
    let error = |why: String| ImportError::Line { file: shown.to_owned(), line: 1, why };
    if let Some(name) = name {
        let found = disks.iter().find(|disk| disk.name.as_deref() == Some(name));
        return found
            .map(|disk| &***disk)
            .ok_or_else(|| error(format!("there is no disksim_disk {name} in it; there are: {}", names(&disks))));
    }
    let made = |disk: &&&Rc<Block>| file.instances.iter().any(|(_, block)| disk.name.as_deref() == Some(block));
    let used: Vec<&Rc<Block>> = disks.iter().filter(made).copied().collect();
    match (disks.as_slice(), used.as_slice()) {
        ([disk], _) | (_, [disk]) => Ok(disk),
        ([], _) => {
            Err(error("no disksim_disk is in it; give the .parv or the .diskspecs that names the model".to_owned()))
        }
        _ => Err(error(format!("several disks are in it: {}; `--disk NAME` chooses", names(&disks)))),
    }
}

fn expect_kind(reader: &Reader<'_>, kind: &str) -> Result<(), ImportError> {
    if reader.block.kind == kind {
        return Ok(());
    }
    Err(reader
        .block
        .place
        .error(format!("a {} where a {kind} is expected; other models are not read", reader.block.kind)))
}

fn layout_of(layout: &Reader<'_>, warnings: &mut Warnings) -> Result<(Sparing, u32, HeadOrder), ImportError> {
    let mapping = layout.need("LBN-to-PBN mapping scheme")?;
    let head_order = match whole_of(mapping, 0, 2)? {
        0 => HeadOrder::Ascending,
        1 => HeadOrder::SerpentineInZone,
        _ => HeadOrder::Serpentine,
    };
    let scheme = layout.need("Sparing scheme used")?;
    let sparing = match whole_of(scheme, 0, 10)? {
        0 => Sparing::None,
        1 => Sparing::Track,
        2 => Sparing::SectorsPerCylinder,
        3 => Sparing::SectorsPerTrack,
        8 => Sparing::SectorsPerRange,
        9 => Sparing::SectorsPerZone,
        10 => {
            warnings.about(scheme, "taken as scheme 9, spares at the end of each zone");
            Sparing::SectorsPerZone
        }
        7 => {
            warnings.about(scheme, "spares at the end of the disk: taken as spares at the end of each zone");
            Sparing::SectorsPerZone
        }
        _ => {
            warnings.about(scheme, "taken as scheme 2, spares at the end of each cylinder");
            Sparing::SectorsPerCylinder
        }
    };
    let range = layout.whole("Rangesize for sparing", 0, crate::disk::spec::MAX_CYLINDERS)?;
    let range_cylinders = if sparing == Sparing::SectorsPerRange { range } else { 0 };
    Ok((sparing, range_cylinders, head_order))
}

fn zones_of(layout: &Reader<'_>, file: &File, warnings: &mut Warnings) -> Result<Vec<ZoneSpec>, ImportError> {
    let (_, list) = layout.list("Zones")?;
    let outer = layout.find("Skew units");
    let mut zones = Vec::with_capacity(list.len());
    for (value, place) in list {
        let block = match value {
            Value::Block(block) => block,
            Value::Word(name) => file
                .named(name)
                .ok_or_else(|| place.error(format!("{name}: no block of this name stands before it")))?,
            other => return Err(place.error(format!("{other} where a zone is expected"))),
        };
        let reader = Reader { block };
        expect_kind(&reader, "dm_layout_g1_zone")?;
        zones.push(zone_of(&reader, outer, warnings)?);
        warnings.rest(&reader);
    }
    Ok(zones)
}

fn zone_of(zone: &Reader<'_>, outer: Option<&Setting>, warnings: &mut Warnings) -> Result<ZoneSpec, ImportError> {
    let last = crate::disk::spec::MAX_CYLINDERS - 1;
    let sectors_per_track = zone.whole("Blocks per track", 1, 1_000_000)?;
    let revolutions = match zone.find("Skew units").or(outer) {
        None => false,
        Some(units) => match units.value.to_string().as_str() {
            "sectors" => false,
            "revolutions" => true,
            other => {
                return Err(units.place.error(format!("Skew units = {other}: sectors or revolutions")));
            }
        },
    };
    let mut sectors = |key: &str| -> Result<u32, ImportError> {
        let Some(setting) = zone.find(key) else { return Ok(0) };
        let value = number_of(setting, 0.0, 1e6)?;
        let value = if revolutions { value * f64::from(sectors_per_track) } else { value };
        // A skew is an angle: whole turns of it do not count.
        let whole = value.round() % f64::from(sectors_per_track);
        if (value - value.round()).abs() > 1e-6 {
            warnings.about(setting, &format!("taken as {} whole sectors", value.round()));
        }
        Ok(whole as u32)
    };
    let track_skew_sectors = sectors("Skew for track switch")?;
    let cylinder_skew_sectors = sectors("Skew for cylinder switch")?;
    let first_angle_sectors = sectors("Offset of first block")?;
    let (place, slips) = zone.numbers("slips", 1e15)?;
    if slips.iter().any(|slip| *slip < 0.0 || slip.fract() != 0.0) {
        return Err(place.error("slips are whole numbers"));
    }
    let mut slips: Vec<u64> = slips.into_iter().map(|slip| slip as u64).collect();
    slips.sort_unstable();
    slips.dedup();
    let (_, defects) = zone.list("defects")?;
    if !defects.is_empty()
        && let Some(setting) = zone.find("defects")
    {
        warnings.about(setting, "not modelled: defects that lie elsewhere are read where they would have been");
    }
    Ok(ZoneSpec {
        cylinders: [zone.whole("First cylinder number", 0, last)?, zone.whole("Last cylinder number", 0, last)?],
        sectors_per_track,
        track_skew_sectors,
        cylinder_skew_sectors,
        first_angle_sectors,
        lead_sectors: u64::from(zone.whole("Empty space at zone front", 0, u32::MAX)?),
        spares: zone.whole("Number of spares", 0, u32::MAX)?,
        slips,
    })
}

fn seek_of(
    path: &Path,
    mechanics: &Reader<'_>,
    cylinders: u32,
    file: Option<&Path>,
    read: Read<'_>,
    warnings: &mut Warnings,
) -> Result<SeekSpec, ImportError> {
    let kind = mechanics.need("Seek type")?;
    let mut spec = SeekSpec {
        table: Vec::new(),
        short: None,
        long: None,
        knee_cylinders: 0,
        inward_by_distance: Vec::new(),
        head_switch_ms: mechanics.ms("Head switch time")?,
        write_settle_ms: mechanics.number("Add. write settling delay", -1000.0, 1000.0)?,
        write_settle_by_distance: Vec::new(),
        write_settle_spread_by_distance: Vec::new(),
    };
    let three = || -> Result<[f64; 3], ImportError> {
        Ok([
            mechanics.ms("Single cylinder seek time")?,
            mechanics.ms("Average seek time")?,
            mechanics.ms("Full strobe seek time")?,
        ])
    };
    let last = cylinders.saturating_sub(1).max(1);
    let third = (cylinders / 3).max(1);
    match kind.value.to_string().as_str() {
        _ if file.is_some() => {}
        "constant" => spec.table = vec![(1, mechanics.ms("Constant seek time")?)],
        "linear" => {
            let [one, mean, full] = three()?;
            spec.table = vec![(1, one)];
            for point in [(third, mean), (last, full)] {
                if spec.table.last().is_some_and(|before| before.0 < point.0) {
                    spec.table.push(point);
                }
            }
        }
        "curve" => spec.table = three_points(three()?, cylinders),
        "hpl" | "hplplus10" => {
            let (place, values) = mechanics.numbers("HPL seek equation values", 1e6)?;
            let &[knee, a, b, c, d, one] = values.as_slice() else {
                return Err(place.error(format!("{} values of the seek equation instead of 6", values.len())));
            };
            // DiskSim's knee belongs to the long curve, ours to the short one.
            spec.knee_cylinders = (knee.ceil() - 1.0).clamp(0.0, f64::from(u32::MAX)) as u32;
            spec.short = Some([a, b]);
            spec.long = Some([c, d]);
            if kind.value.to_string() == "hpl" {
                if one >= 0.0 {
                    spec.table = vec![(1, one)];
                }
            } else {
                let (place, first) = mechanics.numbers("First ten seek times", 60_000.0)?;
                if first.len() != 10 {
                    return Err(place.error(format!("{} seek times instead of ten", first.len())));
                }
                spec.table = (1..).zip(first).collect();
            }
        }
        "extracted" => {
            let curve = mechanics.need("Full seek curve")?;
            let name = curve.value.to_string();
            let in_its_file = Path::new(&*curve.place.file).parent().map(|directory| directory.join(&name));
            let at = in_its_file.unwrap_or_else(|| path.with_file_name(&name));
            spec.table = seek::read_curve(&at, read, Some(&curve.place))?;
        }
        other => {
            return Err(kind
                .place
                .error(format!("Seek type = {other}: constant, linear, curve, hpl, hplplus10 or extracted")));
        }
    }
    if let Some(file) = file {
        spec.table = seek::read_curve(file, read, None)?;
        let _ = mechanics.find("Full seek curve");
    }
    // Values of other kinds of curve stand in most files and say nothing then.
    for key in [
        "Constant seek time",
        "Single cylinder seek time",
        "Average seek time",
        "Full strobe seek time",
        "HPL seek equation values",
        "First ten seek times",
    ] {
        let _ = mechanics.find(key);
    }
    let access = mechanics.need("Access time type")?;
    if access.value.to_string() != "trackSwitchPlusRotation" {
        warnings.about(access, "not modelled: the model always turns");
    }
    warnings.only(mechanics, "Percent error in rpms", 0.0, "the model turns at the given speed")?;
    Ok(spec)
}

/// A curve through three points after Lee ("Software and Performance Issues in the Implementation of a RAID Prototype",
/// UCB/CSD 90/573): `a sqrt(d - 1) + b (d - 1) + c`, sampled where measured curves are.
fn three_points([one, mean, full]: [f64; 3], cylinders: u32) -> Vec<(u32, f64)> {
    let n = f64::from(cylinders);
    let a = (-10.0 * one + 15.0 * mean - 5.0 * full) / (3.0 * n.sqrt());
    let b = (7.0 * one - 15.0 * mean + 8.0 * full) / (3.0 * n);
    let at = |distance: u32| {
        let d = f64::from(distance - 1);
        (distance, (one + a * d.sqrt() + b * d).max(0.0))
    };
    let mut points = Vec::new();
    let mut distance = 1u32;
    while distance < cylinders {
        points.push(at(distance));
        distance += (distance / 16).max(1);
    }
    points.push(at(cylinders.max(distance)));
    points
}

fn controller_of(
    disk: &Reader<'_>,
    file: &File,
    scale: f64,
    warnings: &mut Warnings,
) -> Result<ControllerSpec, ImportError> {
    let ms = |key: &str| -> Result<f64, ImportError> { Ok(disk.ms(key)? * scale) };
    let extra = disk.flag("Extra write disconnect")?;
    let other_reselect_ms = ms("Other reselect overhead")?;
    let extra_write_disconnect = ExtraDisconnectSpec {
        command_ms: ms("Extradisc command overhead")?,
        first_disconnect_ms: ms("Extradisc disconnect overhead")?,
        gap_ms: ms("Extradisc inter-disconnect delay")?,
        second_disconnect_ms: ms("Extradisc 2nd disconnect overhead")?,
        reselect_ms: other_reselect_ms,
        seek_delay_ms: ms("Extradisc seek delta")?,
    };
    if !extra && other_reselect_ms != 0.0 {
        let setting = disk.need("Other reselect overhead")?;
        warnings.about(setting, "not modelled: a drive without extra disconnections gets the bus back once");
    }
    let write_hit = [ms("Write hit over. after read")?, ms("Write hit over. after write")?];
    let write_miss = [ms("Write miss over. after read")?, ms("Write miss over. after write")?];
    let differs = write_hit != write_miss;
    warnings.only(disk, "Per-request overhead time", 0.0, "each command has its own overheads")?;
    warnings.only(disk, "Preseeking level", 0.0, "the arm waits for the next request")?;
    warnings.only(disk, "Disconnect write if seek", 0.0, "the bus is not let go while the arm moves")?;
    let scheduler = scheduler_of(disk, file, warnings)?;
    Ok(ControllerSpec {
        read_hit_after_read_ms: ms("Read hit over. after read")?,
        read_hit_after_write_ms: ms("Read hit over. after write")?,
        read_miss_after_read_ms: ms("Read miss over. after read")?,
        read_miss_after_write_ms: ms("Read miss over. after write")?,
        write_after_read_ms: write_hit[0],
        write_after_write_ms: write_hit[1],
        write_miss_after_read_ms: differs.then_some(write_miss[0]),
        write_miss_after_write_ms: differs.then_some(write_miss[1]),
        write_move_after_read: Vec::new(),
        write_move_after_write: Vec::new(),
        read_hit_elsewhere_ms: None,
        read_completion_ms: ms("Read completion overhead")?,
        write_completion_ms: ms("Write completion overhead")?,
        data_preparation_ms: ms("Data preparation overhead")?,
        reselect_ms: ms("First reselect overhead")?,
        read_disconnect_after_read_ms: ms("Read disconnect afterread")?,
        read_disconnect_after_write_ms: ms("Read disconnect afterwrite")?,
        write_disconnect_ms: ms("Write disconnect overhead")?,
        write_seek_ms: None,
        write_seek_after_write_ms: None,
        read_seek_ms: None,
        read_seek_after_write_ms: None,
        never_disconnect: disk.flag("Never disconnect")?,
        minimum_write_seek_ms: ms("Minimum seek delay")?,
        extra_write_disconnect: extra.then_some(extra_write_disconnect),
        scheduler,
    })
}

fn scheduler_of(disk: &Reader<'_>, file: &File, warnings: &mut Warnings) -> Result<Scheduler, ImportError> {
    let queue = disk.block("Scheduler", file)?;
    expect_kind(&queue, "disksim_ioqueue")?;
    let policy = queue.need("Scheduling policy")?;
    let scheduler = match whole_of(policy, 1, 255)? {
        1 => Scheduler::Fcfs,
        3 => Scheduler::CLook,
        7 => Scheduler::Sstf,
        8 => Scheduler::Sptf,
        4 => {
            warnings.about(policy, "taken as the shortest seek by cylinder");
            Scheduler::Sstf
        }
        6 => {
            warnings.about(policy, "taken as ascending by block");
            Scheduler::CLook
        }
        9 | 10 => {
            warnings.about(policy, "taken as the shortest positioning time");
            Scheduler::Sptf
        }
        _ => {
            warnings.about(policy, "not modelled: taken as first come, first served");
            Scheduler::Fcfs
        }
    };
    // Says what a cylinder is to policies that go by it; the model takes the true one.
    let _ = queue.find("Cylinder mapping strategy");
    for key in [
        "Write initiation delay",
        "Read initiation delay",
        "Sequential stream scheme",
        "Overlapping request scheme",
        "Timeout scheduling",
        "Priority scheduling",
    ] {
        if queue.find(key).is_some() {
            warnings.only(&queue, key, 0.0, "the queue has none")?;
        }
    }
    // These say how what is off above would be done.
    for (key, of) in [
        ("Maximum concat size", "Sequential stream scheme"),
        ("Sequential stream diff maximum", "Sequential stream scheme"),
        ("Scheduling timeout scheme", "Timeout scheduling"),
        ("Timeout time/weight", "Timeout scheduling"),
        ("Scheduling priority scheme", "Priority scheduling"),
    ] {
        if queue.find(of).is_none_or(|of| parsed(&of.value) == Some(0.0)) {
            let _ = queue.find(key);
        }
    }
    warnings.rest(&queue);
    Ok(scheduler)
}

fn cache_of(disk: &Reader<'_>, warnings: &mut Warnings) -> Result<CacheSpec, ImportError> {
    let buffers = disk.whole("Number of buffer segments", 1, 4096)?;
    let segment_sectors = disk.whole("Segment size (in blks)", 1, 16_777_216)?;
    let write_segments = disk.whole("Maximum number of write segments", 1, 4096)?.min(buffers);
    let caching = disk.need("Enable caching in buffer")?;
    let segments = match whole_of(caching, 0, 2)? {
        0 => 0,
        1 => buffers,
        _ => {
            warnings.about(caching, "taken as 1");
            buffers
        }
    };
    let level = disk.need("Fast write level")?;
    let write_report = match whole_of(level, 0, 2)? {
        0 => WriteReport::Medium,
        2 => WriteReport::Buffer,
        _ => {
            warnings.about(level, "taken as 2: all writes are reported from the buffer, not only those that append");
            WriteReport::Buffer
        }
    };
    let ahead = disk.need("Buffer continuous read")?;
    let read_ahead = match whole_of(ahead, 0, 4)? {
        0 => ReadAhead::None,
        1 => ReadAhead::Track,
        2 => ReadAhead::Cylinder,
        3 => ReadAhead::Segment,
        _ => ReadAhead::NextTrack,
    };
    let read_ahead_sectors = disk.whole("Maximum read-ahead (blks)", 0, segment_sectors)?;
    // To DiskSim no sectors are none; to us 0 is no limit.
    let read_ahead = if read_ahead_sectors == 0 { ReadAhead::None } else { read_ahead };
    let mark = disk.need("High (read) water mark")?;
    let share = number_of(mark, 0.0, 1.0)?;
    let read_watermark = if disk.flag("Set watermark by reqsize")? || share == 0.0 {
        share
    } else {
        warnings.about(mark, "not modelled: a share of the segment; taken as 0");
        0.0
    };
    let immediate = |key: &str, warnings: &mut Warnings| -> Result<bool, ImportError> {
        let setting = disk.need(key)?;
        let level = whole_of(setting, 0, 2)?;
        if level == 2 {
            warnings.about(setting, "taken as 1");
        }
        Ok(level > 0)
    };
    let immediate_read = immediate("Immediate buffer read", warnings)?;
    let immediate_write = immediate("Immediate buffer write", warnings)?;
    for key in [
        "Allow almost read hits",
        "Allow sneaky full read hits",
        "Allow sneaky partial read hits",
        "Allow sneaky intermediate read hits",
    ] {
        warnings.only(disk, key, 0.0, "a read hits what is in the buffer, or what comes next into it")?;
    }
    let own_writes = f64::from(write_report == WriteReport::Buffer);
    if !disk.flag("Use separate write segment")? {
        warnings.only(
            disk,
            "Allow read hits on write data",
            own_writes,
            "a write's data are read from the buffer if writes are reported from it, and else not",
        )?;
    } else {
        let _ = disk.find("Allow read hits on write data");
    }
    warnings.only(disk, "Allow write prebuffering", 0.0, "data are taken for one write at a time")?;
    warnings.only(disk, "Low (write) water mark", 0.0, "a write that fits the buffer is taken in one piece")?;
    warnings.only(disk, "Minimum read-ahead (blks)", 0.0, "reading ahead stops when a request comes")?;
    warnings.only(disk, "Read-ahead over requested", 1.0, "reading ahead takes the place of what was sent")?;
    warnings.only(disk, "Read any free blocks", 0.0, "what passes on the way is not read")?;
    warnings.only(disk, "Combine seq writes", 1.0, "consecutive writes in the buffer are joined")?;
    warnings.only(disk, "Stop prefetch in sector", 1.0, "reading ahead stops within a sector")?;
    warnings.only(disk, "Write hit stop prefetch", 1.0, "each write stops reading ahead")?;
    warnings.only(disk, "Read directly to buffer", 1.0, "the buffer takes data as they come")?;
    warnings.only(disk, "Immed transfer partial hit", 1.0, "what is in the buffer is sent at once")?;
    warnings.only(disk, "Hold bus entire read xfer", 1.0, "the bus is got back once for a read")?;
    warnings.only(disk, "Hold bus entire write xfer", 1.0, "the bus is kept for all of a write's data")?;
    // How exactly DiskSim simulates, what it prints, and what its schedulers take for a cylinder.
    for key in ["Calc sector by sector", "Print stats", "Avg sectors per cylinder"] {
        let _ = disk.find(key);
    }
    Ok(CacheSpec {
        segments,
        segment_sectors,
        write_segments: if segments == 0 { 0 } else { write_segments },
        dedicated_write_segment: segments > 1 && disk.flag("Use separate write segment")?,
        read_ahead,
        join_read_ahead: false,
        read_ahead_sectors,
        read_ahead_on_hit: disk.flag("Read-ahead on idle hit")?,
        read_watermark,
        drop_when_read: false,
        read_chunk_sectors: 0,
        write_start_sectors: 0,
        write_start_ms: 0.0,
        immediate_read,
        immediate_write,
        write_report,
    })
}

/// The bus, and where its figures are from: the slower of the drive's own rate and that of the `disksim_bus` that is
/// nearest to it.
fn bus_of(disk: &Reader<'_>, file: &File, warnings: &mut Warnings) -> Result<(BusSpec, String), ImportError> {
    let own = disk.need("Bulk sector transfer time")?;
    let own_ms = number_of(own, 0.0, 60_000.0)?;
    let depth = disk.need("Max queue length")?;
    let queue_depth = whole_of(depth, 0, 65_536)?.max(1);
    let buses: Vec<&Rc<Block>> = file.blocks.iter().filter(|block| block.kind == "disksim_bus").collect();
    let mut read_ms = own_ms;
    let mut write_ms = own_ms;
    let mut source = format!("imported: \"Bulk sector transfer time\" ({})", own.place);
    for bus in &buses {
        let reader = Reader { block: bus };
        let read = reader.need("Read block transfer time")?;
        let write = reader.need("Write block transfer time")?;
        let (read_bus_ms, write_bus_ms) = (number_of(read, 0.0, 60_000.0)?, number_of(write, 0.0, 60_000.0)?);
        if read_bus_ms > read_ms || write_bus_ms > write_ms {
            let name = bus.name.as_deref().unwrap_or_default();
            source = format!("imported: block transfer times of disksim_bus {name} ({})", bus.place);
        }
        read_ms = read_ms.max(read_bus_ms);
        write_ms = write_ms.max(write_bus_ms);
    }
    if read_ms == 0.0 || write_ms == 0.0 {
        let why = if buses.is_empty() {
            "and no disksim_bus is in the file: data cross the bus in no time. The .parv has the bus"
        } else {
            "and that of every disksim_bus is 0 too: data cross the bus in no time"
        };
        warnings.about(own, why);
    }
    Ok((
        BusSpec { read_sector_ms: read_ms, write_sector_ms: write_ms, max_transfer_sectors: 65_535, queue_depth },
        source,
    ))
}
