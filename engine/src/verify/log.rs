//! Is the log whole from its floor on, and can its batches be replayed?
//!
//! The judgement is recovery's own. Where it ends at damage in one file it is asked again
//! about the files behind it, so that one damaged file does not hide another. Beside a running
//! writer a frame may be half written and a file may just have got a successor: whatever is
//! found here is in doubt until it was found again, see `look`.

use std::io::ErrorKind as IoKind;
use std::path::Path;

use chronolith_vfs::{Env, is_unreadable};
use chronolith_wal::{
    Frame, LOG_MARK_AT, Log, LogOptions, LogReader, RecoveryReport, STATUS_LEN, STATUS_NAME,
    Status, WalError, list_logs, log_name, parse_log_name, read_status,
};

use super::look::unreadable;
use super::report::{FindingKind, VerifyFinding};
use crate::error::Error;
use crate::manifest::Manifest;
use crate::manifest::names::WAL_DIR;

/// What one look at the log saw.
#[derive(Debug, Default)]
pub(super) struct LogLook {
    /// Name and length of each file from the floor on, and of the status.
    pub(super) files: Vec<(String, u64)>,
    /// Whole batches.
    pub(super) frames: u64,
    /// Batches behind the flushed seq with the name of their file, where nothing before them
    /// is damaged.
    pub(super) replay: Vec<(String, Frame)>,
    pub(super) findings: Vec<VerifyFinding>,
    /// True where a file was not there: a writer may have removed it.
    pub(super) is_missing: bool,
}

/// Judges the log that `manifest` needs. `dir` is the store's.
pub(super) fn look(env: &Env, dir: &Path, manifest: &Manifest) -> Result<LogLook, Error> {
    let mut look = LogLook::default();
    // The first generation is published before the log begins.
    if manifest.generation == 1 {
        return Ok(look);
    }
    let wal = dir.join(WAL_DIR);
    let mut floor = manifest.floor_file;
    loop {
        match judge(env, &wal, manifest, floor) {
            Ok(report) => {
                look.frames += report.frames;
                look.note_end(&report);
                if floor == manifest.floor_file {
                    look.read_frames(env, &wal, manifest, &report)?;
                }
                break;
            }
            Err(error) => {
                let Some(number) = look.note(error)? else {
                    break;
                };
                floor = number.saturating_add(1);
                let later = list_logs(env, &wal).map_err(Error::Log)?;
                if !later.iter().any(|number| *number >= floor) {
                    break;
                }
            }
        }
    }
    look.list_files(env, &wal, manifest);
    look.check_status(env, &wal, manifest)?;
    Ok(look)
}

fn judge(
    env: &Env,
    wal: &Path,
    manifest: &Manifest,
    floor_file: u64,
) -> Result<RecoveryReport, WalError> {
    let options = LogOptions {
        floor_file,
        flushed_seq: manifest.flushed_seq,
        ..LogOptions::new(manifest.store_id)
    };
    Ok(Log::recover(env, wal, &options)?.report().clone())
}

fn shown(file: &str) -> String {
    format!("{WAL_DIR}/{file}")
}

impl LogLook {
    /// Makes a finding of damage and returns the number of its file; other errors end the run.
    fn note(&mut self, error: WalError) -> Result<Option<u64>, Error> {
        let message = error.to_string();
        let (file, offset) = match error {
            WalError::Corrupt { file, offset, .. } => (file, Some(offset)),
            WalError::WrongStore { file, .. } => (file, Some(0)),
            WalError::MissingFile { file }
            | WalError::SuccessorMissing { file, .. }
            | WalError::Removed { file } => {
                self.is_missing = true;
                (file, None)
            }
            WalError::Io { file, source, .. } if source.kind() == IoKind::NotFound => {
                self.is_missing = true;
                (file, None)
            }
            WalError::Io { file, source, .. } if is_unreadable(&source) => (file, None),
            error => return Err(Error::Log(error)),
        };
        let number = parse_log_name(&file);
        let file = match number.is_some() || file == STATUS_NAME {
            true => shown(&file),
            // The directory itself cannot be listed.
            false => WAL_DIR.to_owned(),
        };
        let finding = VerifyFinding::new(FindingKind::Damage, file, "frames", offset, message);
        self.findings.push(finding);
        Ok(number)
    }

