//! How is a backup made, so that the one before it is whole until the new one is?
//!
//! ```text
//! 1  point-<n>/ is made anew
//! 2  data files  linked or copied where the finished backup has them not; each read back
//! 3  manifest copies, CURRENT, log, STATUS copied into the point; each read back
//! 4  segments/, the point and the directory are synced; the result is verified as a store
//! 5  BACKUP.tmp written and synced, renamed to BACKUP, directory synced     <- counts from here
//! 6  points and data files that the index does not name go
//! ```
//!
//! A data file that the finished backup names is never touched before step 6, unless its own
//! digest says that it is damaged: then it is replaced by a good one. So what a crash leaves
//! before step 5 is the old backup and some files that nobody names. A failure before step 5
//! takes back what it made, so that a full disk has its space again.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use chronolith_vfs::{Env, FileKind, atomic};

use super::check::{Image, check_data, check_point};
use super::error::BackupError;
use super::index::{INDEX, INDEX_TEMP, Index, Item, Kind, Name};
use super::place::{Place, read_index};
use super::source::{DataFile, Source, copy_names, is_gone, open};
use super::transfer::{
    BackupProgress, BackupStage, Ticker, check_digest, copy, copy_under_head, digest_of, write,
};
use crate::error::Error;
use crate::located::{in_backup, in_store};
use crate::manifest;
use crate::paths::is_inside;
use crate::reader::gone_for_good;
use crate::reserve::is_full;

/// Times that a backup begins anew because the writer published meanwhile. Each time brings
/// only what is new since.
const ATTEMPTS_MAX: u32 = 32;
/// Times that an end of the log which may be a loss is looked at again.
const BEHIND_TRIES: u32 = 8;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Ends the name of a data file while it is copied; the sweep of data files knows it.
const TEMP_SUFFIX: &str = ".tmp";

/// How a backup is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BackupOptions {
    /// Copies every file. Else sealed files are hard-linked where the file system can: nothing
    /// is written twice, and a flipped bit on the disk is in the store and in its backup.
    pub copy: bool,
}

impl BackupOptions {
    /// Copies every file.
    pub fn copies() -> Self {
        Self { copy: true }
    }
}

/// What a backup came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// Number of the backup in its directory, from 1.
    pub point: u64,
    /// Generation of the manifest in it.
    pub generation: u64,
    /// Last commit seq in it.
    pub last_seq: u64,
    /// Files in it, and their bytes.
    pub files: u64,
    /// Bytes of those files.
    pub bytes: u64,
    /// Data files that were there already.
    pub kept: u64,
    /// Data files that were hard-linked.
    pub linked: u64,
    /// Data files that were copied.
    pub copied: u64,
    /// Data files of earlier backups that were removed.
    pub removed: u64,
}

/// Makes or renews the backup in `dest` of the store in `store`, beside any writer and from
/// any process. `progress` is told after each file.
///
/// The backup holds every batch that was acknowledged before the call. It was read back and
/// verified when this returns; the backup that was in `dest` before is gone then, and whole
/// until then.
///
/// # Errors
/// [`BackupError`] where `dest` cannot be used; damage in the store, by file and offset, and
/// `Behind` as for a reader; the system's errors. `Busy` where the writer publishes faster than
/// its files can be taken. The store is never touched.
pub fn backup(
    env: &Env,
    store: &Path,
    dest: &Path,
    options: &BackupOptions,
    progress: &mut dyn FnMut(&BackupProgress),
) -> Result<BackupReport, Error> {
    if is_inside(&*env.vfs, dest, store) {
        let reason = "a backup inside its store would be lost with it";
        return Err(BackupError::bad_destination(dest, reason).into());
    }
    // A wrong path for the store makes no directory.
    let pointer = manifest::read_current(&*env.vfs, store)?;
    let place = Place::take(&*env.vfs, dest)?;
    if place
        .before
        .as_ref()
        .is_some_and(|b| b.store_id != pointer.store_id)
    {
        return Err(BackupError::OtherStore { path: dest.into() }.into());
    }
    place.prepare().inspect_err(|_| place.abandon())?;
    let mut work = Work {
        env,
        store,
        copies: options.copy,
        place: &place,
        items: BTreeMap::new(),
        report: BackupReport {
            point: place.point,
            ..BackupReport::default()
        },
        ticker: Ticker::new(progress),
    };
    let index = match work.gather() {
        Ok(index) => index,
        Err(error) => {
            work.take_back();
            // What the copies are checked for is damage of the store, unless it says otherwise.
            return Err(in_store(error, store));
        }
    };
    if let Err(error) = publish(env, dest, &index) {
        // A full disk: nothing was renamed, and the space is wanted back. From any other error on
        // nothing is taken back: the index may be the new one.
        if is_full(&error) && work.place.is_as_before() {
            work.take_back();
        }
        return Err(error);
    }
    let mut report = work.report;
    report.removed = place.tidy(&index);
    Ok(report)
}

