//! What the C library's buffered I/O makes of a program's `fwrite` and `fread` of small blocks (glibc's
//! `_IO_new_file_xsputn` and `_IO_file_xsgetn`): the calls that reach the file system.

/// The lengths of the `write` calls for a file written in blocks through a buffer, and closed.
pub(crate) fn writes(size: u64, block: u64, buffer: u64) -> Vec<u64> {
    let mut calls = Vec::new();
    let (mut held, mut room) = (0, 0);
    for mut todo in blocks(size, block) {
        let fits = todo.min(room);
        (held, room, todo) = (held + fits, room - fits, todo - fits);
        if todo == 0 {
            continue;
        }
        // The buffer is full (or there is none yet): it goes out, whole buffers follow directly, the rest is kept.
        if held > 0 {
            calls.push(held);
        }
        let direct = todo - todo % buffer;
        if direct > 0 {
            calls.push(direct);
        }
        (held, room) = (todo % buffer, buffer - todo % buffer);
    }
    if held > 0 {
        calls.push(held);
    }
    calls
}

/// The lengths asked for by the `read` calls for a file read in blocks through a buffer.
pub(crate) fn reads(size: u64, block: u64, buffer: u64) -> Vec<u64> {
    let mut calls = Vec::new();
    let (mut held, mut left) = (0, size);
    for mut wanted in blocks(size, block) {
        while wanted > held {
            wanted -= held;
            let (ask, got) = if wanted < buffer {
                (buffer, buffer.min(left))
            } else {
                let direct = wanted - wanted % buffer;
                (direct, direct.min(left))
            };
            calls.push(ask);
            left -= got;
            if wanted < buffer {
                held = got;
            } else {
                (held, wanted) = (0, wanted - got);
            }
        }
        held -= wanted;
    }
    calls
}

/// Whole blocks, and a last one of what is left: the calls of unbuffered I/O, too.
pub(crate) fn blocks(size: u64, block: u64) -> impl Iterator<Item = u64> {
    let rest = size % block;
    (0..size / block).map(move |_| block).chain((rest > 0).then_some(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_blocks_go_out_by_the_buffer_and_large_ones_directly() {
        assert_eq!(writes(1390, 512, 4096), [1390]);
        assert_eq!(writes(9012, 512, 4096), [4096, 4096, 820]);
        assert_eq!(writes(8192, 512, 4096), [4096, 4096]);
        // After whole buffers have gone out directly there is an empty one, which the next block fills first.
        assert_eq!(writes(20_000, 8192, 4096), [8192, 4096, 4096, 3616]);
        assert_eq!(writes(12_000, 5000, 4096), [4096, 4096, 3808]);
        assert!(writes(0, 512, 4096).is_empty());
    }

    #[test]
    fn reads_ask_for_whole_buffers() {
        assert_eq!(reads(4945, 512, 4096), [4096, 4096]);
        assert_eq!(reads(4096, 512, 4096), [4096]);
        assert_eq!(reads(700, 512, 4096), [4096]);
        assert_eq!(reads(20_000, 8192, 4096), [8192, 8192, 4096]);
        assert!(reads(0, 512, 4096).is_empty());
    }

    #[test]
    fn everything_is_moved_once() {
        for size in [1, 511, 512, 513, 4095, 4096, 4097, 10_000, 123_457] {
            for block in [1, 100, 512, 4096, 5000, 8192, 10_000] {
                assert_eq!(writes(size, block, 4096).iter().sum::<u64>(), size, "{size} by {block}");
                assert!(reads(size, block, 4096).iter().sum::<u64>() >= size, "{size} by {block}");
            }
        }
    }
}
