//! Shows a progress line on the terminal if waiting takes longer than a second.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::table::cut;

/// Delay before the progress line appears.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// Minimum interval between updates of the line.
const PACE: Duration = Duration::from_millis(100);

/// True while a progress line is on the terminal, which must be cleared before other output.
static SHOWN: AtomicBool = AtomicBool::new(false);

/// True after [`silence`]: no further progress line starts.
static SILENT: AtomicBool = AtomicBool::new(false);

/// Disables, for the rest of the process, the progress lines that are not started yet, and [`tell`].
pub(crate) fn silence() {
    SILENT.store(true, Ordering::Release);
}

/// Clears the progress line if one is shown.
pub(crate) fn clear() {
    if SHOWN.swap(false, Ordering::AcqRel) {
        // A closed stderr cannot be reported.
        let _ = std::io::stderr().write_all(b"\r\x1b[K");
    }
}

/// A progress line on stderr with the names that are still waited for. When the last clone is dropped, the line is
/// cleared. `None` if [`Progress::start`] shows nothing.
#[derive(Clone)]
pub(crate) struct Progress(Option<Arc<ProgressLine>>);

/// A progress line on stderr, and the thread that draws it.
struct ProgressLine {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The state that the thread of a progress line shares with its users.
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

/// The contents of a progress line: its text, the clusters that have not answered, and the number of all.
struct Waiting {
    text: String,
    names: Vec<String>,
    total: usize,
    ended: bool,
}

/// Returns true if stderr is a terminal whose type is not `dumb`, so that a line on it can be cleared.
fn can_stand() -> bool {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !dumb && std::io::stderr().is_terminal()
}

/// Prints `text` to stderr as a line that stays, unless [`silence`] was called or stderr is a terminal on which a
/// progress line can be shown.
pub(crate) fn tell(text: &str) {
    if !SILENT.load(Ordering::Acquire) && !can_stand() {
        // A closed stderr cannot be reported.
        let _ = writeln!(std::io::stderr(), "{}", super::printable(text));
    }
}

impl Progress {
    /// Shows a progress line, after [`PATIENCE`], with `text`, such as `reading 20 clusters`, and those of `names` that
    /// are not done. Shows nothing without names, after [`silence`], or if stderr is not a capable terminal.
    pub(crate) fn start(text: String, names: Vec<String>) -> Progress {
        if names.is_empty() || SILENT.load(Ordering::Acquire) || !can_stand() {
            return Progress(None);
        }
        let total = names.len();
        let waiting = Mutex::new(Waiting { text, names, total, ended: false });
        let shared = Arc::new(Shared { waiting, changed: Condvar::new() });
        let of_thread = shared.clone();
        let thread = std::thread::Builder::new().spawn(move || of_thread.run()).ok();
        Progress(Some(Arc::new(ProgressLine { shared, thread: Mutex::new(thread) })))
    }

    /// Removes `name` from those that are waited for.
    pub(crate) fn done(&self, name: &str) {
        let Some(line) = &self.0 else { return };
        let mut waiting = line.shared.lock();
        if let Some(at) = waiting.names.iter().position(|other| other == name) {
            waiting.names.remove(at);
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A thread that failed has no line to clear.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut patience = PATIENCE;
        let mut last = String::new();
        let mut waiting = self.lock();
        loop {
            let waited = self.changed.wait_timeout_while(waiting, patience, |waiting| !waiting.ended);
            waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
            if waiting.ended {
                return clear();
            }
            patience = PACE;
            let line = waiting.line(width());
            if line != last {
                SHOWN.store(true, Ordering::Release);
                let _ = write!(std::io::stderr(), "\r{line}\x1b[K");
                last = line;
            }
        }
    }
}

impl Waiting {
    fn line(&self, width: usize) -> String {
        let done = self.total - self.names.len();
        let line = match self.names.as_slice() {
            [] => self.text.clone(),
            names if self.total == 1 => format!("{} {}", self.text, names.join(", ")),
            names => format!("{}: {done} answered, waiting for {}", self.text, names.join(", ")),
        };
        // The last column stays free, because some terminals wrap there.
        cut(&super::printable(&line), width.saturating_sub(1)).into_owned()
    }
}

fn width() -> usize {
    terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| usize::from(width.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_line_names_pending_clusters_and_fits() {
        let names = ["edge-3", "edge-4", "edge-5"].map(str::to_owned).to_vec();
        let waiting = Waiting { text: "asking 20 clusters".to_owned(), names, total: 20, ended: false };
        assert_eq!(waiting.line(80), "asking 20 clusters: 17 answered, waiting for edge-3, edge-4, edge-5");
        assert_eq!(waiting.line(60), "asking 20 clusters: 17 answered, waiting for edge-3, edge-…");
    }
}
