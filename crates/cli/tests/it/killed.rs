//! What a command that was killed had half made goes with the next one of any kind, which need not know of it.

use crate::common;
use crate::common::fsage;
use crate::common::process::{Running, until};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use testkit::{Need, Tool};

/// How often a command that ends by itself is begun until it is seen half way.
const ATTEMPTS: u32 = 50;

/// A directory to work in, and what fsage has for TMPDIR and for its list of what it makes.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["work", "tmp", "state"] {
            fs::create_dir(dir.path().join(name)).expect("a directory");
        }
        Place { dir }
    }

    fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    fn names(&self) -> Vec<String> {
        ["work", "tmp"].iter().flat_map(|name| common::names(&self.dir.path().join(name))).collect()
    }

    fn does(&self, args: &[&str]) {
        let mut command = fsage();
        command.env("TMPDIR", self.dir.path().join("tmp")).env("XDG_STATE_HOME", self.dir.path().join("state"));
        common::succeeds(&command.current_dir(self.work()).args(args).output().expect("the binary runs"));
    }

    /// Kills a command with SIGKILL as soon as something is so, and says what was there just then that was not
    /// before. Afterwards it may be gone: root has one list of what to sweep, and the fsage of any other test sweeps.
    fn killed(&self, args: &[&str], is_so: impl Fn() -> bool) -> Vec<String> {
        self.killed_or_ended(args, is_so).unwrap_or_else(|| panic!("{args:?} ended before anything was seen of it"))
    }

    /// The same of a command that ends by itself. The moment is short, and on a busy machine the command may have ended
    /// before it was seen: then `undo` takes back what it did, if it did, and it begins again.
    fn killed_half_way(&self, args: &[&str], is_so: impl Fn() -> bool, undo: impl Fn()) -> Vec<String> {
        for _ in 0..ATTEMPTS {
            if let Some(left) = self.killed_or_ended(args, &is_so).filter(|_| is_so()) {
                return left;
            }
            undo();
        }
        panic!("{args:?} was never seen half way in {ATTEMPTS} attempts");
    }

    /// None if the command ended first.
    fn killed_or_ended(&self, args: &[&str], is_so: impl Fn() -> bool) -> Option<Vec<String>> {
        let before = self.names();
        let mut command = Command::new(env!("CARGO_BIN_EXE_fsage"));
        command.env("TMPDIR", self.dir.path().join("tmp")).env("XDG_STATE_HOME", self.dir.path().join("state"));
        command.args(args).current_dir(self.work()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = Running { child: command.spawn().expect("the binary runs") };
        let mut ended = false;
        until("it is the moment to kill it", || {
            ended = running.child.try_wait().expect("a child").is_some();
            ended || is_so()
        });
        if ended {
            return None;
        }
        let left = self.names().into_iter().filter(|name| !before.contains(name)).collect();
        running.signal("KILL");
        running.ends();
        Some(left)
    }

    /// Whether there is something whose name begins so.
    fn has(&self, beginning: &str) -> bool {
        self.names().iter().any(|name| name.starts_with(beginning))
    }
}

/// The copy of an image stayed beside it for ever.
#[test]
fn a_copy_of_an_image_goes() {
    let place = Place::new();
    let tree = place.dir.path().join("tree");
    fs::create_dir(&tree).expect("a directory");
    for n in 0..2_000 {
        fs::write(tree.join(n.to_string()), [7; 5_000]).expect("a new file");
    }
    for kind in ["ffs", "lfs"] {
        place.does(&["mkfs", kind, &format!("{kind}.img"), "--size", "200M", "--populate", "../tree"]);
    }
    let before = place.names();
    let sums = || ["ffs.img", "lfs.img"].map(|name| fs::read(place.work().join(name)).expect("an image"));
    let whole = sums();
    for (args, image) in [
        (&["cp", "../tree", "ffs.img:/again"][..], "ffs.img"),
        (&["cp", "../tree", "lfs.img:/again"], "lfs.img"),
        (&["clean", "lfs.img"], "lfs.img"),
    ] {
        let undo = || {
            for (name, bytes) in ["ffs.img", "lfs.img"].iter().zip(&whole) {
                fs::write(place.work().join(name), bytes).expect("an image");
            }
        };
        let left = place.killed_half_way(args, || place.has(&format!(".{image}.")), undo);
        assert_eq!(left.len(), 1, "{args:?} had {left:?}");
        place.does(&["drive", "list"]);
        assert_eq!(place.names(), before, "{args:?}");
        assert!(sums() == whole, "{args:?} changed an image");
    }
}

