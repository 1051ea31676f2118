//! Makes text safe to print.
//!
//! Text from clusters, dumps, kubeconfigs and the network may contain characters that move the cursor, end a line or
//! reverse the order of letters. It is printed only as [`Printable`]: [`say!`](crate::say) accepts nothing else but
//! literals, numbers and colours, which the compiler checks. `cargo xtask tidy` checks that no other macro prints.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};
use std::ops::Deref;

use anstyle::Style;
use taffrail_status::is_unseen;

/// Text on one line without control or invisible characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Printable<'a>(Cow<'a, str>);

impl Printable<'_> {
    pub(crate) fn into_owned(self) -> Printable<'static> {
        Printable(Cow::Owned(self.0.into_owned()))
    }
}

impl Deref for Printable<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Printable<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Display for Printable<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Makes text printable: joins its lines, trimmed and without empty ones, by spaces, and replaces tabs by spaces and
/// other invisible characters by U+FFFD. Spaces at the start and end of the text stay.
pub(crate) fn printable(text: &str) -> Printable<'_> {
    if !text.contains(is_unseen) {
        return Printable(Cow::Borrowed(text));
    }
    // Leading spaces are the printer's indentation, and trailing ones its separators.
    let body = text.trim_start_matches(' ');
    let (indent, body) = (&text[..text.len() - body.len()], body.trim_end_matches(' '));
    let mut out = String::with_capacity(text.len());
    out.push_str(indent);
    for line in body.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if out.len() > indent.len() {
            out.push(' ');
        }
        out.extend(line.chars().map(|character| match character {
            '\t' => ' ',
            character if is_unseen(character) => char::REPLACEMENT_CHARACTER,
            character => character,
        }));
    }
    out.push_str(&text[indent.len() + body.len()..]);
    Printable(Cow::Owned(out))
}

/// Text made by [`phrase!`](crate::phrase) from safe parts; it may have colours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Phrase(String);

impl Phrase {
    /// Creates a phrase from a format whose arguments the macro has checked to be printable.
    pub(crate) fn checked(text: fmt::Arguments<'_>) -> Phrase {
        Phrase(text.to_string())
    }

    /// Creates a phrase from text that was made printable before, such as a table. Keeps colours and line ends, makes
    /// tabs spaces, and replaces every other invisible character, such as the ESC of a control sequence, by U+FFFD.
    pub(crate) fn drawn(text: &str) -> Phrase {
        Phrase(Sieve::clean(text, true))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Display for Phrase {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A type whose values may be printed as they are. Of plain strings only `&'static str` is one: those are this
/// program's own.
pub(crate) trait Shown: Display {}

impl Shown for Printable<'_> {}
impl Shown for &Printable<'_> {}
impl Shown for Phrase {}
impl Shown for &Phrase {}
impl Shown for &'static str {}
impl Shown for Style {}
impl Shown for u16 {}
impl Shown for u64 {}
impl Shown for u128 {}
impl Shown for usize {}

/// Returns its argument; it compiles only for values that are [`Shown`].
pub(crate) fn shown<T: Shown>(value: &T) -> &T {
    value
}

/// Formats literals, numbers, colours and [`Printable`] text. Arguments inside the braces would escape the check, so
/// they are not accepted.
#[macro_export]
macro_rules! phrase {
    ($format:literal $(, $argument:expr)* $(,)?) => {
        $crate::output::text::Phrase::checked(format_args!(concat!($format) $(, $crate::output::text::shown(&$argument))*))
    };
}

/// Writes a line to the writer `$out`, made of the other arguments as by [`phrase!`]; without these an empty line.
#[macro_export]
macro_rules! say {
    ($out:expr) => {
        $out.write_all(b"\n")
    };
    ($out:expr, $format:literal $(, $argument:expr)* $(,)?) => {
        $out.write_all($crate::phrase!($format $(, $argument)*).as_str().as_bytes()).and_then(|()| $out.write_all(b"\n"))
    };
}

/// Writes a line for programs, in JSON, YAML or another form that quotes by itself: nothing in it is cut or replaced.
#[macro_export]
macro_rules! emit {
    ($out:expr, $($argument:tt)*) => {
        writeln!($out, $($argument)*)
    };
}

/// The last filter before a terminal, in case a text was not made [`Printable`]: it passes visible characters and line
/// ends, passes or drops colours and passes tabs or makes them spaces as it is set, and replaces the rest by U+FFFD.
#[derive(Debug)]
pub(crate) struct Sieve {
    colours: bool,
    tabs: bool,
    /// The bytes of an incomplete character or colour at the end of the last input.
    rest: Vec<u8>,
}

/// Maximum number of bytes between `ESC [` and `m` in a colour sequence; a longer one does not count as a colour.
const MAX_COLOUR: usize = 32;

impl Sieve {
    /// Creates a filter for text for people: it drops colours unless `colours` is true, keeps line ends, turns tabs
    /// into spaces, and replaces other invisible characters by U+FFFD.
    pub(crate) fn of_people(colours: bool) -> Sieve {
        Sieve { colours, tabs: false, rest: Vec::new() }
    }

    /// Creates a filter for text for programs that goes to a terminal: it drops colours, keeps tabs and line ends, and
    /// replaces other invisible characters by U+FFFD.
    pub(crate) fn of_programs() -> Sieve {
        Sieve { colours: false, tabs: true, rest: Vec::new() }
    }

    /// Returns a complete text for people with only visible characters and line ends, and with colours if `colours` is
    /// true.
    pub(crate) fn clean(text: &str, colours: bool) -> String {
        let cleaned = Sieve::of_people(colours).pass(text.as_bytes());
        String::from_utf8_lossy(&cleaned).into_owned()
    }

    /// Filters the next bytes of a stream, and returns those that may be shown; keeps an incomplete character or colour
    /// at the end for the next call.
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        const SIGN: &[u8] = "\u{fffd}".as_bytes();

        let mut text = std::mem::take(&mut self.rest);
        text.extend_from_slice(bytes);
        let mut out = Vec::with_capacity(text.len());
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            let left = &text[at..];
            let plain = left.iter().take_while(|byte| matches!(byte, b' '..=b'~' | b'\n')).count();
            if plain > 0 {
                out.extend_from_slice(&left[..plain]);
                at += plain;
                continue;
            }
            let length = match byte {
                b'\t' => {
                    out.push(if self.tabs { b'\t' } else { b' ' });
                    1
                }
                0x1b => match colour(left) {
                    EscapeMatch::Whole(length) => {
                        out.extend_from_slice(if self.colours { &left[..length] } else { &[] });
                        length
                    }
                    EscapeMatch::Begun => break,
                    EscapeMatch::Nothing => {
                        out.extend_from_slice(SIGN);
                        1
                    }
                },
                _ => match character(left) {
                    EscapeMatch::Whole(length) => {
                        out.extend_from_slice(&left[..length]);
                        length
                    }
                    EscapeMatch::Begun => break,
                    EscapeMatch::Nothing => {
                        out.extend_from_slice(SIGN);
                        let decoded = std::str::from_utf8(&left[..left.len().min(4)]);
                        let valid = decoded.map_or_else(|error| error.valid_up_to(), str::len);
                        let first =
                            std::str::from_utf8(&left[..valid]).ok().and_then(|text| text.chars().next());
                        first.map_or(1, char::len_utf8)
                    }
                },
            };
            at += length;
        }
        self.rest = text.split_off(at);
        out
    }
}

/// The result of a check of the first bytes of a text.
enum EscapeMatch {
    Whole(usize),
    /// The bytes may be the start of a sequence that is not complete yet.
    Begun,
    Nothing,
}

/// Returns if and how far `bytes` begin with a colour sequence: `ESC [ numbers m`.
fn colour(bytes: &[u8]) -> EscapeMatch {
    match bytes.get(1) {
        None => return EscapeMatch::Begun,
        Some(b'[') => {}
        Some(_) => return EscapeMatch::Nothing,
    }
    let numbers = bytes[2..].iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b';' | b':')).count();
    match bytes.get(2 + numbers) {
        _ if numbers > MAX_COLOUR => EscapeMatch::Nothing,
        None => EscapeMatch::Begun,
        Some(b'm') => EscapeMatch::Whole(3 + numbers),
        Some(_) => EscapeMatch::Nothing,
    }
}

