//! The received text of a watch whose events are not complete yet.

use super::decode::{WireFormat, frame_length, last_frame_ends};

/// The received bytes that were not taken yet: complete events, and the beginning of the next one.
#[derive(Debug, Default)]
pub(super) struct Unread {
    bytes: Vec<u8>,
    /// The number of bytes known to contain no line end, so that a line that comes byte by byte is searched once.
    searched: usize,
}

impl Unread {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Removes the complete lines or frames and returns them; `None` if no event is complete.
    pub(super) fn take_complete(&mut self, form: &WireFormat) -> Option<Vec<u8>> {
        let complete = match form {
            WireFormat::Frames => last_frame_ends(&self.bytes),
            _ => {
                let news = self.bytes.get(self.searched..).unwrap_or_default();
                memchr::memrchr(b'\n', news).map_or(0, |end| self.searched + end + 1)
            }
        };
        // What follows the last line end has none.
        self.searched = self.bytes.len() - complete;
        (complete > 0).then(|| {
            let rest = self.bytes.split_off(complete);
            std::mem::replace(&mut self.bytes, rest)
        })
    }

    /// Returns the length in bytes of the event that has begun: of a frame the announced length, 0 before that has
    /// come; of a line the bytes received so far.
    pub(super) fn begun(&self, form: &WireFormat) -> usize {
        match form {
            WireFormat::Frames => frame_length(&self.bytes).unwrap_or(0),
            _ => self.bytes.len(),
        }
    }

    /// Removes all bytes and returns the first `most` of them.
    pub(super) fn take_begin(&mut self, most: usize) -> Vec<u8> {
        self.searched = 0;
        let mut begin = std::mem::take(&mut self.bytes);
        begin.truncate(most);
        begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_that_comes_byte_by_byte_is_searched_once() {
        let mut unread = Unread::default();
        for _ in 0..10 {
            unread.push(b"x");
            let before = unread.searched;
            assert!(unread.take_complete(&WireFormat::Lines).is_none());
            assert_eq!((before + 1, unread.searched), (unread.len(), unread.len()));
        }
        unread.push(b"\nnext");
        assert_eq!(unread.take_complete(&WireFormat::Lines).as_deref(), Some(&b"xxxxxxxxxx\n"[..]));
        assert_eq!((unread.len(), unread.searched), (4, 4));
        unread.push(b"\n");
        assert_eq!(unread.take_complete(&WireFormat::Lines).as_deref(), Some(&b"next\n"[..]));
        unread.push(b"too long");
        assert_eq!(unread.take_begin(3), b"too");
        unread.push(b"\n");
        assert_eq!(unread.take_complete(&WireFormat::Lines).as_deref(), Some(&b"\n"[..]));
    }
}