/// Step 5.
fn publish(env: &Env, dest: &Path, index: &Index) -> Result<(), Error> {
    let bytes = index.encode()?;
    atomic::replace(&*env.vfs, dest, INDEX, INDEX_TEMP, &bytes)
        .map_err(|error| Error::io("write", dest.join(INDEX), error))?;
    let read = read_index(&*env.vfs, dest).and_then(|(read, _)| match read == *index {
        true => Ok(()),
        false => Err(BackupError::damaged(INDEX, "index", 0, "was read back otherwise").into()),
    });
    read.map_err(|error| in_backup(error, dest, dest))
}

/// How a data file came into the backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Kept,
    Linked,
    Copied,
}

struct Work<'a> {
    env: &'a Env,
    store: &'a Path,
    copies: bool,
    place: &'a Place<'a>,
    /// Data files that are in place, also those of attempts that began anew.
    items: BTreeMap<Name, (Item, How)>,
    report: BackupReport,
    ticker: Ticker<'a>,
}

impl Work<'_> {
    /// Steps 2 to 4.
    fn gather(&mut self) -> Result<Index, Error> {
        let source = self.bring_consistent()?;
        let mut items = Vec::new();
        for file in &source.data {
            let (item, how) = self.items[&file.name];
            match how {
                How::Kept => self.report.kept += 1,
                How::Linked => self.report.linked += 1,
                How::Copied => self.report.copied += 1,
            }
            items.push(item);
        }
        self.check_age(&source)?;
        self.bring_point(&source, &mut items)?;
        items.sort_unstable_by_key(|item| item.name);
        let index = Index {
            store_id: source.manifest.store_id,
            point: self.place.point,
            last_seq: source.last_seq(),
            made_us: self.env.clock.now_us(),
            items,
        };
        self.place.sync()?;
        self.check(&index)?;
        self.report.generation = source.pointer.generation;
        self.report.last_seq = index.last_seq;
        self.report.files = index.items.len() as u64;
        self.report.bytes = index.bytes();
        Ok(index)
    }

    /// Verifies the point, and the data files that are new: the others were when they came,
    /// and their digests still hold.
    fn check(&mut self, index: &Index) -> Result<(), Error> {
        let point = self.place.point_dir();
        let image = Image {
            data: &self.place.root,
            point: &point,
        };
        let items = &self.items;
        let is_new = |name| items.get(&name).is_some_and(|(_, how)| *how != How::Kept);
        let named = index.items.iter().filter(|item| is_new(item.name));
        self.ticker
            .begin(BackupStage::Check, named.map(|item| item.bytes).sum());
        let located = |error| in_backup(error, image.data, image.point);
        let manifest = check_point(self.env, image, index).map_err(located)?;
        check_data(self.env, image, &manifest, &is_new, &mut self.ticker).map_err(located)
    }

    /// Brings the data files of one instant, beginning anew where the writer took one away.
    fn bring_consistent(&mut self) -> Result<Source, Error> {
        for attempt in 0..ATTEMPTS_MAX {
            let before = manifest::read_current(&*self.env.vfs, self.store)?;
            let error = match self.attempt() {
                Ok(source) => return Ok(source),
                Err(error) => error,
            };
            match error {
                // Beside a writer it is over after its next word.
                Error::Behind { .. } if attempt < BEHIND_TRIES => {}
                _ if !is_gone(&error) => return Err(error),
                // What CURRENT names is not gone but missing.
                _ if manifest::read_current(&*self.env.vfs, self.store)? == before => {
                    return Err(missing(error));
                }
                _ => {}
            }
            self.env.clock.sleep(PAUSE);
        }
        Err(Error::Busy {
            what: "the writer publishes faster than its files can be copied".into(),
        })
    }

    fn attempt(&mut self) -> Result<Source, Error> {
        let mut source = Source::open(self.env, self.store)?;
        self.ticker.begin(BackupStage::Copy, source.bytes());
        for file in &mut source.data {
            let there = self.items.get(&file.name);
            if there.is_none_or(|(item, _)| item.origin != file.origin) {
                let brought = self.bring(file)?;
                self.items.insert(file.name, brought);
            }
            file.held = None;
            self.ticker.done(file.bytes);
        }
        Ok(source)
    }

    /// Brings one data file and reads it back.
    fn bring(&self, file: &DataFile) -> Result<(Item, How), Error> {
        let vfs = &*self.env.vfs;
        let target = file.name.path(&self.place.root);
        let shown = file.name.shown();
        let mut item = Item {
            name: file.name,
            bytes: file.bytes,
            origin: file.origin,
            digest: 0,
            linked: false,
        };
        if let Some(kept) = self.kept(file, &target)? {
            return Ok((kept, How::Kept));
        }
        if !self.copies && self.link(file, &target)? {
            item.linked = true;
            item.digest = digest_of(vfs, &target, file.bytes, &shown)?;
            return Ok((item, How::Linked));
        }
        item.digest = self.copy_in(file, &target)?;
        Ok((item, How::Copied))
    }

    /// Copies a data file in, aside first: what a finished backup names is replaced at once or
    /// not at all. Returns its digest, which what was written has, too.
    fn copy_in(&self, file: &DataFile, target: &Path) -> Result<u128, Error> {
        let vfs = &*self.env.vfs;
        let (path, shown) = (file.name.path(self.store), file.name.shown());
        let held = match &file.held {
            Some(held) => Arc::clone(held),
            None => open(self.env, &path)?,
        };
        let mut aside = target.as_os_str().to_os_string();
        aside.push(TEMP_SUFFIX);
        let aside = PathBuf::from(aside);
        remove_if_there(self.env, &aside)?;
        let copied = || {
            let digest = copy(vfs, (&*held, &path), file.bytes, &aside, true)?;
            check_digest(digest_of(vfs, &aside, file.bytes, &shown)?, digest, &shown)?;
            vfs.rename(&aside, target)
                .map_err(|error| Error::io("rename", target, error))?;
            Ok(digest)
        };
        // A half of it would keep a full disk full.
        copied().inspect_err(|_| drop(vfs.remove_file(&aside)))
    }

    /// A store never goes back: one that ends before its backup is an older copy of itself, and
    /// would replace what is newer.
    fn check_age(&self, source: &Source) -> Result<(), Error> {
        let before = self.place.before.as_ref();
        let backup_seq = before.map_or(0, |before| before.last_seq);
        if source.last_seq() < backup_seq {
            return Err(BackupError::OlderThanBackup {
                store_seq: source.last_seq(),
                backup_seq,
            }
            .into());
        }
        Ok(())
    }

    /// The item of the finished backup, if its file is this one and still whole.
    fn kept(&self, file: &DataFile, target: &Path) -> Result<Option<Item>, Error> {
        let Some(item) = self.place.before.as_ref().and_then(|b| b.find(file.name)) else {
            return Ok(None);
        };
        if (item.bytes, item.origin) != (file.bytes, file.origin) {
            let file = file.name.shown();
            return Err(BackupError::OtherHistory { file }.into());
        }
        let is_file = matches!(self.env.vfs.kind(target), Ok(FileKind::File));
        if !is_file || self.copies && item.linked {
            return Ok(None);
        }
        match digest_of(&*self.env.vfs, target, file.bytes, &file.name.shown()) {
            Ok(digest) if digest == item.digest => Ok(Some(*item)),
            // Damaged where it lies: the store's own file takes its place.
            Ok(_) | Err(Error::Backup(BackupError::Damaged { .. })) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Links a data file; false where that is not possible and a copy will do.
    fn link(&self, file: &DataFile, target: &Path) -> Result<bool, Error> {
        remove_if_there(self.env, target)?;
        let path = file.name.path(self.store);
        match self.env.vfs.hard_link(&path, target) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound && file.held.is_none() => {
                Err(Error::io("link", path, error))
            }
            Err(_) => Ok(false),
        }
    }

    /// Step 3.
    fn bring_point(&mut self, source: &Source, items: &mut Vec<Item>) -> Result<(), Error> {
        let mut small: Vec<(Name, &[u8])> = vec![(Name::new(Kind::Current, 0), &source.current)];
        for name in copy_names(source.pointer.generation) {
            small.push((name, &source.copy));
        }
        if let Some(log) = &source.log {
            small.push((Name::new(Kind::Status, 0), &log.status));
        }
        let vfs = &*self.env.vfs;
        let target_of = |name: Name| name.path_in(&self.place.root, self.place.point);
        for (name, content) in small {
            let target = target_of(name);
            let digest = write(vfs, content, &target, name.kind.is_sealed())?;
            items.push(self.read_back(name, content.len() as u64, digest)?);
        }
        for part in source.log.iter().flat_map(|log| &log.parts) {
            let name = Name::new(Kind::Log, part.number);
            let path = name.path(self.store);
            let (file, target) = ((&*part.file, path.as_path()), target_of(name));
            let digest = copy_under_head(vfs, file, (part.bytes, &part.header), &target, false)?;
            items.push(self.read_back(name, part.bytes, digest)?);
            self.ticker.done(part.bytes);
        }
        Ok(())
    }

    fn read_back(&self, name: Name, bytes: u64, digest: u128) -> Result<Item, Error> {
        let path = name.path_in(&self.place.root, self.place.point);
        let shown = name.shown();
        check_digest(
            digest_of(&*self.env.vfs, &path, bytes, &shown)?,
            digest,
            &shown,
        )?;
        Ok(Item {
            name,
            bytes,
            origin: 0,
            digest,
            linked: false,
        })
    }

    /// Gives back the space of a failed attempt. What cannot be removed is nobody's, and the
    /// next backup takes it.
    fn take_back(&self) {
        let vfs = &*self.env.vfs;
        self.place.abandon();
        let before = self.place.before.as_ref();
        for name in self.items.keys() {
            if before.is_none_or(|before| before.find(*name).is_none()) {
                let _ = vfs.remove_file(&name.path(&self.place.root));
            }
        }
    }
}

fn remove_if_there(env: &Env, path: &Path) -> Result<(), Error> {
    match env.vfs.remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("remove", path, error))
        }
        _ => Ok(()),
    }
}

/// A file that the manifest names and that is not there is damage.
fn missing(error: Error) -> Error {
    match error {
        Error::Io { path, .. } => {
            let message = "is missing, though the manifest names it; restore a backup, or repair \
                           what is left into a new store";
            BackupError::damaged(path.display().to_string(), "file", 0, message).into()
        }
        error => gone_for_good(error),
    }
}
