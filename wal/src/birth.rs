//! How is a log file born, so that one with a final name is always whole?
//!
//! Everything is written under a temporary name and synced; then the rename; then the
//! directory sync; then the file before says that it was begun ([`Untold`]), and that is synced;
//! only then is anything in it acknowledged. So whoever finds the mark and no file knows of a
//! loss, and a crash in between leaves a file without a mark that nobody was promised anything
//! of. A [`Blank`] has its zeros before anybody needs it, so that a rotation has little left to
//! do while writers wait.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronolith_vfs::planted::{self, Bug};
use chronolith_vfs::{Env, VfsFile};

use crate::error::WalError;
use crate::files::{
    FILE_BYTES_CAP, FILE_HEADER_LEN, FileHeader, FileNumber, MARK_BEGIN, MARKED_SINCE, log_name,
    remove_if_there,
};
use crate::frame::{self, Digest, FrameHeader, Place};

/// Zeros are written in pieces of this size.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// The zeros of a file to come, synced under its temporary name.
#[derive(Debug)]
pub(crate) struct Blank {
    file: Arc<dyn VfsFile>,
    temp: PathBuf,
    pub(crate) number: FileNumber,
}

impl Blank {
    /// Makes the zeros. Nothing depends on them: a failure is no failure of the log.
    pub(crate) fn prepare(
        env: &Env,
        dir: &Path,
        number: FileNumber,
        preallocate_bytes: u64,
    ) -> Result<Self, WalError> {
        let temp = temp_path(dir, number);
        let file = create_temp(env, &temp)?;
        let blank = Self { file, temp, number };
        let zeros = preallocate_bytes.saturating_add(FILE_HEADER_LEN as u64);
        preallocate(&*blank.file, 0, zeros);
        match blank.file.sync_all() {
            Ok(()) => Ok(blank),
            Err(e) => {
                let error = WalError::io("sync", &blank.temp, e);
                blank.discard(env);
                Err(error)
            }
        }
    }

    /// Removes what nobody needs any more; what stays is swept by the next open.
    pub(crate) fn discard(self, env: &Env) {
        let _ = remove_if_there(env, &self.temp);
    }
}

/// A log file that has no name yet: header and copies go in, then it is published.
pub(crate) struct NewFile {
    file: Arc<dyn VfsFile>,
    temp: PathBuf,
    header: FileHeader,
    scratch: Vec<u8>,
    /// True where its zeros are there, and synced.
    has_zeros: bool,
    pub(crate) offset: u64,
    pub(crate) chain: Digest,
}

impl NewFile {
    /// Writes the header into a temporary file: `blank`, where that is the one to come.
    pub(crate) fn begin(
        env: &Env,
        dir: &Path,
        header: FileHeader,
        blank: Option<Blank>,
    ) -> Result<Self, WalError> {
        let checked = header.check();
        let temp = temp_path(dir, header.number);
        let blank = match blank {
            Some(stale) if checked.is_err() || stale.number != header.number => {
                stale.discard(env);
                None
            }
            blank => blank,
        };
        checked?;
        let has_zeros = blank.is_some();
        let file = match blank {
            Some(blank) => blank.file,
            None => create_temp(env, &temp)?,
        };
        if let Err(e) = file.write_all_at(&header.encode(), 0) {
            // On a full disk it would take the space that the next try needs.
            let _ = remove_if_there(env, &temp);
            return Err(WalError::io("write", &temp, e));
        }
        Ok(Self {
            file,
            temp,
            header,
            scratch: Vec::new(),
            has_zeros,
            offset: FILE_HEADER_LEN as u64,
            chain: header.digest(),
        })
    }

    /// Copies a frame of an older file, with its seq, into this one.
    pub(crate) fn copy(
        &mut self,
        env: &Env,
        source: &FrameHeader,
        body: &[u8],
    ) -> Result<(), WalError> {
        let header = FrameHeader {
            durable_upto: self.header.base_seq.min(source.first_seq - 1),
            epoch: self.header.epoch,
            prev: self.chain,
            ..*source
        };
        let place = Place {
            store_id: &self.header.store_id,
            offset: self.offset,
        };
        let digest = frame::encode(&mut self.scratch, &header, body, place);
        if let Err(e) = self.file.write_all_at(&self.scratch, self.offset) {
            let _ = remove_if_there(env, &self.temp);
            return Err(WalError::io("write", &self.temp, e));
        }
        self.offset += self.scratch.len() as u64;
        self.chain = digest;
        Ok(())
    }

