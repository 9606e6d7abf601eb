//! Which files make up a log, and what does each say of itself?
//!
//! A log is the files `<16 hex digits>.log` from a floor upwards, without gaps. Numbers rise
//! for ever. A file begins with a header of 128 bytes, frames follow, zeros end it:
//!
//! ```text
//! 0                128                                           preallocated
//! | file header | frame | frame | ... | frame | 0 0 0 0 0 0 0 0 0 0 |
//!        ^----------'  each frame names the digest before it
//! ```
//!
//! | at | field | width | range | who verifies it |
//! | --- | --- | --- | --- | --- |
//! | 0 | magic | 8 | `CHRONLOG` | [`FileHeader::decode`] |
//! | 8 | format | 4 | 0 or 1 | `decode`: a newer one is refused untouched |
//! | 12 | epoch | 4 | 1 ..< 2^24 | `decode`; recovery: never falls from file to file |
//! | 16 | store id | 16 | | `decode`: a file of another store is named |
//! | 32 | number | 8 | the file name's, 1 or more | `decode` |
//! | 40 | first_seq | 8 | > base_seq, of the epoch or below | the scan: seq of the first data frame |
//! | 48 | base_seq | 8 | | recovery: last seq before this file (0: none) |
//! | 56 | durable_upto | 8 | >= base_seq, of the epoch or below | recovery: durable when the file got its name |
//! | 64 | prev digest | 16 | | recovery: final digest of the file before |
//! | 80 | cut file | 8 | 0 or number - 1 | `decode` |
//! | 88 | cut offset | 8 | 0 without a cut | `decode`; recovery: the file before ends here, whatever follows |
//! | 96 | cut digest | 16 | = prev digest; 0 without a cut | `decode` |
//! | 112 | successor mark | 12 | 0: none was begun; else [`FileHeader::mark`] | `decode`; recovery: the file after it must be there |
//! | 124 | crc32 | 4 | | `decode`; over bytes 0..124 |
//!
//! A file with a final name has a whole header and whole copies (`birth`), so a damaged header
//! is damage. The mark and the checksum over it alone are written later, in place and inside one
//! sector: once the next file has its final name for good, and before anything in that one is
//! acknowledged. So the newest file of a log cannot go without a trace: the one before it says
//! that it was there.
//! Unknown names are none of our business.
//!
//! | format | what it has |
//! | --- | --- |
//! | 0 | no mark, and data and seal frames alone |
//! | 1 | a mark, and epoch frames |
//!
//! Files are begun in format 1. One of format 0 gets format 1 in place before it gets a mark or an
//! epoch frame: both are in its first sector with the checksum, and the digest that the first
//! frame names takes the format as 0 and the mark as zeros. So a build that knows format 0 alone
//! refuses such a file by name and never takes it for damage. (Both are read in a file of format 0
//! as well: for a day builds wrote them without raising it, and the mark outside the checksum.)

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use chronolith_vfs::{Env, VfsFile};
use xxhash_rust::xxh3::xxh3_128;
use zerocopy::byteorder::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::error::{Flaw, WalError};
use crate::frame::{Digest, EPOCH_MAX, epoch_of};

/// The format of log files that are begun.
pub const FORMAT_NEWEST: u32 = 1;
/// Files of this format and later ones may have a mark and epoch frames.
pub(crate) const MARKED_SINCE: u32 = 1;
/// Bytes of a file header; the first frame begins here.
pub(crate) const FILE_HEADER_LEN: usize = 128;
/// No log file is longer: bounds every loop over a file's bytes.
pub const FILE_BYTES_CAP: u64 = 4 << 30;

/// A writer gives a file a mark or a later format in place. Whoever reads the header meanwhile may
/// meet a half of that; it looks this often.
const HEADER_TRIES: usize = 4;
/// What a reader waits in between: a writer that was interrupted in its write gets on meanwhile.
const HEADER_PAUSE: Duration = Duration::from_millis(1);
const MAGIC: [u8; 8] = *b"CHRONLOG";
const CRC_COVERS: usize = 124;
const _: () = assert!(size_of::<RawHeader>() == FILE_HEADER_LEN);
const _: () = assert!(FILE_HEADER_LEN.is_multiple_of(8) && CRC_COVERS + 4 == FILE_HEADER_LEN);

