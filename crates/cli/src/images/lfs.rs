//! Images of the log-structured file system.

use super::{Answer, Extracting, Found, Images, Inserting, Wanted, What, inode, number, one_only, with_progress};
use crate::failure;
use lfs::format::SegNo;
use lfs::fsck::Report;
use lfs::{Checkpoint, FileStore, Image, Options, Overlay, present};
use serde_json::json;
use std::path::Path;
use ufs::extract::Extracted;
use ufs::insert::Inserted;

/// LFS.
pub struct Lfs;

impl Images for Lfs {
    fn is_in(&self, store: FileStore) -> bool {
        lfs::is_lfs(&store)
    }

    /// As roll-forward makes it, unless the checkpoint is asked for.
    fn dump(&self, store: FileStore, wanted: &Wanted<'_>) -> failure::Result<Answer> {
        if wanted.copies {
            return Err(failure::usage("--copies: of an LFS image the newer of the first two superblocks counts"));
        }
        let mut image = Image::open(store, Checkpoint::Newer)?;
        one_only(wanted, &[What::Superblock, What::Segments, What::Ifile])?;
        if wanted.what == What::Superblock {
            let dump = image.dump_superblock();
            return Answer::new("fsage.lfs-superblock/1", &dump, present::superblock(&dump));
        }
        if !wanted.checkpoint {
            image.roll_forward()?;
        }
        match wanted.what {
            What::Segments => {
                let rows = image.dump_segments();
                Answer::new("fsage.lfs-segments/1", &json!({ "segments": rows }), present::segments(&rows))
            }
            What::Segment => {
                let dump = image.dump_segment(SegNo(number(wanted, "segment")?))?;
                Answer::new("fsage.lfs-segment/1", &dump, present::segment(&dump))
            }
            What::Ifile => {
                let dump = image.dump_ifile();
                Answer::new("fsage.lfs-ifile/1", &dump, present::ifile(&dump))
            }
            What::Inode => {
                let dump = image.dump_inode(inode(wanted, &image)?)?;
                Answer::new("fsage.lfs-inode/1", &dump, present::inode(&dump))
            }
            What::Directory => {
                let dump = image.dump_directory(inode(wanted, &image)?)?;
                Answer::new("fsage.lfs-directory/1", &dump, present::directory(&dump))
            }
            What::Superblock | What::Groups | What::Group | What::Free | What::FreeMaps => {
                Err(failure::usage("this is an LFS image, which has segments and no groups or free map"))
            }
        }
    }

    fn may_repair(&self) -> failure::Result<()> {
        Err(failure::usage("--repair: a log-structured file system repairs itself when it is mounted; fsck only looks"))
    }

    fn check(&self, store: &mut Overlay<FileStore>) -> failure::Result<Box<dyn Found>> {
        let report = with_progress(|tell| lfs::fsck(store, &mut |phase| tell(phase.title())));
        Ok(Box::new(report?))
    }

    /// As roll-forward makes it.
    fn extract(
        &self,
        store: FileStore,
        copying: &Extracting<'_>,
        go_on: &mut dyn FnMut(&Extracted) -> bool,
    ) -> failure::Result<Extracted> {
        if copying.copies {
            let why = "is for FFS images: of an LFS image either of the first two superblocks will do";
            return Err(failure::usage(format!("--copies {why}")));
        }
        let mut image = Image::open(store, Checkpoint::Newer)?;
        image.roll_forward()?;
        Ok(lfs::extract(&image, copying.path, copying.to, copying.options, go_on)?)
    }

    fn insert(&self, image: &Path, copying: &Inserting<'_>) -> failure::Result<(&'static str, Inserted)> {
        if copying.policy.is_some() {
            let why = "is for FFS images: a log has one place for what is new";
            return Err(failure::usage(format!("--policy {why}")));
        }
        let done = lfs::edit(image, copying.how, |store| copying.run::<lfs::Lfs>(store, Options::default()))?;
        Ok(("fsage.cp-into-lfs/1", done))
    }
}

impl Found for Report {
    fn is_clean(&self) -> bool {
        Report::is_clean(self)
    }

    /// A log has no such mark.
    fn was_marked_clean(&self) -> bool {
        true
    }

    /// It is never repaired.
    fn unrepaired(&self) -> u64 {
        self.problem_count
    }

    fn answer(&self, image: &str, _outcome: &str) -> failure::Result<Answer> {
        Answer::new("fsage.fsck-lfs/1", self, present::checked(image, self))
    }
}
