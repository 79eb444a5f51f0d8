//! One pass over the trace: preprocessing once, then cache, pattern, price and sums per group of systems.
//!
//! Caches depend on sizes and on the order of calls, not on prices, unless write-back comes in, which depends on the
//! predicted time. So systems with the same parameters share one cache simulation; if write-back does come in, the pass
//! is thrown away and made again with one simulation each. A system's prediction never depends on which others are in
//! the run.

use super::ahead::{PART_BYTES, ReadAhead};
use super::annotated::{Annotated, Mark, NodeId, Note, Pattern, Status, Step};
use super::cache::{CacheOptions, CacheStage, Unstable};
use super::given::Given;
use super::options::{InitialCaches, Pace, PredictOptions};
use super::parts::{self, Part, begin};
use super::pattern::PatternStage;
use super::postprocess::{Coverage, CoverageCounter, Postprocess};
use super::preprocess::Preprocess;
use super::price::{Context, Pricer};
use super::request::{Request, Requests};
use super::source::Workload;
use super::sync::SyncRules;
use super::timeline::{CacheTimeline, Counts, Recorder};
use columnar::FileError;
use std::num::NonZero;
use system::vector::Class;
use system::{Distance, SystemProfile};
use trace::{Batch, Call, Event, Op, Paths};

/// Columns of a trace that no price depends on.
const UNPRICED: [&str; 4] = ["file_id", "parent_id", "running_ns", "blocked_ns"];

/// A priced call, for those who want each of them (distributions, annotated traces).
#[derive(Clone, Copy, Debug)]
pub struct PricedCall<'a> {
    /// Which of the systems.
    pub system: usize,
    /// Its position in its batch.
    pub index: usize,
    /// The call.
    pub event: &'a Event,
    /// The paths that it names.
    pub paths: &'a Paths,
    /// What preprocessing found.
    pub note: &'a Note,
    /// What the caches made of its steps, in their order.
    pub marks: &'a [Mark],
    /// Its request vector.
    pub requests: &'a [Request],
    /// Predicted latency, nanoseconds.
    pub ns: f64,
    /// Of that, waiting for write-back: in no entry.
    pub stall_ns: f64,
    /// What the entries are multiplied by.
    pub context: Context,
    /// Number of the entry with the largest share.
    pub dominant: u16,
    /// Its system's prices.
    pub pricer: &'a Pricer,
    /// What was not stable when it began.
    pub unstable: Unstable,
    /// Dirty pages of its file then.
    pub file_dirty_pages: u64,
}

/// What a call found before it changed anything.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    unstable: Unstable,
    file_dirty_pages: u64,
}

/// Receives every priced call of every system.
pub type CallSink<'s> = &'s mut (dyn FnMut(PricedCall<'_>) + Send);

/// One system of a group.
pub(super) struct Member<'p> {
    pub system: usize,
    pub profile: &'p SystemProfile,
    pub pricer: Pricer,
    pub post: Postprocess,
    now_ns: f64,
    ahead: ReadAhead,
    /// The caches were emptied, and nothing has been synced since.
    settled: bool,
    /// When the device last had something to do, where it matters.
    device_ns: Option<f64>,
    slowdown: f64,
}

/// Syncs of the trace that are on their way: at most one for each thread.
#[derive(Debug, Default)]
struct Syncing {
    ends_ns: Vec<u64>,
}

impl Syncing {
    /// How many other syncs are on their way when a sync begins, which from then on is one of them; 0 for any other
    /// call.
    fn beside(&mut self, event: &Event) -> u32 {
        if !matches!(event.call, Call::Fsync(_) | Call::Fdatasync(_)) {
            return 0;
        }
        let begins_ns = event.head.t_ns;
        self.ends_ns.retain(|&end_ns| end_ns > begins_ns);
        let others = u32::try_from(self.ends_ns.len()).unwrap_or(u32::MAX);
        self.ends_ns.push(begins_ns.saturating_add(event.head.dur_ns));
        others
    }
}

/// The call of the trace, other than a sync, that ends last of those that have begun. (Who syncs sleeps.)
#[derive(Debug, Default)]
struct Working {
    end_ns: u64,
    /// Its process and thread.
    thread: (u32, u32),
}

impl Working {
    /// Whether another thread is in a call when a call begins.
    fn beside(&mut self, event: &Event) -> bool {
        let thread = (event.head.pid, event.head.tid);
        let beside = event.head.t_ns < self.end_ns && thread != self.thread;
        let end_ns = event.head.t_ns.saturating_add(event.head.dur_ns);
        if end_ns > self.end_ns && !matches!(event.call, Call::Fsync(_) | Call::Fdatasync(_)) {
            *self = Working { end_ns, thread };
        }
        beside
    }
}

/// When each kind of call was made last, by the number of the call.
#[derive(Debug, Default)]
struct Recent {
    calls: u64,
    last: Vec<Option<u64>>,
}

impl Recent {
    /// How far back the last call of a kind is when another is made.
    fn distance(&mut self, op: Op) -> Distance {
        self.calls += 1;
        self.last.resize(Op::ALL.len(), None);
        let last = self.last[op as usize].replace(self.calls);
        Distance::of(last.map_or(u64::MAX, |last| self.calls - last))
    }
}

/// A file that a call reads from the device.
#[derive(Clone, Copy, Debug)]
struct FromDevice {
    node: NodeId,
    /// It is read on from where it was read last.
    sequential: bool,
}

/// Systems that share a cache simulation.
pub(super) struct Group<'p> {
    pub cache: CacheStage,
    pattern: PatternStage,
    pub members: Vec<Member<'p>>,
    requests: Requests,
    /// Those of the call under way, for who asks.
    marks: Vec<Mark>,
    /// How long that waits for what is being written already.
    waits_ns: f64,
    /// What the call under way reads from the device, last.
    reads: Option<FromDevice>,
    recorder: Recorder,
    syncing: Syncing,
    working: Working,
    recent: Recent,
    pace: Pace,
    /// Request vectors that take the place of those found here, for the only member.
    given: Option<Given<'p>>,
}

