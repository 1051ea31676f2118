//! Lines and frames that are longer than is read.

use bytes::Bytes;

/// What is still to come of something that is too long.
pub(super) enum Skipping {
    Nothing,
    /// Up to the end of a line.
    Line,
    Bytes(usize),
}

impl Skipping {
    /// What of `bytes` is not skipped.
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
    fn what_follows_something_too_long_is_kept() {
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
