//! The figures that describe a flash drive, as they stand in its file.

use serde::Deserialize;

/// A flash drive.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdSpec {
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// Sectors the host sees.
    pub capacity_sectors: u64,
    /// Channels between controller and flash.
    pub channels: u32,
    /// Dies on each channel.
    pub dies_per_channel: u32,
    /// Planes of a die; the same page of all planes is read and programmed in one go.
    pub planes_per_die: u32,
    /// Bytes of a plane's page.
    pub page_bytes: u32,
    /// Pages of a plane's block.
    pub pages_per_block: u32,
    /// What the map counts in: bytes, at most a page of all planes.
    pub mapping_bytes: u32,
    /// Flash beyond the host's capacity, as a share of it.
    pub over_provisioning: f64,
    /// Share of a die's blocks that garbage collection keeps free.
    pub gc_free_share: f64,
    /// Reading a page of all planes.
    pub read_us: f64,
    /// Programming one.
    pub program_us: f64,
    /// Erasing a block of all planes.
    pub erase_us: f64,
    /// Rate of a channel, 10^6 bytes a second.
    pub channel_mb_per_s: f64,
    /// Rate of the host link.
    pub link_mb_per_s: f64,
    /// The electronics on a read, and for each further mapping unit of it.
    pub read_command_us: f64,
    #[allow(missing_docs)]
    #[serde(default)]
    pub read_unit_us: f64,
    /// The same on a write.
    pub write_command_us: f64,
    #[allow(missing_docs)]
    #[serde(default)]
    pub write_unit_us: f64,
    /// Writes not yet programmed, bytes.
    pub write_buffer_bytes: u64,
    /// Whether the write buffer survives a power failure.
    #[serde(default)]
    pub power_loss_protection: bool,
    /// Commands the drive takes at a time.
    pub queue_depth: u32,
    /// The most sectors of one command.
    pub max_transfer_sectors: u32,
}

type Invalid = (String, String);

impl SsdSpec {
    /// Mapping units on a page of all planes.
    pub(crate) fn units_per_page(&self) -> u32 {
        self.page_bytes * self.planes_per_die / self.mapping_bytes
    }

    /// Mapping units of a block of all planes.
    pub(crate) fn units_per_block(&self) -> u32 {
        self.units_per_page() * self.pages_per_block
    }

    /// Dies.
    pub(crate) fn dies(&self) -> u32 {
        self.channels * self.dies_per_channel
    }

    /// Mapping units the host sees.
    pub(crate) fn host_units(&self) -> u64 {
        (self.capacity_sectors * u64::from(self.sector_bytes)).div_ceil(u64::from(self.mapping_bytes))
    }

    /// Blocks (of all planes) of each die: the host's capacity and the over-provisioning.
    pub fn blocks_per_die(&self) -> u32 {
        let units = (self.host_units() as f64 * (1.0 + self.over_provisioning)).ceil();
        (units / f64::from(self.dies()) / f64::from(self.units_per_block())).ceil() as u32
    }

    /// Blocks of a die below which it collects garbage: at least two, for the host's and the collector's next ones.
    pub fn gc_free_blocks(&self) -> u32 {
        ((f64::from(self.blocks_per_die()) * self.gc_free_share).ceil() as u32).max(2)
    }

    /// Everything a model relies on; the key and what is wrong with it.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        let bad = |key: &str, why: &str| Err((key.to_owned(), why.to_owned()));
        let count = |key: &str, value: u32, most: u32| {
            if (1..=most).contains(&value) { Ok(()) } else { Err((key.to_owned(), format!("{value}: 1 to {most}"))) }
        };
        if !self.sector_bytes.is_power_of_two() || !(512..=65536).contains(&self.sector_bytes) {
            return bad("sector_bytes", "a power of two from 512 to 65536");
        }
        count("channels", self.channels, 256)?;
        count("dies_per_channel", self.dies_per_channel, 256)?;
        count("planes_per_die", self.planes_per_die, 16)?;
        count("page_bytes", self.page_bytes, 1 << 20)?;
        count("pages_per_block", self.pages_per_block, 1 << 16)?;
        count("mapping_bytes", self.mapping_bytes, 1 << 20)?;
        count("queue_depth", self.queue_depth, 1 << 20)?;
        count("max_transfer_sectors", self.max_transfer_sectors, 1 << 24)?;
        if !self.mapping_bytes.is_multiple_of(self.sector_bytes) {
            return bad("mapping_bytes", "a multiple of sector_bytes");
        }
        if !(self.page_bytes * self.planes_per_die).is_multiple_of(self.mapping_bytes) {
            return bad("mapping_bytes", "must divide page_bytes times planes_per_die");
        }
        // The map holds unit numbers of 32 bits.
        let most_units = f64::from(u32::MAX) / 2.0;
        if self.capacity_sectors == 0 || self.capacity_sectors as f64 > most_units * 64.0 {
            return bad("capacity_sectors", "at least 1, and at most what 2^31 mapping units hold");
        }
        if self.host_units() as f64 > most_units {
            return bad("capacity_sectors", "more than 2^31 mapping units: give a greater mapping_bytes");
        }
        if !(0.01..=10.0).contains(&self.over_provisioning) {
            return bad("over_provisioning", "0.01 to 10");
        }
        let flash_units = f64::from(self.blocks_per_die()) * f64::from(self.dies()) * f64::from(self.units_per_block());
        if flash_units >= f64::from(u32::MAX) {
            return bad("over_provisioning", "more than 2^32 mapping units of flash: give a greater mapping_bytes");
        }
        if !(0.0..=0.5).contains(&self.gc_free_share) {
            return bad("gc_free_share", "0 to 0.5");
        }
        for (key, us) in [
            ("read_us", self.read_us),
            ("program_us", self.program_us),
            ("erase_us", self.erase_us),
            ("read_command_us", self.read_command_us),
            ("read_unit_us", self.read_unit_us),
            ("write_command_us", self.write_command_us),
            ("write_unit_us", self.write_unit_us),
        ] {
            if !(0.0..=1e8).contains(&us) {
                return bad(key, "0 to 100000000 microseconds");
            }
        }
        for (key, rate) in [("channel_mb_per_s", self.channel_mb_per_s), ("link_mb_per_s", self.link_mb_per_s)] {
            if !(0.1..=1e6).contains(&rate) {
                return bad(key, "0.1 to 1000000");
            }
        }
        let page = u64::from(self.page_bytes) * u64::from(self.planes_per_die);
        if !(page..=1 << 40).contains(&self.write_buffer_bytes) {
            return bad("write_buffer_bytes", "at least a page of all planes");
        }
        // What is over-provided must hold the blocks that collection keeps free, and one open on each side, on every
        // die; or a full drive could not move anything.
        let host_blocks = self.host_units() as f64 / f64::from(self.dies()) / f64::from(self.units_per_block());
        if f64::from(self.blocks_per_die()) < host_blocks + f64::from(self.gc_free_blocks()) + 2.0 {
            return bad(
                "over_provisioning",
                "leaves less than gc_free_share and two open blocks on each die; give more, or smaller blocks",
            );
        }
        Ok(())
    }
}
