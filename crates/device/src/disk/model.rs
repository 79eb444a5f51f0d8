//! One request at a time: from command to completion.

use crate::disk::cache::{Cache, Hit};
use crate::disk::geometry::Geometry;
use crate::disk::mechanism::{Approach, Arm, Mechanism, Run};
use crate::disk::seek::Seek;
use crate::disk::spec::{DiskSpec, ReadAhead, WriteReport, ns};
use crate::disk::transfer::{Data, Transfer};
use crate::{Lbn, Operation, Request};
use std::collections::VecDeque;

/// How much of the model is used: the ladder of Ruemmler and Wilkes, each step with all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refinement {
    /// Overheads, transfer, and the seek by its distance; every access waits half a revolution.
    Seek,
    /// The rotational position is kept over time.
    Rotation,
    /// Reads are served from the buffer, which reads ahead.
    Cache,
    /// Everything: writes reported from the buffer, medium and bus at the same time, zero-latency reads, settling,
    /// disconnections.
    Full,
}

/// What a drive did about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// A read wholly from the buffer.
    ReadHit,
    /// A read whose beginning was in the buffer, or on its way there.
    ReadPartial,
    /// A read from the medium.
    ReadMiss,
    /// A write reported when on the medium.
    WriteMedium,
    /// A write reported from the buffer.
    WriteBuffer,
    /// A flush.
    Flush,
}

/// A served request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// When the host is told.
    pub at_ns: u64,
    /// Whether its data are on the medium then.
    pub durable: bool,
    /// How.
    pub action: Action,
}

/// The specification's times in nanoseconds.
#[derive(Clone, Debug)]
struct Times {
    /// `[after read, after write]`.
    read_hit: [u64; 2],
    read_miss: [u64; 2],
    write: [u64; 2],
    write_miss: [u64; 2],
    /// By distance in cylinders; empty where the distance does not matter.
    write_move: [Vec<(u32, u64)>; 2],
    read_hit_elsewhere: Option<u64>,
    read_disconnect: [u64; 2],
    read_completion: u64,
    write_completion: u64,
    preparation: u64,
    reselect: u64,
    write_disconnect: u64,
    minimum_write_seek: u64,
    write_start: u64,
    /// `[after read, after write]`.
    write_seek: [Option<u64>; 2],
    read_seek: [Option<u64>; 2],
    read_sector: u64,
    write_sector: u64,
}

/// A write that has been reported and is not yet on the medium.
#[derive(Clone, Copy, Debug)]
struct Pending {
    lbn: Lbn,
    end: Lbn,
    /// When the arm may start.
    ready_ns: u64,
    /// When its data begin to come.
    data_ns: u64,
}

/// Reading ahead, caught up with to `at_ns`, when the head is at block `next`.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    segment: usize,
    next: Lbn,
    limit: Lbn,
    at_ns: u64,
}

/// A hard disk that serves one request at a time.
#[derive(Clone, Debug)]
pub struct Disk {
    spec: DiskSpec,
    times: Times,
    mechanism: Mechanism,
    refinement: Refinement,
    cache: Cache,
    arm: Arm,
    /// When the arm has finished what it was last sent for.
    medium_free_ns: u64,
    ahead: Option<Ahead>,
    pending: VecDeque<Pending>,
    /// 1 if the request before was a write.
    after: usize,
    last_write_end: Option<Lbn>,
    /// Where the read or write before ended.
    last_end: Option<Lbn>,
}

impl Disk {
    /// A disk with everything modelled, its arm at cylinder 0 and its buffer empty.
    ///
    /// `spec` has been checked, as every specification that [`crate::Drive`] hands out has.
    pub fn new(spec: DiskSpec) -> Disk {
        Disk::with_refinement(spec, Refinement::Full)
    }

