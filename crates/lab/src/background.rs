//! The check of a crashed file system in the background, in virtual time: how long until it can be used, and until all
//! that the crash left has been given back, with work beside it or without.
//!
//! What a snapshot shows does not change. So what the check reads and finds is worked out when it begins, at no cost;
//! then a process makes the same reads in virtual time, beside others; and only when it is done the file system is told
//! what was found.

use crate::bytes::{self, Begun};
use crate::{OpenError, Spec, System};
use ffs::fsck::Left;
use ffs::{Ffs, FfsError, Image, Search};
use kernel::{CheckEnd, Correction, Lab};
use posix::{Call, Errno, Fd, FileSystem as _, Outcome, Process, Step};

/// Corrections that the check hands over in one call.
pub const GIVEN_BACK_AT_ONCE: usize = 16;

/// A check that has begun.
#[derive(Debug)]
pub struct BackgroundCheck {
    fd: Fd,
    left: Left,
    reads: Vec<(u64, u64)>,
    computing_ns: u64,
}

impl BackgroundCheck {
    /// Takes the snapshot, in virtual time. `go_on` is asked now and then.
    ///
    /// # Errors
    /// There is no room for a snapshot, or already one; or more is wrong than a crash of Soft Updates leaves, which the
    /// superblock says then.
    pub fn begin(lab: &mut Lab<Ffs>, go_on: &mut dyn FnMut() -> bool) -> Result<BackgroundCheck, OpenError> {
        let target = lab.setup().target.clone();
        let refused = |doing| refused(target.clone(), doing);
        let fd = lab.snapshot_to_check().map_err(refused("take a snapshot of it"))?;
        let (left, reads) = match ffs::look_at_snapshot(lab, fd, None, &mut |_| go_on()) {
            Ok(looked) => looked,
            Err(source) => {
                lab.call(&Call::Close { fd }).result.map_err(refused("remove the snapshot"))?;
                if matches!(source, FfsError::NeedsFullCheck(_)) {
                    lab.checked(CheckEnd::FullCheckNeeded).map_err(refused("mark it"))?;
                }
                return Err(OpenError::Ffs { target, source });
            }
        };
        let costs = lab.setup().machine.costs();
        // As for the full check: an inode costs what looking at attributes costs, and a name what comparing one does.
        let volume = lab.volume();
        let free = u64::try_from(volume.space().total().nifree).unwrap_or(0);
        let inodes = u64::from(volume.geometry().inodes()).saturating_sub(free);
        let computing_ns = inodes * (costs.attributes_ns + costs.entry_ns);
        Ok(BackgroundCheck { fd, left, reads, computing_ns })
    }

    /// What it will find.
    pub fn left(&self) -> &Left {
        &self.left
    }

    /// The process that checks: it ends when it has read all that the check reads.
    pub fn reader(&self) -> Reader<'_> {
        Reader { fd: self.fd, rest: self.reads.iter(), computing_ns: Some(self.computing_ns) }
    }

    /// Gives back what was found, in virtual time, and removes the snapshot. `between` is called after each time that
    /// something was.
    ///
    /// # Errors
    /// The file system's.
    pub fn give_back<E: From<OpenError>>(
        self,
        lab: &mut Lab<Ffs>,
        between: &mut dyn FnMut(&mut Lab<Ffs>) -> Result<(), E>,
    ) -> Result<Left, E> {
        let target = lab.setup().target.clone();
        let refused = |doing| refused(target.clone(), doing);
        for corrections in self.left.corrections.chunks(GIVEN_BACK_AT_ONCE) {
            let corrections: &[Correction] = corrections;
            lab.give_back(corrections).map_err(refused("give back what a crash has left"))?;
            between(lab)?;
        }
        lab.call(&Call::Close { fd: self.fd }).result.map_err(refused("remove the snapshot"))?;
        lab.checked(CheckEnd::AllGivenBack).map_err(refused("mark it as checked"))?;
        Ok(self.left)
    }
}

fn refused(target: String, doing: &'static str) -> impl Fn(Errno) -> OpenError {
    move |errno| OpenError::Check { target: target.clone(), doing, errno }
}

/// The check as a process.
#[derive(Debug)]
pub struct Reader<'a> {
    fd: Fd,
    rest: std::slice::Iter<'a, (u64, u64)>,
    computing_ns: Option<u64>,
}

impl Process for Reader<'_> {
    fn next(&mut self, _last: Option<&Outcome>) -> Step<'_> {
        match (self.rest.next(), self.computing_ns) {
            (Some((offset, len_bytes)), _) => {
                Step::Call(Call::Read { fd: self.fd, offset: Some(*offset), len_bytes: *len_bytes })
            }
            (None, Some(ns)) => {
                self.computing_ns = None;
                Step::PauseNs(ns)
            }
            (None, None) => Step::Done,
        }
    }
}

/// What a check in the background has found, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedInBackground {
    /// What the crash has left.
    pub left: Left,
    /// Bytes of a fragment.
    pub fsize: u32,
    /// From the beginning of the mount until the file system could be used, nanoseconds.
    pub usable_ns: u64,
    /// Until all had been given back.
    pub ended_ns: u64,
}

impl Spec {
    /// Mounts the target's file system as a crash of Soft Updates has left it, and checks it in the background, with
    /// nothing beside it, in virtual time. The target's image stays as it is.
    ///
    /// # Errors
    /// The target is of another file system or mode. As for [`BackgroundCheck::begin`].
    pub fn check_in_background(&self, go_on: &mut dyn FnMut() -> bool) -> Result<CheckedInBackground, OpenError> {
        let (System::Ffs(own), Some(path)) = (&self.system, &self.image) else {
            return Err(OpenError::System { target: self.text.clone(), system: "image of a Fast File System" });
        };
        let wrong = |source| OpenError::Ffs { target: self.text.clone(), source };
        ffs::suits_background(Image::open(bytes::overlay(path)?, Search::Standard).map_err(wrong)?.superblock())
            .map_err(wrong)?;
        let Begun { volume, bytes, time_s } = bytes::of_image(path, own.policy, &self.text)?;
        let setup = self.setup(self.load_machine()?, time_s);
        let mut lab = Lab::with_image(volume, self.drive.device()?, setup, bytes)
            .map_err(|source| OpenError::Lab { target: self.text.clone(), source })?;
        let usable_ns = lab.now_ns();
        let check = BackgroundCheck::begin(&mut lab, go_on)?;
        lab.run(vec![Box::new(check.reader())])
            .map_err(|source| OpenError::Disk { target: self.text.clone(), source })?;
        let fsize = lab.volume().geometry().fsize;
        let left = check.give_back(&mut lab, &mut |_| Ok::<(), OpenError>(()))?;
        let ended_ns = lab.now_ns();
        lab.unmount().map_err(|errno| OpenError::Unmount { target: self.text.clone(), errno })?;
        Ok(CheckedInBackground { left, fsize, usable_ns, ended_ns })
    }
}
