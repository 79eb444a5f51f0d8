//! A part of a device, and two devices in one state.

use device::partition::Partition;
use device::{Device, Drive, Lbn, Request, RequestError};

fn drive() -> Box<dyn Device> {
    Drive::find("st32430n").unwrap().device()
}

#[test]
fn a_partition_is_the_device_from_its_first_sector_on() {
    const FIRST: u64 = 1_000_000;
    let (mut whole, mut part) = (drive(), Partition::new(drive(), FIRST));
    assert_eq!(part.capacity_sectors(), whole.capacity_sectors() - FIRST);
    let mut now_ns = 0;
    for request in [Request::write(7, 16), Request::read(500_000, 128), Request::flush(), Request::read(500_128, 128)] {
        let there = Request { lbn: Lbn(request.lbn.0 + FIRST), ..request };
        let there = if request == Request::flush() { request } else { there };
        let (one, other) = (part.serve(now_ns, request).unwrap(), whole.serve(now_ns, there).unwrap());
        assert_eq!(one, other, "{request:?}");
        now_ns = one.at_ns;
    }
    let behind = Request::read(part.capacity_sectors() - 1, 2);
    assert!(matches!(part.submit(now_ns, 0, behind), Err(RequestError::OutOfRange { .. })));
}

/// What is asked of one does not move the other's arm.
#[test]
fn a_duplicate_goes_on_from_the_same_state() {
    for name in ["st32430n", "ssd-sata"] {
        let mut first = Drive::find(name).unwrap().device();
        let at_ns = first.serve(0, Request::write(3_000_000, 64)).unwrap().at_ns;
        let mut second = first.duplicate();
        let far = Request::read(100, 64);
        let (one, other) = (first.serve(at_ns, far).unwrap(), second.serve(at_ns, far).unwrap());
        assert_eq!(one, other, "{name}");
        let third = first.duplicate().serve(one.at_ns, far);
        second.serve(one.at_ns, Request::write(2_000_000, 64)).unwrap();
        assert_eq!(first.serve(one.at_ns, far), third, "{name}");
    }
}
