//! How does a writer begin on a disk that has no file to give? In the newest file there is.
//!
//! A new file is better: it leaves what was found as it was. Where none can be made, the newest
//! one is made durable as it stands and an epoch frame goes behind its last frame:
//!
//! 1. Frames that are not proven durable are written once more where they lie: a sync of pages
//!    that an earlier, failed sync marked as clean would do nothing. They are the same bytes, so
//!    a crash leaves each of them as whole as it was.
//! 2. What was judged to be no part of the log is cut off.
//! 3. A file of a format without epoch frames gets one that has them, in its first sector, where
//!    the chain does not notice: a crash leaves either header.
//! 4. One sync for all of it. From here on everything recovered is durable, and `STATUS` says
//!    so before anything that other processes can read does.
//! 5. The epoch frame, and its sync. From here on seqs of the new epoch may follow.
//!
//! Whatever a crash leaves is judged as before, to the same frames: an epoch frame that is torn
//! is an unsynced tail, and nothing was written in its epoch.

use std::sync::Arc;

use chronolith_vfs::VfsFile;

use crate::error::WalError;
use crate::frame::{self, FrameHeader, Kind, Place, first_seq_of};
use crate::reader::Position;
use crate::recover::Recovered;
use crate::status::StatusFile;
use crate::writer::{Log, Start};

/// Bytes written again at a time.
const PIECE_BYTES: usize = 256 << 10;

impl Recovered {
    /// As [`Recovered::start`], in the newest file there is: for a disk that has space and no
    /// file to give.
    ///
    /// # Errors
    /// As [`Recovered::start`].
    pub fn take_over(&mut self, epoch: u32) -> Result<Log, WalError> {
        self.check_start(epoch)?;
        let mut status = StatusFile::open(&self.env, &self.dir, self.opts.store_id)?;
        let start = self.begin_epoch(epoch, &mut status)?;
        Log::begin(&self.env, &self.dir, &self.opts, start, status)
    }

    /// Begins the epoch in the newest file.
    pub(crate) fn begin_epoch(
        &mut self,
        epoch: u32,
        status: &mut StatusFile,
    ) -> Result<Start, WalError> {
        self.settle_names()?;
        let (found, end) = (self.newest().header, self.newest().end);
        let header = found.raised();
        let path = self.dir.join(header.name());
        let io = |op| {
            let path = path.clone();
            move |e| WalError::io(op, &path, e)
        };
        let file = self.env.vfs.open_write(&path).map_err(io("open"))?;
        let (_, cut, _) = self.find_cut()?;
        write_again(&*file, cut.offset, end.offset).map_err(io("write"))?;
        if header.format > found.format {
            file.write_all_at(&header.encode(), 0)
                .map_err(io("write"))?;
        }
        if self.report.dropped.is_some() {
            file.set_len(end.offset).map_err(io("cut"))?;
        }
        let sync = |file: &dyn VfsFile| {
            let synced = file.sync_all();
            synced.map_err(|e| WalError::sync_failed("sync", &path, &e))
        };
        sync(&*file)?;
        status.write(self.all_durable(end.epoch))?;
        let (at, bytes) = self.epoch_frame(epoch, &end);
        let len = file.len().map_err(io("stat"))?;
        // From here on the epoch may be in use: never twice from one recovery.
        self.started = true;
        if let Err(e) = file.write_all_at(&bytes, end.offset) {
            self.take_back(&*file, end.offset)?;
            self.started = false;
            return Err(WalError::io("write", &path, e));
        }
        sync(&*file)?;
        let mut spans = self.spans_found();
        if let Some(last) = spans.last_mut() {
            last.bytes = at.offset;
        }
        Ok(Start {
            file: Arc::clone(&file),
            header,
            at,
            written_upto: len.max(at.offset),
            spans,
            untold: None,
        })
    }

    fn epoch_frame(&self, epoch: u32, end: &Position) -> (Position, Vec<u8>) {
        let frame = FrameHeader {
            kind: Kind::Epoch,
            body_len: 0,
            ops: 0,
            first_seq: first_seq_of(epoch),
            durable_upto: self.report.last_seq,
            epoch,
            prev: end.chain,
        };
        let place = Place {
            store_id: &self.opts.store_id,
            offset: end.offset,
        };
        let mut bytes = Vec::new();
        let chain = frame::encode(&mut bytes, &frame, &[], place);
        let at = Position {
            offset: end.offset + bytes.len() as u64,
            chain,
            last_seq: self.report.last_seq,
            epoch,
        };
        (at, bytes)
    }

    /// Takes back what a failed write of the epoch frame may have left.
    fn take_back(&self, file: &dyn VfsFile, len: u64) -> Result<(), WalError> {
        let cut = file.set_len(len).and_then(|()| file.sync_all());
        let path = self.dir.join(self.newest().header.name());
        cut.map_err(|e| WalError::sync_failed("cut", &path, &e))
    }
}

/// Writes the bytes from `from` to `to` where they are.
fn write_again(file: &dyn VfsFile, from: u64, to: u64) -> std::io::Result<()> {
    let mut buffer = vec![0; PIECE_BYTES];
    let mut at = from;
    while at < to {
        let n = usize::try_from(to - at).map_or(PIECE_BYTES, |n| n.min(PIECE_BYTES));
        file.read_exact_at(&mut buffer[..n], at)?;
        file.write_all_at(&buffer[..n], at)?;
        at += n as u64;
    }
    Ok(())
}