/// Half a profile stayed until the same one was written again.
#[test]
fn half_a_profile_goes() {
    let place = Place::new();
    let call = |n: u32| {
        format!("1 17000000{:02}.{:06} stat(\"/d/{n}\", {{st_size=5}}) = 0 <0.000010>\n", n / 10_000, n % 10_000)
    };
    fs::write(place.work().join("a.strace"), (0..200_000).map(call).collect::<String>()).expect("a new file");
    let before = place.names();
    // Killed half way it left no profile, and the fsage of another test may have swept the half before we looked
    // again.
    let undo = || match fs::remove_dir_all(place.work().join("w.workload")) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => (),
        removed => removed.expect("a profile can be removed"),
    };
    let half = || place.has(".w.workload.partial-");
    let left = place.killed_half_way(&["import", "a.strace", "-o", "w.workload"], half, undo);
    assert_eq!(left.len(), 1, "{left:?}");
    place.does(&["drive", "list"]);
    assert_eq!(place.names(), before);
}

/// So did what a recording had begun. What it records is the user's and goes on; the spool is what `import` goes on
/// from.
#[test]
fn half_a_recording_goes_but_for_its_spool() {
    if !testkit::need(Need::Tool(Tool::Strace)) {
        return;
    }
    let place = Place::new();
    let fifo = place.dir.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).expect("a FIFO");
    let both = fs::File::options().read(true).write(true).open(&fifo).expect("the FIFO");
    // It works elsewhere, so the profile grows beside its place.
    let waits = "cd .. && echo $$ >pid && read line <fifo && echo $line >done";
    let args = [
        "record",
        "--no-working-directory",
        "--spool-in",
        ".",
        "--with",
        "strace",
        "-o",
        "r.workload",
        "sh",
        "-c",
        waits,
    ];
    let said = |name: &str| fs::read_to_string(place.dir.path().join(name)).unwrap_or_default();
    let left = place.killed(&args, || said("pid").ends_with('\n') && place.has(".r.workload.partial-"));
    assert_eq!(left.len(), 2, "{left:?}");
    place.does(&["drive", "list"]);
    assert_eq!(place.names(), ["r.spool"]);
    (&both).write_all(b"on\n").expect("room in the FIFO");
    until("the command ends", || said("done") == "on\n");
}

/// Its spool stayed in a directory of its own, though nobody goes on from it. What ran for it finds its directory gone,
/// and ends.
#[test]
fn a_quickstart_that_records_goes_with_its_spool() {
    if !testkit::need(Need::Tool(Tool::Strace)) {
        return;
    }
    let place = Place::new();
    fs::create_dir(place.work().join("target")).expect("a directory");
    let sites = || fs::read_dir(place.work().join("target")).expect("a directory").flatten();
    let works_with = |name| {
        let target = place.work().join("target");
        move || common::works_in(&target).iter().any(|path| path.join(name).exists())
    };
    let (works, spools) = (works_with("work/project"), works_with("quickstart.spool"));
    place.killed(&["quickstart", "target"], || works() && spools());
    place.does(&["drive", "list"]);
    assert_eq!(sites().count(), 0);
    let works_here = |process: fs::DirEntry| {
        fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(place.work()))
    };
    until("the workload ends", || !fs::read_dir("/proc").expect("processes").flatten().any(works_here));
    place.does(&["drive", "list"]);
    assert_eq!(sites().count(), 0);
    assert_eq!(place.names(), ["target"]);
}
