//! Two drives behind one address.

use device::beside::{Beside, BesideError};
use device::{Completion, Device, Drive, Request};

const LOG: std::ops::Range<u64> = 1000..1500;

fn drive() -> Box<dyn Device> {
    Drive::find("st39102lw-uw").unwrap().device()
}

fn beside() -> Beside {
    Beside::new(drive(), drive(), LOG).unwrap()
}

/// Everything that a device completes of what it is given at time 0, in order of time.
fn all(device: &mut dyn Device, requests: &[Request]) -> Vec<Completion> {
    for (tag, request) in (0..).zip(requests) {
        device.submit(0, tag, *request).unwrap();
    }
    let mut done = Vec::new();
    while let Some(at_ns) = device.next_event_ns() {
        device.poll(at_ns, &mut done);
    }
    done
}

#[test]
fn each_drive_takes_its_sectors_as_if_it_were_alone() {
    let (far, log) = (Request::write(9_000_000, 16), Request::write(LOG.start + 32, 16));
    let both = all(&mut beside(), &[far, log]);
    let alone = |request| all(&mut *drive(), &[request])[0].at_ns;
    let mut expected = [(0, alone(far)), (1, alone(Request::write(32, 16)))];
    expected.sort_by_key(|(_, at_ns)| *at_ns);
    assert_eq!(both.iter().map(|done| (done.tag, done.at_ns)).collect::<Vec<_>>(), expected);
    let one = all(&mut *drive(), &[far, log]);
    assert!(both[1].at_ns < one[1].at_ns, "on one drive the second waits for the first");
}

#[test]
fn a_request_across_the_border_completes_once() {
    let across = [Request::write(LOG.start - 8, 16), Request::read(LOG.end - 8, 16), Request::flush()];
    let mut tags: Vec<u64> = all(&mut beside(), &across).iter().map(|done| done.tag).collect();
    tags.sort_unstable();
    assert_eq!(tags, [0, 1, 2]);
}

#[test]
fn the_second_must_be_large_enough_and_alike() {
    let capacity = drive().capacity_sectors();
    let refused = |range| Beside::new(drive(), drive(), range).err();
    assert_eq!(refused(1..capacity + 1), None);
    let there_sectors = capacity;
    assert_eq!(refused(0..capacity + 1), Some(BesideError::TooSmall { needed_sectors: capacity + 1, there_sectors }));
}
