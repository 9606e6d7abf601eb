//! Which files make up a backup, how long is each, and what is its digest?
//!
//! ```text
//! offset  width  field             who verifies it
//! 0       8      magic             `decode`
//! 8       4      version           `decode`: a higher one is refused by name
//! 12      4      items             `decode`, against the file's length, before use
//! 16      16     store id          restore, against the manifest
//! 32      8      point             `decode`: at least 1; names the point's directory
//! 40      8      last seq          restore, against the log
//! 48      8      made, µs          nobody: for people
//! 56      4      zero              `decode`
//! 60      4      crc32 of 0..60    `decode`, before any field but the magic is believed
//! 64      56 n   items, ascending by kind and number: `Index::validate`
//!           0    1   kind
//!           1    1   1: a hard link; 0: a copy
//!           2    6   zero
//!           8    8   number: generation, log file or file number; 0 where there is one alone
//!           16   8   length        capped by kind; and against the file before it is read
//!           24   16  origin        digest by which the manifest names a file, else 0
//!           40   16  xxh3-128      over the file, compared when it is read
//! 64+56n  16     xxh3-128 of salt and all of the above   `decode`
//! ```
//!
//! All numbers are little-endian. There is no name in it: names are made from kind and number
//! here, so no index can lead out of its directory, and ascending order leaves no duplicates.

use std::path::{Path, PathBuf};

use chronolith_wal::{FILE_BYTES_CAP, STATUS_LEN, STATUS_NAME, log_name};
use xxhash_rust::xxh3::Xxh3Default;
use zerocopy::byteorder::little_endian::{I64, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::error::BackupError;
use crate::manifest::names::{
    CURRENT, CopyName, DataKind, DataName, MANIFEST_DIR, ManifestName, SEGMENTS_DIR, WAL_DIR,
};
use crate::manifest::{MANIFEST_BYTES_MAX, SEGMENTS_MAX, SIDE_FILE_BYTES_MAX, StoreId};

/// Name of the index.
pub(super) const INDEX: &str = crate::manifest::names::BACKUP;
/// The index while it is written.
pub(super) const INDEX_TEMP: &str = "BACKUP.tmp";
/// Version of the index. 0: may still change.
const FORMAT_VERSION: u32 = 0;

const MAGIC: [u8; 8] = *b"CHRNBKUP";
const SALT: &[u8; 16] = b"chronolith/bckup";
const HEADER_BYTES: usize = 64;
const CRC_AT: usize = 60;
const ITEM_BYTES: usize = 56;
const DIGEST_BYTES: usize = 16;
const CURRENT_BYTES: u64 = 64;
/// Longest segment file that a backup takes: far above what a compaction makes.
const SEGMENT_BYTES_MAX: u64 = 1 << 40;
/// Most log files of one point.
const LOGS_MAX: usize = 1 << 12;
/// Every segment with a delete set, the tag graph, the log, and the four small files.
const ITEMS_MAX: usize = 2 * SEGMENTS_MAX + 1 + LOGS_MAX + 4;
/// Longest index.
pub(super) const INDEX_BYTES_MAX: u64 =
    (HEADER_BYTES + ITEMS_MAX * ITEM_BYTES + DIGEST_BYTES) as u64;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawHeader {
    magic: [u8; 8],
    version: U32,
    items: U32,
    store_id: StoreId,
    point: U64,
    last_seq: U64,
    made_us: I64,
    zero: U32,
    crc: U32,
}
const _: () = assert!(size_of::<RawHeader>() == HEADER_BYTES && CRC_AT + 4 == HEADER_BYTES);

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct RawItem {
    kind: u8,
    linked: u8,
    zero: [u8; 6],
    number: U64,
    bytes: U64,
    origin: U128,
    digest: U128,
}
const _: () = assert!(size_of::<RawItem>() == ITEM_BYTES);

/// What a file of a backup is in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Kind {
    Current = 1,
    ManifestA = 2,
    ManifestB = 3,
    Status = 4,
    Log = 5,
    Segment = 6,
    Deletes = 7,
    TagGraph = 8,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Current,
        Self::ManifestA,
        Self::ManifestB,
        Self::Status,
        Self::Log,
        Self::Segment,
        Self::Deletes,
        Self::TagGraph,
    ];

    /// True for what never changes and is shared by backups.
    pub(super) fn is_data(self) -> bool {
        self.data_kind().is_some()
    }

    /// True for what is sealed in a store.
    pub(super) fn is_sealed(self) -> bool {
        self.is_data() || matches!(self, Self::ManifestA | Self::ManifestB)
    }

    fn data_kind(self) -> Option<DataKind> {
        match self {
            Self::Segment => Some(DataKind::Segment),
            Self::Deletes => Some(DataKind::Deletes),
            Self::TagGraph => Some(DataKind::TagGraph),
            _ => None,
        }
    }

    /// Shortest and longest such file, bytes.
    fn bytes_allowed(self) -> (u64, u64) {
        match self {
            Self::Current => (CURRENT_BYTES, CURRENT_BYTES),
            Self::Status => (STATUS_LEN as u64, STATUS_LEN as u64),
            Self::ManifestA | Self::ManifestB => (1, MANIFEST_BYTES_MAX),
            Self::Log => (1, FILE_BYTES_CAP),
            Self::Segment => (1, SEGMENT_BYTES_MAX),
            Self::Deletes | Self::TagGraph => (1, SIDE_FILE_BYTES_MAX),
        }
    }
}