/// A log file's number; rises for ever, never reused once its name was durable.
pub type FileNumber = u64;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawHeader {
    magic: [u8; 8],
    format: U32,
    epoch: U32,
    store_id: [u8; 16],
    number: U64,
    first_seq: U64,
    base_seq: U64,
    durable_upto: U64,
    prev: Digest,
    cut_file: U64,
    cut_offset: U64,
    cut_digest: Digest,
    mark: Mark,
    crc: U32,
}

/// The bytes of a header that say that the next file was begun.
pub(crate) type Mark = [u8; 12];
/// Where they stand: what a file says of its successor.
pub const MARK_AT: u64 = MARK_BEGIN as u64;
pub(crate) const MARK_BEGIN: usize = 112;
const NO_MARK: Mark = [0; 12];
const _: () = assert!(MARK_BEGIN + size_of::<Mark>() == CRC_COVERS);
// Written in place: a power cut leaves the old bytes or the new ones.
const _: () = assert!(FILE_HEADER_LEN <= 512);

/// What a file says about the one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Successor {
    /// None was begun, or none that holds anything acknowledged.
    None,
    /// One was begun.
    Begun,
    /// The mark is neither zeros nor what it should be: nobody can tell.
    Damaged,
}

/// Where the file before ends by decree: its bytes behind this are not part of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) file: FileNumber,
    pub(crate) offset: u64,
    pub(crate) digest: Digest,
}

/// What a log file says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) format: u32,
    pub(crate) epoch: u32,
    pub(crate) store_id: [u8; 16],
    pub(crate) number: FileNumber,
    pub(crate) first_seq: u64,
    pub(crate) base_seq: u64,
    pub(crate) durable_upto: u64,
    pub(crate) prev: Digest,
    pub(crate) cut: Option<Cut>,
    /// As the file said when it was opened; not part of `encode` and `digest`.
    pub(crate) successor: Successor,
}

impl FileHeader {
    /// The header as it is born: without a mark.
    pub(crate) fn encode(&self) -> [u8; FILE_HEADER_LEN] {
        let cut = self.cut.unwrap_or(Cut {
            file: 0,
            offset: 0,
            digest: [0; 16],
        });
        let raw = RawHeader {
            magic: MAGIC,
            format: self.format.into(),
            epoch: self.epoch.into(),
            store_id: self.store_id,
            number: self.number.into(),
            first_seq: self.first_seq.into(),
            base_seq: self.base_seq.into(),
            durable_upto: self.durable_upto.into(),
            prev: self.prev,
            cut_file: cut.file.into(),
            cut_offset: cut.offset.into(),
            cut_digest: cut.digest,
            mark: NO_MARK,
            crc: 0.into(),
        };
        let mut out = [0; FILE_HEADER_LEN];
        out.copy_from_slice(raw.as_bytes());
        put_crc(&mut out);
        out
    }

    /// The start of the digest chain: the first frame names it as its predecessor. It knows no
    /// format, so that a file can get a later one.
    pub(crate) fn digest(&self) -> Digest {
        let born = Self { format: 0, ..*self };
        xxh3_128(&born.encode()).to_le_bytes()
    }

    /// The header in a format that has marks and epoch frames.
    pub(crate) fn raised(&self) -> Self {
        Self {
            format: self.format.max(MARKED_SINCE),
            ..*self
        }
    }

    pub(crate) fn name(&self) -> String {
        log_name(self.number)
    }

    /// The header as it is once its successor was begun.
    pub(crate) fn encode_marked(&self) -> [u8; FILE_HEADER_LEN] {
        marked(&self.raised().encode())
    }