/// What a pass leaves behind.
pub(super) struct Pass<'p> {
    pub preprocess: Preprocess,
    pub groups: Vec<Group<'p>>,
    pub coverage: Coverage,
}

/// Makes a pass, pricing the request vectors `given` of one system in place of those found. `None`: systems that shared
/// a simulation may not; make it again with `share` off.
///
/// Preprocessing, which comes once, runs in the calling thread; the groups run behind it, in as many threads as there
/// are processors. Each of them sees every call in the order of the trace, so that nothing depends on how many threads
/// there are. With a sink they share one thread: what it hears has an order, too.
pub(super) fn pass<'p>(
    workload: &dyn Workload,
    systems: &'p [SystemProfile],
    options: &PredictOptions,
    share: bool,
    given: Option<Given<'p>>,
    sink: Option<CallSink<'_>>,
) -> Result<Option<Pass<'p>>, FileError> {
    let mut preprocess = begin(workload.path(), &workload.snapshot()?, options.calls)?;
    let mut groups = groups_of(systems, options, share, &preprocess);
    if given.is_some() {
        let [group] = groups.as_mut_slice() else { unreachable!("request vectors are given for one system") };
        group.given = given;
    }
    let mut counter = CoverageCounter::default();
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let of_each = if sink.is_some() { groups.len() } else { groups.len().div_ceil(threads) };
    let unread: &[&str] = if sink.is_some() { &[] } else { &UNPRICED };
    std::thread::scope(|scope| {
        let (mut rest, mut sink) = (groups.chunks_mut(of_each), sink);
        let mut own = if threads == 1 { rest.next().map(|groups| (groups, sink.take())) } else { None };
        let behind = rest.map(|groups| {
            let mut sink = sink.take();
            parts::thread(scope, move |part| take_part(groups, part, &mut sink))
        });
        let behind =
            behind.collect::<Result<Vec<_>, _>>().map_err(FileError::io(workload.path(), "start a thread for"))?;
        parts::each(workload, unread, &mut preprocess, &mut |part| {
            let (batch, annotated) = part;
            for (event, note) in batch.events.iter().skip(annotated.first).zip(&annotated.notes) {
                counter.count(event, note);
            }
            let here = own.as_mut().is_none_or(|(groups, sink)| take_part(groups, part, sink));
            // A thread that takes no more has failed, or its systems must split: both are looked for below.
            here && behind.iter().all(|parts| parts.send(part.clone()).is_ok())
        })
    })?;
    if let Some(error) = groups.iter_mut().find_map(|group| group.given.as_mut()?.failed()) {
        return Err(error);
    }
    if groups.iter().any(Group::must_split) {
        return Ok(None);
    }
    if let Some(given) = groups.iter_mut().find_map(|group| group.given.as_mut()) {
        given.finish()?;
    }
    let coverage = counter.finish(&preprocess, workload.stated_coverage());
    Ok(Some(Pass { preprocess, groups, coverage }))
}

