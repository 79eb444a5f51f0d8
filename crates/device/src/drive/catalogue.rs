//! The drives that come with the program.

macro_rules! drives {
    ($($key:literal),* $(,)?) => {
        &[$(($key, include_str!(concat!("../../../../drives/", $key, ".toml")))),*]
    };
}

/// Key and file of every drive that comes with the program, in the order in which they are listed.
pub fn catalogue() -> &'static [(&'static str, &'static str)] {
    drives!["hp-c2247a", "dec-rz26", "st32171w", "st39102lw"]
}