    /// The same with part of the model only.
    pub fn with_refinement(spec: DiskSpec, refinement: Refinement) -> Disk {
        let controller = &spec.controller;
        let times = Times {
            read_hit: [ns(controller.read_hit_after_read_ms), ns(controller.read_hit_after_write_ms)],
            write_move: [&controller.write_move_after_read, &controller.write_move_after_write]
                .map(|moves| moves.iter().map(|&(distance, ms)| (distance, ns(ms))).collect()),
            read_hit_elsewhere: controller.read_hit_elsewhere_ms.map(ns),
            read_miss: [ns(controller.read_miss_after_read_ms), ns(controller.read_miss_after_write_ms)],
            write: [ns(controller.write_after_read_ms), ns(controller.write_after_write_ms)],
            write_miss: [
                ns(controller.write_miss_after_read_ms.unwrap_or(controller.write_after_read_ms)),
                ns(controller.write_miss_after_write_ms.unwrap_or(controller.write_after_write_ms)),
            ],
            read_disconnect: [
                ns(controller.read_disconnect_after_read_ms),
                ns(controller.read_disconnect_after_write_ms),
            ],
            read_completion: ns(controller.read_completion_ms),
            write_completion: ns(controller.write_completion_ms),
            preparation: ns(controller.data_preparation_ms),
            reselect: ns(controller.reselect_ms),
            write_disconnect: ns(controller.write_disconnect_ms),
            minimum_write_seek: ns(controller.minimum_write_seek_ms),
            write_start: ns(spec.cache.write_start_ms),
            write_seek: [controller.write_seek_ms, controller.write_seek_after_write_ms.or(controller.write_seek_ms)]
                .map(|ms| ms.map(ns)),
            read_seek: [controller.read_seek_ms, controller.read_seek_after_write_ms.or(controller.read_seek_ms)]
                .map(|ms| ms.map(ns)),
            read_sector: ns(spec.bus.read_sector_ms),
            write_sector: ns(spec.bus.write_sector_ms),
        };
        let mechanism = Mechanism {
            geometry: Geometry::new(&spec),
            seek: Seek::new(&spec),
            rotates: refinement >= Refinement::Rotation,
        };
        let segments = if refinement < Refinement::Cache {
            0
        } else {
            spec.cache.segments - u32::from(spec.cache.dedicated_write_segment)
        };
        Disk {
            times,
            mechanism,
            refinement,
            cache: Cache::new(segments, spec.cache.segment_sectors),
            arm: (0, 0),
            medium_free_ns: 0,
            ahead: None,
            pending: VecDeque::new(),
            after: 0,
            last_write_end: None,
            last_end: None,
            spec,
        }
    }

    /// The figures it was made from.
    pub fn spec(&self) -> &DiskSpec {
        &self.spec
    }

    /// Where its blocks are.
    pub fn geometry(&self) -> &Geometry {
        &self.mechanism.geometry
    }

    /// Its seek times.
    pub fn seek(&self) -> &Seek {
        &self.mechanism.seek
    }

    /// The cylinder the arm is over.
    pub fn cylinder(&self) -> u32 {
        self.arm.0
    }

    /// Cylinder of a block.
    pub fn cylinder_of(&self, lbn: Lbn) -> u32 {
        self.mechanism.geometry.spot(lbn).pbn.cylinder
    }

    /// Seek and rotational delay before a request could transfer, were it begun now; 0 if the buffer has it.
    pub fn positioning_ns(&self, now_ns: u64, request: &Request) -> u64 {
        let write = match request.operation {
            Operation::Read => false,
            Operation::Write => true,
            Operation::Flush | Operation::Trim => return 0,
        };
        if !write && matches!(self.cache.find(request.lbn, u64::from(request.sectors)), Hit::Whole(_)) {
            return 0;
        }
        let overhead_ns = if write { self.write_overhead_ns(request) } else { self.times.read_miss[self.after] };
        let start_ns = self.medium_free_ns.max(now_ns + overhead_ns);
        self.mechanism.positioning_ns(self.arm, start_ns, request.lbn, write)
    }

