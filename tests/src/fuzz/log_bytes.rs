//! How are the bytes of one or two log files taken apart, and made whole under right checksums?
//!
//! An input is the bytes of one log file, or of a file and its successor behind [`PAIR`] and the
//! length of the first. A newest file that says that there is a later one is rightly refused:
//! only with that one beside it is the mark of a successor read as what it is.

use xxhash_rust::xxh3::{xxh3_64, xxh3_128, xxh3_128_with_seed};

use super::Forge;
use super::disk::{fixed, index, number};

/// Log files.
pub(super) const FORGE: Forge = Forge {
    patch,
    take_apart,
    put_together,
};
/// Begins an input of two files; the first one's length follows, 4 bytes.
const PAIR: [u8; 8] = *b"CHRONTWO";
/// Where the first of two files begins.
pub(super) const PAIR_HEADER: usize = 12;

pub(super) const FILE_HEADER: usize = 128;
const MARK: usize = 112;
const CRC: usize = 124;
const FRAME_HEADER: usize = 64;
const DIGEST: usize = 16;

/// An input of two files.
pub(super) fn pair(first: &[u8], second: &[u8]) -> Vec<u8> {
    let len = u32::try_from(first.len()).expect("small");
    [&PAIR, &len.to_le_bytes()[..], first, second].concat()
}

/// The files of an input, rising; a length that does not fit takes all there is.
pub(super) fn files_of(bytes: &[u8]) -> Vec<&[u8]> {
    let Some(len) = index(bytes, PAIR.len(), 4).filter(|_| bytes.starts_with(&PAIR)) else {
        return vec![bytes];
    };
    let both = &bytes[PAIR_HEADER..];
    let (first, second) = both.split_at(len.min(both.len()));
    vec![first, second]
}

/// Bytes of the frame at `at`, as its header claims; `None` where there is none.
pub(super) fn frame_len(bytes: &[u8], at: usize) -> Option<usize> {
    let header = bytes.get(at..at.checked_add(FRAME_HEADER)?)?;
    let body = index(header, 8, 4)?;
    let len = FRAME_HEADER + body.next_multiple_of(8) + DIGEST;
    (header[..4] == *b"CHFR" && len <= bytes.len() - at).then_some(len)
}

fn patch(bytes: &mut Vec<u8>) {
    let mut files: Vec<Vec<u8>> = files_of(bytes).into_iter().map(<[u8]>::to_vec).collect();
    let ends = patch_file(&mut files[0]);
    match &mut files[..] {
        [first, second] => {
            follow(second, &ends);
            patch_file(second);
            *bytes = pair(first, second);
        }
        files => bytes.clone_from(&files[0]),
    }
}

/// Makes one file's header and frames right. Gives the places between frames with the digest
/// that stands for all before them.
fn patch_file(bytes: &mut [u8]) -> Vec<(usize, [u8; DIGEST])> {
    if bytes.len() < FILE_HEADER {
        return Vec::new();
    }
    patch_header(&mut bytes[..FILE_HEADER]);
    let mut at = FILE_HEADER;
    let mut ends = vec![(at, chain_begin(&bytes[..FILE_HEADER]))];
    while let Some(len) = frame_len(bytes, at) {
        let (_, chain) = ends[ends.len() - 1];
        let digest = seal_frame(bytes, at, len, chain);
        at += len;
        ends.push((at, digest));
    }
    ends
}

/// A mark becomes the one that says that a successor was begun, whatever else was changed.
fn patch_header(header: &mut [u8]) {
    let mut born = header.to_vec();
    born[MARK..CRC].fill(0);
    put_crc(&mut born);
    if header[MARK..CRC] != [0; CRC - MARK] {
        header[MARK..CRC].copy_from_slice(&mark_of(&born));
        if header[8..12] != [0; 4] {
            return put_crc(header);
        }
        // In format 0 a mark stands outside the checksum.
    }
    header[CRC..].copy_from_slice(&born[CRC..]);
}

/// What the first frame names as its predecessor: it knows neither mark nor format.
fn chain_begin(header: &[u8]) -> [u8; DIGEST] {
    let mut born = header.to_vec();
    born[MARK..CRC].fill(0);
    born[8..12].fill(0);
    put_crc(&mut born);
    xxh3_128(&born).to_le_bytes()
}

/// Lets a file name the digest of the one before it: at its end, or where the cut is.
fn follow(second: &mut [u8], ends: &[(usize, [u8; DIGEST])]) {
    if second.len() < FILE_HEADER {
        return;
    }
    let is_cut = second[80..88] != [0; 8];
    let cut = index(second, 88, 8).filter(|_| is_cut);
    let reached = |end: &&(usize, [u8; DIGEST])| cut.is_none_or(|cut| end.0 <= cut);
    let Some((_, digest)) = ends.iter().rev().find(reached) else {
        return;
    };
    second[64..80].copy_from_slice(digest);
    if is_cut {
        second[96..112].copy_from_slice(digest);
    }
}

