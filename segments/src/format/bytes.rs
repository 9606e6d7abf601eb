//! How are small values written and read back without trusting a length?

use crate::error::SegmentError;

use super::Section;

type Result<T> = std::result::Result<T, SegmentError>;

/// Appends little-endian values to a buffer.
pub(crate) trait Put {
    /// Appends bytes.
    fn put(&mut self, bytes: &[u8]);

    /// Appends one byte.
    fn put_u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    /// Appends two bytes.
    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    /// Appends four bytes.
    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    /// Appends eight bytes.
    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    /// Appends eight bytes.
    fn put_i64(&mut self, value: i64) {
        self.put(&value.to_le_bytes());
    }

    /// Appends 1 to 10 bytes of seven bits each, lowest first.
    fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.put_u8(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.put_u8(value.to_le_bytes()[0]);
    }

    /// Appends a length as a varint, then the bytes.
    fn put_prefixed(&mut self, bytes: &[u8]) {
        self.put_varint(bytes.len() as u64);
        self.put(bytes);
    }
}

impl Put for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Reads values one after the other; every one is checked against what is left.
///
/// Errors carry an offset inside the bytes given to [`Take::new`]; the caller says where
/// those lie by the section and base offset.
#[derive(Debug, Clone)]
pub(crate) struct Take<'a> {
    bytes: &'a [u8],
    at: usize,
    place: Place<'a>,
}

#[derive(Debug, Clone)]
enum Place<'a> {
    Section(&'a Section, u64),
    File(&'a str, &'static str, u64),
}

impl<'a> Take<'a> {
    /// Reads `bytes`, which lie at `base` of `section`.
    pub(crate) fn new(section: &'a Section, base: u64, bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            place: Place::Section(section, base),
        }
    }

    /// Reads `bytes`, which lie at `base` of `file` and are called `part`.
    pub(crate) fn of_file(file: &'a str, part: &'static str, base: u64, bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            place: Place::File(file, part, base),
        }
    }

    /// Bytes not yet read.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Damage at the current position.
    pub(crate) fn corrupt(&self, message: impl Into<String>) -> SegmentError {
        let at = self.at as u64;
        match self.place {
            Place::Section(section, base) => section.corrupt(base + at, message),
            Place::File(file, part, base) => SegmentError::corrupt(file, part, base + at, message),
        }
    }

    /// The next `len` bytes.
    pub(crate) fn bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        if len > self.left() {
            return Err(self.corrupt(format!("{len} bytes expected, {} left", self.left())));
        }
        let bytes = &self.bytes[self.at..self.at + len];
        self.at += len;
        Ok(bytes)
    }

    /// The next `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    /// One byte.
    pub(crate) fn u8(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    /// Two bytes.
    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes.
    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes.
    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Eight bytes.
    pub(crate) fn i64(&mut self) -> Result<i64> {
        self.array().map(i64::from_le_bytes)
    }

    /// A varint; longer than needed or than 64 bits is damage.
    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64> {
        // Most are small.
        if let Some(byte) = self.bytes.get(self.at).filter(|byte| **byte < 0x80) {
            self.at += 1;
            return Ok(u64::from(*byte));
        }
        self.long_varint()
    }

    fn long_varint(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.corrupt("a number of more than 64 bits"))
    }

    /// A varint of at most `max`.
    pub(crate) fn varint_max(&mut self, what: &str, max: u64) -> Result<u64> {
        let value = self.varint()?;
        if value > max {
            return Err(self.corrupt(format!("{what} is {value}, at most {max}")));
        }
        Ok(value)
    }

    /// A length-prefixed string of bytes, at most `max` of them.
    pub(crate) fn prefixed(&mut self, what: &str, max: usize) -> Result<&'a [u8]> {
        let len = self.varint_max(what, max as u64)?;
        // At most `max`, which is a usize.
        self.bytes(usize::try_from(len).unwrap_or(usize::MAX))
    }

    /// A length-prefixed text, at most `max` bytes.
    pub(crate) fn text(&mut self, what: &str, max: usize) -> Result<&'a str> {
        let bytes = self.prefixed(what, max)?;
        std::str::from_utf8(bytes).map_err(|_| self.corrupt(format!("{what} is not UTF-8")))
    }

    /// Damage where bytes are left over.
    pub(crate) fn end(&self) -> Result<()> {
        if self.left() == 0 {
            return Ok(());
        }
        Err(self.corrupt(format!("{} bytes left over", self.left())))
    }
}

/// The first eight bytes of a key as a number, zeros behind a shorter one: where those of two
/// keys differ, they are in the order of the keys.
pub(crate) fn head(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    let len = key.len().min(8);
    head[..len].copy_from_slice(&key[..len]);
    u64::from_be_bytes(head)
}

/// A row or a count of rows as an index: rows fit u32, and usize is no narrower here.
pub(crate) const fn index(row: u32) -> usize {
    const { assert!(usize::BITS >= 32) };
    row as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_come_back() {
        for value in [
            0,
            1,
            127,
            128,
            300,
            u64::from(u32::MAX),
            u64::MAX - 1,
            u64::MAX,
        ] {
            let mut bytes = Vec::new();
            bytes.put_varint(value);
            let mut take = Take::of_file("f", "p", 0, &bytes);
            assert_eq!(take.varint().expect("whole"), value);
            take.end().expect("all read");
        }
    }

    #[test]
    fn what_does_not_fit_is_damage() {
        let endless = [0xff; 12];
        assert!(Take::of_file("f", "p", 0, &endless).varint().is_err());
        assert!(
            Take::of_file("f", "p", 0, &[5, b'a'])
                .prefixed("name", 9)
                .is_err()
        );
        assert!(
            Take::of_file("f", "p", 0, &[5, 0, 0, 0, 0, 0])
                .prefixed("name", 4)
                .is_err()
        );
        assert!(
            Take::of_file("f", "p", 0, &[1, 0xff])
                .text("name", 4)
                .is_err()
        );
    }
}