    /// Preallocates, syncs, renames, syncs the directory. Errors up to the sync leave the
    /// log as it was; from the sync on they are `SyncFailed`: the outcome is unknown.
    pub(crate) fn publish(
        self,
        env: &Env,
        dir: &Path,
        preallocate_bytes: u64,
    ) -> Result<Arc<dyn VfsFile>, WalError> {
        let synced = match self.has_zeros {
            true => self.file.sync_data(),
            false => {
                preallocate(&*self.file, self.offset, preallocate_bytes);
                self.file.sync_all()
            }
        };
        synced.map_err(|e| WalError::sync_failed("sync", &self.temp, &e))?;
        env.vfs
            .rename(&self.temp, &dir.join(self.header.name()))
            .map_err(|e| WalError::sync_failed("rename", &self.temp, &e))?;
        if planted::is_on(Bug::LogDirNotSynced) {
            return Ok(self.file);
        }
        env.vfs
            .sync_dir(dir)
            .map_err(|e| WalError::sync_failed("sync", dir, &e))?;
        Ok(self.file)
    }
}

/// A log file whose successor has its name for good, and that does not say so yet.
#[derive(Debug, Clone)]
pub(crate) struct Untold {
    pub(crate) file: Arc<dyn VfsFile>,
    pub(crate) header: FileHeader,
}

impl Untold {
    /// The file of `header` in `dir`.
    pub(crate) fn open(env: &Env, dir: &Path, header: FileHeader) -> Result<Self, WalError> {
        let path = dir.join(header.name());
        let file = env.vfs.open_write(&path);
        let file = file.map_err(|e| WalError::io("open", &path, e))?;
        Ok(Self { file, header })
    }

    /// Writes the mark and syncs it; of a file of a format without marks the whole header, in
    /// one sector, in a format that has them.
    ///
    /// # Errors
    /// `Io`: it is not there, tell again. `SyncFailed`: the outcome is unknown.
    pub(crate) fn tell(&self) -> Result<(), WalError> {
        let name = self.header.name();
        let header = self.header.encode_marked();
        let at = match self.header.format >= MARKED_SINCE {
            true => MARK_BEGIN,
            false => 0,
        };
        let written = self.file.write_all_at(&header[at..], at as u64);
        written.map_err(|e| WalError::io("write", Path::new(&name), e))?;
        if planted::is_on(Bug::BirthNotTold) {
            return Ok(());
        }
        let synced = self.file.sync_data();
        synced.map_err(|e| WalError::sync_failed("sync", Path::new(&name), &e))
    }
}

fn temp_path(dir: &Path, number: FileNumber) -> PathBuf {
    dir.join(format!("{}.tmp", log_name(number)))
}

fn create_temp(env: &Env, temp: &Path) -> Result<Arc<dyn VfsFile>, WalError> {
    remove_if_there(env, temp)?;
    let created = env.vfs.create_new(temp);
    created.map_err(|e| WalError::io("create", temp, e))
}

/// Writes zeros behind `from`, so that later syncs need no new metadata. A failure is not
/// one of the log: zeros are optional. What was written of them is given back, because on a
/// full disk the frames to come, or a flush, need that space more.
pub(crate) fn preallocate(file: &dyn VfsFile, from: u64, bytes: u64) {
    let end = from.saturating_add(bytes).min(FILE_BYTES_CAP);
    let mut at = from;
    while at < end {
        let piece = usize::try_from(end - at).map_or(ZEROS.len(), |n| n.min(ZEROS.len()));
        if file.write_all_at(&ZEROS[..piece], at).is_err() {
            // Where even that fails the rest is zeros all the same.
            let _ = file.set_len(from);
            return;
        }
        at += piece as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{FORMAT_NEWEST, Successor};

    #[test]
    fn a_file_that_cannot_be_begun_leaves_no_zeros() {
        let (env, disk, _) = Env::sim(1);
        let dir = Path::new("/log");
        env.vfs.create_dir(dir).expect("created");
        let header = FileHeader {
            format: FORMAT_NEWEST,
            epoch: 1,
            store_id: [7; 16],
            number: 2,
            // No seq comes after the last one.
            first_seq: u64::MAX,
            base_seq: u64::MAX,
            durable_upto: u64::MAX,
            prev: [0; 16],
            cut: None,
            successor: Successor::None,
        };
        let blank = Blank::prepare(&env, dir, header.number, 100).expect("zeros");
        assert_eq!(disk.files(), [temp_path(dir, 2)]);
        let begun = NewFile::begin(&env, dir, header, Some(blank));
        assert!(begun.is_err(), "a header that nobody could read again");
        assert_eq!(disk.files(), Vec::<PathBuf>::new());
    }
}