    /// Serves a request that arrives now, when nothing else is being served. The request has been checked against the
    /// device ([`crate::Device::check`]).
    pub fn serve_one(&mut self, now_ns: u64, request: &Request) -> Served {
        self.catch_up(now_ns);
        let mut served = match request.operation {
            Operation::Read => self.read(now_ns, request),
            Operation::Write => self.write(now_ns, request),
            Operation::Flush | Operation::Trim => self.flush(now_ns),
        };
        if self.full() && self.is_tried_again(request, served.action) {
            let lost_ns = u64::from(self.spec.retry_revolutions) * self.mechanism.geometry.revolution_ns();
            served.at_ns += lost_ns;
            self.medium_free_ns += lost_ns;
        }
        if matches!(request.operation, Operation::Read | Operation::Write) {
            self.after = usize::from(request.operation == Operation::Write);
            self.last_end = Some(request.end());
        }
        served
    }

    /// Whether a request meets a block that the medium gives or takes only after some tries.
    fn is_tried_again(&self, request: &Request, action: Action) -> bool {
        const SALT: u64 = 0x7265_7472_7900;
        let waits = matches!(action, Action::ReadMiss | Action::ReadPartial | Action::WriteMedium);
        // A share of 2^53 numbers: what a f64 counts exactly.
        waits
            && self.spec.retry_share > 0.0
            && ((stats::random::mix(SALT, request.lbn.0) >> 11) as f64) < self.spec.retry_share * (1u64 << 53) as f64
    }

    fn full(&self) -> bool {
        self.refinement == Refinement::Full
    }

    // --- background ------------------------------------------------------------------------------------------------

    /// Lets reading ahead and writing back go on until now.
    fn catch_up(&mut self, now_ns: u64) {
        self.read_ahead_until(now_ns);
        while let Some(next) = self.pending.front() {
            if self.medium_free_ns.max(next.ready_ns) > now_ns {
                break;
            }
            self.write_back_one();
        }
    }

    /// Puts the oldest reported write on the medium.
    fn write_back_one(&mut self) {
        let Some(next) = self.pending.pop_front() else { return };
        let start_ns = self.medium_free_ns.max(next.ready_ns);
        let data = self.data(next.data_ns, next.end.0 - next.lbn.0);
        self.medium_free_ns = self.write_medium(start_ns, next.lbn, next.end, 0, &data);
    }

    fn read_ahead_until(&mut self, now_ns: u64) {
        while let Some(ahead) = self.ahead {
            if ahead.next >= ahead.limit {
                self.ahead = None;
                return;
            }
            let run = self.mechanism.run(self.arm, ahead.at_ns, ahead.next, ahead.limit, Approach::default());
            if run.end_ns <= now_ns {
                self.arm = run.arm();
                let next = Lbn(run.first.0 + run.count);
                self.cache.grow(ahead.segment, next);
                self.ahead = Some(Ahead { next, at_ns: run.end_ns, ..ahead });
                self.medium_free_ns = self.medium_free_ns.max(run.end_ns);
                continue;
            }
            // Part of the track, or still on the way to it.
            let passed = self.passed_by(&run, now_ns);
            if run.start_ns <= now_ns {
                self.arm = run.arm();
            }
            if passed > 0 {
                let next = Lbn(run.first.0 + passed);
                self.cache.grow(ahead.segment, next);
                self.ahead = Some(Ahead { next, at_ns: run.passed_ns(&self.mechanism, passed - 1), ..ahead });
            }
            return;
        }
    }

    /// Blocks of a run that have passed by a time, at most all but the last.
    fn passed_by(&self, run: &Run, now_ns: u64) -> u64 {
        let Some(elapsed_ns) = now_ns.checked_sub(run.start_ns) else { return 0 };
        let spt = u64::from(self.mechanism.geometry.zones()[run.spot.zone].sectors_per_track);
        let sectors = elapsed_ns.saturating_mul(spt) / self.mechanism.geometry.revolution_ns();
        let mut passed = sectors.min(run.count - 1);
        // Slipped sectors pass too, and hold nothing.
        while passed > 0 && self.mechanism.geometry.span(&run.spot, Lbn(run.first.0 + passed - 1)) + 1 > sectors {
            passed -= 1;
        }
        passed
    }

