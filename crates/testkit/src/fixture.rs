//! What others made and tests read: `crates/testkit/data`, whose README says what each is and who made it.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// The path of a file or directory there.
pub fn path(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name);
    assert!(path.exists(), "{}: no such fixture", path.display());
    path
}

/// The text of one.
pub fn text(name: &str) -> String {
    let path = path(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The bytes of one that is packed; its name is without `.zst`.
pub fn unpacked(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    decoder(name).read_to_end(&mut bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
    bytes
}

/// Unpacks one into a directory, with holes where it has zeros; its path.
pub fn unpack(name: &str, into: &Path) -> PathBuf {
    let to = into.join(Path::new(name).file_name().unwrap());
    let (mut from, mut file) = (decoder(name), std::fs::File::create_new(&to).unwrap());
    let mut piece = vec![0; 64 << 10];
    let mut size_bytes = 0;
    loop {
        let mut filled = 0;
        while filled < piece.len() {
            match from.read(&mut piece[filled..]).unwrap_or_else(|e| panic!("{name}: {e}")) {
                0 => break,
                n => filled += n,
            }
        }
        if filled == 0 {
            break;
        }
        if piece[..filled].iter().any(|byte| *byte != 0) {
            file.write_all(&piece[..filled]).unwrap();
        } else {
            file.seek(SeekFrom::Current(filled as i64)).unwrap();
        }
        size_bytes += filled as u64;
    }
    file.set_len(size_bytes).unwrap();
    to
}

fn decoder(name: &str) -> impl std::io::Read {
    let path = path(&format!("{name}.zst"));
    zstd::Decoder::new(std::fs::File::open(path).unwrap()).unwrap()
}