/// Takes a part through the stages after preprocessing; says whether to go on.
fn take_part(groups: &mut [Group<'_>], (batch, annotated): &Part, sink: &mut Option<CallSink<'_>>) -> bool {
    for group in groups.iter_mut() {
        group.batch(batch, annotated, sink);
    }
    groups.iter().all(|group| !group.must_split() && group.given.as_ref().is_none_or(|given| !given.has_failed()))
}

fn groups_of<'p>(
    systems: &'p [SystemProfile],
    options: &PredictOptions,
    share: bool,
    preprocess: &Preprocess,
) -> Vec<Group<'p>> {
    let mut groups: Vec<Group<'p>> = Vec::new();
    for (system, profile) in systems.iter().enumerate() {
        let member = Member::new(system, profile, options);
        let same = |g: &&mut Group<'p>| {
            let first = g.members.first().map(|m| m.profile);
            first.is_some_and(|f| f.parameters == profile.parameters && SyncRules::of(f) == SyncRules::of(profile))
        };
        match groups.iter_mut().find(same).filter(|_| share) {
            Some(group) => group.members.push(member),
            None => groups.push(Group::new(member, options, preprocess)),
        }
    }
    groups
}

impl<'p> Member<'p> {
    pub(super) fn new(system: usize, profile: &'p SystemProfile, options: &PredictOptions) -> Member<'p> {
        let pricer = Pricer::new(profile);
        let post = Postprocess::new(pricer.names().len(), options.files_top);
        let device_ns = pricer.has(Class::SyncIdle).then_some(0.0);
        let ahead = ReadAhead::default();
        let settled = options.initial == InitialCaches::Cold;
        Member {
            system,
            profile,
            pricer,
            post,
            now_ns: 0.0,
            ahead,
            settled,
            device_ns,
            slowdown: profile.writeback_slowdown(),
        }
    }
}

impl Member<'_> {
    /// Takes off what has been read ahead of what is read on.
    fn read_ahead(&mut self, read: FromDevice, requests: &mut Requests) {
        let FromDevice { node, sequential: true } = read else { return self.ahead.begin(read.node) };
        let Some(bytes) = requests.reads_on_bytes() else { return };
        let alone_ns = |class| self.pricer.alone_ns(class, bytes);
        let (Some(read_ns), Some(cached_ns)) = (alone_ns(Class::ReadSeq), alone_ns(Class::ReadCached)) else { return };
        let wait_ns = read_ns - cached_ns;
        if wait_ns > 0.0 {
            let part_ns = wait_ns * (PART_BYTES as f64 / bytes as f64).max(1.0);
            let passed_ns = self.ahead.read_on(node, wait_ns, part_ns);
            if passed_ns > 0.0 {
                requests.read_ahead(bytes, passed_ns / wait_ns);
            }
        }
    }
}

