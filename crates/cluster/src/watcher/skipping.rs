//! Skips lines and frames that are too long to be read.

use bytes::Bytes;

/// The bytes still to be skipped of a line or frame that is too long to be read.
pub(super) enum Skipping {
    Nothing,
    /// Up to the end of the line.
    Line,
    Bytes(usize),
}

impl Skipping {
    /// Returns the part of `bytes`, the next of the response, that is not skipped, and counts the rest as skipped.
    pub(super) fn rest(&mut self, bytes: Bytes) -> Bytes {
        let skipped = match self {
            Skipping::Nothing => return bytes,
            Skipping::Line => memchr::memchr(b'\n', &bytes).map(|at| at + 1),
            Skipping::Bytes(left) if *left <= bytes.len() => Some(*left),
            Skipping::Bytes(left) => {
                *left -= bytes.len();
                None
            }
        };
        let Some(skipped) = skipped else { return Bytes::new() };
        *self = Skipping::Nothing;
        bytes.slice(skipped..)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::Skipping;

    #[test]
    fn skipping_keeps_the_text_after_an_overlong_line() {
        let mut line = Skipping::Line;
        assert_eq!(line.rest(Bytes::from_static(b"more of it")), "");
        assert_eq!(line.rest(Bytes::from_static(b"its end\nnext")), "next");
        assert_eq!(line.rest(Bytes::from_static(b"another")), "another");
        let mut counted = Skipping::Bytes(5);
        assert_eq!(counted.rest(Bytes::from_static(b"one")), "");
        assert_eq!(counted.rest(Bytes::from_static(b"twothree")), "othree");
        assert_eq!(counted.rest(Bytes::from_static(b"four")), "four");
    }
}