    /// How far to read ahead of a request.
    fn ahead_limit(&self, request: &Request, segment: usize) -> Lbn {
        let (cache, geometry) = (&self.spec.cache, &self.mechanism.geometry);
        let end = request.end();
        if cache.read_ahead == ReadAhead::None || end.0 >= geometry.capacity_sectors() {
            return end;
        }
        let last = geometry.spot(Lbn(end.0 - 1));
        let limit = match cache.read_ahead {
            ReadAhead::None => end,
            ReadAhead::Track => geometry.track_end(&last),
            ReadAhead::Cylinder => geometry.cylinder_end(&last),
            ReadAhead::Segment => end.plus(u64::from(cache.read_ahead_sectors)),
            ReadAhead::NextTrack => {
                let track = geometry.spot(end);
                let track_end = geometry.track_end(&track);
                let began_earlier = self.cache.start(segment) < geometry.track_start(&track);
                if began_earlier && track_end.0 < geometry.capacity_sectors() {
                    geometry.track_end(&geometry.spot(track_end))
                } else {
                    track_end
                }
            }
        };
        let most = match cache.read_ahead_sectors {
            0 => u64::MAX,
            sectors => end.0.saturating_add(u64::from(sectors)),
        };
        Lbn(limit.0.min(most).min(geometry.capacity_sectors()))
    }

    // --- reads -----------------------------------------------------------------------------------------------------

    fn read(&mut self, now_ns: u64, request: &Request) -> Served {
        let sectors = u64::from(request.sectors);
        let served = match self.cache.find(request.lbn, sectors) {
            Hit::Whole(segment) => self.read_hit(now_ns, request, segment),
            Hit::Partial(segment, held) => self.read_partial(now_ns, request, segment, held),
            Hit::None => match self.ahead {
                Some(ahead) if self.spec.cache.join_read_ahead && ahead.next == request.lbn => {
                    self.read_partial(now_ns, request, ahead.segment, 0)
                }
                _ => self.read_miss(now_ns, request),
            },
        };
        if self.spec.cache.drop_when_read
            && let Some(segment) = self.cache.segment_at(request.lbn)
        {
            self.cache.drop_before(segment, request.end());
        }
        served
    }

    fn read_hit(&mut self, now_ns: u64, request: &Request, segment: usize) -> Served {
        self.cache.touch(segment);
        let mut start_ns = now_ns + self.hit_overhead_ns(request) + self.times.preparation;
        if self.medium_free_ns > now_ns && self.ahead.is_none() {
            // The drive is writing back and answers when it has finished.
            start_ns = start_ns.max(self.medium_free_ns + self.times.reselect);
        }
        let at_ns = start_ns + u64::from(request.sectors) * self.times.read_sector + self.times.read_completion;
        let limit = self.ahead_limit(request, segment);
        match &mut self.ahead {
            Some(ahead) if ahead.segment == segment => ahead.limit = ahead.limit.max(limit),
            other => {
                *other = None;
                let next = self.cache.end(segment);
                if self.spec.cache.read_ahead_on_hit && next < limit && self.full() {
                    let at_ns = self.medium_free_ns.max(now_ns + self.times.read_miss[self.after]);
                    self.ahead = Some(Ahead { segment, next, limit, at_ns });
                }
            }
        }
        Served { at_ns, durable: true, action: Action::ReadHit }
    }

