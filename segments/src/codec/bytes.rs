//! How are numbers and byte strings read without trusting them?

use super::batch::CodecError;

/// Appends `value` as a varint: seven bits a byte, low first, the high bit says "more".
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let [low, ..] = (value & 0x7f).to_le_bytes();
        value >>= 7;
        if value == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

/// Appends a length and the bytes.
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads forward; every length is checked against what is left before it is used.
#[derive(Debug)]
pub(super) struct Input<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    pub(super) fn new(all: &'a [u8]) -> Self {
        Self { all, at: 0 }
    }

    pub(super) fn left(&self) -> usize {
        self.all.len() - self.at
    }

    pub(super) fn offset(&self) -> usize {
        self.at
    }

    /// Damage at the current offset.
    pub(super) fn damaged(&self, message: impl Into<String>) -> CodecError {
        CodecError::Damaged {
            offset: self.at,
            message: message.into(),
        }
    }

    pub(super) fn take(&mut self, n: usize, what: &str) -> Result<&'a [u8], CodecError> {
        let rest = &self.all[self.at..];
        let Some(taken) = rest.get(..n) else {
            return Err(self.damaged(format!("{what} takes {n} bytes, {} are left", rest.len())));
        };
        self.at += n;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], CodecError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, what)?);
        Ok(array)
    }

    pub(super) fn byte(&mut self, what: &str) -> Result<u8, CodecError> {
        self.array::<1>(what).map(|[byte]| byte)
    }

    /// A varint of at most `max`, in its shortest form: a value has one encoding.
    pub(super) fn varint(&mut self, max: usize, what: &str) -> Result<usize, CodecError> {
        let start = self.at;
        let mut value = 0u64;
        for shift in (0..63).step_by(7) {
            let byte = self.byte(what)?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 != 0 {
                continue;
            }
            let in_bounds = usize::try_from(value).ok().filter(|value| *value <= max);
            return match in_bounds {
                Some(value) if byte != 0 || shift == 0 => Ok(value),
                Some(_) => Err(CodecError::Damaged {
                    offset: start,
                    message: format!("{what} is a number that is not in its shortest form"),
                }),
                None => Err(CodecError::Damaged {
                    offset: start,
                    message: format!("{what} is {value}, at most {max} is allowed"),
                }),
            };
        }
        Err(CodecError::Damaged {
            offset: start,
            message: format!("{what} does not end"),
        })
    }

    /// A length of at most `bytes_max` and its bytes.
    pub(super) fn bytes(&mut self, bytes_max: usize, what: &str) -> Result<&'a [u8], CodecError> {
        let length = self.varint(bytes_max, what)?;
        self.take(length, what)
    }

    pub(super) fn string(&mut self, bytes_max: usize, what: &str) -> Result<String, CodecError> {
        let bytes = self.bytes(bytes_max, what)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(self.damaged(format!("{what} before this is not UTF-8"))),
        }
    }
}
