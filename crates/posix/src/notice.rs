//! What is said to the user from where nobody can return an error.

/// Says something on standard error, if that can be written to.
pub(crate) fn tell(text: &str) {
    use std::io::{self, Write as _};
    let _ = writeln!(io::stderr(), "fsage: {}", units::text::printable(text));
}