/// One file by what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) kind: Kind,
    pub(super) number: u64,
}

impl Name {
    pub(super) fn new(kind: Kind, number: u64) -> Self {
        Self { kind, number }
    }

    /// Directory and name in a store, both the engine's own.
    fn parts(self) -> (Option<&'static str>, String) {
        let manifest = |copy| ManifestName::new(self.number, copy).format();
        match (self.kind, self.kind.data_kind()) {
            (_, Some(kind)) => (
                Some(SEGMENTS_DIR),
                DataName::new(self.number, kind).format(),
            ),
            (Kind::ManifestA, _) => (Some(MANIFEST_DIR), manifest(CopyName::A)),
            (Kind::ManifestB, _) => (Some(MANIFEST_DIR), manifest(CopyName::B)),
            (Kind::Status, _) => (Some(WAL_DIR), STATUS_NAME.to_owned()),
            (Kind::Log, _) => (Some(WAL_DIR), log_name(self.number)),
            _ => (None, CURRENT.to_owned()),
        }
    }

    /// The path below a store.
    pub(super) fn path(self, store: &Path) -> PathBuf {
        let (dir, name) = self.parts();
        match dir {
            Some(dir) => store.join(dir).join(name),
            None => store.join(name),
        }
    }

    /// The path in the backup `root`, whose point is `point`.
    pub(super) fn path_in(self, root: &Path, point: u64) -> PathBuf {
        match self.kind.is_data() {
            true => self.path(root),
            false => self.path(&root.join(point_name(point))),
        }
    }

    /// The path as errors name it.
    pub(super) fn shown(self) -> String {
        let (dir, name) = self.parts();
        dir.map_or(name.clone(), |dir| format!("{dir}/{name}"))
    }
}

/// One file of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) name: Name,
    pub(super) bytes: u64,
    /// The digest by which the manifest names it; 0 for a file of the point.
    pub(super) origin: u128,
    /// Over all its bytes.
    pub(super) digest: u128,
    /// True where it shares its blocks with the store's file.
    pub(super) linked: bool,
}

/// What a backup consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) store_id: StoreId,
    /// Rises by one with every backup into the directory.
    pub(super) point: u64,
    pub(super) last_seq: u64,
    pub(super) made_us: i64,
    /// Ascending by name.
    pub(super) items: Vec<Item>,
}

impl Index {
    pub(super) fn find(&self, name: Name) -> Option<&Item> {
        let at = self.items.binary_search_by_key(&name, |item| item.name);
        at.ok().map(|at| &self.items[at])
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.items.iter().map(|item| item.bytes).sum()
    }

    /// # Errors
    /// A rule it breaks, as damage.
    pub(super) fn encode(&self) -> Result<Vec<u8>, BackupError> {
        self.validate()?;
        let count = u32::try_from(self.items.len()).map_err(|_| fault(12, "too many files"))?;
        let mut header = RawHeader {
            magic: MAGIC,
            version: U32::new(FORMAT_VERSION),
            items: U32::new(count),
            store_id: self.store_id,
            point: U64::new(self.point),
            last_seq: U64::new(self.last_seq),
            made_us: I64::new(self.made_us),
            zero: U32::ZERO,
            crc: U32::ZERO,
        };
        header.crc = U32::new(crc32fast::hash(&header.as_bytes()[..CRC_AT]));
        let mut bytes = header.as_bytes().to_vec();
        for item in &self.items {
            let raw = RawItem {
                kind: item.name.kind as u8,
                linked: u8::from(item.linked),
                zero: [0; 6],
                number: U64::new(item.name.number),
                bytes: U64::new(item.bytes),
                origin: U128::new(item.origin),
                digest: U128::new(item.digest),
            };
            bytes.extend_from_slice(raw.as_bytes());
        }
        let digest = digest(&bytes);
        bytes.extend_from_slice(&digest.to_le_bytes());
        Ok(bytes)
    }