    fn read_partial(&mut self, now_ns: u64, request: &Request, segment: usize, held: u64) -> Served {
        self.cache.touch(segment);
        let streaming = self.ahead.filter(|ahead| ahead.segment == segment);
        let medium_ns = match streaming {
            Some(ahead) => ahead.at_ns,
            None => self.medium_free_ns.max(now_ns + self.times.read_miss[self.after]),
        };
        let start_ns = now_ns + self.times.read_hit[self.after] + self.times.preparation;
        let mut transfer = Transfer::new(start_ns, u64::from(request.sectors), self.times.read_sector);
        transfer.chunk = if self.full() { u64::from(self.spec.cache.read_chunk_sectors) } else { 0 };
        self.ahead = None;
        let how = Approach { first: streaming.is_none(), ..Approach::default() };
        let medium_ns = self.read_medium(medium_ns, Lbn(request.lbn.0 + held), request.end(), how, &mut transfer);
        self.cache.grow(segment, request.end());
        let limit = self.ahead_limit(request, segment).max(streaming.map_or(Lbn(0), |ahead| ahead.limit));
        self.start_ahead(segment, request.end(), limit, medium_ns);
        let at_ns = transfer.end_ns() + self.times.read_completion;
        Served { at_ns, durable: true, action: Action::ReadPartial }
    }

    fn read_miss(&mut self, now_ns: u64, request: &Request) -> Served {
        let spared = self.ahead.map(|ahead| ahead.segment);
        self.ahead = None;
        let segment = self.cache.take(request.lbn, spared);
        let sectors = u64::from(request.sectors);
        let command_ns = now_ns + self.times.read_miss[self.after];
        let never_disconnect = self.spec.controller.never_disconnect;
        let bus_ns = if never_disconnect {
            command_ns + self.times.preparation
        } else {
            command_ns + self.times.read_disconnect[self.after] + self.times.reselect + self.times.preparation
        };
        let mut transfer = Transfer::new(bus_ns, sectors, self.times.read_sector);
        if self.full() {
            let share = (self.spec.cache.read_watermark * request.sectors as f64).floor() as u64;
            transfer.watermark = share.clamp(1, sectors);
            transfer.chunk = u64::from(self.spec.cache.read_chunk_sectors);
            transfer.reconnect_ns = if never_disconnect { 0 } else { self.times.reselect + self.times.preparation };
        } else {
            transfer.watermark = sectors;
        }
        let how =
            Approach { first: true, immediate: self.spec.cache.immediate_read && self.full(), ..Approach::default() };
        let seek_ns = self.times.read_seek[self.after].map_or(command_ns, |seek_ns| now_ns + seek_ns);
        let start_ns = self.medium_free_ns.max(if self.full() { seek_ns } else { command_ns });
        let medium_ns = self.read_medium(start_ns, request.lbn, request.end(), how, &mut transfer);
        if let Some(segment) = segment {
            self.cache.grow(segment, request.end());
            let limit = self.ahead_limit(request, segment);
            self.start_ahead(segment, request.end(), limit, medium_ns);
        }
        let at_ns = transfer.end_ns() + self.times.read_completion;
        Served { at_ns, durable: true, action: Action::ReadMiss }
    }

    /// Reads blocks from the medium, telling the transfer when each is in the buffer; when the last one is.
    fn read_medium(&mut self, at_ns: u64, lbn: Lbn, end: Lbn, how: Approach, transfer: &mut Transfer) -> u64 {
        let (mut next, mut at_ns, mut how) = (lbn, at_ns, how);
        transfer.held(transfer.sectors - (end.0 - lbn.0));
        while next < end {
            let run = self.mechanism.run(self.arm, at_ns, next, end, how);
            let index = transfer.sectors - (end.0 - next.0);
            transfer.arrives(&self.mechanism, &run, index);
            self.arm = run.arm();
            at_ns = run.end_ns;
            next = Lbn(run.first.0 + run.count);
            how.first = false;
        }
        self.medium_free_ns = at_ns;
        at_ns
    }

    fn start_ahead(&mut self, segment: usize, next: Lbn, limit: Lbn, at_ns: u64) {
        if next < limit && !self.cache.is_empty() {
            self.ahead = Some(Ahead { segment, next, limit, at_ns });
        }
    }

