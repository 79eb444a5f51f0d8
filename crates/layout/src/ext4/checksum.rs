//! ext4's checksums: crc32c without the final inversion (metadata_csum), crc16 (gdt_csum).

/// Continues a crc32c the way ext4 does: start from `!0` or a seed, no inversion at the end.
pub(super) fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    !::crc32c::crc32c_append(!seed, bytes)
}

/// The kernel's crc16 (polynomial 0x8005, reflected), used by group descriptors of gdt_csum file systems.
pub(super) fn crc16(seed: u16, bytes: &[u8]) -> u16 {
    bytes.iter().fold(seed, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xA001 } else { crc >> 1 })
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn check_values() {
        // The published check values of both over "123456789"; CRC-16/ARC starts from 0.
        assert_eq!(!super::crc32c(!0, b"123456789"), 0xE306_9283);
        assert_eq!(super::crc16(0, b"123456789"), 0xBB3D);
        assert_eq!(super::crc32c(super::crc32c(!0, b"1234"), b"56789"), super::crc32c(!0, b"123456789"));
    }
}
