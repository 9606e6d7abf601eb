//! What does a repair say? What was kept, what is missing, and what cannot be known.

use std::collections::BTreeSet;

use serde::Serialize;

/// What a repair read, kept and could not keep.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RepairReport {
    /// Id of the damaged store, hex.
    pub source_id: String,
    /// Id of the new store, hex: another one, so that no file of the old one passes for its.
    pub store_id: String,
    /// Where the list of live files came from.
    pub manifest: ManifestState,
    /// Settings that no file said and that were assumed, or drawn anew.
    pub assumed: Vec<String>,
    /// Segments whose rows count.
    pub segments: u64,
    /// Segments on disk that others replaced, or that nothing names.
    pub segments_set_aside: u64,
    /// Rows read from segments that count, dead ones included.
    pub rows_read: u64,
    /// Whole frames of the log.
    pub log_frames: u64,
    /// Operations in them.
    pub log_operations: u64,
    /// Records in the new store.
    pub records: u64,
    /// Records among them that came from a file or frame that no longer counted, because the
    /// one that counts is damaged.
    pub records_refilled: u64,
    /// Tag edges in the new store.
    pub tag_edges: u64,
    /// What is damaged, by file. A damaged file need not have cost a record.
    pub damaged: Vec<DamagedFile>,
    /// What is missing: operations by seq, rows by file.
    pub missing: Vec<Missing>,
    /// Records that are known to be lost, up to [`super::RepairOptions::lost_ids_max`].
    pub lost_ids: Vec<LostId>,
    /// How many there are.
    pub lost_ids_total: u64,
    /// Deletes and replacements whose evidence may be lost: such records may be back.
    pub deletes_at_risk: Vec<DeletesAtRisk>,
    /// True where a later operation was kept though an earlier one is lost: what the new store
    /// holds is then no prefix of what was committed.
    pub order_has_holes: bool,
    /// Where the log's status cannot be read, the last seq its frames hold: nothing says whether
    /// a later log file is missing. `None` = the end is known.
    pub log_unproven_after: Option<u64>,
    /// What else a person should know.
    pub notes: Vec<String>,
    #[serde(skip)]
    seen: BTreeSet<(String, String)>,
}

impl RepairReport {
    /// True if nothing is missing and no delete is in doubt.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.lost_ids_total == 0 && self.deletes_at_risk.is_empty()
    }

    /// Notes damage, once a file and section.
    pub(super) fn damage(
        &mut self,
        file: impl Into<String>,
        section: &str,
        offset: Option<u64>,
        why: impl Into<String>,
    ) {
        let file = file.into();
        if self.seen.insert((file.clone(), section.to_owned())) {
            self.damaged.push(DamagedFile {
                file,
                section: section.to_owned(),
                offset,
                why: why.into(),
            });
        }
    }
}

/// Where the list of live files came from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ManifestState {
    /// The generation that counts, from a whole copy.
    #[default]
    Whole,
    /// No copy of it is whole: rebuilt from footers, delete sets and log.
    Rebuilt,
}

/// One damaged place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DamagedFile {
    /// File inside the store.
    pub file: String,
    /// Named part of it.
    pub section: String,
    /// Where, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// What is wrong.
    pub why: String,
}

/// Something that is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// The file it was in; `None` where no file is known.
    pub file: Option<String>,
    /// First commit seq that may be gone; `None` = unknown.
    pub first_seq: Option<u64>,
    /// Last one; `None` = unknown.
    pub last_seq: Option<u64>,
    /// How many records at most; `None` = unknown.
    pub records: Option<u64>,
    /// Why.
    pub why: String,
}

impl Missing {
    /// True if an operation of this seq may be among what is missing.
    pub fn may_hold(&self, seq: u64) -> bool {
        self.first_seq.is_none_or(|first| first <= seq)
            && self.last_seq.is_none_or(|last| seq <= last)
    }
}

/// A record that is known to be lost.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LostId {
    /// Path of its scope, if that is known.
    pub scope: Option<String>,
    /// Its id.
    pub id: String,
    /// Seq of the operation that wrote it, if that is known.
    pub seq: Option<u64>,
}

/// Deletes or replacements of which nothing may be left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeletesAtRisk {
    /// The file that held them, if one is known.
    pub file: Option<String>,
    /// How many at most; `None` = unknown.
    pub count: Option<u64>,
    /// First seq they may have; `None` = unknown.
    pub first_seq: Option<u64>,
    /// Last seq they may have; `None` = unknown.
    pub last_seq: Option<u64>,
    /// Why.
    pub why: String,
}