    /// Reads the header of file `number` of store `store_id`.
    pub(crate) fn decode(
        bytes: &[u8; FILE_HEADER_LEN],
        number: FileNumber,
        store_id: &[u8; 16],
    ) -> Result<Self, WalError> {
        let damaged = || damaged_file(number, Flaw::FileHeader);
        let raw = RawHeader::ref_from_bytes(bytes).map_err(|_| damaged())?;
        if raw.magic != MAGIC {
            return Err(damaged());
        }
        // Before the format: a flipped bit there is damage and asks for no newer version.
        let is_whole = raw.crc.get() == crc32fast::hash(&bytes[..CRC_COVERS]);
        let successor = successor_in(bytes);
        if !is_whole && successor.is_none() {
            return Err(damaged());
        }
        if raw.format.get() > FORMAT_NEWEST {
            let (found, newest) = (raw.format.get(), FORMAT_NEWEST);
            return Err(WalError::UnknownFormat {
                file: log_name(number),
                found,
                newest,
            });
        }
        // Of a format that is known a whole header has no other mark.
        let successor = successor.ok_or_else(damaged)?;
        if raw.store_id != *store_id {
            let (found, expected) = (hex(&raw.store_id), hex(store_id));
            return Err(WalError::WrongStore {
                file: log_name(number),
                found,
                expected,
            });
        }
        let cut = Cut {
            file: raw.cut_file.get(),
            offset: raw.cut_offset.get(),
            digest: raw.cut_digest,
        };
        let header = Self {
            format: raw.format.get(),
            epoch: raw.epoch.get(),
            store_id: raw.store_id,
            number: raw.number.get(),
            first_seq: raw.first_seq.get(),
            base_seq: raw.base_seq.get(),
            durable_upto: raw.durable_upto.get(),
            prev: raw.prev,
            cut: (cut.file != 0).then_some(cut),
            successor,
        };
        // One that would be written otherwise is none of ours: a mark would damage it.
        let is_ours = header.encode()[..MARK_BEGIN] == bytes[..MARK_BEGIN];
        match is_ours && header.is_sane(number) {
            true => Ok(header),
            false => Err(damaged()),
        }
    }

    /// Refuses a header that nobody could read again: where the one before is a forger's.
    pub(crate) fn check(&self) -> Result<(), WalError> {
        match self.is_sane(self.number) {
            true => Ok(()),
            false => Err(damaged_file(self.number, Flaw::FileHeader)),
        }
    }

    fn is_sane(&self, number: FileNumber) -> bool {
        let cut_fits = self.cut.is_none_or(|cut| {
            number.checked_sub(1) == Some(cut.file)
                && cut.digest == self.prev
                && cut.offset >= FILE_HEADER_LEN as u64
        });
        self.number == number
            // 0 is no file's: a cut says it for none. And the next one must exist too.
            && (1..FileNumber::MAX).contains(&number)
            && (1..=EPOCH_MAX).contains(&self.epoch)
            && self.first_seq > self.base_seq
            && self.durable_upto >= self.base_seq
            // The next epoch's seqs lie above all of them.
            && epoch_of(self.first_seq.max(self.durable_upto)) <= self.epoch
            && cut_fits
    }
}

fn put_crc(header: &mut [u8; FILE_HEADER_LEN]) {
    let crc = crc32fast::hash(&header[..CRC_COVERS]);
    header[CRC_COVERS..].copy_from_slice(&crc.to_le_bytes());
}

/// A header without a mark, with its mark. The mark depends on every byte of it.
fn marked(born: &[u8; FILE_HEADER_LEN]) -> [u8; FILE_HEADER_LEN] {
    let mut bytes = *born;
    bytes[MARK_BEGIN..CRC_COVERS].copy_from_slice(b"next follows");
    let mark = xxh3_128(&bytes).to_le_bytes();
    bytes[MARK_BEGIN..CRC_COVERS].copy_from_slice(&mark[..size_of::<Mark>()]);
    put_crc(&mut bytes);
    bytes
}

