//! Recordings, replayed.

use super::stage::{NOBODY, PATIENCE, Stage, User, every_path, open_directory};
use super::{Dice, Seeds};
use crate::common;
use common::{code, fsage, stderr};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use trace::profile::{Meta, Row, Writer, WriterOptions};
use trace::{Batch, Event, OfdId, Op, Paths, Snapshot, flag};

// Nothing is concluded from it, as from most errors, so that links stay where an attack wants them.
const EPERM: u16 = 1;
const EACCES: u16 = 13;
const EEXIST: u16 = 17;
const ENOENT: u16 = 2;

/// Whether an ordinary user of this machine may have a user namespace.
fn nobody_has_namespaces() -> bool {
    let mut command = std::process::Command::new("setpriv");
    command.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"), "--clear-groups".to_owned()]);
    command.args(["unshare", "--user", "true"]).status().is_ok_and(|status| status.success())
}

impl Stage {
    /// Replays a recording, and checks that nothing happened outside. Answers what the replay says of itself.
    fn replay(&mut self, recording: &Recording, args: &[&str]) -> serde_json::Value {
        let profiles = open_directory();
        let profile = profiles.path().join("hostile.workload");
        recording.write(&profile);
        // Whoever replays it here may read it.
        for path in every_path(&profile) {
            let mode = if path.is_dir() { 0o755 } else { 0o644 };
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
        }
        let mut command = self.fsage();
        command.arg("replay").arg(&profile).arg(self.at("target")).arg("--json").args(args);
        let output = self.run(&mut command);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let without = stderr(&output).contains("no user namespace");
        let refused = self.user == User::Nobody && !nobody_has_namespaces();
        assert_eq!(without, self.user == User::NobodyWithout || refused, "{}", stderr(&output));
        let left = common::names(&self.at("target"));
        assert!(left.iter().all(|name| !name.starts_with("fsage-")), "left behind: {left:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

/// A recording that somebody has made up.
#[derive(Default)]
struct Recording {
    calls: Vec<Row>,
    paths: Paths,
    descriptions: u64,
    /// How long each call is said to take; they begin a microsecond apart.
    dur_ns: u64,
    threads: u64,
}

impl Recording {
    /// A call that is said to have ended in this way.
    fn call(&mut self, op: Op, errno: u16, path: impl AsRef<OsStr>) -> &mut Row {
        let seq = self.calls.len() as u64;
        let path = self.paths.intern(path.as_ref().as_bytes());
        let tid = 1 + u32::try_from(seq % self.threads.max(1)).expect("few threads");
        let ret = if errno == 0 { 0 } else { -1 };
        let event = Row { path: Some(path), errno, ret, tid, dur_ns: self.dur_ns, ..Row::new(seq, seq * 1000, op) };
        self.calls.push(event);
        self.calls.last_mut().expect("just pushed")
    }

    /// A call with two paths; of a symbolic link, the second is where it leads.
    fn two(&mut self, op: Op, errno: u16, path: impl AsRef<OsStr>, path2: impl AsRef<OsStr>) -> &mut Row {
        let path2 = self.paths.intern(path2.as_ref().as_bytes());
        let event = self.call(op, errno, path);
        event.path2 = Some(path2);
        event
    }

    /// An open that is said to have succeeded; answers the description.
    fn open(&mut self, path: impl AsRef<OsStr>, flags: u32) -> OfdId {
        self.descriptions += 1;
        let ofd = OfdId(self.descriptions);
        let event = self.call(Op::Open, 0, path);
        (event.ofd, event.flags, event.mode) = (Some(ofd), flags, Some(0o4777));
        ofd
    }

    fn write(&self, profile: &Path) {
        let mut writer = Writer::create(profile, WriterOptions::default()).expect("a new profile");
        let events = self.calls.iter().map(Event::from).collect();
        let batch = Batch { events, paths: self.paths.clone(), ..Batch::default() };
        writer.push(&batch).expect("events in order");
        writer.finish(Meta::default(), &Snapshot::default()).expect("a whole profile");
    }
}

/// As whoever runs the test, and as ordinary users, which takes root.
fn everybody(run: fn(User)) {
    run(User::Same);
    if testkit::need(testkit::Need::Root) {
        run(User::Nobody);
        run(User::NobodyWithout);
    }
}

const UP: &str = "../../../../../../../..";

/// Issue 12: a link recorded as failed was made all the same, and its `..` were not counted.
#[test]
fn failed_symlink_events_stay_inside() {
    everybody(failed_symlink_events);
}

fn failed_symlink_events(user: User) {
    let mut stage = Stage::new(user);
    let mut r = Recording::default();
    for directory in ["/a", "/a/b", "/a/b/c"] {
        r.call(Op::Mkdir, 0, directory);
    }
    r.two(Op::Symlink, EEXIST, "/a/b/c/A", "../../..");
    r.two(Op::Rename, ENOENT, "/a/b/c/A", "/A");
    r.call(Op::Chmod, EPERM, "/A/outside/victim/prog").mode = Some(0o4777);
    r.call(Op::Stat, EPERM, "/A/outside/victim/prog");
    let said = stage.replay(&r, &[]);
    let differing = said["differences"]["first"].as_array().expect("a list");
    let got = |op: &str| differing.iter().find(|d| d["op"] == op).map(|d| d["got"].as_str().expect("a name"));
    // A stat leaves no trace outside: its answer tells.
    assert_eq!((got("rename"), got("stat")), (Some("success"), Some("ENOENT")), "{said:#}");
}

/// Issue 12: by moving what stood above the root, a recording lifted the root until links led out of it.
#[test]
fn a_root_that_is_pulled_up_stays_inside() {
    everybody(a_root_pulled_up);
}

fn a_root_pulled_up(user: User) {
    let mut stage = Stage::new(user);
    let mut r = Recording::default();
    let mut deep = String::new();
    for _ in 0..8 {
        deep.push_str("/d");
        r.call(Op::Mkdir, 0, &deep);
    }
    r.two(Op::Symlink, 0, format!("{deep}/A"), UP);
    r.two(Op::Rename, 0, format!("{deep}/A"), "/A");
    r.two(Op::Rename, ENOENT, "/A/r/r/r/r/r/r/r/r", "/A/q0");
    for n in 0..60 {
        r.two(Op::Rename, ENOENT, format!("/A/r/r/r/r/r/r/r/q{n}"), format!("/A/q{}", n + 1));
        r.call(Op::Chmod, EPERM, "/A/outside/victim/prog").mode = Some(0o4777);
        r.call(Op::Truncate, EPERM, "/A/outside/victim/secret");
        r.call(Op::Unlink, EPERM, "/A/outside/victim/dir/deep");
    }
    stage.replay(&r, &[]);
}

/// Absolute links lead to the run's own root, `..` there stays there, and their lengths are those recorded.
#[test]
fn absolute_links_stay_inside_and_read_as_recorded() {
    everybody(absolute_links);
}

fn absolute_links(user: User) {
    let mut stage = Stage::new(user);
    let victim = stage.at("outside/victim");
    let mut r = Recording::default();
    r.two(Op::Symlink, 0, "/l", &victim);
    r.call(Op::ReadLink, 0, "/l").ret = i64::try_from(victim.as_os_str().len()).expect("a short path");
    r.two(Op::Symlink, 0, "/up", format!("/../../../../{}", victim.display()));
    for link in ["/l", "/up"] {
        r.call(Op::Chmod, ENOENT, format!("{link}/prog")).mode = Some(0o4777);
        r.call(Op::Truncate, ENOENT, format!("{link}/secret"));
        r.call(Op::SetXattr, ENOENT, format!("{link}/prog"));
        r.call(Op::StatFs, ENOENT, link);
    }
    let said = stage.replay(&r, &[]);
    assert_eq!(said["differences"]["total"], 0, "{said:#}");
}

/// What is mounted elsewhere in the target is not in the run's own directory.
#[test]
fn a_bind_mount_in_the_target_is_out_of_reach() {
    if !testkit::need(testkit::Need::Root) {
        return;
    }
    let mut stage = Stage::new(User::Same);
    let (below, profile) = (stage.at("target/below"), stage.at("target/bound.workload"));
    fs::create_dir(&below).expect("a new directory");
    let mut r = Recording::default();
    r.call(Op::Mkdir, 0, "/a");
    r.two(Op::Symlink, EEXIST, "/a/A", "..");
    r.two(Op::Rename, ENOENT, "/a/A", "/A");
    for to in ["/A/below/victim/prog", "/A/../below/victim/prog", "/below/victim/prog"] {
        r.call(Op::Chmod, ENOENT, to).mode = Some(0o4777);
        r.call(Op::Truncate, ENOENT, to);
    }
    r.write(&profile);
    let script = "mount --bind \"$1\" \"$2\" && exec \"$3\" replay \"$4\" \"$5\"";
    let mut command = assert_cmd::Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"]);
    command.args([stage.at("outside"), below, env!("CARGO_BIN_EXE_fsage").into(), profile, stage.at("target")]);
    let output = command.timeout(PATIENCE).output().expect("unshare(1) runs");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    stage.check();
}

/// The bits that make a program somebody else's are only made where the user says so.
#[test]
fn programs_do_not_become_setuid() {
    for (args, expected) in [(&["--keep"][..], 0o755), (&["--keep", "--allow-setuid"][..], 0o6755)] {
        let stage = Stage::new(User::Same);
        let mut r = Recording::default();
        r.call(Op::Mknod, 0, "/made").mode = Some(0o6755);
        r.open("/opened", flag::CREATE | flag::WRITE);
        r.call(Op::Mknod, 0, "/changed").mode = Some(0o644);
        r.call(Op::Chmod, 0, "/changed").mode = Some(0o6755);
        let profiles = tempfile::tempdir().expect("a temporary directory");
        let profile = profiles.path().join("w.workload");
        r.write(&profile);
        let target = stage.at("target");
        let output = fsage().arg("replay").arg(&profile).arg(&target).args(args).output().expect("the binary runs");
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let kept = target.join(&common::names(&target)[0]).join("root");
        let modes = ["made", "changed"].map(|name| kept.join(name).symlink_metadata().expect("made").mode() & 0o7777);
        assert_eq!(modes, [expected; 2], "{args:?}");
    }
}

/// A recording gave everybody the run's own directory, and who moved a directory out of it while a call began there led
/// that call out, as root: what a recording can give away lies in a directory that it cannot name.
#[test]
fn the_runs_own_directory_stays_private() {
    let stage = Stage::new(User::Same);
    let mut r = Recording::default();
    r.call(Op::Mkdir, 0, "/a").mode = Some(0o777);
    for path in ["/", "/..", "/a/..", "/a/../.."] {
        r.call(Op::Chmod, 0, path).mode = Some(0o777);
    }
    let open = r.open("/", 0);
    let fchmod = r.call(Op::Fchmod, 0, "/");
    (fchmod.ofd, fchmod.mode) = (Some(open), Some(0o777));
    let profiles = tempfile::tempdir().expect("a temporary directory");
    let profile = profiles.path().join("w.workload");
    r.write(&profile);
    let target = stage.at("target");
    let output = fsage().arg("replay").arg(&profile).arg(&target).arg("--keep").output().expect("the binary runs");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let kept = target.join(&common::names(&target)[0]);
    let mode = |path: &Path| path.symlink_metadata().expect("kept").mode() & 0o7777;
    assert_eq!((mode(&kept), mode(&kept.join("root"))), (0o700, 0o777));
    assert_eq!(common::names(&kept), ["root"]);
}

/// Everything a recording can say, at random, with a taste for what has led out.
struct Hostile {
    dice: Dice,
    outside: String,
    open: Vec<OfdId>,
    /// Where links are, as far as one can tell.
    links: Vec<String>,
    /// How many components of a hundred are `..`.
    dot_dots: usize,
}

/// A chain of directories that is there at first.
const DEEP: &str = "/a/b/c/d/q/r/a/b/c/d/q/r/a/b";
const NAMES: [&str; 9] = ["a", "b", "c", "d", "L", "M", "N", "q", "r"];
const PREY: [&str; 9] = [
    "outside",
    "outside/victim",
    "outside/victim/prog",
    "outside/victim/secret",
    "outside/victim/link",
    "outside/victim/fifo",
    "outside/victim/dir",
    "outside/victim/dir/deep",
    "outside/victim/new",
];
const ON_PATHS: [Op; 16] = [
    Op::Chmod,
    Op::Chown,
    Op::Truncate,
    Op::Utimens,
    Op::SetXattr,
    Op::GetXattr,
    Op::RemoveXattr,
    Op::ListXattr,
    Op::Unlink,
    Op::Rmdir,
    Op::Stat,
    Op::StatFs,
    Op::Access,
    Op::ReadLink,
    Op::Mknod,
    Op::Mkdir,
];
const ON_DESCRIPTIONS: [Op; 12] = [
    Op::Write,
    Op::Read,
    Op::Ftruncate,
    Op::Fchmod,
    Op::Fchown,
    Op::Futimens,
    Op::GetDents,
    Op::Fsync,
    Op::Fallocate,
    Op::Mmap,
    Op::Fcntl,
    Op::Close,
];

impl Hostile {
    fn path(&mut self) -> String {
        let mut path = match self.dice.below(4) {
            0 => DEEP[..2 * self.dice.below(DEEP.len() / 2)].to_owned(),
            1 => self.link().unwrap_or_default(),
            _ => String::new(),
        };
        for _ in 0..1 + self.dice.below(3) {
            path.push('/');
            path.push_str(if self.dice.below(100) < self.dot_dots { ".." } else { self.dice.one_of(&NAMES) });
        }
        if self.dice.below(10) == 0 { path + "/" } else { path }
    }

    /// A path that would be outside if one of the links led there.
    fn prey(&mut self) -> String {
        let link = match self.link() {
            Some(link) if self.dice.below(3) == 0 => link,
            _ => return self.path(),
        };
        let prey = self.dice.one_of(&PREY);
        if self.dice.below(2) == 0 { link + &self.outside + &prey["outside".len()..] } else { link + "/" + prey }
    }

    /// Where a link that was made is moved: often to the top, where its `..` lead further up.
    fn place(&mut self) -> String {
        if self.dice.below(2) == 0 { format!("/{}", self.dice.one_of(&NAMES)) } else { self.path() }
    }

    fn link(&mut self) -> Option<String> {
        let which = self.dice.below(self.links.len().max(1));
        self.links.get(which).cloned()
    }

    fn remember(&mut self, link: &str) {
        if self.links.len() >= 12 {
            self.links.remove(0);
        }
        self.links.push(link.to_owned());
    }

    fn leads_to(&mut self) -> String {
        let up = ["../"; 14][..1 + self.dice.below(14)].concat();
        match self.dice.below(7) {
            0 => self.dice.one_of(&["/", "/..", ".", "..", "L", "/L/M", "a/../N"]).to_owned(),
            1 => self.outside.clone(),
            2 => format!("/..{}", self.outside),
            3 => up + self.dice.one_of(&PREY),
            _ => up,
        }
    }

    /// What a call is said to have come to: mostly an error that says nothing of the names, so that nothing is rebuilt
    /// for it.
    fn errno(&mut self) -> u16 {
        self.dice.one_of(&[EPERM, EPERM, EPERM, EACCES, ENOENT, EEXIST, 0])
    }

    fn call(&mut self, r: &mut Recording) {
        let errno = self.errno();
        let failing = if errno == 0 { EPERM } else { errno };
        let path = self.prey();
        match self.dice.below(20) {
            0..=2 => {
                let (path, target) = (self.path(), self.leads_to());
                self.remember(&path);
                r.two(Op::Symlink, failing, path, target);
            }
            3..=6 => {
                let flags = self.dice.one_of(&[0, 0, flag::EXCHANGE, flag::NOREPLACE]);
                let link = self.link().filter(|_| self.dice.below(2) == 0);
                let to = self.place();
                if link.is_some() {
                    self.remember(&to);
                }
                let from = link.unwrap_or(path);
                let op = self.dice.one_of(&[Op::Rename, Op::Rename, Op::Rename, Op::Link]);
                r.two(op, failing, from, to).flags = flags;
            }
            7..=8 => {
                r.call(Op::Mkdir, failing, path).mode = Some(0o6777);
            }
            9..=11 => {
                let special = self.dice.one_of(&[0, 0, flag::TMPFILE | flag::WRITE, flag::PATH_ONLY, flag::APPEND]);
                let usual = [flag::READ, flag::WRITE, flag::CREATE, flag::TRUNC, flag::DIRECTORY, flag::NOFOLLOW];
                let flags = usual.into_iter().filter(|_| self.dice.below(3) == 0).fold(special, |all, one| all | one);
                if self.dice.below(3) == 0 {
                    let ofd = r.open(path, flags);
                    self.open.push(ofd);
                } else {
                    let event = r.call(Op::Open, failing, path);
                    (event.flags, event.mode) = (flags, Some(0o4777));
                }
            }
            12..=13 if !self.open.is_empty() => {
                let op = self.dice.one_of(&ON_DESCRIPTIONS);
                let which = self.dice.below(self.open.len());
                let ofd = if op == Op::Close { self.open.swap_remove(which) } else { self.open[which] };
                let bytes = self.dice.below(10_000) as u64;
                let event = r.call(op, EPERM, path);
                (event.ofd, event.req_bytes, event.mode) = (Some(ofd), Some(bytes), Some(0o6777));
                (event.flags, event.path) = (flag::LAST, None);
            }
            _ => {
                let op = self.dice.one_of(&ON_PATHS);
                let flags = self.dice.one_of(&[0, 0, flag::NOFOLLOW]);
                let event = r.call(op, failing, path);
                (event.flags, event.mode) = (flags, Some(0o6777));
                event.req_bytes = Some(17);
            }
        }
        self.begin_in_a_directory(r);
    }

    /// Now and then a call begins its walk in a directory that is kept open while it is moved about.
    fn begin_in_a_directory(&mut self, r: &mut Recording) {
        let Some(path) = r.calls.last().and_then(|event| event.path) else { return };
        let path = r.paths.get(path).to_vec();
        let slashes: Vec<usize> = (1..path.len()).filter(|&i| path[i] == b'/').collect();
        if slashes.is_empty() || self.dice.below(4) > 0 {
            return;
        }
        let cut = self.dice.one_of(&slashes);
        let dir = r.paths.intern(&path[..cut]);
        r.calls.last_mut().expect("a call").caller_dir = Some(dir);
    }
}

fn hostile(seed: u64, calls: u64, threads: u64, outside: &Path) -> Recording {
    let dice = Dice::new(seed);
    let (outside, dot_dots) = (outside.display().to_string(), if seed.is_multiple_of(2) { 0 } else { 12 });
    let mut hostile = Hostile { dice, outside, open: Vec::new(), links: Vec::new(), dot_dots };
    let mut r = Recording { threads, dur_ns: if threads > 1 { 1500 } else { 10 }, ..Recording::default() };
    for end in (2..=DEEP.len()).step_by(2) {
        r.call(Op::Mkdir, 0, &DEEP[..end]);
    }
    for _ in 0..calls {
        hostile.call(&mut r);
    }
    r
}

/// Calls of one recording: a tree that has been worked over for longer only gets emptier.
const CALLS_OF_ONE: u64 = 5_000;

fn nothing_happens_outside(user: User) {
    let mut stage = Stage::new(user);
    let mut seeds = Seeds::new(3 * CALLS_OF_ONE);
    while let Some(seed) = seeds.next() {
        let threads = 1 + seed % 4;
        let recording = hostile(seed, CALLS_OF_ONE, threads, &stage.at("outside"));
        let said = stage.replay(&recording, &["--threads", "keep"]);
        assert_eq!(said["concurrency"]["replay_threads"], threads, "seed {seed}");
        let now = said["calls"].as_u64().expect("a number");
        assert!(now > CALLS_OF_ONE / 2, "seed {seed}: {said:#}");
        seeds.made += now;
    }
    println!("{} calls made as {user:?}", seeds.made);
}

#[test]
fn hostile_recordings_touch_nothing_outside() {
    nothing_happens_outside(User::Same);
}

#[test]
fn hostile_recordings_touch_nothing_of_an_ordinary_user() {
    if testkit::need(testkit::Need::Root) {
        nothing_happens_outside(User::Nobody);
    }
}

#[test]
fn hostile_recordings_touch_nothing_where_there_are_no_user_namespaces() {
    if testkit::need(testkit::Need::Root) {
        nothing_happens_outside(User::NobodyWithout);
    }
}
