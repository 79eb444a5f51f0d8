//! The personalities that come with fsage.

use super::Personality;
use crate::plan::PlanError;
use std::path::Path;

macro_rules! personalities {
    ($($name:literal),* $(,)?) => {
        /// Name and file of each.
        pub const ALL: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../personalities/", $name, ".toml")))),*];
    };
}

personalities!("home", "mail", "news", "build", "containers", "database", "phone", "webcache");

/// The file of a personality.
pub fn text(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

/// A personality by its name.
///
/// # Errors
/// [`PlanError::Parameter`] for an unknown name.
pub fn get(name: &str) -> Result<Personality, PlanError> {
    let Some(text) = text(name) else {
        let names: Vec<&str> = ALL.iter().map(|(n, _)| *n).collect();
        let tip = units::similar::tip(name, names.iter().copied());
        let message =
            format!("{name:?} is none; there are {}, and files of your own (NAME.toml){tip}", names.join(", "));
        return Err(PlanError::parameter("personality", message));
    };
    Personality::parse(Path::new(&format!("{name}.toml")), text)
}
