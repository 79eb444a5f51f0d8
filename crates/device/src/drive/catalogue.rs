//! The drives that come with the program.

macro_rules! drives {
    ($($key:literal),* $(,)?) => {
        &[$(($key, include_str!(concat!("../../drives/", $key, ".toml")))),*]
    };
}

/// Key and file of every drive that comes with the program, in the order in which they are listed.
pub fn catalogue() -> &'static [(&'static str, &'static str)] {
    drives![
        "hp-97560",
        "hp-c2247a",
        "dec-rz26",
        "fujitsu-m2694",
        "st32430n",
        "st32171w",
        "st39102lw",
        "st39102lw-uw",
        "nearline-7200",
        "ssd-sata",
        "ssd-nvme",
        "ssd-nvme-512m",
    ]
}
