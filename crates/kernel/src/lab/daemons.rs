//! Writing back: the syncer, the flusher that starts when much is dirty, and making room in memory; and the daemon that
//! does the file system's own work.

use super::{Lab, SECOND_NS, delay_ns, percent_of};
use crate::cache::{CLASSES, Class};
use crate::engine::ActorId;
use crate::machine::{Machine, Syncer};
use crate::program::IoId;
use crate::{BlockId, Durability, Ino, Volume};

/// Blocks that are written together when memory is short or too much is dirty.
const BATCH_BLOCKS: usize = 64;

/// What the daemons go by, and what they are doing.
#[derive(Clone, Debug)]
pub(super) struct Daemons {
    syncer: Syncer,
    background_bytes: u64,
    limit_bytes: u64,
    /// Whether the syncer has a time to wake up, or works.
    syncer_state: State,
    flusher_state: State,
    worker_state: State,
    /// Whether the timer runs that looks for idle time.
    timer_runs: bool,
    /// When the last call was made: the time since then is idle.
    last_call_ns: u64,
    /// Reused.
    batch: Vec<BlockId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Asleep,
    Due,
    Working,
    /// Working, but to no effect: not again before somebody asks.
    Stuck,
}

impl Daemons {
    pub(super) fn new(machine: &Machine) -> Daemons {
        let cache_bytes = machine.memory.buffer_cache_bytes.value;
        Daemons {
            syncer: machine.write_back.syncer,
            background_bytes: percent_of(cache_bytes, machine.write_back.background_percent.value),
            limit_bytes: percent_of(cache_bytes, machine.write_back.limit_percent.value),
            syncer_state: State::Asleep,
            flusher_state: State::Asleep,
            worker_state: State::Asleep,
            timer_runs: false,
            last_call_ns: 0,
            batch: Vec::new(),
        }
    }
}

impl<V: Volume> Lab<V> {
    /// An operation has been made: what it has left too much of is written back by whoever made it, and the daemons
    /// are told of the rest.
    pub(super) fn after_operation(&mut self) {
        self.make_room();
        self.daemons.last_call_ns = self.cx.now_ns;
        if self.daemons.worker_state == State::Asleep {
            self.schedule_worker();
        }
        if self.cx.cache.dirty_bytes() == 0 {
            return;
        }
        if self.cx.cache.dirty_bytes() > self.daemons.limit_bytes {
            self.write_oldest(self.daemons.limit_bytes, true);
        }
        self.wake_writers();
    }

    /// Writes are complete: the file system may have work for its daemon now, or have something to write again.
    pub(super) fn wake_daemons(&mut self) {
        if self.daemons.worker_state == State::Asleep {
            self.schedule_worker();
        }
        if self.cx.cache.dirty_bytes() > 0 {
            self.wake_writers();
        }
    }

    fn wake_writers(&mut self) {
        if self.cx.cache.dirty_bytes() > self.daemons.background_bytes && self.daemons.flusher_state == State::Asleep {
            self.daemons.flusher_state = State::Due;
            self.engine.wake_at(ActorId::FLUSHER, self.cx.now_ns);
        }
        if self.daemons.syncer_state == State::Asleep {
            self.schedule_syncer();
        }
    }