    // --- writes ----------------------------------------------------------------------------------------------------

    fn write(&mut self, now_ns: u64, request: &Request) -> Served {
        let watched = self.ahead.map(|ahead| ahead.segment);
        self.ahead = None;
        let overhead_ns = self.write_overhead_ns(request);
        self.cache.invalidate(request.lbn, request.end());
        let served = if self.full() && self.spec.cache.write_report == WriteReport::Buffer {
            self.write_buffered(now_ns, request, overhead_ns, watched)
        } else {
            self.write_through(now_ns, request, overhead_ns)
        };
        self.last_write_end = Some(request.end());
        served
    }

    /// From a write's command to its data: less for one that goes on where the write before ended or begins in what is
    /// in the buffer, if the drive makes that difference.
    fn write_overhead_ns(&self, request: &Request) -> u64 {
        let moves = &self.times.write_move[self.after];
        if !moves.is_empty() {
            let to = self.mechanism.geometry.spot(request.lbn).pbn;
            let distance = to.cylinder.abs_diff(self.arm.0);
            let further = moves.partition_point(|&(from, _)| from <= distance);
            // The first distance is 0.
            if (to.cylinder, to.head) != self.arm
                && let Some(&(_, overhead_ns)) = further.checked_sub(1).and_then(|n| moves.get(n))
            {
                return overhead_ns;
            }
        }
        let hit = self.last_write_end == Some(request.lbn) || self.cache.segment_at(request.lbn).is_some();
        if hit { self.times.write[self.after] } else { self.times.write_miss[self.after] }
    }

    /// From the command of a read that the buffer has to its data.
    fn hit_overhead_ns(&self, request: &Request) -> u64 {
        match self.times.read_hit_elsewhere {
            Some(elsewhere_ns) if self.after == 0 && self.last_end != Some(request.lbn) => elsewhere_ns,
            _ => self.times.read_hit[self.after],
        }
    }

    /// Reported when its data are in the buffer, written back at once or when its turn comes.
    fn write_buffered(&mut self, now_ns: u64, request: &Request, overhead_ns: u64, spared: Option<usize>) -> Served {
        let mut start_ns = now_ns;
        let segments = self.spec.cache.write_segments.max(1) as usize;
        while self.pending.len() + usize::from(self.medium_free_ns > start_ns) >= segments
            && self.joinable(request).is_none()
        {
            // Every segment for writes is taken: the one that is being put on the medium is free when it is there, or
            // the oldest is put there.
            if self.medium_free_ns > start_ns {
                start_ns = self.medium_free_ns;
            } else {
                self.write_back_one();
            }
        }
        let command_ns = start_ns + overhead_ns;
        let data_ns = command_ns + self.times.preparation;
        let at_ns = data_ns + u64::from(request.sectors) * self.times.write_sector + self.times.write_completion;
        if let Some(segment) = self.cache.take(request.lbn, spared) {
            self.cache.grow(segment, request.end());
        }
        match self.joinable(request) {
            Some(last) => self.pending[last].end = request.end(),
            None => {
                let ready_ns = start_ns + self.times.write_seek[self.after].unwrap_or(overhead_ns);
                self.pending.push_back(Pending { lbn: request.lbn, end: request.end(), ready_ns, data_ns });
            }
        }
        Served { at_ns, durable: false, action: Action::WriteBuffer }
    }

    /// The reported write that this one continues, if both fit a segment.
    fn joinable(&self, request: &Request) -> Option<usize> {
        let last = self.pending.back()?;
        let together = request.end().0 - last.lbn.0.min(request.lbn.0);
        (last.end == request.lbn && together <= u64::from(self.spec.cache.segment_sectors))
            .then(|| self.pending.len() - 1)
    }

