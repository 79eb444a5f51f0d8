//! The example runs, and shows what it says: virtual time is the same every time, and waiting for the disk costs.

#[path = "../../examples/laboratory.rs"]
#[allow(dead_code)] // Its `main` reads the arguments of the process.
mod laboratory;

fn took(target: &str) -> (u64, u64) {
    laboratory::make_and_remove(&mut *lab::Spec::parse(target).unwrap().open().unwrap()).unwrap()
}

#[test]
fn the_laboratory_takes_the_same_time_again_and_longer_where_it_waits() {
    let conventional = took("ffs:conventional,size=64M");
    assert_eq!(took("ffs:conventional,size=64M"), conventional);
    let softdep = took("ffs:softdep,size=64M");
    assert!(softdep.0 < conventional.0 && softdep.1 < conventional.1, "{softdep:?} {conventional:?}");
}