/// Returns if and how far `bytes` begin with a visible character in UTF-8.
fn character(bytes: &[u8]) -> EscapeMatch {
    let some = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(some) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => {
            std::str::from_utf8(&some[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(error) if error.error_len().is_none() => return EscapeMatch::Begun,
        Err(_) => return EscapeMatch::Nothing,
    };
    match valid.chars().next() {
        Some(character) if !is_unseen(character) => EscapeMatch::Whole(character.len_utf8()),
        _ => EscapeMatch::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_replaced() {
        assert_eq!(&*printable("größer 漢"), "größer 漢");
        assert_eq!(&*printable("one\n\x1b[2Jtwo\tthree"), "one \u{fffd}[2Jtwo three");
        assert_eq!(&*printable("a\u{202e}b\u{200b}c\u{9b}d\u{feff}"), "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}");
        assert_eq!(&*printable("  - a\u{202e}: "), "  - a\u{fffd}: ");
        assert_eq!(&*printable(" \n "), "  ");
        assert_eq!(&*printable("a\u{2028}b\u{2029}c"), "a\u{fffd}b\u{fffd}c");
    }

    #[test]
    fn a_phrase_has_colours_and_widths() {
        let bold = Style::new().bold();
        let text = phrase!("{}{:<5}{:#}{}|{}", bold, printable("a\nb"), bold, "word", 7_usize);
        assert_eq!(text.as_str(), "\x1b[1ma b  \x1b[0mword|7");
    }

    #[test]
    fn only_colours_and_ends_of_lines_reach_a_terminal() {
        let text = "\x1b[1;31mred\x1b[0m\n\x1b[2J\x1b]0;title\x07\ttab\r\u{9b}5n\u{202e}漢\x1bM";
        let people = "\x1b[1;31mred\x1b[0m\n\u{fffd}[2J\u{fffd}]0;title\u{fffd} tab\u{fffd}\u{fffd}5n\u{fffd}漢\u{fffd}M";
        assert_eq!(Sieve::clean(text, true), people);
        assert_eq!(Sieve::clean(text, false), people.replace("\x1b[1;31m", "").replace("\x1b[0m", ""));
        let programs = String::from_utf8(Sieve::of_programs().pass(b"a\tb\x1b[0m\n")).unwrap();
        assert_eq!(programs, "a\tb\n");
    }

    #[test]
    fn text_in_pieces_is_filtered_equally() {
        let text = "a\x1b[38;5;200mb漢ö\x1b[6n\u{202e}🦀\n".as_bytes();
        let whole = Sieve::of_people(true).pass(text);
        for size in 1..6 {
            let mut sieve = Sieve::of_people(true);
            let pieces: Vec<u8> = text.chunks(size).flat_map(|piece| sieve.pass(piece)).collect();
            assert_eq!(pieces, whole, "{size}");
        }
        let endless = format!("\x1b[{}m", "1;".repeat(1000));
        assert!(!Sieve::clean(&endless, true).contains('\x1b'));
        assert_eq!(Sieve::of_people(true).pass(b"\xff\xc3(a"), "\u{fffd}\u{fffd}(a".as_bytes());
    }
}
