//! A second laboratory in the state of the first: the same to the nanosecond, and on its own from then on.

use lab::{LabSite, SiteOptions, Spec};
use posix::{Call, Errno, FileSystem, Mode, OpenFlags, Outcome, Site};

fn site(target: &str) -> LabSite {
    LabSite::open(&Spec::parse(target).unwrap(), &SiteOptions::default()).unwrap()
}

/// Makes some files of a directory, and looks at and removes others: what each call gave and took.
fn work(fs: &mut dyn FileSystem, name: &str) -> Vec<String> {
    let mut said = Vec::new();
    let mut call = |fs: &mut dyn FileSystem, call: &Call<'_>| -> Outcome {
        let outcome = fs.call(call);
        said.push(format!("{outcome:?}"));
        outcome
    };
    call(fs, &Call::Mkdir { at: name.into(), mode: Mode(0o755) });
    for n in 0..12_u64 {
        let path = format!("{name}/{n}");
        let open = Call::Open { at: path.as_str().into(), flags: OpenFlags::CREATE_NEW, mode: Mode(0o644) };
        let fd = call(fs, &open).fd().unwrap();
        call(fs, &Call::Write { fd, offset: None, len_bytes: 9000 * n + 1, data: (n == 3).then_some(b"x") });
        if n % 4 == 0 {
            call(fs, &Call::Fsync { fd });
        }
        call(fs, &Call::Close { fd });
        if n % 3 == 0 {
            call(fs, &Call::Unlink { at: path.as_str().into() });
        }
    }
    call(fs, &Call::SyncFs);
    said
}

#[test]
fn a_duplicate_does_the_same_and_then_what_it_is_told() {
    for target in [
        "ffs:size=24M@st32430n",
        "ffs:softdep,size=24M@st32430n",
        "ffs:journal=async,size=32M@raid1:2xst32430n",
        "ffs:size=24M,data=full@ssd-sata",
        "lfs:size=32M@dec-rz26",
    ] {
        let site = site(target);
        let mut first = site.handle();
        work(&mut *first, "before");
        let mut second = first.duplicate().unwrap_or_else(|| panic!("{target}: there is none"));
        assert_eq!((first.now_ns(), first.date_ns()), (second.now_ns(), second.date_ns()), "{target}");
        let (one, other) = (work(&mut *first, "after"), work(&mut *second, "after"));
        assert_eq!(one, other, "{target}");
        work(&mut *second, "only");
        let stat = Call::Stat { at: "only".into(), follow: true };
        assert_eq!(first.call(&stat).result, Err(Errno::ENOENT), "{target}");
        assert!(second.call(&stat).result.is_ok(), "{target}");
        drop((first, second));
        Box::new(site).close().unwrap();
    }
}

#[test]
fn an_image_is_shared_and_not_written() {
    let directory = std::env::temp_dir().join(format!("fsage-lab-{}-an_image_is_shared", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let image = directory.join("a.img");
    let kept = SiteOptions { keep: Some(image.clone()), ..SiteOptions::default() };
    let made = LabSite::open(&Spec::parse("ffs:size=16M").unwrap(), &kept).unwrap();
    work(&mut *made.handle(), "before");
    Box::new(made).close().unwrap();
    let before = std::fs::read(&image).unwrap();
    let opened = site(&format!("ffs:image={}", image.display()));
    let mut first = opened.handle();
    let mut second = first.duplicate().unwrap();
    assert_eq!(work(&mut *first, "after"), work(&mut *second, "after"));
    assert!(before == std::fs::read(&image).unwrap());
    std::fs::remove_dir_all(directory).unwrap();
}

/// A history is told at its own dates; no time passes for that, and none is gone back.
#[test]
fn the_date_goes_on_without_time() {
    let site = site("ffs:size=16M");
    let mut fs = site.handle();
    let (now_ns, date_ns) = (fs.now_ns(), fs.date_ns());
    let later_ns = date_ns + 86_400_000_000_000;
    fs.advance_date(later_ns);
    fs.advance_date(date_ns);
    assert_eq!((fs.now_ns(), fs.date_ns()), (now_ns, later_ns));
    fs.call(&Call::Mkdir { at: "d".into(), mode: Mode(0o755) }).result.unwrap();
    let made = fs.call(&Call::Stat { at: "d".into(), follow: true }).stat().unwrap();
    assert!(made.mtime_ns >= later_ns, "{made:?}");
}