    /// A daemon's time has come, or its program is done.
    pub(super) fn daemon_ready(&mut self, actor: ActorId) {
        self.begin();
        match actor {
            ActorId::SYNCER if self.daemons.syncer_state == State::Due => {
                self.daemons.syncer_state = State::Working;
                self.sync_what_is_due();
            }
            ActorId::SYNCER => {
                self.daemons.syncer_state = State::Asleep;
                return self.schedule_syncer();
            }
            ActorId::FLUSHER
                if self.daemons.flusher_state != State::Stuck
                    && self.cx.cache.dirty_bytes() > self.daemons.background_bytes =>
            {
                let less = self.write_batch(true);
                self.daemons.flusher_state = if less { State::Working } else { State::Stuck };
            }
            ActorId::FLUSHER => {
                self.daemons.flusher_state = State::Asleep;
                return;
            }
            ActorId::TIMER => {
                self.daemons.timer_runs = false;
                if self.daemons.worker_state == State::Asleep {
                    self.schedule_worker();
                }
                return;
            }
            ActorId::WORKER => {
                let idle = self.idle_work_ns().is_some_and(|at_ns| at_ns <= self.cx.now_ns);
                let wanted = idle || self.volume.wants_work(&self.cx);
                if !wanted || !self.volume.work(&mut self.cx, idle) {
                    self.daemons.worker_state = State::Asleep;
                    return self.schedule_timer();
                }
                self.daemons.worker_state = State::Working;
            }
            // A process that another run has left.
            _ => return,
        }
        if self.engine.start(&mut self.cx, actor).is_some() {
            self.engine.wake_at(actor, self.engine.now_ns());
        }
    }

    /// The file system's own daemon wakes up if there is something to do, or will be when nobody calls for a while.
    fn schedule_worker(&mut self) {
        let idle = self.idle_work_ns().is_some_and(|at_ns| at_ns <= self.cx.now_ns);
        if idle || self.volume.wants_work(&self.cx) {
            self.daemons.worker_state = State::Due;
            self.engine.wake_at(ActorId::WORKER, self.cx.now_ns);
        } else {
            self.schedule_timer();
        }
    }

    fn schedule_timer(&mut self) {
        if let Some(at_ns) = self.idle_work_ns().filter(|at_ns| *at_ns > self.cx.now_ns)
            && !self.daemons.timer_runs
        {
            self.daemons.timer_runs = true;
            self.engine.wake_at(ActorId::TIMER, at_ns);
        }
    }

    /// When idle time begins, if there is work for it.
    fn idle_work_ns(&self) -> Option<u64> {
        let after_ns = self.volume.idle_work_after_ns(&self.cx)?;
        Some(self.daemons.last_call_ns.saturating_add(after_ns))
    }

    /// When the syncer next has to look: no later than what is dirty now, or becomes so, is due.
    fn schedule_syncer(&mut self) {
        if self.daemons.syncer == Syncer::None || self.cx.cache.dirty_bytes() == 0 {
            return;
        }
        let now_ns = self.cx.now_ns;
        let due = |class: Class| self.cx.cache.longest_dirty(class).map(|file| self.due_ns(class, file.dirty_since_ns));
        let at_ns = match self.daemons.syncer {
            // On the half minute, whatever the time.
            Syncer::Update => (now_ns / (30 * SECOND_NS) + 1) * 30 * SECOND_NS,
            Syncer::Wheel | Syncer::None => {
                let soonest = now_ns + delay_ns(self.daemons.syncer, Class::Device);
                CLASSES.into_iter().filter_map(due).min().map_or(soonest, |due| due.min(soonest))
            }
        };
        self.daemons.syncer_state = State::Due;
        self.engine.wake_at(ActorId::SYNCER, at_ns.max(now_ns));
    }

    /// The tick of the wheel at which a file is written: ticks are whole seconds.
    fn due_ns(&self, class: Class, dirty_since_ns: u64) -> u64 {
        (dirty_since_ns + delay_ns(self.daemons.syncer, class)).div_ceil(SECOND_NS) * SECOND_NS
    }

    fn sync_what_is_due(&mut self) {
        if self.daemons.syncer == Syncer::Update {
            // There is nobody to tell of an error; the blocks stay dirty.
            let _ = self.volume.sync(&mut self.cx, Durability::Started);
            return;
        }
        let now_ns = self.cx.now_ns;
        for class in CLASSES {
            // Files in the order they became dirty; each is written once, even if something of it stays dirty.
            let mut due: Vec<Ino> = Vec::new();
            for file in self.cx.cache.dirty_files_of(class) {
                if self.due_ns(class, file.dirty_since_ns) > now_ns {
                    break;
                }
                due.push(file.ino);
            }
            for ino in due {
                if class == Class::Device {
                    self.write_back_all_of(ino);
                } else {
                    let _ = self.volume.fsync(&mut self.cx, ino, Durability::Started);
                }
            }
        }
    }