    /// Reported when on the medium.
    fn write_through(&mut self, now_ns: u64, request: &Request, overhead_ns: u64) -> Served {
        let sectors = u64::from(request.sectors);
        let command_ns = now_ns + overhead_ns;
        // A drive with this habit shows it on a write that follows a write elsewhere.
        let extra = self.spec.controller.extra_write_disconnect.as_ref();
        let extra = extra
            .filter(|_| self.full() && self.after == 1 && self.last_write_end.is_some_and(|end| end != request.lbn));
        let (data_ns, seek_ns, disconnect_ns, reselect_ns) = match extra {
            Some(extra) => {
                let command_ns = now_ns + ns(extra.command_ms);
                let back_ns = command_ns + ns(extra.first_disconnect_ms) + ns(extra.gap_ms) + self.times.reselect;
                (
                    back_ns + self.times.preparation,
                    command_ns + ns(extra.seek_delay_ms),
                    ns(extra.second_disconnect_ms),
                    ns(extra.reselect_ms),
                )
            }
            None => {
                let data_ns = command_ns + self.times.preparation;
                let seek_ns = self.times.write_seek[self.after].map_or(command_ns, |seek_ns| now_ns + seek_ns);
                (data_ns, seek_ns, self.times.write_disconnect, self.times.reselect)
            }
        };
        let in_buffer_ns = data_ns + sectors * self.times.write_sector;
        let data = self.data(data_ns, sectors);
        // Without overlap the arm waits for the data.
        let start_ns = if self.full() { seek_ns } else { in_buffer_ns };
        let start_ns = start_ns.max(self.medium_free_ns);
        let minimum_ns = if self.full() { self.times.minimum_write_seek } else { 0 };
        let medium_ns = self.write_medium(start_ns, request.lbn, request.end(), minimum_ns, &data);
        self.medium_free_ns = medium_ns;
        let report_ns = if self.spec.controller.never_disconnect || medium_ns <= in_buffer_ns {
            medium_ns.max(in_buffer_ns)
        } else {
            medium_ns.max(in_buffer_ns + disconnect_ns) + reselect_ns
        };
        Served { at_ns: report_ns + self.times.write_completion, durable: true, action: Action::WriteMedium }
    }

    /// Data that begin to come at a time.
    fn data(&self, start_ns: u64, sectors: u64) -> Data {
        let each_ns = self.times.write_sector;
        let at_least = u64::from(self.spec.cache.write_start_sectors).clamp(1, sectors.max(1));
        Data { first_ns: start_ns + each_ns + self.times.write_start, each_ns, at_least }
    }

    /// Writes blocks as their data come in; when the last one is on the medium.
    fn write_medium(&mut self, at_ns: u64, lbn: Lbn, end: Lbn, minimum_ns: u64, data: &Data) -> u64 {
        let full = self.full();
        let (mut next, mut at_ns) = (lbn, at_ns);
        let immediate = full && self.spec.cache.immediate_write;
        // Sectors taken as they come must be there before any is.
        let not_before_ns = if immediate { data.in_buffer_ns(data.at_least - 1) } else { 0 };
        let mut how = Approach { write: full, first: true, minimum_ns, not_before_ns, immediate };
        while next < end {
            let run = self.mechanism.run(self.arm, at_ns, next, end, how);
            let lost_ns =
                if full && run.wrapped == run.count { data.lost_ns(&self.mechanism, &run, next.0 - lbn.0) } else { 0 };
            self.arm = run.arm();
            at_ns = run.end_ns + lost_ns;
            next = Lbn(run.first.0 + run.count);
            how.first = false;
            how.minimum_ns = 0;
        }
        at_ns
    }

    /// Everything reported is put on the medium.
    fn flush(&mut self, now_ns: u64) -> Served {
        if !self.pending.is_empty() {
            self.ahead = None;
        }
        while !self.pending.is_empty() {
            self.write_back_one();
        }
        let at_ns = (now_ns + self.times.write[self.after]).max(self.medium_free_ns) + self.times.write_completion;
        Served { at_ns, durable: true, action: Action::Flush }
    }
}
