//! `fsage man`: manual pages and the reference of the documentation, from the same definitions as `--help`.

use crate::failure::{self, Context as _};
use crate::{args::Cli, output};
use clap::CommandFactory as _;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Print the manual page, or write one page per command into a directory.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Write fsage.1 and fsage-COMMAND.1 into this directory instead.
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// As Markdown: one page of all commands, cli.md in the directory.
    #[arg(long)]
    markdown: bool,
}

/// Prints or writes the pages.
pub fn run(args: Args) -> failure::Result<ExitCode> {
    if let Some(directory) = &args.output {
        std::fs::create_dir_all(directory).with_context(|| format!("cannot make {}", output::shown(directory)))?;
    }
    match (args.output, args.markdown) {
        (Some(directory), true) => output::write_file(&directory.join("cli.md"), reference().as_bytes())?,
        (None, true) => output::print(&reference())?,
        (Some(directory), false) => {
            clap_mangen::generate_to(Cli::command(), &directory)
                .with_context(|| format!("cannot write manual pages into {}", output::shown(&directory)))?;
        }
        (None, false) => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            output::print(&String::from_utf8_lossy(&page))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// All commands with their arguments, in the order of the help.
fn reference() -> String {
    let mut command = Cli::command();
    command.build();
    let mut page = String::from(
        "# Commands\n\nEvery command with its arguments and options, from the same definitions as `fsage COMMAND --help`.\n",
    );
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        section(&mut page, below, &format!("fsage {}", below.get_name()), 2);
    }
    page
}

fn section(page: &mut String, command: &clap::Command, name: &str, level: usize) {
    // Writing into a string cannot fail.
    let _ = writeln!(page, "\n{} {name}\n", "#".repeat(level.min(4)));
    if let Some(about) = command.get_long_about().or(command.get_about()) {
        let _ = writeln!(page, "{}\n", plain(&about.to_string()));
    }
    let usage = command.clone().render_usage().to_string();
    let _ = writeln!(page, "    {}\n", usage.trim().replace('\n', "\n    "));
    let shown = |argument: &&clap::Arg| {
        !argument.is_hide_set() && argument.get_id() != "help" && argument.get_id() != "version"
    };
    for argument in command.get_arguments().filter(shown) {
        let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
        let short = argument.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
        let _ = write!(page, "* `{short}{}`: {}", argument.to_string().trim_matches(['[', ']']), sentence(&help));
        let values: Vec<_> = argument.get_possible_values().into_iter().filter(|value| !value.is_hide_set()).collect();
        if !values.is_empty() && argument.get_action().takes_values() {
            let values = values.iter().map(|value| match value.get_help() {
                Some(help) => format!("`{}` ({})", value.get_name(), plain(&help.to_string()).trim_end_matches('.')),
                None => format!("`{}`", value.get_name()),
            });
            let _ = write!(page, " One of {}.", values.collect::<Vec<_>>().join(", "));
        }
        let defaults: Vec<String> =
            argument.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
        if !defaults.is_empty() && argument.get_action().takes_values() {
            let _ = write!(page, " Default: {}.", defaults.join(", "));
        }
        page.push('\n');
    }
    if let Some(examples) = command.get_after_long_help().or(command.get_after_help()) {
        let examples = examples.to_string();
        if let Some(lines) = examples.trim().strip_prefix("Examples:") {
            let lines: Vec<String> = lines
                .lines()
                .filter(|line| !line.trim().is_empty())
                .map(|line| format!("    {}", line.trim()))
                .collect();
            let _ = writeln!(page, "\nExamples:\n\n{}", lines.join("\n"));
        } else {
            let _ = writeln!(page, "\n{}", plain(&examples));
        }
    }
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        section(page, below, &format!("{name} {}", below.get_name()), level + 1);
    }
}

/// The help of an argument, ended as a sentence is.
fn sentence(help: &str) -> String {
    let text = plain(help);
    if text.is_empty() || text.ends_with(['.', '?', '!', ')', ']']) { text } else { format!("{text}.") }
}

/// Help as a paragraph of Markdown: what stands in angle brackets is no element.
fn plain(help: &str) -> String {
    let paragraphs: Vec<String> =
        help.trim().split("\n\n").map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    paragraphs.join("\n\n").replace('<', "&lt;").replace('*', "\\*")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_reference_has_every_command_and_option() {
        use clap::CommandFactory as _;
        let page = super::reference();
        for command in crate::args::Cli::command().get_subcommands() {
            assert!(page.contains(&format!("\n## fsage {}\n", command.get_name())), "{}", command.get_name());
        }
        for part in [
            "\n### fsage bench postmark\n",
            "* `--explain <A> <B>`:",
            "* `-o, --output <DIR>`:",
            "`lru` (What was not used for longest)",
        ] {
            assert!(page.contains(part), "{part}");
        }
    }
}
