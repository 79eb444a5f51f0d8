//! Tips for words of the command line that are misspelt, where clap has none: `help predct`, `mkfs fs`, a shell.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;
use units::similar::nearest;

/// Adds to a refusal of a word the one that was probably meant.
pub fn add(mut error: clap::Error, command: &clap::Command, arguments: &[OsString]) -> clap::Error {
    let string = |error: &clap::Error, kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand if error.get(ContextKind::SuggestedSubcommand).is_none() => {
            let Some(word) = string(&error, ContextKind::InvalidSubcommand) else { return error };
            let names: Vec<String> = subcommands(command, arguments, &word);
            if let Some(near) = nearest(&word, names.iter().map(String::as_str)) {
                error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near.to_owned()]));
            }
        }
        ErrorKind::InvalidValue if error.get(ContextKind::SuggestedValue).is_none() => {
            let Some(word) = string(&error, ContextKind::InvalidValue) else { return error };
            let Some(ContextValue::Strings(valid)) = error.get(ContextKind::ValidValue) else { return error };
            if let Some(near) = nearest(&word, valid.iter().map(String::as_str)).map(str::to_owned) {
                error.insert(ContextKind::SuggestedValue, ContextValue::String(near));
            }
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::Strings(missing)) => missing.clone(),
                _ => return error,
            };
            let of_age = arguments.get(1).is_some_and(|word| word == "age");
            if of_age && missing.iter().any(|argument| argument.starts_with("--plan")) {
                let tip = "--like home has a plan made for this target (fsage plan personality --list shows what else \
                    there is)";
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            }
        }
        _ => {}
    }
    error
}

/// The commands that could stand where `word` does.
fn subcommands(command: &clap::Command, arguments: &[OsString], word: &str) -> Vec<String> {
    let mut here = command;
    for argument in arguments.iter().skip(1).filter_map(|argument| argument.to_str()) {
        if argument == word {
            break;
        }
        match here.find_subcommand(argument) {
            Some(below) => here = below,
            // `help` is of the command before it.
            None if argument == "help" => {}
            None => break,
        }
    }
    let here = if here.get_name() == "help" { command } else { here };
    here.get_subcommands().map(|below| below.get_name().to_owned()).collect()
}
