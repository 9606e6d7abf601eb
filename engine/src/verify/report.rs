//! What does a scrub say? Files, findings with their kind, and how far it has come.

use serde::Serialize;

/// What a finding means for the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingKind {
    /// Bytes that an answer may need are not what was written, are missing, or contradict
    /// each other.
    Damage,
    /// Bytes are not what was written, and nothing is lost: one of two manifest copies, the
    /// catalog under its seal, the log's status (without which other processes that read may
    /// refuse with `Behind` until a writer has opened the store).
    Degraded,
    /// The end of the log is not whole and was never proven durable: what a crash leaves. The
    /// next open for writing drops it.
    Tail,
    /// A name that the engine does not make, or the catalog of a newer release. Nothing reads
    /// it.
    Extra,
}

impl FindingKind {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Damage => "damage",
            Self::Degraded => "degraded",
            Self::Tail => "tail",
            Self::Extra => "extra",
        }
    }
}

/// One thing that is not as it should be. Holds no content of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifyFinding {
    /// What it means.
    pub kind: FindingKind,
    /// Path of the file below the store.
    pub file: String,
    /// Part of the file.
    pub section: String,
    /// Byte offset in the file, where one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Found against expected.
    pub message: String,
}

impl VerifyFinding {
    pub(super) fn new(
        kind: FindingKind,
        file: impl Into<String>,
        section: impl Into<String>,
        offset: Option<u64>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            file: file.into(),
            section: section.into(),
            offset,
            message: message.into(),
        }
    }

    /// Damage without a place inside its file.
    pub(super) fn damage(
        file: impl Into<String>,
        section: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self::new(FindingKind::Damage, file, section, None, message)
    }
}

/// One file that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifiedFile {
    /// Path below the store.
    pub file: String,
    /// What it holds: `pointer`, `manifest`, `segment`, `delete set`, `tag graph`, `log`,
    /// `status` or `catalog`.
    pub holds: &'static str,
    /// Its length.
    pub bytes: u64,
    /// Checksum blocks in it, where it has any.
    pub blocks: u64,
    /// Findings that name it.
    pub findings: u64,
}

/// What a scrub saw.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct VerifyReport {
    /// The generation that was verified; 0 where none can be read.
    pub generation: u64,
    /// Every file that counts.
    pub files: Vec<VerifiedFile>,
    /// Checksum blocks of segments that were read.
    pub blocks: u64,
    /// Batches of the log whose checksums were compared.
    pub log_frames: u64,
    /// Batches that an open would replay, decoded and applied in memory.
    pub replayed: u64,
    /// Rows of segments and of replayed batches, dead ones included.
    pub rows: u64,
    /// Names of the engine's own that no generation needs: of a running writer's work, or
    /// left by a crash and swept by the next open for writing. Nothing is wrong with them.
    pub leftovers: Vec<String>,
    /// What is not as it should be, in the order of files.
    pub findings: Vec<VerifyFinding>,
}

impl VerifyReport {
    /// True where every byte that the store relies on, spare copies included, is sound.
    /// Tails and extra names do not count against it.
    pub fn is_ok(&self) -> bool {
        self.count(FindingKind::Damage) + self.count(FindingKind::Degraded) == 0
    }

    /// Findings of one kind.
    pub fn count(&self, kind: FindingKind) -> usize {
        let of_kind = |finding: &&VerifyFinding| finding.kind == kind;
        self.findings.iter().filter(of_kind).count()
    }
}

/// How far a scrub has come. Nothing goes back from call to call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VerifyProgress {
    /// Files done.
    pub files_done: u64,
    /// Files to do.
    pub files_total: u64,
    /// Bytes done.
    pub bytes_done: u64,
    /// Bytes to do.
    pub bytes_total: u64,
}