/// What the mark says; `None` where the rest of the header is damaged.
fn successor_in(bytes: &[u8; FILE_HEADER_LEN]) -> Option<Successor> {
    let mut born = *bytes;
    born[MARK_BEGIN..CRC_COVERS].copy_from_slice(&NO_MARK);
    put_crc(&mut born);
    let marked = marked(&born);
    let (mark, crc) = bytes[MARK_BEGIN..].split_at(size_of::<Mark>());
    let has_mark_of = |other: &[u8; FILE_HEADER_LEN]| *mark == other[MARK_BEGIN..CRC_COVERS];
    let has_crc_of = |other: &[u8; FILE_HEADER_LEN]| *crc == other[CRC_COVERS..];
    let is_of_format_0 = born[8..12] == [0; 4];
    if has_crc_of(&born) {
        if has_mark_of(&born) {
            Some(Successor::None)
        } else if is_of_format_0 && has_mark_of(&marked) {
            // Of the builds that left the mark out of the checksum.
            Some(Successor::Begun)
        } else {
            Some(Successor::Damaged)
        }
    } else if has_crc_of(&marked) {
        match has_mark_of(&marked) {
            true => Some(Successor::Begun),
            false => Some(Successor::Damaged),
        }
    } else {
        None
    }
}

/// One log file and the seqs in it, for whoever decides the floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSpan {
    /// The file's number.
    pub number: FileNumber,
    /// First seq in the file (or the one it would get).
    pub first_seq: u64,
    /// Last seq in the file; below `first_seq` where it holds none.
    pub last_seq: u64,
    /// Bytes up to the end of its last frame.
    pub bytes: u64,
}

impl FileSpan {
    /// True where the file holds no seq.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.last_seq < self.first_seq
    }
}

/// The name of log file `number`.
#[must_use]
pub fn log_name(number: FileNumber) -> String {
    format!("{number:016x}.log")
}

