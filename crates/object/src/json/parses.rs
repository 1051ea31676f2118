//! Records which objects are parsed, for tests that count how often that is.

use std::sync::{Mutex, PoisonError};

/// The name of the thread that parsed an object, and the text of the object.
type Parsed = (String, Box<[u8]>);

/// The objects that were parsed; `None` while nothing is recorded.
static PARSED: Mutex<Option<Vec<Parsed>>> = Mutex::new(None);

/// Notes that an object was parsed by this thread.
pub(super) fn note(text: &[u8]) {
    if let Some(parsed) = &mut *PARSED.lock().unwrap_or_else(PoisonError::into_inner) {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        parsed.push((thread, text.into()));
    }
}

/// Begins to record; what was recorded stays.
pub fn record() {
    PARSED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
}

/// Counts the recorded objects whose text contains `part`, but those that threads called `except` parsed.
pub fn count(part: &str, except: &str) -> usize {
    let parsed = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
    let others = parsed.iter().flatten().filter(|(thread, _)| thread != except);
    others.filter(|(_, text)| memchr::memmem::find(text, part.as_bytes()).is_some()).count()
}
