//! `fsage mkfs free-maps IMAGE MAPS`.

use super::image::{Opened, finish, open};
use crate::failure::{self, Context as _};
use crate::images::FREE_MAPS_SCHEMA;
use crate::output::{self, ResultArgs};
use ffs::policy::Options;
use ffs::{Ffs, FreeMaps};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub(super) struct FreeMapsArgs {
    /// The image file to make; or with --force one to overwrite, or a block device.
    image: PathBuf,
    /// The maps: what `fsage dump IMAGE free-maps --json` has written.
    maps: PathBuf,
    /// Make all of it free: the same file system emptied.
    #[arg(long)]
    emptied: bool,
    /// Overwrite what is there.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    result: ResultArgs,
}

/// Makes it.
pub(super) fn make(args: &FreeMapsArgs) -> failure::Result<ExitCode> {
    args.result.check()?;
    if !args.force {
        output::must_be_new(&args.image)?;
    }
    let maps = read(&args.maps)?;
    let maps = if args.emptied { maps.emptied()? } else { maps };
    let volume = Ffs::from_free_maps(&maps, Options::default()).with_context(|| output::shown(&args.maps))?;
    let Opened { mut store, whole, .. } = open(&args.image, maps.size_bytes())?;
    volume.store(&mut store, None).with_context(|| output::shown(&args.image))?;
    finish(whole, &args.image)?;
    let made = FreeMaps::of(&volume)?.figures();
    args.result.emit("fsage.mkfs-free-maps/1", &made, &ffs::present::free_maps(&output::shown(&args.image), &made))?;
    Ok(ExitCode::SUCCESS)
}

/// No free maps are longer: 50 million runs.
const FILE_BYTES_MAX: u64 = 1 << 30;

fn read(path: &Path) -> failure::Result<FreeMaps> {
    let shown = output::shown(path);
    let bad = |what: String| failure::bad_input(format!("{shown}: {what}"));
    let bytes = posix::input::read(path, FILE_BYTES_MAX).map_err(|error| bad(format!("cannot read it: {error}")))?;
    let mut value: serde_json::Value =
        serde_json::from_slice(&bytes).map_err(|error| bad(format!("this is no JSON: {error}")))?;
    let mut taken = |field: &str| value.as_object_mut().and_then(|fields| fields.remove(field));
    // Where the maps come from is no part of them.
    let (schema, _) = (taken("schema"), taken("run"));
    if schema.as_ref().and_then(|schema| schema.as_str()) != Some(FREE_MAPS_SCHEMA) {
        return Err(bad(format!(
            "these are no free maps ({FREE_MAPS_SCHEMA}); `fsage dump IMAGE free-maps --json` writes them"
        )));
    }
    serde_json::from_value(value).map_err(|error| bad(error.to_string()))
}