/// The number in a log file's name; `None` for any other name.
#[must_use]
pub fn parse_log_name(name: &str) -> Option<FileNumber> {
    let digits = name.strip_suffix(".log")?;
    let is_ours = digits.len() == 16
        && digits
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if is_ours {
        u64::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}

/// Numbers of all log files in `dir`, rising.
///
/// # Errors
/// `Io` where the directory cannot be listed.
pub fn list_logs(env: &Env, dir: &Path) -> Result<Vec<FileNumber>, WalError> {
    let entries = env
        .vfs
        .list(dir)
        .map_err(|e| WalError::io("list", dir, e))?;
    let mut numbers: Vec<_> = entries
        .iter()
        .filter(|e| !e.is_dir)
        .filter_map(|e| parse_log_name(&e.name))
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Removes half-born log files (`<16 hex digits>.log.tmp`) and nothing else; returns how
/// many. For the writer's sweep after recovery.
///
/// # Errors
/// `Io` where listing or removing fails.
pub fn sweep_temps(env: &Env, dir: &Path) -> Result<usize, WalError> {
    let entries = env
        .vfs
        .list(dir)
        .map_err(|e| WalError::io("list", dir, e))?;
    let mut removed = 0;
    for entry in entries.iter().filter(|e| !e.is_dir) {
        if entry
            .name
            .strip_suffix(".tmp")
            .and_then(parse_log_name)
            .is_some()
        {
            remove_if_there(env, &dir.join(&entry.name))?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Removes log files below `floor`; returns how many.
pub(crate) fn remove_below(env: &Env, dir: &Path, floor: FileNumber) -> Result<usize, WalError> {
    let numbers = list_logs(env, dir)?;
    let below = numbers.partition_point(|&n| n < floor);
    for &number in &numbers[..below] {
        remove_if_there(env, &dir.join(log_name(number)))?;
    }
    Ok(below)
}

pub(crate) fn remove_if_there(env: &Env, path: &Path) -> Result<(), WalError> {
    match env.vfs.remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(WalError::io("remove", path, e)),
        _ => Ok(()),
    }
}

/// Opens log file `number` for reading and decodes its header: also while a writer changes it.
pub(crate) fn open_log(
    env: &Env,
    dir: &Path,
    number: FileNumber,
    store_id: &[u8; 16],
) -> Result<(Arc<dyn VfsFile>, FileHeader), WalError> {
    let path = dir.join(log_name(number));
    let file = match env.vfs.open_read(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(WalError::MissingFile {
                file: log_name(number),
            });
        }
        other => other.map_err(|e| WalError::io("open", &path, e))?,
    };
    let mut header = read_header(&*file, &path, number, store_id);
    for _ in 1..HEADER_TRIES {
        if !may_be_half(&header) {
            break;
        }
        env.clock.sleep(HEADER_PAUSE);
        header = read_header(&*file, &path, number, store_id);
    }
    Ok((file, header?))
}

fn read_header(
    file: &dyn VfsFile,
    path: &Path,
    number: FileNumber,
    store_id: &[u8; 16],
) -> Result<FileHeader, WalError> {
    let mut bytes = [0; FILE_HEADER_LEN];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => FileHeader::decode(&bytes, number, store_id),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
            Err(damaged_file(number, Flaw::FileHeader))
        }
        Err(e) => Err(WalError::io("read", path, e)),
    }
}

/// True for what some bytes of a header and some of the one that replaces it may look like.
fn may_be_half(header: &Result<FileHeader, WalError>) -> bool {
    match header {
        Ok(header) => header.successor == Successor::Damaged,
        Err(error) => matches!(error, WalError::Corrupt { .. }),
    }
}

fn damaged_file(number: FileNumber, flaw: Flaw) -> WalError {
    // Which seqs the file held is not known without its header.
    WalError::Corrupt {
        file: log_name(number),
        offset: 0,
        first_seq: 0,
        last_seq: u64::MAX,
        flaw,
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_names_are_log_files() {
        assert_eq!(parse_log_name(&log_name(0xabc)), Some(0xabc));
        for name in [
            "1.log",
            "000000000000000A.log",
            "0000000000000001.log.tmp",
            "STATUS",
            "+00000000000001f.log",
        ] {
            assert_eq!(parse_log_name(name), None, "{name}");
        }
    }

    #[test]
    fn a_file_header_comes_back_and_no_flipped_bit_passes() {
        let cut = Cut {
            file: 6,
            offset: 200,
            digest: [9; 16],
        };
        let header = FileHeader {
            format: FORMAT_NEWEST,
            epoch: 2,
            store_id: [1; 16],
            number: 7,
            first_seq: 41,
            base_seq: 40,
            durable_upto: 44,
            prev: [9; 16],
            cut: Some(cut),
            successor: Successor::None,
        };
        let decode = |bytes: &[u8; FILE_HEADER_LEN]| FileHeader::decode(bytes, 7, &[1; 16]);
        let bytes = header.encode();
        assert_eq!(decode(&bytes).expect("whole"), header);
        let marked = header.encode_marked();
        let begun = decode(&marked).expect("whole");
        assert_eq!(begun.successor, Successor::Begun);
        assert_eq!(begun.digest(), header.digest(), "the chain knows no mark");
        let old = FileHeader {
            format: 0,
            ..header
        };
        assert_eq!(old.digest(), header.digest(), "nor the format");
        assert_eq!(old.encode_marked(), marked, "a mark raises it");
        let mut of_a_day = super::marked(&old.encode());
        of_a_day[CRC_COVERS..].copy_from_slice(&old.encode()[CRC_COVERS..]);
        let begun = decode(&of_a_day).expect("whole");
        assert_eq!(begun.successor, Successor::Begun);
        // Under a right checksum: a cut without a file.
        let mut odd = FileHeader {
            cut: None,
            ..header
        }
        .encode();
        odd[96] = 1;
        put_crc(&mut odd);
        assert!(decode(&odd).is_err(), "a mark would make another header");
        // A cut in it would be none.
        let first = FileHeader {
            number: 0,
            cut: None,
            ..header
        };
        assert!(FileHeader::decode(&first.encode(), 0, &[1; 16]).is_err());
        for bit in 0..FILE_HEADER_LEN * 8 {
            for bytes in [&bytes, &marked] {
                let mut bad = *bytes;
                bad[bit / 8] ^= 1 << (bit % 8);
                let passes = decode(&bad).is_ok_and(|h| h.successor != Successor::Damaged);
                assert!(!passes, "bit {bit}");
            }
        }
    }
}
