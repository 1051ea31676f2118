//! Line breaks of YAML 1.1, such as U+0085. Go's library prints some strings with them at the start of a line; in
//! YAML 1.2 they are ordinary characters.

use std::borrow::Cow;

use granit_parser::ScalarStyle;

/// Returns true if Go's library takes the character for a line break: a line feed, a carriage return, U+0085, U+2028 or
/// U+2029.
pub(super) fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r') || is_old(character)
}

fn is_old(character: char) -> bool {
    matches!(character, '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Replaces the line breaks that only YAML 1.1 knows (U+0085, U+2028, U+2029) by line feeds, one character for one.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    match text.contains(is_old) {
        true => Cow::Owned(text.replace(is_old, "\n")),
        false => Cow::Borrowed(text),
    }
}

/// A YAML text before [`plain`] replaced its line breaks; recovers the original text of a scalar.
pub(super) struct Original<'t> {
    text: &'t str,
    /// The position up to which the text was read, in characters.
    characters: usize,
    /// The same position in bytes.
    bytes: usize,
    /// The number of line feeds up to there, where lines are counted.
    lines: u64,
}

impl<'t> Original<'t> {
    pub(super) fn new(text: &'t str) -> Original<'t> {
        Original { text, characters: 0, bytes: 0, lines: 0 }
    }

    /// Returns the number, from 1, of the line that contains the character with this index; only line feeds end lines,
    /// as in editors.
    pub(super) fn line(&self, character: usize) -> u64 {
        1 + self.text.chars().take(character).filter(|&it| it == '\n').count() as u64
    }

    /// Returns true if a scalar has a line break of YAML 1.1 in a style for which [`Original::scalar`] does not know what
    /// Go's library makes of it. `span` is its start and end, in characters.
    pub(super) fn is_ambiguous(&mut self, style: ScalarStyle, span: (usize, usize)) -> bool {
        !matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::Literal)
            && self.between(span.0, span.1).is_some_and(|written| written.contains(is_old))
    }

    /// Returns the line number as [`Original::line`] does; `character` must not decrease from call to call.
    pub(super) fn line_at(&mut self, character: usize) -> u64 {
        let passed = self.between(self.characters, character.max(self.characters));
        self.lines += passed.map_or(0, |passed| passed.matches('\n').count() as u64);
        self.characters = self.characters.max(character);
        self.bytes += passed.map_or(0, str::len);
        1 + self.lines
    }

    /// Returns the text between two positions, in characters; `None` if they decrease. `start` must not decrease from
    /// call to call.
    fn between(&mut self, start: usize, end: usize) -> Option<&'t str> {
        let rest = self.text.get(self.bytes..)?;
        self.bytes += length(rest, start.checked_sub(self.characters)?);
        self.characters = start;
        let rest = self.text.get(self.bytes..)?;
        rest.get(..length(rest, end.checked_sub(start)?))
    }

    /// Returns the scalar `read` with its original line breaks, for the styles in which Go's library prints them:
    /// single quotes and literal blocks. `None` for other styles. `span` is its start and end, in characters.
    pub(super) fn scalar(&mut self, style: ScalarStyle, span: (usize, usize), read: &str) -> Option<String> {
        if !matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::Literal) {
            return None;
        }
        let written = self.between(span.0, span.1)?;
        if style == ScalarStyle::SingleQuoted {
            return in_single_quotes(written);
        }
        // The parser begins a block at the first line that has letters.
        let before = self.text.get(..self.bytes)?;
        let gap = &before[before.trim_end_matches(is_gap).len()..];
        // The first break ends the line of the block indicator.
        let mut breaks = breaks(gap).chain(breaks(written)).skip(1);
        Some(read.chars().map(|it| if it == '\n' { breaks.next().unwrap_or(it) } else { it }).collect())
    }
}

/// Returns the length in bytes of the first `characters` characters of `text`.
fn length(text: &str, characters: usize) -> usize {
    text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at)
}

/// Iterates over the line breaks of `text` as a parser reads them: a Windows line end counts once, and `U+0085` as a
/// line feed.
fn breaks(text: &str) -> impl Iterator<Item = char> {
    let mut before = ' ';
    text.chars().filter_map(move |character| {
        let is_second = (before, character) == ('\r', '\n');
        before = character;
        match character {
            '\n' if is_second => None,
            '\n' | '\r' | '\u{85}' => Some('\n'),
            _ => is_old(character).then_some(character),
        }
    })
}

fn is_gap(character: char) -> bool {
    matches!(character, ' ' | '\t') || is_break(character)
}

fn in_single_quotes(written: &str) -> Option<String> {
    let mut rest = written.strip_prefix('\'')?.strip_suffix('\'')?;
    let mut text = String::with_capacity(rest.len());
    loop {
        let (words, more) = rest.split_at(rest.find(is_gap).unwrap_or(rest.len()));
        text.push_str(&words.replace("''", "'"));
        if more.is_empty() {
            return Some(text);
        }
        let (gap, after) = more.split_at(more.find(|it| !is_gap(it)).unwrap_or(more.len()));
        let mut breaks = breaks(gap).peekable();
        // A line feed alone is a space, and the first of several only marks the fold.
        match breaks.next() {
            None => text.push_str(gap),
            Some('\n') if breaks.peek().is_none() => text.push(' '),
            Some('\n') => text.extend(breaks),
            Some(first) => text.extend(std::iter::once(first).chain(breaks)),
        }
        rest = after;
    }
}
