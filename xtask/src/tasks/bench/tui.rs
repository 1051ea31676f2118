//! Measures `taffrail tui` on a terminal over a hub of many apps: its CPU time at rest, the time of a redraw, and the
//! bytes that it writes for a changed row.
//!
//! The hub is a fake one in this process, so that only the terminal UI is measured. All rows were read before. A redraw
//! takes from a key to the last byte that is written for it; half of the keys move the cursor by a row, the others by a
//! page, at the pace of a key that is held.
//!
//! A figure beyond its bar is printed as missed and fails nothing, because a busy machine shows in it.

use std::num::NonZeroU16;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use taffrail_testkit::binary::{self, Profile};
use taffrail_testkit::fake_hub::ManyApps;
use taffrail_testkit::terminal::{Output, Terminal};
use vt100::Parser;

use super::measure::{bar, load, median};
use super::subject::Usage;

/// Measure `taffrail tui` on a terminal: CPU time at rest, time of a redraw, bytes written for a changed row.
#[derive(Args)]
pub(crate) struct Tui {
    /// Number of apps.
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1_000..100_000))]
    apps: u32,
    /// Number of seconds for which CPU time at rest is measured.
    #[arg(long, default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    rest: u32,
    /// Number of keys that are pressed.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(2..1_000))]
    keys: u32,
}

/// The size of the terminal, in columns and rows.
const SIZE: (u16, u16) = (200, 60);
/// The time between two presses, as of a key that is held.
const PRESS: Duration = Duration::from_millis(33);
/// The time without output after which the UI has written all of a change: it reads changes at most once a second.
const QUIET: Duration = Duration::from_secs(2);
/// The maximum time until the screen shows what is awaited.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal UI, and the emulator that shows its screen.
struct Shown {
    terminal: Terminal,
    parser: Parser,
}

impl Shown {
    /// Takes output until none comes for `quiet`; returns the number of bytes, and the time of the last ones.
    fn read(&mut self, quiet: Duration) -> Result<(usize, Option<Instant>)> {
        let (mut length, mut last) = (0, None);
        loop {
            match self.terminal.take(quiet) {
                Output::Bytes(bytes) => {
                    last = Some(Instant::now());
                    length += bytes.len();
                    self.parser.process(&bytes);
                }
                Output::Silence => return Ok((length, last)),
                Output::End => bail!("the terminal UI ended: {}", self.parser.screen().contents()),
            }
        }
    }

    /// Presses keys, and waits until the screen shows `wanted`.
    fn press(&mut self, keys: &str, wanted: &str) -> Result<()> {
        self.terminal.type_in(keys);
        let begun = Instant::now();
        while !self.parser.screen().contents().contains(wanted) {
            self.read(PRESS)?;
            let screen = || self.parser.screen().contents();
            ensure!(begun.elapsed() < PATIENCE, "no {wanted:?} after {keys:?}:\n{}", screen());
        }
        Ok(())
    }
}

impl Tui {
    pub(super) fn run(self) -> Result<()> {
        let program = binary::build(Profile::Release)?;
        let hub = ManyApps::start(usize::try_from(self.apps)?)?;
        let mut command = Command::new(program);
        command.args(["tui", "--hub", &hub.url]).env("TERM", "xterm-256color");
        let size = |number| NonZeroU16::new(number).context("a terminal without cells");
        let parser = Parser::new(size(SIZE.1)?, size(SIZE.0)?, 0);
        let mut shown = Shown { terminal: Terminal::start(command, SIZE.0, SIZE.1)?, parser };
        let pid = shown.terminal.child.id();
        println!("{} apps on a terminal of {} x {}; load {}", self.apps, SIZE.0, SIZE.1, load());

        shown.press("", "live 1")?;
        shown.press("gp", "app-00040")?;
        shown.press("G", &format!("app-{:05}", self.apps - 1))?;
        shown.press("gg", "app-00000")?;
        shown.read(QUIET)?;
        let before = Usage::of(pid)?;
        let written = shown.terminal.read_for(Duration::from_secs(u64::from(self.rest)));
        let rested = Usage::of(pid)?;
        let (mut redraws, mut bytes) = (Vec::new(), 0);
        for number in 0..self.keys {
            let pressed = Instant::now();
            // Next row, or next page.
            shown.terminal.type_in(if number % 2 == 0 { "j" } else { "\x1b[6~" });
            let (length, last) = shown.read(PRESS)?;
            let last = last.with_context(|| format!("nothing is drawn for key {number}"))?;
            redraws.push((last - pressed).as_secs_f64() * 1e3);
            bytes += length;
        }
        let pressed = Usage::of(pid)?;
        shown.press("gg", "app-00000")?;
        shown.read(QUIET)?;
        hub.fail_first();
        let begun = Instant::now();
        let mut of_row = 0;
        while !shown.parser.screen().contents().contains("the quota is used up") {
            of_row += shown.read(QUIET)?.0;
            ensure!(begun.elapsed() < PATIENCE, "the changed row is not shown");
        }

        let percent = (rested.cpu - before.cpu) / f64::from(self.rest) * 100.0;
        bar("% of a core at rest", percent, 2.0);
        println!(
            "  {written} bytes written in {} s at rest, {:.0} MiB of memory",
            self.rest, rested.resident
        );
        let worst = redraws.iter().copied().fold(0.0, f64::max);
        bar("ms of a redraw, median", median(redraws), 16.0);
        bar("ms of a redraw, longest", worst, 16.0);
        let cpu = (pressed.cpu - rested.cpu) * 1e3 / f64::from(self.keys);
        println!("  {cpu:.2} ms of CPU time and {} bytes for each key", bytes / self.keys as usize);
        bar("bytes written for a changed row", f64::from(u32::try_from(of_row)?), 4096.0);
        Ok(())
    }
}
