//! Images of the Fast File System.

use super::{Answer, Extracting, Found, Images, Inserting, Wanted, What, inode, number, one_only, with_progress};
use crate::failure;
use ffs::fsck::Report;
use ffs::{FileStore, FreeMaps, GroupNo, Image, Overlay, Search, present};
use serde_json::json;
use std::path::Path;
use ufs::extract::Extracted;
use ufs::insert::Inserted;

/// What is written of free maps, and read again.
pub const FREE_MAPS_SCHEMA: &str = "fsage.ffs-free-maps/1";

/// FFS.
pub struct Ffs;

impl Images for Ffs {
    fn is_in(&self, store: FileStore) -> bool {
        Image::open(store, Search::Standard).is_ok()
    }

    fn dump(&self, store: FileStore, wanted: &Wanted<'_>) -> failure::Result<Answer> {
        if wanted.checkpoint {
            return Err(failure::usage("is an FFS image, and --checkpoint is for LFS images"));
        }
        let image = open(store, wanted.copies)?;
        one_only(wanted, &[What::Superblock, What::Groups, What::Free, What::FreeMaps])?;
        match wanted.what {
            What::Superblock => {
                let dump = image.dump_superblock();
                Answer::new("fsage.ffs-superblock/1", &dump, present::superblock(&dump))
            }
            What::Groups => {
                let rows = image.dump_groups()?;
                Answer::new("fsage.ffs-groups/1", &json!({ "groups": rows }), present::groups(&rows))
            }
            What::Group => {
                let dump = image.dump_group(GroupNo(number(wanted, "group")?))?;
                Answer::new("fsage.ffs-group/1", &dump, present::group(&dump))
            }
            What::Inode => {
                let dump = image.dump_inode(inode(wanted, &image)?)?;
                Answer::new("fsage.ffs-inode/1", &dump, present::inode(&dump))
            }
            What::Directory => {
                let dump = image.dump_directory(inode(wanted, &image)?)?;
                Answer::new("fsage.ffs-directory/1", &dump, present::directory(&dump))
            }
            What::FreeMaps => {
                let maps = FreeMaps::of_image(&image)?;
                let document = present::free_maps(wanted.image_name, &maps.figures());
                Answer::new(FREE_MAPS_SCHEMA, &maps, document)
            }
            What::Free => {
                let runs = image.dump_free()?;
                Answer::new("fsage.ffs-free/1", &json!({ "free": runs }), present::free(&runs))
            }
            What::Segments | What::Segment | What::Ifile => {
                Err(failure::usage("this is an FFS image, which has groups and no segments or ifile"))
            }
        }
    }

    fn may_repair(&self) -> failure::Result<()> {
        Ok(())
    }

    fn check(&self, store: &mut Overlay<FileStore>) -> failure::Result<Box<dyn Found>> {
        let report = with_progress(|tell| ffs::fsck(store, &mut |phase| tell(phase.title())));
        Ok(Box::new(report?))
    }

    fn extract(
        &self,
        store: FileStore,
        copying: &Extracting<'_>,
        go_on: &mut dyn FnMut(&Extracted) -> bool,
    ) -> failure::Result<Extracted> {
        let image = open(store, copying.copies)?;
        Ok(ffs::extract(&image, copying.path, copying.to, copying.options, go_on)?)
    }

    fn insert(&self, image: &Path, copying: &Inserting<'_>) -> failure::Result<(&'static str, Inserted)> {
        let policy = copying.policy.unwrap_or_default();
        let done = ffs::edit(image, copying.how, |store| copying.run::<ffs::Ffs>(store, policy))?;
        Ok(("fsage.cp-into-ffs/1", done))
    }
}

fn open(store: FileStore, copies: bool) -> Result<Image<FileStore>, ffs::FfsError> {
    Image::open(store, if copies { Search::Copies } else { Search::Standard })
}

impl Found for Report {
    fn is_clean(&self) -> bool {
        Report::is_clean(self)
    }

    fn was_marked_clean(&self) -> bool {
        self.marked_clean
    }

    fn unrepaired(&self) -> u64 {
        self.unrepaired
    }

    fn answer(&self, image: &str, outcome: &str) -> failure::Result<Answer> {
        Answer::new("fsage.fsck-ffs/1", self, present::checked(image, self, outcome))
    }
}
