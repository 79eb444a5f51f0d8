//! Which files a plan was made from.

use super::PlanError;
use crate::format::Input;
use std::io::Read as _;
use std::path::Path;

/// Name, length and checksum of an input; of a directory (a workload profile), of the files in it, in order of name.
pub(crate) fn input(path: &Path) -> Result<Input, PlanError> {
    let io = |doing| fault::refused(path, doing);
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    if !path.is_dir() {
        let (bytes, crc) = summed(path).map_err(io("read"))?;
        return Ok(Input { name, bytes, crc32c: format!("{crc:08x}") });
    }
    let entries = std::fs::read_dir(path).map_err(io("list"))?;
    let entries: Vec<_> = entries.collect::<Result<_, _>>().map_err(io("list"))?;
    let mut files: Vec<_> = entries.into_iter().map(|e| e.path()).filter(|p| p.is_file()).collect();
    files.sort();
    let (mut bytes, mut crc) = (0, 0);
    for file in files {
        let (more, sum) = summed(&file).map_err(io("read a file of"))?;
        bytes += more;
        crc = crc32c::crc32c_append(crc, &sum.to_le_bytes());
    }
    Ok(Input { name, bytes, crc32c: format!("{crc:08x}") })
}

fn summed(path: &Path) -> std::io::Result<(u64, u32)> {
    let mut file = posix::input::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    let (mut bytes, mut crc) = (0, 0);
    loop {
        let n = file.read(&mut buffer)?;
        let Some(read) = buffer.get(..n).filter(|read| !read.is_empty()) else { return Ok((bytes, crc)) };
        crc = crc32c::crc32c_append(crc, read);
        bytes += n as u64;
    }
}
