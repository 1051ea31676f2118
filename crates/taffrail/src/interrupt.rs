//! Ctrl-C: the terminal is left as it was found.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;

use crate::output::{answer, progress, screen};

/// What a shell says of a program that was interrupted: 128 and the number of SIGINT.
const INTERRUPTED: i32 = 130;

/// From now on, an interrupt takes the line of progress and colours back before the process ends.
///
/// Away from a terminal there is nothing to clean, and the process ends as others do.
pub(crate) fn watch() {
    if !std::io::stderr().is_terminal() && !std::io::stdout().is_terminal() {
        return;
    }
    // Without the thread, an interrupt ends the process less cleanly.
    let _ = std::thread::Builder::new().spawn(|| {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
        runtime.block_on(async {
            while tokio::signal::ctrl_c().await.is_ok() {
                // It is the pager's reader who is heard there; the pager ends, and then this process.
                if !answer::is_paging() {
                    end();
                }
            }
        });
    });
}

#[expect(clippy::exit, reason = "an interrupt ends the process, whatever it is doing")]
fn end() {
    progress::clear();
    screen::restore();
    // It may have come in the middle of a coloured word, and whoever writes that holds the lock of stdout.
    if std::io::stdout().is_terminal()
        && let Ok(terminal) = std::io::stdout().as_fd().try_clone_to_owned()
    {
        let _ = File::from(terminal).write_all(b"\x1b[0m");
    }
    std::process::exit(INTERRUPTED);
}
