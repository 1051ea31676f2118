//! `-vv` and `-vvv`: prints the traces of Taffrail's own crates as lines to stderr.

use std::io::{self, IsTerminal, Write};

use clap::ArgMatches;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::output::answer::Console;

/// Returns the number of `-v` flags of the innermost subcommand in `matches`.
fn verbosity(matches: &ArgMatches) -> u8 {
    match matches.subcommand() {
        Some((_, inner)) => verbosity(inner),
        None => matches.try_get_one("verbose").ok().flatten().copied().unwrap_or_default(),
    }
}

/// Prints traces to stderr from now on, of level debug if `matches` has `-v` twice, of all levels if more often; else
/// does nothing.
///
/// Also does nothing if the command `redraws` its view and both stdout and stderr are terminals, so that the view
/// stays readable.
pub(crate) fn print(matches: &ArgMatches, redraws: bool, console: &Console) {
    let level = match verbosity(matches) {
        0 | 1 => return,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    if redraws && io::stdout().is_terminal() && io::stderr().is_terminal() {
        return;
    }
    let lines = layer().without_time().with_level(false).with_target(false).with_ansi(false);
    // Other libraries trace headers, and those hold credentials.
    let own = Targets::new().with_target("taffrail", level);
    // Nothing else in this process subscribes.
    let console = console.clone();
    let lines = lines.with_writer(move || Lines(console.clone()));
    let _ = tracing_subscriber::registry().with(lines).with(own).try_init();
}

/// A writer that prints each trace as a message of the console.
struct Lines(Console);

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.message(&String::from_utf8_lossy(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
