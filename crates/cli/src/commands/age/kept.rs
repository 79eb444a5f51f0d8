//! What stays of a run: a directory, an image, a compressed image with its description.

use crate::{failure, output, progress};
use aging::age::{AgeOptions, AgeResult, Compressed, compress};
use posix::Image;
use serde::Serialize;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// What is kept.
#[derive(Clone, Debug)]
pub(super) enum Keep {
    /// The private directory.
    Directory,
    /// A scratch file system's image, in this file.
    Image(PathBuf),
}

impl Keep {
    /// The image, for the workspace.
    pub(super) fn image(&self, resumed: bool) -> Option<Image> {
        match self {
            Keep::Directory => None,
            Keep::Image(path) if resumed => Some(Image::Old(path.clone())),
            Keep::Image(path) => Some(Image::New(path.clone())),
        }
    }
}

/// A compressed image.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CompressedImage {
    path: PathBuf,
    #[serde(flatten)]
    sizes: Compressed,
    /// Free space given back before; `None`: the file system or device cannot.
    trimmed_bytes: Option<u64>,
}

impl CompressedImage {
    pub(super) fn describe(&self) -> String {
        let bytes = |n: u64| units::show::bytes(n as f64);
        let trimmed = match self.trimmed_bytes {
            Some(_) => "free blocks were discarded before (fstrim)",
            None => "free blocks could not be discarded before (no fstrim), so what they last held is in it",
        };
        format!(
            "The image is in {}: {} of {}, {} with data; {trimmed}. Restore it with: zstd -d --sparse {}",
            output::shown(&self.path),
            bytes(self.sizes.compressed_bytes),
            bytes(self.sizes.image_bytes),
            bytes(self.sizes.data_bytes),
            output::shown(&self.path)
        )
    }
}

/// Compresses an unmounted image, and writes its manifest beside it.
pub(super) fn pack(
    image: &File,
    trimmed: io::Result<u64>,
    to: &Path,
    result: &AgeResult,
) -> failure::Result<CompressedImage> {
    let total = image.metadata()?.len();
    let bar = progress::bar(total, "compressing the image");
    let sizes = compress(image, to, &mut |done| {
        bar.set_position(done);
        !posix::interrupt::requested()
    });
    bar.finish_and_clear();
    let packed = CompressedImage { path: to.to_owned(), sizes: sizes?, trimmed_bytes: trimmed.ok() };
    #[derive(Serialize)]
    struct Described<'a> {
        image: &'a CompressedImage,
        aged: &'a AgeResult,
    }
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(".json");
    let brief = AgeResult { days: Vec::new(), control_points: Vec::new(), ..result.clone() };
    let value = output::envelope("fsage.aged-image/1", &Described { image: &packed, aged: &brief })?;
    let text = document::json_text(&value);
    output::write_file(&to.with_file_name(name), text.as_bytes())?;
    Ok(packed)
}

/// What a result directory says of itself: which plan, where, with which options; the figures are in result.json.
pub(super) fn manifest(result: &AgeResult, options: &AgeOptions) -> failure::Result<String> {
    #[derive(Serialize)]
    struct Manifest<'a> {
        fsage: &'a str,
        command: Vec<String>,
        plan: &'a aging::age::PlanIdentity,
        meta: &'a aging::format::PlanMeta,
        environment: &'a posix::Environment,
        options: &'a AgeOptions,
        seed: u64,
        days_done: u32,
        resumed: u32,
    }
    let manifest = Manifest {
        fsage: env!("CARGO_PKG_VERSION"),
        command: std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect(),
        plan: &result.plan,
        meta: &result.meta,
        environment: &result.environment,
        options,
        seed: result.seed,
        days_done: result.days_done,
        resumed: result.resumed,
    };
    let value = output::envelope("fsage.age-manifest/1", &manifest)?;
    Ok(document::json_text(&value))
}
