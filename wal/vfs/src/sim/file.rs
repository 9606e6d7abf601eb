//! One simulated file: what readers see, what is durable, and the writes between the two.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::image::Survival;
use super::random::Stream;
use crate::bytes::FileBytes;

/// Unit in which a disk writes: all of a sector survives, or none of it.
pub(super) const SECTOR_BYTES: usize = 512;

/// Longest simulated file; more is a runaway test.
const FILE_BYTES_MAX: usize = 1 << 30;

/// A file, by whatever names it has. Handles keep it alive after its last name is gone.
#[derive(Debug)]
pub(super) struct FileNode {
    /// Unique on its disk and kept across crash images.
    pub(super) id: u64,
    state: Mutex<FileState>,
}

impl FileNode {
    pub(super) fn new(id: u64, state: FileState) -> Self {
        Self {
            id,
            state: Mutex::new(state),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, FileState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a sync that fails leaves in the cache. Either way nothing became durable, the dirty
/// pages count as clean, and the next sync succeeds without writing them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedSync {
    /// Reads still return the new bytes, which a power cut will lose.
    CacheKeepsNew,
    /// Reads return the bytes that are durable; the length stays, with zeros where nothing is.
    CacheReverts,
}

#[derive(Debug, Clone)]
enum DataOp {
    Write { offset: usize, bytes: Vec<u8> },
    SetLen(usize),
}

impl DataOp {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { offset, bytes } => put(content, *offset, bytes),
            Self::SetLen(len) => content.resize(*len, 0),
        }
    }

    fn len_after(&self, len_before: usize) -> usize {
        match self {
            Self::Write { offset, bytes } => len_before.max(offset + bytes.len()),
            Self::SetLen(len) => *len,
        }
    }
}

fn put(content: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}

/// Cuts a write at the file's sector borders: `(offset, bytes)` of each piece.
fn pieces(offset: usize, bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = offset;
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(rest.len().min(SECTOR_BYTES - at % SECTOR_BYTES));
        let start = at;
        at += piece.len();
        rest = after;
        (!piece.is_empty()).then_some((start, piece))
    })
}

/// Content behind an `Arc`, so that crash images and maps share it until somebody writes.
#[derive(Debug, Clone, Default)]
pub(super) struct FileState {
    /// What reads return.
    cache: Arc<Vec<u8>>,
    /// What a power cut cannot take. `cache` is this with `unsynced` applied in order, except
    /// after a failed sync with [`FailedSync::CacheKeepsNew`].
    durable: Arc<Vec<u8>>,
    unsynced: Vec<DataOp>,
    sealed: bool,
    sealed_durable: bool,
}

impl FileState {
    pub(super) fn len(&self) -> usize {
        self.cache.len()
    }

    pub(super) fn content(&self) -> &[u8] {
        &self.cache
    }

    pub(super) fn is_sealed(&self) -> bool {
        self.sealed
    }

