//! How are bytes changed so that a decoder is most likely to stumble?

use crate::generate::Rng;

/// Longest input that a mutation makes.
const BYTES_MAX: usize = 256 << 10;
/// Most changes of one mutation.
const CHANGES_MAX: usize = 6;

const WORDS: [u64; 22] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x3fff,
    0x4000,
    0x7fff,
    0xffff,
    0x1_0000,
    0x00ff_ffff,
    0x3fff_ffff,
    0x4000_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// Changes `bytes` a few times; `other` is another input, to take pieces from.
pub fn mutate(rng: &mut Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    let mut changes = 1;
    while changes < CHANGES_MAX && rng.percent(40) {
        changes += 1;
    }
    for _ in 0..changes {
        change(rng, bytes, other);
    }
    bytes.truncate(BYTES_MAX);
}

fn change(rng: &mut Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    if bytes.is_empty() {
        let len = 1 + rng.below(16);
        bytes.extend((0..len).map(|_| byte(rng)));
        return;
    }
    match rng.below(14) {
        0..=2 => {
            let at = rng.below(bytes.len());
            bytes[at] ^= 1 << rng.below(8);
        }
        3 | 4 => {
            let at = rng.below(bytes.len());
            bytes[at] = byte(rng);
        }
        5 | 6 => put_word(rng, bytes),
        7 => add(rng, bytes),
        8 => {
            let (start, end) = range(rng, bytes.len());
            bytes.drain(start..end);
        }
        9 => {
            let (start, end) = range(rng, bytes.len());
            let copy = bytes[start..end].to_vec();
            insert(bytes, rng, &copy);
        }
        10 => {
            let piece: Vec<u8> = (0..1 + rng.below(12)).map(|_| byte(rng)).collect();
            insert(bytes, rng, &piece);
        }
        11 => splice(rng, bytes, other),
        12 => {
            let (start, end) = range(rng, bytes.len());
            let with = *rng.pick(&[0, 0xff, 0x80]);
            bytes[start..end].fill(with);
        }
        _ => {
            let len = rng.below(bytes.len() + 1);
            bytes.truncate(len);
        }
    }
}

fn byte(rng: &mut Rng) -> u8 {
    rng.next().to_le_bytes()[3]
}

/// A stretch of at most 64 bytes, or now and then of any length.
fn range(rng: &mut Rng, len: usize) -> (usize, usize) {
    let start = rng.below(len);
    let most = if rng.percent(10) { len } else { 64 };
    (start, start + 1 + rng.below((len - start).min(most)))
}

fn insert(bytes: &mut Vec<u8>, rng: &mut Rng, piece: &[u8]) {
    let at = rng.below(bytes.len() + 1);
    bytes.splice(at..at, piece.iter().copied());
}

/// A number that stands at a border, little-endian or as a varint.
fn put_word(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let mut word = *rng.pick(&WORDS);
    if rng.percent(30) {
        word = bytes.len() as u64;
    }
    if rng.percent(40) {
        word = word.wrapping_add(rng.next() % 5).wrapping_sub(2);
    }
    let at = rng.below(bytes.len());
    if rng.percent(25) {
        let varint = varint(word);
        let end = (at + 1 + rng.below(varint.len())).min(bytes.len());
        bytes.splice(at..end, varint);
        return;
    }
    let width = *rng.pick(&[1, 2, 4, 8]);
    for (place, byte) in bytes[at..].iter_mut().zip(&word.to_le_bytes()[..width]) {
        *place = *byte;
    }
}

/// Seven bits a byte, lowest first.
pub(super) fn varint(mut word: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while word >= 0x80 {
        bytes.push(word.to_le_bytes()[0] | 0x80);
        word >>= 7;
    }
    bytes.push(word.to_le_bytes()[0]);
    bytes
}

/// Makes a number a little or many times larger or smaller: lengths that do not fit.
fn add(rng: &mut Rng, bytes: &mut [u8]) {
    let at = rng.below(bytes.len());
    let width = (*rng.pick(&[1, 2, 4, 8])).min(bytes.len() - at);
    let mut word = [0; 8];
    word[..width].copy_from_slice(&bytes[at..at + width]);
    let number = u64::from_le_bytes(word);
    let number = match rng.below(4) {
        0 => number.wrapping_add(1 + rng.next() % 35),
        1 => number.wrapping_sub(1 + rng.next() % 35),
        2 => number.wrapping_shl(1 + (rng.next() % 12) as u32),
        _ => number.wrapping_mul(rng.next() % 1000),
    };
    bytes[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
}

fn splice(rng: &mut Rng, bytes: &mut Vec<u8>, other: &[u8]) {
    if other.is_empty() {
        return;
    }
    let (start, end) = range(rng, other.len());
    let piece = other[start..end].to_vec();
    if rng.percent(50) {
        let at = rng.below(bytes.len());
        for (place, byte) in bytes[at..].iter_mut().zip(&piece) {
            *place = *byte;
        }
    } else {
        insert(bytes, rng, &piece);
    }
}
