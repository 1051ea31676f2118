//! Counts how often objects are parsed, for tests.

use std::sync::{Mutex, PoisonError};

/// The name of the thread that parsed an object, and the object's text.
type Parsed = (String, Box<[u8]>);

/// The objects that were parsed; `None` while nothing is recorded.
static PARSED: Mutex<Option<Vec<Parsed>>> = Mutex::new(None);

/// Records that this thread parsed the object `text`, if recording is on.
pub(super) fn note(text: &[u8]) {
    if let Some(parsed) = &mut *PARSED.lock().unwrap_or_else(PoisonError::into_inner) {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        parsed.push((thread, text.into()));
    }
}

/// Begins to record which objects are parsed, for [`count`]; earlier records stay.
pub fn record() {
    PARSED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
}

/// Returns the number of recorded parses of texts that contain `part`, leaving out those on threads named `except`.
pub fn count(part: &str, except: &str) -> usize {
    let parsed = PARSED.lock().unwrap_or_else(PoisonError::into_inner);
    let others = parsed.iter().flatten().filter(|(thread, _)| thread != except);
    others.filter(|(_, text)| memchr::memmem::find(text, part.as_bytes()).is_some()).count()
}
