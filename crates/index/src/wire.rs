//! The encoding of a saved index: numbers, texts, lists. Reading any bytes ends without a panic.

use jiff::Timestamp;

/// The error for bytes that were not written by [`Writer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Damaged;

/// A writer of the saved form of an index.
#[derive(Debug, Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    /// Writes a number in seven-bit groups, the lowest first (LEB128).
    pub(super) fn number(&mut self, number: u64) {
        let mut rest = number;
        while rest >= 0x80 {
            self.0.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
    }

    pub(super) fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63) as u64);
    }

    pub(super) fn bits(&mut self, bits: u128) {
        self.0.extend_from_slice(&bits.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Writes a time with nanoseconds, or its absence.
    pub(super) fn time(&mut self, time: Option<Timestamp>) {
        self.option(time, |out, time| {
            out.signed(time.as_second());
            out.signed(i64::from(time.subsec_nanosecond()));
        });
    }

    pub(super) fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Writer, T)) {
        self.byte(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }

    pub(super) fn list<T>(&mut self, values: impl Iterator<Item = T>, mut write: impl FnMut(&mut Writer, T)) {
        let values: Vec<T> = values.collect();
        self.number(values.len() as u64);
        values.into_iter().for_each(|value| write(self, value));
    }

    /// Writes the values of all slots in order; `None` for a vacant slot.
    pub(super) fn slots<T>(
        &mut self,
        values: impl Iterator<Item = Option<T>>,
        mut write: impl FnMut(&mut Writer, T),
    ) {
        self.list(values, |out, value| out.option(value, &mut write));
    }
}

/// A reader of the saved form of an index: the bytes that are left.
#[derive(Debug)]
pub(super) struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Reader<'b> {
        Reader(bytes)
    }

    /// Returns an error if input remains.
    pub(super) fn end(&self) -> Result<(), Damaged> {
        if self.0.is_empty() { Ok(()) } else { Err(Damaged) }
    }

    pub(super) fn byte(&mut self) -> Result<u8, Damaged> {
        let (first, rest) = self.0.split_first().ok_or(Damaged)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(super) fn number(&mut self) -> Result<u64, Damaged> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Damaged)
    }

    pub(super) fn signed(&mut self) -> Result<i64, Damaged> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    pub(super) fn slot(&mut self) -> Result<u32, Damaged> {
        u32::try_from(self.number()?).map_err(|_| Damaged)
    }

    pub(super) fn bits(&mut self) -> Result<u128, Damaged> {
        let (bits, rest) = self.0.split_first_chunk().ok_or(Damaged)?;
        self.0 = rest;
        Ok(u128::from_le_bytes(*bits))
    }

    pub(super) fn bytes(&mut self) -> Result<&'b [u8], Damaged> {
        let length = usize::try_from(self.number()?).map_err(|_| Damaged)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Damaged)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn text(&mut self) -> Result<&'b str, Damaged> {
        std::str::from_utf8(self.bytes()?).map_err(|_| Damaged)
    }

    pub(super) fn time(&mut self) -> Result<Option<Timestamp>, Damaged> {
        self.option(|input| {
            let (seconds, nanos) = (input.signed()?, input.signed()?);
            let nanos = i32::try_from(nanos).map_err(|_| Damaged)?;
            Timestamp::new(seconds, nanos).map_err(|_| Damaged)
        })
    }

    /// Reads the length of a list; fails if it exceeds the remaining bytes, as each item takes at least one.
    pub(super) fn length(&mut self) -> Result<usize, Damaged> {
        let length = usize::try_from(self.number()?).map_err(|_| Damaged)?;
        if length > self.0.len() { Err(Damaged) } else { Ok(length) }
    }

    pub(super) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Reader<'b>) -> Result<T, Damaged>,
    ) -> Result<Option<T>, Damaged> {
        match self.byte()? {
            0 => Ok(None),
            1 => read(self).map(Some),
            _ => Err(Damaged),
        }
    }

    pub(super) fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Reader<'b>) -> Result<T, Damaged>,
    ) -> Result<Vec<T>, Damaged> {
        (0..self.length()?).map(|_| read(self)).collect()
    }

    pub(super) fn slots<T>(
        &mut self,
        mut read: impl FnMut(&mut Reader<'b>) -> Result<T, Damaged>,
    ) -> Result<Vec<Option<T>>, Damaged> {
        self.list(|input| input.option(&mut read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_nonsense_is_told() {
        for number in [0, 1, 127, 128, 300, u64::MAX / 2, u64::MAX] {
            let mut out = Writer::default();
            out.number(number);
            out.signed(number as i64);
            let bytes = out.into_bytes();
            let mut input = Reader::new(&bytes);
            assert_eq!(
                (input.number(), input.signed(), input.end()),
                (Ok(number), Ok(number as i64), Ok(()))
            );
            for end in 0..bytes.len() {
                let mut input = Reader::new(&bytes[..end]);
                assert_eq!(input.number().and_then(|_| input.signed()), Err(Damaged));
            }
        }
        assert_eq!(Reader::new(&[0xff; 20]).number(), Err(Damaged));
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0x7f, 0]).length(), Err(Damaged));
        assert_eq!(Reader::new(&[2]).option(|input| input.byte()), Err(Damaged));
    }
}
