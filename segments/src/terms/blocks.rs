//! How do the keys of a block share their bytes, and how is one of them found?

use super::format::{HEAD_MAX, KEY_BYTES_MAX};

/// Appends a key that shares `shared` bytes with the one before.
pub(super) fn push_key(shared: usize, rest: &[u8], out: &mut Vec<u8>) {
    let nibble = |len: usize| u8::try_from(len.min(HEAD_MAX + 1)).expect("at most 15");
    out.push(nibble(shared) | nibble(rest.len()) << 4);
    for len in [shared, rest.len()] {
        if len > HEAD_MAX {
            push_varint(len - HEAD_MAX - 1, out);
        }
    }
    out.extend_from_slice(rest);
}

fn push_varint(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Walks the keys of a block without copying them.
#[derive(Debug, Clone)]
pub(super) struct Keys<'a> {
    bytes: &'a [u8],
    /// Length of the key that was read last.
    len: usize,
}

impl<'a> Keys<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, len: 0 }
    }

    /// Bytes that the next key shares with the one before, and those that follow them; `None`
    /// where the bytes are no key.
    #[inline]
    pub(super) fn step(&mut self) -> Option<(usize, &'a [u8])> {
        let (head, after) = self.bytes.split_first()?;
        self.bytes = after;
        let (mut shared, mut rest) = (usize::from(head & 15), usize::from(head >> 4));
        if shared > HEAD_MAX {
            shared += self.varint()?;
        }
        if rest > HEAD_MAX {
            rest += self.varint()?;
        }
        let len = shared + rest;
        if shared > self.len || len > KEY_BYTES_MAX {
            return None;
        }
        let (rest, after) = self.bytes.split_at_checked(rest)?;
        self.bytes = after;
        self.len = len;
        Some((shared, rest))
    }

    /// Replaces `key`, the one before, by the next.
    pub(super) fn step_into(&mut self, key: &mut Vec<u8>) -> Option<()> {
        let (shared, rest) = self.step()?;
        key.truncate(shared);
        key.extend_from_slice(rest);
        Some(())
    }

    /// Which of the next `count` keys, which ascend, is `key`: the outer `None` where the bytes
    /// are no keys, the inner where it is none of them.
    #[inline]
    pub(super) fn find(&mut self, count: u32, key: &[u8]) -> Option<Option<u32>> {
        // Leading bytes in which the key that was read last agrees with `key`.
        let mut agreed = 0;
        for index in 0..count {
            let (shared, rest) = self.step()?;
            if shared > agreed {
                // It differs from `key` where the one before did.
                continue;
            }
            if shared < agreed {
                // It is above the one before in a byte where that one agreed.
                return Some(None);
            }
            let after = &key[shared..];
            agreed += rest.iter().zip(after).take_while(|(a, b)| a == b).count();
            if agreed == key.len() {
                return Some((self.len == agreed).then_some(index));
            }
        }
        Some(None)
    }

    /// At most two bytes: more than any length needs.
    fn varint(&mut self) -> Option<usize> {
        let (low, after) = self.bytes.split_first()?;
        self.bytes = after;
        if *low < 0x80 {
            return Some(usize::from(*low));
        }
        let (high, after) = self.bytes.split_first()?;
        self.bytes = after;
        (*high < 0x80).then(|| usize::from(low & 0x7f) | usize::from(*high) << 7)
    }
}