    /// # Errors
    /// `NewerFormat`, or `Damaged` by offset.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, BackupError> {
        let (header, rest) = RawHeader::ref_from_prefix(bytes)
            .map_err(|_| fault(0, format!("{} bytes are too few", bytes.len())))?;
        if header.magic != MAGIC {
            return Err(fault(0, "magic is not a backup's"));
        }
        let crc = crc32fast::hash(&bytes[..CRC_AT]);
        if header.crc.get() != crc {
            let message = format!("crc32 {crc:08x}, stored {:08x}", header.crc.get());
            return Err(fault(CRC_AT, message));
        }
        if header.version.get() > FORMAT_VERSION {
            return Err(BackupError::NewerFormat {
                file: INDEX.to_owned(),
                found: header.version.get(),
                supported: FORMAT_VERSION,
            });
        }
        if header.zero != U32::ZERO || header.point == U64::ZERO {
            return Err(fault(32, "the point is zero, or reserved bytes are not"));
        }
        let items = items_of(header.items.get(), bytes, rest)?;
        let index = Self {
            store_id: header.store_id,
            point: header.point.get(),
            last_seq: header.last_seq.get(),
            made_us: header.made_us.get(),
            items,
        };
        index.validate()?;
        Ok(index)
    }

    /// What must hold between the items.
    fn validate(&self) -> Result<(), BackupError> {
        let mut before: Option<Name> = None;
        let mut bytes_all = 0u64;
        for (i, item) in self.items.iter().enumerate() {
            let refuse = |message: String| Err(fault(HEADER_BYTES + i * ITEM_BYTES, message));
            let name = item.name;
            if before.is_some_and(|before| before >= name) {
                return refuse(format!("{} is twice in it, or out of order", name.shown()));
            }
            before = Some(name);
            let (bytes_min, bytes_max) = name.kind.bytes_allowed();
            if !(bytes_min..=bytes_max).contains(&item.bytes) {
                return refuse(format!(
                    "{} of {} bytes, allowed are {bytes_min} to {bytes_max}",
                    name.shown(),
                    item.bytes
                ));
            }
            let alone = matches!(name.kind, Kind::Current | Kind::Status);
            if alone && name.number != 0
                || !name.kind.is_data() && (item.linked || item.origin != 0)
            {
                return refuse(format!("{} has a field that it cannot have", name.shown()));
            }
            bytes_all = match bytes_all.checked_add(item.bytes) {
                Some(sum) => sum,
                None => return refuse("the lengths together overflow".into()),
            };
        }
        self.validate_kinds()
    }

    /// A point is one pointer, two copies of one generation, and a log with its status or none.
    fn validate_kinds(&self) -> Result<(), BackupError> {
        let numbers = |kind: Kind| -> Vec<u64> {
            let of_kind = self.items.iter().filter(|item| item.name.kind == kind);
            of_kind.map(|item| item.name.number).collect()
        };
        let (a, b) = (numbers(Kind::ManifestA), numbers(Kind::ManifestB));
        let whole = numbers(Kind::Current).len() == 1 && a.len() == 1 && a == b;
        let (status, logs) = (numbers(Kind::Status).len(), numbers(Kind::Log).len());
        if !whole || logs > LOGS_MAX || status != usize::from(logs > 0) {
            return Err(fault(
                HEADER_BYTES,
                "the files are not those of one point of a store",
            ));
        }
        Ok(())
    }
}

/// The items of bytes whose header is whole, once their digest holds.
fn items_of(count: u32, bytes: &[u8], rest: &[u8]) -> Result<Vec<Item>, BackupError> {
    let count = count as usize;
    let wanted = count
        .checked_mul(ITEM_BYTES)
        .and_then(|len| len.checked_add(DIGEST_BYTES));
    if count > ITEMS_MAX || wanted != Some(rest.len()) {
        let message = format!("{count} files in an index of {} bytes", bytes.len());
        return Err(fault(12, message));
    }
    let digest_at = bytes.len() - DIGEST_BYTES;
    let found = digest(&bytes[..digest_at]);
    if bytes[digest_at..] != found.to_le_bytes() {
        return Err(fault(
            digest_at,
            format!("xxh3 {found:032x}, stored is another"),
        ));
    }
    let raw_items = rest[..count * ITEM_BYTES].chunks_exact(ITEM_BYTES);
    raw_items
        .enumerate()
        .map(|(i, raw)| {
            let damaged = || fault(HEADER_BYTES + i * ITEM_BYTES, "not a file of a store");
            let raw = RawItem::ref_from_bytes(raw).map_err(|_| damaged())?;
            let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == raw.kind);
            let kind = kind.filter(|_| raw.zero == [0; 6] && raw.linked <= 1);
            Ok(Item {
                name: Name::new(kind.ok_or_else(damaged)?, raw.number.get()),
                bytes: raw.bytes.get(),
                origin: raw.origin.get(),
                digest: raw.digest.get(),
                linked: raw.linked == 1,
            })
        })
        .collect()
}

fn fault(offset: usize, message: impl Into<String>) -> BackupError {
    BackupError::damaged(INDEX, "index", offset as u64, message)
}

fn digest(bytes: &[u8]) -> u128 {
    let mut hasher = Xxh3Default::new();
    hasher.update(SALT);
    hasher.update(bytes);
    hasher.digest128()
}

/// Name of a point's directory.
pub(super) fn point_name(point: u64) -> String {
    format!("{POINT_PREFIX}{point:016x}")
}

const POINT_PREFIX: &str = "point-";

/// The point in a directory's name; `None` for any other name.
pub(super) fn parse_point(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(POINT_PREFIX)?;
    let point = u64::from_str_radix(digits, 16).ok()?;
    (point_name(point) == name).then_some(point)
}