    fn write_back_all_of(&mut self, ino: Ino) {
        let mut batch = std::mem::take(&mut self.daemons.batch);
        batch.extend(self.cx.cache.dirty_of(ino).map(|slot| self.cx.cache.get(slot).id));
        self.volume.write_back(&mut self.cx, &batch);
        batch.clear();
        self.daemons.batch = batch;
    }

    /// Writes what has been dirty for longest until no more than so much is dirty.
    fn write_oldest(&mut self, until_bytes: u64, wait: bool) {
        while self.cx.cache.dirty_bytes() > until_bytes && self.write_batch(wait) {}
    }

    /// Writes some blocks of the file that has been dirty for longest. Says whether less is dirty now.
    fn write_batch(&mut self, wait: bool) -> bool {
        let oldest = CLASSES.into_iter().filter_map(|class| self.cx.cache.longest_dirty(class));
        let Some(ino) = oldest.min_by_key(|file| (file.dirty_since_ns, file.ino)).map(|file| file.ino) else {
            return false;
        };
        let before = self.cx.cache.dirty_bytes();
        let mut batch = std::mem::take(&mut self.daemons.batch);
        batch.extend(self.cx.cache.dirty_of(ino).map(|slot| self.cx.cache.get(slot).id).take(BATCH_BLOCKS));
        self.volume.write_back(&mut self.cx, &batch);
        if wait && !self.wait_for_blocks(&batch) {
            // Others were written instead.
            self.cx.wait_for_own_writes();
        }
        batch.clear();
        self.daemons.batch = batch;
        self.cx.cache.dirty_bytes() < before
    }

    /// Waits for those of the blocks that are under way; says whether any is.
    fn wait_for_blocks(&mut self, blocks: &[BlockId]) -> bool {
        let mut last: Option<IoId> = None;
        for id in blocks {
            let io = self.cx.cache.find(*id).and_then(|slot| self.cx.cache.get(slot).io);
            if let Some(io) = io.filter(|io| last != Some(*io)) {
                self.cx.wait_for(io);
                last = Some(io);
            }
        }
        last.is_some()
    }

    /// Gives up blocks until the cache is within its memory. Dirty blocks that are first to leave are written, and stay
    /// for another round; only if everything is on its way does the process wait, for the first of it.
    pub(super) fn make_room(&mut self) {
        let mut passed = 0;
        let mut batch = std::mem::take(&mut self.daemons.batch);
        while self.cx.cache.bytes() > self.cx.cache.capacity_bytes() {
            let Some(slot) = self.cx.cache.first_to_leave() else { break };
            let buffer = *self.cx.cache.get(slot);
            if buffer.dirty {
                // It may be on its way into memory still, and changed already.
                batch.push(buffer.id);
            } else if let Some(io) = buffer.io {
                if passed >= self.cx.cache.blocks() && batch.is_empty() {
                    self.cx.wait_for(io);
                    self.evict_slot(slot);
                    continue;
                }
            } else {
                self.evict_slot(slot);
                continue;
            }
            self.cx.cache.renew(slot);
            passed += 1;
            if batch.len() >= BATCH_BLOCKS || passed >= self.cx.cache.blocks() {
                self.volume.write_back(&mut self.cx, &batch);
                batch.clear();
                if passed > 4 * self.cx.cache.blocks() + BATCH_BLOCKS {
                    // The file system keeps its blocks dirty: it needs more memory than there is.
                    break;
                }
            }
        }
        if !batch.is_empty() {
            self.volume.write_back(&mut self.cx, &batch);
            batch.clear();
        }
        self.daemons.batch = batch;
    }

    fn evict_slot(&mut self, slot: u32) {
        self.cx.cache.counters.evicted += 1;
        self.cx.drop_slot(slot);
    }
}
