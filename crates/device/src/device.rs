//! The interface of everything that takes requests and time.

use crate::{Completion, FlashCounts, Operation, Request, RequestError};

/// A storage device in virtual time.
///
/// Time is integer nanoseconds from an origin that the caller chooses, less than 2^62 (146 years), and never goes back:
/// every call's `now_ns` is at least that of the call before. A device keeps no clock. It is driven in one of two ways,
/// which must not be mixed while requests are outstanding:
///
/// * **With an event queue.** [`submit`](Device::submit) hands over a request at its time;
///   [`next_event_ns`](Device::next_event_ns) is when the device next has something to do; [`poll`](Device::poll) lets
///   it do everything up to a time and collects completions. An engine polls at the earliest of its devices' events, so
///   that a request submitted in reaction to a completion comes before any later decision of the device's own
///   scheduler.
/// * **Directly.** [`serve`](Device::serve) runs one request on a device with nothing outstanding and returns its
///   completion: the path of one process on one idle disk, without a queue.
///
/// Background work (read-ahead, writing back a cache, garbage collection) goes on between requests in either way and is
/// worked out when next asked.
pub trait Device: Send {
    /// Bytes of a sector.
    fn sector_bytes(&self) -> u32;

    /// Sectors of the device.
    fn capacity_sectors(&self) -> u64;

    /// The most sectors that one command carries.
    fn max_transfer_sectors(&self) -> u32;

    /// Whether it takes [`Operation::Trim`].
    fn supports_trim(&self) -> bool;

    /// What its flash has been made to do since it was new; `None` where there is none. An array's is that of all
    /// members.
    fn flash_counts(&self) -> Option<FlashCounts> {
        None
    }

    /// Another device in just this state: what is asked of one changes nothing on the other.
    fn duplicate(&self) -> Box<dyn Device>;

    /// Hands over a request. `tag` comes back in its [`Completion`].
    fn submit(&mut self, now_ns: u64, tag: u64, request: Request) -> Result<(), RequestError>;

    /// When the device next has something to do; `None` if nothing is outstanding.
    fn next_event_ns(&self) -> Option<u64>;

    /// Does everything up to and including `now_ns`; appends what completed, in order of time.
    fn poll(&mut self, now_ns: u64, completions: &mut Vec<Completion>);

    /// Runs one request on the device, which has nothing outstanding.
    fn serve(&mut self, now_ns: u64, request: Request) -> Result<Completion, RequestError> {
        let mut completions = Vec::new();
        self.submit(now_ns, 0, request)?;
        while let Some(event_ns) = self.next_event_ns() {
            self.poll(event_ns, &mut completions);
            if let Some(done) = completions.last() {
                return Ok(*done);
            }
        }
        panic!("the device has forgotten {request:?}");
    }

    /// Whether the device would take a request; `submit` and `serve` ask this first.
    fn check(&self, request: &Request) -> Result<(), RequestError> {
        if request.operation == Operation::Flush {
            return Ok(());
        }
        if request.sectors == 0 {
            return Err(RequestError::Empty);
        }
        let capacity_sectors = self.capacity_sectors();
        if request.lbn.0 >= capacity_sectors || u64::from(request.sectors) > capacity_sectors - request.lbn.0 {
            return Err(RequestError::OutOfRange { lbn: request.lbn, sectors: request.sectors, capacity_sectors });
        }
        if request.operation == Operation::Trim {
            return if self.supports_trim() { Ok(()) } else { Err(RequestError::NoTrim) };
        }
        if request.sectors > self.max_transfer_sectors() {
            return Err(RequestError::TooLong { sectors: request.sectors, limit_sectors: self.max_transfer_sectors() });
        }
        Ok(())
    }
}

impl Clone for Box<dyn Device> {
    fn clone(&self) -> Box<dyn Device> {
        (**self).duplicate()
    }
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn duplicate(&self) -> Box<dyn Device> {
        (**self).duplicate()
    }
    fn sector_bytes(&self) -> u32 {
        (**self).sector_bytes()
    }
    fn capacity_sectors(&self) -> u64 {
        (**self).capacity_sectors()
    }
    fn max_transfer_sectors(&self) -> u32 {
        (**self).max_transfer_sectors()
    }
    fn supports_trim(&self) -> bool {
        (**self).supports_trim()
    }
    fn flash_counts(&self) -> Option<FlashCounts> {
        (**self).flash_counts()
    }
    fn submit(&mut self, now_ns: u64, tag: u64, request: Request) -> Result<(), RequestError> {
        (**self).submit(now_ns, tag, request)
    }
    fn next_event_ns(&self) -> Option<u64> {
        (**self).next_event_ns()
    }
    fn poll(&mut self, now_ns: u64, completions: &mut Vec<Completion>) {
        (**self).poll(now_ns, completions);
    }
    fn serve(&mut self, now_ns: u64, request: Request) -> Result<Completion, RequestError> {
        (**self).serve(now_ns, request)
    }
    fn check(&self, request: &Request) -> Result<(), RequestError> {
        (**self).check(request)
    }
}
