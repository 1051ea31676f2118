//! Known words that are similar to a misspelt one.

use std::borrow::Cow;

/// The maximum length of a word for which similar ones are looked for, in bytes: the search takes quadratic time.
const MAX_COMPARED: usize = 64;

/// The number of characters to which messages cut a text from a manifest.
const MAX_SHOWN: usize = 60;

/// Returns the known word that differs from `word` by the fewest letters, in any case; `None` if all differ by more than
/// a third of its letters.
pub(super) fn nearest<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    if word.is_empty() || word.len() > MAX_COMPARED {
        return None;
    }
    let wrong = word.to_lowercase();
    let most = (wrong.chars().count() / 3).clamp(1, 3);
    let rated =
        known.into_iter().map(|word| (strsim::damerau_levenshtein(&wrong, &word.to_lowercase()), word));
    rated
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

/// Cuts a text from a manifest to a length that fits in a message.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