impl<'p> Group<'p> {
    pub(super) fn new(member: Member<'p>, options: &PredictOptions, preprocess: &Preprocess) -> Group<'p> {
        let warm = options.initial == InitialCaches::Warm;
        let cache_options =
            CacheOptions { warm, chunk_pages: options.chunk_pages, rules: SyncRules::of(member.profile) };
        let mut cache = CacheStage::new(&member.profile.parameters, cache_options);
        if warm {
            cache.warm_with(preprocess.tree());
        }
        Group {
            cache,
            pattern: PatternStage::default(),
            members: vec![member],
            requests: Requests::default(),
            marks: Vec::new(),
            waits_ns: 0.0,
            reads: None,
            recorder: Recorder::new(),
            syncing: Syncing::default(),
            working: Working::default(),
            recent: Recent::default(),
            pace: options.pace,
            given: None,
        }
    }

    /// Whether its systems shared a simulation that depended on the time of one of them.
    fn must_split(&self) -> bool {
        self.members.len() > 1 && self.cache.time_mattered()
    }

    /// Takes one annotated batch through the stages after preprocessing.
    pub(super) fn batch(&mut self, batch: &Batch, annotated: &Annotated, sink: &mut Option<CallSink<'_>>) {
        for (i, (event, note)) in batch.events.iter().skip(annotated.first).zip(&annotated.notes).enumerate() {
            let steps = annotated.steps_of(i);
            if let Some(given) = &mut self.given {
                given.next(event);
            }
            if note.status != Status::Modelled && steps.is_empty() {
                continue;
            }
            if self.recorder.is_over(event.head.t_ns) {
                self.recorder.close(event.head.t_ns, self.counts());
            }
            let before = match sink {
                Some(_) => self.before(event, note),
                None => Before::default(),
            };
            let wrote = self.marks(event, steps, sink.is_some());
            if note.status == Status::Modelled {
                self.price(annotated.first + i, (event, &batch.paths), note, before, wrote, sink);
            }
            if steps.iter().any(|s| matches!(s, Step::Freed { .. })) {
                for member in &mut self.members {
                    member.post.freed(event, batch, steps);
                }
            }
        }
    }

    /// What the caches did over the time of the trace.
    pub(super) fn cache_timeline(&self) -> CacheTimeline {
        self.recorder.timeline(self.counts())
    }

    fn counts(&self) -> Counts {
        let counts = self.cache.counts();
        Counts {
            page_hits: counts.page_hits,
            page_misses: counts.page_misses,
            dirty_pages: self.cache.dirty_pages(),
            written_back_pages: counts.pages_written_back,
        }
    }

    /// The time of an event: that of the member who is furthest.
    fn advance(&mut self, event: &Event) -> f64 {
        let mut now_ns = 0.0f64;
        for member in &mut self.members {
            if self.pace == Pace::Recorded {
                member.ahead.pass(event.head.t_ns as f64 - member.now_ns);
                member.now_ns = member.now_ns.max(event.head.t_ns as f64);
            }
            now_ns = now_ns.max(member.now_ns);
        }
        self.cache.tick(now_ns);
        now_ns
    }

    /// What a call finds, for those who ask.
    fn before(&mut self, event: &Event, note: &Note) -> Before {
        let now_ns = self.advance(event);
        let file_dirty_pages = if note.node == NodeId::NONE { 0 } else { self.cache.dirty_pages_of(note.node) };
        Before { unstable: self.cache.unstable(now_ns), file_dirty_pages }
    }

    /// Cache and pattern stages of one event, and its requests; says whether it wrote. The marks are kept if asked.
    #[inline]
    fn marks(&mut self, event: &Event, steps: &[Step], keep: bool) -> bool {
        let now_ns = self.advance(event);
        self.requests.clear();
        self.marks.clear();
        self.waits_ns = 0.0;
        self.reads = None;
        let mut wrote = false;
        for step in steps {
            let mut mark = self.cache.apply(step, now_ns);
            self.pattern.apply(step, &mut mark);
            self.requests.step(step, &mark);
            if let (&Step::Read { node, direct: false, .. }, &Mark::Read { disk_bytes: 1.., pattern, .. }) =
                (step, &mark)
            {
                self.reads = Some(FromDevice { node, sequential: pattern == Pattern::Sequential });
            }
            self.waits_ns += mark.wait_ns();
            if keep {
                self.marks.push(mark);
            }
            wrote |= matches!(step, Step::Write { .. });
        }
        self.recorder.dirty(self.cache.dirty_pages());
        wrote
    }

    #[inline]
    fn price(
        &mut self,
        index: usize,
        (event, paths): (&Event, &Paths),
        note: &Note,
        before: Before,
        wrote: bool,
        sink: &mut Option<CallSink<'_>>,
    ) {
        let syncs_beside = self.syncing.beside(event);
        let beside = self.working.beside(event);
        let distance = self.recent.distance(event.op());
        for member in &mut self.members {
            let busy = self.cache.is_writing_back(member.now_ns);
            let writeback_factor = if busy { member.slowdown } else { 1.0 };
            // What is clean waits for nobody.
            let syncs_beside = if self.requests.has_sync() { syncs_beside } else { 0 };
            let factor = writeback_factor * member.profile.sync_slowdown(syncs_beside);
            let rest_ns = member.device_ns.filter(|_| !busy).map(|since_ns| member.now_ns - since_ns);
            let uses_device = self.requests.use_device();
            let own_requests = self.requests.list().len();
            if let Some(rest_ns) = rest_ns {
                self.requests.rested(rest_ns);
            }
            if member.settled {
                member.settled = !self.requests.first_sync();
            }
            if let Some(read) = self.reads {
                member.read_ahead(read, &mut self.requests);
            }
            if let Some(given) = &self.given {
                self.requests.replace(given.requests());
            }
            let context = Context { factor, distance, beside };
            let price = member.pricer.price(event.op(), self.requests.list(), context);
            let throttled_ns = if wrote { self.cache.throttle(member.now_ns) } else { 0.0 };
            let stall_ns = throttled_ns + self.waits_ns;
            let ns = price.ns + stall_ns;
            member.now_ns += ns.max(0.0);
            if !busy && !uses_device {
                member.ahead.pass(ns);
            }
            if let Some(device_ns) = &mut member.device_ns
                && (busy || uses_device)
            {
                *device_ns = member.now_ns;
            }
            member.post.overhead_ns += price.ns * (1.0 - 1.0 / writeback_factor);
            member.post.add(event, note, price, ns, stall_ns);
            if let Some(sink) = sink {
                let (marks, requests) = (self.marks.as_slice(), self.requests.list());
                sink(PricedCall {
                    system: member.system,
                    index,
                    event,
                    paths,
                    note,
                    marks,
                    requests,
                    ns,
                    stall_ns,
                    context,
                    dominant: price.dominant,
                    pricer: &member.pricer,
                    unstable: before.unstable,
                    file_dirty_pages: before.file_dirty_pages,
                });
            }
            self.requests.truncate(own_requests);
        }
    }
}
