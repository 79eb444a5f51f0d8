//! Targets on the command line: parsing, sweeping up after killed runs, opening and closing.

use crate::failure::{self, Context as _};
use crate::progress;
use fault::Kind;
use lab::{LabSite, SiteOptions, Spec};
use posix::{Image, SetupError, Site, Target, Workspace, WorkspaceOptions};
use std::path::{Path, PathBuf};

/// A target argument.
pub fn parse(text: &str) -> Result<Target, String> {
    let target = Target::parse(text).map_err(|error| error.to_string())?;
    if let Target::Lab(text) = &target {
        Spec::parse(text).map_err(|error| error.to_string())?;
    }
    Ok(target)
}

/// Options of every command that works in a target.
#[derive(clap::Args, Clone, Debug)]
pub struct TargetArgs {
    /// Leave the private directory (and a scratch file system, mounted) where it is, and say where; a laboratory's file
    /// system is written into a new image file.
    #[arg(long)]
    pub keep: bool,
}

impl TargetArgs {
    /// Makes a target ready, with room for what the run will use.
    pub fn open(&self, target: &Target, need_bytes: u64, need_inodes: u64) -> failure::Result<Box<dyn Site>> {
        let options = WorkspaceOptions { keep: self.keep, need_bytes, need_inodes, ..WorkspaceOptions::default() };
        Ok(open(target, &options)?)
    }

    /// Removes what the run made, unless it is to be kept.
    pub fn close(&self, site: Box<dyn Site>) -> failure::Result<()> {
        let target = site.target().to_string();
        let kept = site.kept().map(Path::to_owned);
        site.close().with_context(|| format!("cleaning up in target '{target}'"))?;
        if let (true, Some(path)) = (self.keep, kept) {
            progress::note(&format!("kept {}", crate::output::shown(&path)));
        }
        Ok(())
    }
}

/// Makes any target ready: the one place where its kind matters.
pub fn open(target: &Target, options: &WorkspaceOptions) -> Result<Box<dyn Site>, SetupError> {
    let Target::Lab(text) = target else {
        if let Some(why) = posix::contain::refused() {
            progress::note(&format!(
                "no user namespace for an ordinary user here ({why}): each path is walked by openat2(2) first, which \
                 the times of calls on paths count; run as root for times without that"
            ));
        }
        return Ok(Box::new(Workspace::open(target, options)?));
    };
    let keep = match &options.image {
        Some(Image::New(path) | Image::Old(path)) => Some(path.clone()),
        None => options.keep.then(|| unused_image(Path::new("."), text)),
    };
    let (need_bytes, need_inodes) = (options.need_bytes, options.need_inodes);
    let site = LabSite::open(&spec(text)?, &SiteOptions { keep, whole: false, need_bytes, need_inodes })?;
    Ok(Box::new(site))
}

/// Opens what a tree is in to look at it: the image of a laboratory target (`ffs:image=FILE`).
///
/// # Errors
/// The target has no image, so that its tree would be empty.
pub fn open_image(text: &str) -> failure::Result<LabSite> {
    let spec = spec(text)?;
    if spec.image.is_none() {
        return Err(crate::failure::usage(format!(
            "{text}: a new file system would be empty; name the image that holds a tree, as in ffs:image=FILE"
        )));
    }
    Ok(LabSite::open(&spec, &SiteOptions { whole: true, ..SiteOptions::default() })?)
}

fn spec(text: &str) -> Result<Spec, SetupError> {
    Spec::parse(text).map_err(|error| SetupError::Other { source: Box::new(error), kind: Kind::Usage })
}

/// The first `ffs-N.img`, or as the system is called, that is not there.
fn unused_image(directory: &Path, target: &str) -> PathBuf {
    let system = target.split([':', '@']).next().unwrap_or(target);
    let named = |n: u32| directory.join(format!("{system}-{n}.img"));
    (1..u32::MAX).map(named).find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| named(u32::MAX))
}

/// Removes what runs that were killed have left, and says so. Each command begins with it: nobody who does not read
/// keeps one from beginning.
pub fn sweep() {
    let report = posix::cleanup::sweep();
    for line in report.removed.iter().chain(&report.troubles) {
        posix::notice::tell(line);
    }
}
