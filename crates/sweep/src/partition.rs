//! The names of the directories by which a data set is partitioned.

/// `name=value` as a directory's name, with `%` and two digits for what is not plain, as Hive writes it and its readers
/// undo it.
pub(crate) fn hive(name: &str, value: &str) -> String {
    let mut text = format!("{name}=");
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'+' | b',' | b'@' => {
                text.push(byte as char)
            }
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    if value.is_empty() {
        text.push_str("__HIVE_DEFAULT_PARTITION__");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partitions_name_is_plain_whatever_its_value() {
        assert_eq!(hive("drive", "st32430n"), "drive=st32430n");
        assert_eq!(hive("target", "ffs:size=1/2 %é"), "target=ffs%3Asize%3D1%2F2%20%25%C3%A9");
        assert_eq!(hive("options", ""), "options=__HIVE_DEFAULT_PARTITION__");
    }
}