    pub(super) fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.cache.len());
        let n = buf.len().min(self.cache.len() - start);
        buf[..n].copy_from_slice(&self.cache[start..start + n]);
        n
    }

    pub(super) fn map(&self, len: u64) -> io::Result<FileBytes> {
        match usize::try_from(len) {
            Ok(len) if len <= self.cache.len() => Ok(FileBytes::new(Prefix {
                content: Arc::clone(&self.cache),
                len,
            })),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The length that a write of `len` bytes at `offset` leaves.
    pub(super) fn len_after_write(&self, len: usize, offset: u64) -> io::Result<usize> {
        let end = capped(offset)?.saturating_add(len);
        capped(end as u64)?;
        Ok(end.max(self.len()))
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.len_after_write(bytes.len(), offset)?;
        let offset = capped(offset)?;
        if !bytes.is_empty() {
            let bytes = bytes.to_vec();
            self.change(DataOp::Write { offset, bytes });
        }
        Ok(())
    }

    pub(super) fn set_len(&mut self, len: u64) -> io::Result<()> {
        let len = capped(len)?;
        self.change(DataOp::SetLen(len));
        Ok(())
    }

    fn change(&mut self, op: DataOp) {
        op.apply(Arc::make_mut(&mut self.cache));
        self.unsynced.push(op);
    }

    pub(super) fn seal(&mut self) {
        self.sealed = true;
    }

    /// Data and length become durable; with `metadata`, the mode too.
    pub(super) fn sync(&mut self, metadata: bool) {
        let ops = std::mem::take(&mut self.unsynced);
        if !ops.is_empty() {
            let durable = Arc::make_mut(&mut self.durable);
            ops.iter().for_each(|op| op.apply(durable));
        }
        if metadata {
            self.sealed_durable = self.sealed;
        }
    }

    /// A sync that failed. The length lives in the inode and not in a page: it stays dirty,
    /// and the next sync makes it durable over zeros.
    pub(super) fn fail_sync(&mut self, mode: FailedSync) {
        self.unsynced.clear();
        let len = self.cache.len();
        if mode == FailedSync::CacheReverts {
            self.cache = Arc::clone(&self.durable);
            Arc::make_mut(&mut self.cache).resize(len, 0);
        }
        if len != self.durable.len() {
            self.unsynced.push(DataOp::SetLen(len));
        }
    }

    /// Changes the bytes on the medium, for tests of damage. Cache and disk agree afterwards.
    pub(super) fn damage(&mut self, change: impl FnOnce(&mut Vec<u8>)) {
        change(Arc::make_mut(&mut self.cache));
        self.durable = Arc::clone(&self.cache);
        self.unsynced.clear();
    }

    /// This file as a power cut leaves it.
    pub(super) fn after_power_cut(&self, survival: &Survival, stream: &mut Stream) -> Self {
        let sealed = self.sealed_durable || (self.sealed && survival.keeps_mode(stream));
        let content = if self.unsynced.is_empty() {
            Arc::clone(&self.durable)
        } else {
            Arc::new(self.surviving(survival, stream))
        };
        Self {
            cache: Arc::clone(&content),
            durable: content,
            unsynced: Vec::new(),
            sealed,
            sealed_durable: sealed,
        }
    }

    /// Durable bytes plus what survives of the unsynced ones.
    ///
    /// Lengths and cuts are metadata and survive as a prefix of the operations. Data survives
    /// sector by sector, each on its own: a sector holds the state after some prefix of the
    /// writes that touched it, because a page is written as it is, with all earlier writes in
    /// it. Where the length survived and a sector did not, zeros stand.
    fn surviving(&self, survival: &Survival, stream: &mut Stream) -> Vec<u8> {
        let sizes_kept = survival.sizes.count(self.unsynced.len(), stream);
        let mut sectors = self.writes_per_sector();
        for count in sectors.values_mut() {
            *count = survival.sectors.count(*count, stream);
        }
        let mut content = self.durable.to_vec();
        let mut len = content.len();
        for (index, op) in self.unsynced.iter().enumerate() {
            if index < sizes_kept {
                len = op.len_after(len);
            }
            match op {
                DataOp::SetLen(_) if index < sizes_kept => op.apply(&mut content),
                DataOp::SetLen(_) => {}
                DataOp::Write { offset, bytes } => {
                    for (at, piece) in pieces(*offset, bytes) {
                        let left = sectors.entry(at / SECTOR_BYTES).or_default();
                        if *left > 0 {
                            *left -= 1;
                            put(&mut content, at, piece);
                        }
                    }
                }
            }
        }
        content.resize(len, 0);
        content
    }

    fn writes_per_sector(&self) -> BTreeMap<usize, usize> {
        let mut sectors = BTreeMap::new();
        for op in &self.unsynced {
            if let DataOp::Write { offset, bytes } = op {
                for (at, _) in pieces(*offset, bytes) {
                    *sectors.entry(at / SECTOR_BYTES).or_default() += 1;
                }
            }
        }
        sectors
    }
}

fn capped(bytes: u64) -> io::Result<usize> {
    match usize::try_from(bytes) {
        Ok(bytes) if bytes <= FILE_BYTES_MAX => Ok(bytes),
        _ => Err(io::ErrorKind::FileTooLarge.into()),
    }
}

struct Prefix {
    content: Arc<Vec<u8>>,
    len: usize,
}

impl AsRef<[u8]> for Prefix {
    fn as_ref(&self) -> &[u8] {
        &self.content[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_at_the_files_sectors_not_the_writes() {
        let bytes = vec![7; 1200];
        let cut: Vec<_> = pieces(500, &bytes).map(|(at, p)| (at, p.len())).collect();
        assert_eq!(cut, [(500, 12), (512, 512), (1024, 512), (1536, 164)]);
        assert_eq!(pieces(512, &[]).count(), 0);
    }
}
