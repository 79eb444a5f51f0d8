//! The page: one file that needs nothing else, in which the matrix is sorted, filtered, and two systems are held
//! against each other.

use crate::{Matrix, SCHEMA};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
const BODY: &str = include_str!("page.html");

/// Nothing is loaded, and nothing but the page's own script runs.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'";

/// Makes the page.
///
/// # Errors
/// The matrix cannot be written as JSON.
pub fn page(matrix: &Matrix) -> serde_json::Result<String> {
    let json = document::envelope(SCHEMA, matrix)?;
    // In JSON a `<` stands only inside strings, where its escape means the same; then no name ends the script.
    let json = json.to_string().replace('<', "\\u003c");
    Ok(format!(
        "{}<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Library of workloads and systems</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n{BODY}\
         <script type=\"application/json\" id=\"data\">{json}</script>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        document::HTML_BEGINS
    ))
}
