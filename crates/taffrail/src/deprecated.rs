//! Warns about flags that keep their former meaning in this release and will have another one later.

use std::time::Duration;

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::command_error::CommandError;

/// Returns the warning about a flag that the command line gives, and that later releases will understand in another
/// way; `None` if it gives no such flag, or if both meanings are the same for this command line.
pub(crate) fn warning(matches: &ArgMatches) -> Option<CommandError> {
    let (name, matches) = matches.subcommand()?;
    let is_given = |id: &str| {
        matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    let is_set = |id: &str| matches.try_contains_id(id).is_ok_and(|is_set| is_set);
    let limit = || matches.try_get_one::<Duration>("request_timeout").ok().flatten();
    let warn = |what: &str, hint: &str| Some(CommandError::usage(what).harmless().hint(hint));
    match name {
        "reconcile" | "suspend" | "resume" => {
            let is_limit = limit().is_some_and(|limit| *limit < Duration::MAX);
            if !is_given("request_timeout") || !is_limit {
                return None;
            }
            warn(
                "--request-timeout is how long each cluster may take to answer first in this release, and only how long one request may take in later ones",
                "leave --request-timeout out, or write --request-timeout 0 for no limit; --timeout is for the whole command",
            )
        }
        "dump" if is_given("whole") && limit().is_none() => warn(
            "--timeout of `dump` is now called --request-timeout",
            "--timeout still limits each request in this release; in later ones, and together with --request-timeout, it limits the whole command",
        ),
        "rules" => warning(matches),
        _ => {
            // What is followed, a file, a dump, and the answer of a hub are read within one time in both meanings.
            let is_read_once = !matches.try_get_one::<bool>("watch").is_ok_and(|it| it == Some(&true))
                && !is_set("from")
                && !is_set("files")
                && !is_set("hub");
            if !is_given("timeout") || limit().is_some() || !is_read_once {
                return None;
            }
            warn(
                "--timeout is how long each cluster may take in this release, and how long the command may take in later ones",
                "with --request-timeout, such as --request-timeout 0 for no limit, it has the later meaning now",
            )
        }
    }
}
