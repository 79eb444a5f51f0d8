//! A device whose times can be worked out in the head: of no drive there is. One that takes no time is what a
//! laboratory has that is only looked at.

use crate::{Completion, Device, Operation, Request, RequestError};

/// Which waiting request is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The oldest.
    Oldest,
    /// The nearest to where the last one ended.
    Nearest,
}

/// One request at a time: a fixed time, and so much for each sector of distance from where the last one ended.
#[derive(Clone, Debug)]
pub struct FixedDevice {
    sectors: u64,
    service_ns: u64,
    distance_ps_per_sector: u64,
    choice: Choice,
    head: u64,
    waiting: Vec<(u64, Request)>,
    in_service: Option<Completion>,
}

impl FixedDevice {
    /// A device of so many bytes that serves requests in order of arrival, each in a fixed time.
    pub fn new(capacity_bytes: u64, service_ns: u64) -> FixedDevice {
        FixedDevice::with_distance(capacity_bytes, service_ns, 0, Choice::Oldest)
    }

    /// The same with a time for distance, and a choice.
    pub fn with_distance(
        capacity_bytes: u64,
        service_ns: u64,
        distance_ps_per_sector: u64,
        choice: Choice,
    ) -> FixedDevice {
        FixedDevice {
            sectors: capacity_bytes / 512,
            service_ns,
            distance_ps_per_sector,
            choice,
            head: 0,
            waiting: Vec::new(),
            in_service: None,
        }
    }

    fn dispatch(&mut self, now_ns: u64) {
        if self.in_service.is_some() || self.waiting.is_empty() {
            return;
        }
        let distance = |request: &Request| request.lbn.0.abs_diff(self.head);
        let next = match self.choice {
            Choice::Oldest => 0,
            Choice::Nearest => {
                let nearest = (0..self.waiting.len()).min_by_key(|&n| distance(&self.waiting[n].1));
                nearest.unwrap_or(0)
            }
        };
        let (tag, request) = self.waiting.remove(next);
        let travel_ns = match request.operation {
            Operation::Flush => 0,
            _ => distance(&request) * self.distance_ps_per_sector / 1000,
        };
        self.head = request.end().0;
        self.in_service = Some(Completion { tag, at_ns: now_ns + self.service_ns + travel_ns, durable: true });
    }
}

impl Device for FixedDevice {
    fn duplicate(&self) -> Box<dyn Device> {
        Box::new(self.clone())
    }

    fn sector_bytes(&self) -> u32 {
        512
    }

    fn capacity_sectors(&self) -> u64 {
        self.sectors
    }

    fn max_transfer_sectors(&self) -> u32 {
        256
    }

    fn supports_trim(&self) -> bool {
        true
    }

    fn submit(&mut self, now_ns: u64, tag: u64, request: Request) -> Result<(), RequestError> {
        self.check(&request)?;
        self.waiting.push((tag, request));
        self.dispatch(now_ns);
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        self.in_service.map(|done| done.at_ns)
    }

    fn poll(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        while let Some(done) = self.in_service.take_if(|done| done.at_ns <= now_ns) {
            completions.push(done);
            self.dispatch(done.at_ns);
        }
    }
}