/// Checksum, chain and digest of the frame at `at`; gives its digest.
fn seal_frame(bytes: &mut [u8], at: usize, len: usize, chain: [u8; DIGEST]) -> [u8; DIGEST] {
    let store_id: [u8; 16] = fixed(&bytes[16..32]);
    bytes[at + 40..at + 56].copy_from_slice(&chain);
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[at..at + 60]);
    hasher.update(&store_id);
    hasher.update(&(at as u64).to_le_bytes());
    let crc = hasher.finalize();
    bytes[at + 60..at + 64].copy_from_slice(&crc.to_le_bytes());
    let mut salt = store_id.to_vec();
    salt.extend_from_slice(&bytes[at + 32..at + 36]);
    salt.extend_from_slice(&bytes[at + 16..at + 24]);
    salt.extend_from_slice(&(at as u64).to_le_bytes());
    let end = at + len - DIGEST;
    let digest = xxh3_128_with_seed(&bytes[at..end], xxh3_64(&salt)).to_le_bytes();
    bytes[end..at + len].copy_from_slice(&digest);
    digest
}

fn put_crc(header: &mut [u8]) {
    let crc = crc32fast::hash(&header[..CRC]);
    header[CRC..].copy_from_slice(&crc.to_le_bytes());
}

/// What a whole header without a mark gets once the next file was begun.
fn mark_of(born: &[u8]) -> [u8; CRC - MARK] {
    let mut bytes = born.to_vec();
    bytes[MARK..CRC].copy_from_slice(b"next follows");
    fixed(&xxh3_128(&bytes).to_le_bytes()[..CRC - MARK])
}

/// What a file's part says of its mark: none, the right one, or any other.
const UNMARKED: u8 = 0;
const MARKED: u8 = 1;

/// Where the second file's parts begin (0: there is none); then of each file its header, and each
/// frame's header and body.
fn take_apart(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut parts = vec![vec![0]];
    for file in files_of(bytes) {
        if parts.len() > 1 {
            parts[0] = vec![u8::try_from(parts.len()).ok()?];
        }
        parts.extend(parts_of(file)?);
    }
    Some(parts)
}

fn parts_of(file: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut header = file.get(..MARK)?.to_vec();
    let is_marked = file.get(MARK..CRC)? != [0; CRC - MARK];
    header.push(if is_marked { MARKED } else { UNMARKED });
    let mut parts = vec![header];
    let mut at = FILE_HEADER;
    while let Some(len) = frame_len(file, at) {
        let body = index(file, at + 8, 4)?;
        parts.push(file[at..at + 60].to_vec());
        parts.push(file[at + FRAME_HEADER..at + FRAME_HEADER + body].to_vec());
        at += len;
    }
    Some(parts)
}

fn put_together(parts: &[Vec<u8>]) -> Vec<u8> {
    let Some((begin, parts)) = parts.split_first() else {
        return Vec::new();
    };
    let begin = begin.first().map_or(0, |begin| usize::from(*begin));
    let Some((first, second)) = parts.split_at_checked(begin.wrapping_sub(1)) else {
        return with_marks(file_of(parts), &[parts]);
    };
    let bytes = pair(&file_of(first), &file_of(second));
    with_marks(bytes, &[first, second])
}

/// One file, without a checksum; any mark will do, `patch` gives the right one.
fn file_of(parts: &[Vec<u8>]) -> Vec<u8> {
    let part = |at: usize| parts.get(at).map_or(&[][..], Vec::as_slice);
    let header = part(0);
    let mut bytes = fixed::<FILE_HEADER>(&header[..header.len().min(MARK)]).to_vec();
    bytes[MARK] = u8::from(mark_in(parts) != UNMARKED);
    for at in (1..parts.len()).step_by(2) {
        let body = part(at + 1);
        let mut header: [u8; FRAME_HEADER] = fixed(part(at));
        header[..4].copy_from_slice(b"CHFR");
        header[8..12].copy_from_slice(&u32::try_from(body.len()).expect("small").to_le_bytes());
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(body);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend_from_slice(&[0; DIGEST]);
    }
    bytes
}

fn mark_in(parts: &[Vec<u8>]) -> u8 {
    let header = parts.first().map_or(&[][..], Vec::as_slice);
    header.get(MARK).copied().unwrap_or(UNMARKED)
}

/// Right checksums, then damage in those marks whose part asks for it.
fn with_marks(mut bytes: Vec<u8>, files: &[&[Vec<u8>]]) -> Vec<u8> {
    patch(&mut bytes);
    let is_pair = files.len() > 1;
    let mut at = if is_pair { PAIR_HEADER } else { 0 };
    for parts in files {
        if mark_in(parts) > MARKED
            && let Some(byte) = bytes.get_mut(at + MARK)
        {
            *byte ^= mark_in(parts);
        }
        at += index(&bytes, PAIR.len(), 4)
            .filter(|_| is_pair)
            .unwrap_or(0);
    }
    bytes
}

/// The number in a log file's header, which its name must say.
pub(super) fn number_of(file: &[u8]) -> u64 {
    number(file, 32, 8).unwrap_or(0)
}
