//! Handles signals: cleans up and ends the process on Ctrl-C and the like.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;

use taffrail_cluster::Plugins;
use tokio::signal::unix::{SignalKind, signal};

use crate::commands::dump;
use crate::output::answer::Console;
use crate::output::{progress, screen};
use crate::runtime;

/// The number to which that of the signal is added for the exit code after a signal, as shells report it.
const INTERRUPTED: i32 = 128;

/// Starts a task that ends the process on SIGINT, SIGTERM and SIGHUP, after it has restored the terminal, removed
/// partial dumps, and ended the running exec plugins. Those are in process groups of their own, which no signal to this
/// process reaches. While a pager runs, it ignores SIGINT. If the runtime cannot be started, signals end the process
/// without cleaning up.
pub(crate) fn watch(console: Console) {
    runtime::spawn(async move {
        let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = signals else { return };
        loop {
            tokio::select! {
                _ = interrupt.recv() => {
                    // While a pager runs, the interrupt is for its reader; the pager ends, and then this process.
                    if !console.is_paging() {
                        end(SignalKind::interrupt());
                    }
                }
                _ = terminate.recv() => end(SignalKind::terminate()),
                _ = hangup.recv() => end(SignalKind::hangup()),
            }
        }
    });
}

#[expect(clippy::exit, reason = "an interrupt ends the process, whatever it is doing")]
fn end(by: SignalKind) {
    Plugins::process().end();
    let _abandoned = dump::abandon();
    progress::clear();
    screen::restore();
    // The signal may arrive in the middle of a coloured word, while its writer holds the lock of stdout.
    if std::io::stdout().is_terminal()
        && let Ok(terminal) = std::io::stdout().as_fd().try_clone_to_owned()
    {
        let _ = File::from(terminal).write_all(b"\x1b[0m");
    }
    std::process::exit(INTERRUPTED + by.as_raw_value());
}
