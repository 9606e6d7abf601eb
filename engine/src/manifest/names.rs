//! What are the store's files called? The only place that makes or recognises a name.
//!
//! A name is recognised only if formatting what was parsed gives the same name again, so a
//! sweep can never match a file that the engine did not make.

use std::path::{Path, PathBuf};

/// The pointer.
pub const CURRENT: &str = "CURRENT";
/// The index of a backup, where a store has its pointer.
pub const BACKUP: &str = "BACKUP";
/// The pointer while it is written.
pub const CURRENT_TEMP: &str = "CURRENT.tmp";
/// The writer's lock file.
pub const LOCK: &str = "LOCK";
/// Space that is kept for `forget` and `close` on a full disk.
pub const RESERVE: &str = "RESERVE";
/// Directory of the manifest copies.
pub const MANIFEST_DIR: &str = "manifest";
/// Directory of segments and side files.
pub const SEGMENTS_DIR: &str = "segments";
/// Directory of the log.
pub const WAL_DIR: &str = "wal";
/// Directory of the catalog.
pub const CATALOG_DIR: &str = "catalog";

const TEMP_SUFFIX: &str = ".tmp";
const MANIFEST_PREFIX: &str = "MANIFEST-";
const HEX_DIGITS: usize = 16;

/// One of the two equal copies of a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CopyName {
    /// Written and renamed first.
    A,
    /// Written and renamed second.
    B,
}

impl CopyName {
    /// Both, in the order they are written.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    fn suffix(self) -> &'static str {
        match self {
            Self::A => ".a",
            Self::B => ".b",
        }
    }
}

/// A name in the manifest directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ManifestName {
    /// The generation.
    pub generation: u64,
    /// Which copy.
    pub copy: CopyName,
    /// True while it is written.
    pub temp: bool,
}

impl ManifestName {
    /// The finished copy's name.
    pub fn new(generation: u64, copy: CopyName) -> Self {
        Self {
            generation,
            copy,
            temp: false,
        }
    }

    /// The same name with or without the temporary suffix.
    #[must_use]
    pub fn with_temp(self, temp: bool) -> Self {
        Self { temp, ..self }
    }

    /// The file name.
    pub fn format(self) -> String {
        let temp = if self.temp { TEMP_SUFFIX } else { "" };
        format!(
            "{MANIFEST_PREFIX}{:016x}{}{temp}",
            self.generation,
            self.copy.suffix()
        )
    }

    /// Recognises a file name.
    pub fn parse(name: &str) -> Option<Self> {
        let (rest, temp) = split_temp(name);
        let (generation, suffix) = split_hex(rest.strip_prefix(MANIFEST_PREFIX)?)?;
        let copy = CopyName::ALL
            .into_iter()
            .find(|copy| copy.suffix() == suffix)?;
        Some(Self {
            generation,
            copy,
            temp,
        })
    }

    /// The path below a store.
    pub fn path(self, store: &Path) -> PathBuf {
        store.join(MANIFEST_DIR).join(self.format())
    }

    /// The path as errors name it.
    pub fn shown(self) -> String {
        format!("{MANIFEST_DIR}/{}", self.format())
    }
}

/// What a file of the segments directory holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DataKind {
    /// A segment.
    Segment,
    /// A delete set.
    Deletes,
    /// The tag graph.
    TagGraph,
}

impl DataKind {
    const ALL: [Self; 3] = [Self::Segment, Self::Deletes, Self::TagGraph];

    fn suffix(self) -> &'static str {
        match self {
            Self::Segment => ".seg",
            Self::Deletes => ".del",
            Self::TagGraph => ".tags",
        }
    }
}

/// A name in the segments directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DataName {
    /// File number, never reused.
    pub file_number: u64,
    /// What it holds.
    pub kind: DataKind,
    /// True while it is written.
    pub temp: bool,
}

impl DataName {
    /// The finished file's name.
    pub fn new(file_number: u64, kind: DataKind) -> Self {
        Self {
            file_number,
            kind,
            temp: false,
        }
    }

    /// The same name with or without the temporary suffix.
    #[must_use]
    pub fn with_temp(self, temp: bool) -> Self {
        Self { temp, ..self }
    }

    /// The file name.
    pub fn format(self) -> String {
        let temp = if self.temp { TEMP_SUFFIX } else { "" };
        format!("{:016x}{}{temp}", self.file_number, self.kind.suffix())
    }

    /// Recognises a file name.
    pub fn parse(name: &str) -> Option<Self> {
        let (rest, temp) = split_temp(name);
        let (file_number, suffix) = split_hex(rest)?;
        let kind = DataKind::ALL
            .into_iter()
            .find(|kind| kind.suffix() == suffix)?;
        Some(Self {
            file_number,
            kind,
            temp,
        })
    }

    /// The path below a store.
    pub fn path(self, store: &Path) -> PathBuf {
        store.join(SEGMENTS_DIR).join(self.format())
    }

    /// The path as errors name it.
    pub fn shown(self) -> String {
        format!("{SEGMENTS_DIR}/{}", self.format())
    }
}

fn split_temp(name: &str) -> (&str, bool) {
    name.strip_suffix(TEMP_SUFFIX)
        .map_or((name, false), |rest| (rest, true))
}

/// Sixteen lower-case digits and what follows; anything else is not ours.
fn split_hex(text: &str) -> Option<(u64, &str)> {
    let (digits, rest) = text.split_at_checked(HEX_DIGITS)?;
    let ours = digits
        .bytes()
        .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let number = u64::from_str_radix(digits, 16).ok()?;
    ours.then_some((number, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_own_name_parses_back() {
        for number in [0, 1, 0xabc, u64::MAX] {
            for temp in [false, true] {
                for copy in CopyName::ALL {
                    let name = ManifestName::new(number, copy).with_temp(temp);
                    assert_eq!(ManifestName::parse(&name.format()), Some(name));
                }
                for kind in DataKind::ALL {
                    let name = DataName::new(number, kind).with_temp(temp);
                    assert_eq!(DataName::parse(&name.format()), Some(name));
                }
            }
        }
        assert_eq!(
            ManifestName::new(26, CopyName::B).format(),
            "MANIFEST-000000000000001a.b"
        );
        assert_eq!(
            DataName::new(26, DataKind::TagGraph).format(),
            "000000000000001a.tags"
        );
    }

    #[test]
    fn foreign_names_are_not_ours() {
        let foreign = [
            "",
            "MANIFEST-",
            "MANIFEST-1.a",
            "MANIFEST-000000000000001A.a",
            "MANIFEST-000000000000001a.c",
            "MANIFEST-000000000000001a",
            "MANIFEST-+00000000000001a.a",
            "manifest-000000000000001a.a",
            "MANIFEST-000000000000001a.a.tmp.tmp",
            " MANIFEST-000000000000001a.a",
            "MANIFEST-000000000000001é.a",
            "000000000000001a",
            "000000000000001a.seg~",
            "000000000000001a.seg.tmp.tmp",
            "+00000000000001a.seg",
            "00000000000001a.seg",
            "000000000000001a.SEG",
            "notes.txt",
            ".tmp",
        ];
        for name in foreign {
            assert_eq!(ManifestName::parse(name), None, "{name}");
            assert_eq!(DataName::parse(name), None, "{name}");
        }
    }
}