    /// What the judgement says about the end of the newest file.
    fn note_end(&mut self, report: &RecoveryReport) {
        for file in &report.damaged_marks {
            let message = "the mark that says that a later file was begun is damaged: the next \
                           open for writing writes it again";
            let (kind, file) = (FindingKind::Degraded, shown(file));
            let finding = VerifyFinding::new(kind, file, "header", Some(LOG_MARK_AT), message);
            self.findings.push(finding);
        }
        if let Some(tail) = &report.dropped {
            let doubt = match report.ambiguous {
                true => "they may have been acknowledged, and nothing tells",
                false => "none of them was acknowledged as synced",
            };
            let message = format!(
                "{} bytes do not end in a whole batch ({}); {doubt}; the next open drops them",
                report.bytes_dropped, tail.flaw
            );
            let (file, offset) = (shown(&tail.file), Some(tail.offset));
            let finding = VerifyFinding::new(FindingKind::Tail, file, "frames", offset, message);
            self.findings.push(finding);
        }
        if let Some(acked_upto) = report.acked_lost_upto {
            let message = format!(
                "seq {acked_upto} was acknowledged, the log ends at {}: what was written at \
                 Buffered is lost",
                report.last_seq
            );
            let file = shown(STATUS_NAME);
            let finding = VerifyFinding::new(FindingKind::Tail, file, "status", None, message);
            self.findings.push(finding);
        }
    }

    /// Reads the batches that an open would replay.
    fn read_frames(
        &mut self,
        env: &Env,
        wal: &Path,
        manifest: &Manifest,
        report: &RecoveryReport,
    ) -> Result<(), Error> {
        let upto = Status {
            epoch: report.epoch_highest,
            acked_upto: report.last_seq,
            durable_upto: 0,
        };
        let mut read = || -> Result<(), WalError> {
            let mut log = LogReader::open(env, wal, manifest.store_id, manifest.floor_file)?;
            while let Some(frame) = log.next(&upto)? {
                if frame.last_seq() > manifest.flushed_seq {
                    let file = shown(&log_name(log.current_file()));
                    self.replay.push((file, frame));
                }
            }
            Ok(())
        };
        match read() {
            Ok(()) => Ok(()),
            Err(error) => self.note(error).map(|_| ()),
        }
    }

    fn list_files(&mut self, env: &Env, wal: &Path, manifest: &Manifest) {
        // Lengths are for people: a file that goes meanwhile is simply not listed.
        let names = list_logs(env, wal).unwrap_or_default().into_iter();
        let logs = names.filter(|number| *number >= manifest.floor_file);
        for name in logs.map(log_name).chain([STATUS_NAME.to_owned()]) {
            if let Ok(stat) = env.vfs.stat(&wal.join(&name)) {
                self.files.push((shown(&name), stat.len));
            }
        }
    }

    /// A status is written in place and never synced: a missing, short or empty one is what a
    /// crash leaves. One with other bytes in it is not, and without any a reader refuses what
    /// the log alone holds.
    fn check_status(&mut self, env: &Env, wal: &Path, manifest: &Manifest) -> Result<(), Error> {
        let path = wal.join(STATUS_NAME);
        match read_status(env, wal, &manifest.store_id) {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => {}
            Err(WalError::Io { source, .. }) if is_unreadable(&source) => {
                self.findings.push(unreadable(shown(STATUS_NAME), &source));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        let read = || -> std::io::Result<Vec<u8>> {
            let file = env.vfs.open_read(&path)?;
            let len = usize::try_from(file.len()?).unwrap_or(STATUS_LEN);
            let mut bytes = vec![0; len.min(STATUS_LEN)];
            file.read_exact_at(&mut bytes, 0)?;
            Ok(bytes)
        };
        let unsynced = match read() {
            Ok(bytes) => bytes.len() < STATUS_LEN || bytes.iter().all(|b| *b == 0),
            Err(error) if error.kind() == IoKind::NotFound => true,
            Err(error) if error.kind() == IoKind::UnexpectedEof => true,
            Err(error) => return Err(Error::io("read", path, error)),
        };
        let kind = match unsynced && self.replay.is_empty() {
            true => FindingKind::Tail,
            false => FindingKind::Degraded,
        };
        let message = match unsynced {
            true => "is missing, short or empty, as after a crash",
            false => "checksum mismatch",
        };
        let message = format!(
            "{message}: readers refuse what no segment has until a writer opens or commits"
        );
        let file = shown(STATUS_NAME);
        let finding = VerifyFinding::new(kind, file, "status", Some(0), message);
        self.findings.push(finding);
        Ok(())
    }
}
