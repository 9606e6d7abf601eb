//! Which store is this, how was it made, and which files count?
//!
//! In the order of trust: the generation that `CURRENT` names; where `CURRENT` is lost, the
//! newest generation there is, if nothing on disk is newer than it; else no list of live files
//! is believed, and an older manifest only lends its settings. What no manifest says, segment
//! footers do; what they do not hold (see [`Origin::assumed`]) is asked for or assumed.

use std::collections::BTreeMap;
use std::path::Path;

use chronolith_segments::analyze::Analyzer;
use chronolith_segments::{
    Description, NumberedSpace, SpaceNumber, SpaceSet, TokenCounter, limits,
};
use chronolith_vfs::{DirEntry, Env, is_refusal};
use chronolith_wal::{FileNumber, WalError, list_logs, peek_store_id};

use super::RepairOptions;
use super::error::RepairError;
use super::report::RepairReport;
use crate::error::Error;
use crate::manifest::names::{
    CURRENT, CopyName, DataKind, DataName, MANIFEST_DIR, ManifestName, SEGMENTS_DIR, WAL_DIR,
};
use crate::manifest::{self, Manifest, ManifestError, Pointer, Settings, StoreId};
use crate::options::{BUCKET_MAX_US, BUCKET_MIN_US, Options, Setup};
use crate::settings::{LADDER, counter_name, settings_of, setup_of, stored_space};
use crate::spaces::table_of;

/// What is known of the damaged store as a whole.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) store_id: StoreId,
    pub(super) settings: Settings,
    pub(super) created_us: i64,
    /// The generation that counts; `None` = rebuilt.
    pub(super) listed: Option<Manifest>,
    /// True where `CURRENT` names it.
    pub(super) is_pointed: bool,
    /// An older generation, where the one that counts is lost.
    pub(super) older: Option<Manifest>,
}

impl Setup {
    /// The setup that the store in `path` was made with.
    ///
    /// # Errors
    /// As opening it for reading.
    pub fn of_store(path: impl AsRef<Path>, options: &Options) -> Result<Self, Error> {
        let loaded = manifest::load_read_only(&*options.env.vfs, path.as_ref())?;
        setup_of(&loaded.manifest.settings)
    }
}

impl Origin {
    /// Reads everything that says which store this is.
    pub(super) fn find(
        source: &Path,
        options: &RepairOptions,
        report: &mut RepairReport,
    ) -> Result<Self, Error> {
        let env = &options.env;
        let pointer = read_pointer(env, source, report)?;
        let copies = read_copies(env, source, pointer.as_ref(), report)?;
        let listed = match &pointer {
            Some(pointer) => copies.named_by(pointer),
            None => copies.newest_of_all(env, source)?,
        };
        let older = match listed {
            Some(_) => None,
            None => copies.newest(),
        };
        let footers = read_footers(env, source)?;
        let store_id = listed
            .as_ref()
            .or(older.as_ref())
            .map(|manifest| manifest.store_id)
            .or(pointer.as_ref().map(|pointer| pointer.store_id))
            .or_else(|| most_named(footers.iter().map(|footer| footer.store_id)))
            .or(id_of_logs(env, source)?)
            .ok_or(RepairError::IdentityUnknown)?;
        let footers: Vec<Description> = footers
            .into_iter()
            .filter(|footer| footer.store_id == store_id)
            .collect();
        let known = listed.as_ref().or(older.as_ref());
        let (settings, created_us) = match known {
            Some(manifest) => (manifest.settings.clone(), manifest.created_us),
            None => (
                settings_from_footers(&footers, options, report)?,
                env.clock.now_us(),
            ),
        };
        Ok(Self {
            store_id,
            settings,
            created_us,
            is_pointed: pointer.is_some(),
            listed,
            older,
        })
    }
}

/// `CURRENT`, or `None` where it is damaged or gone.
fn read_pointer(
    env: &Env,
    source: &Path,
    report: &mut RepairReport,
) -> Result<Option<Pointer>, Error> {
    match manifest::read_current(&*env.vfs, source) {
        Ok(pointer) => Ok(Some(pointer)),
        Err(ManifestError::Io { source, path, .. }) if is_refusal(&source) => {
            Err(Error::io("read", path, source))
        }
        Err(
            error @ (ManifestError::CurrentDamaged(_)
            | ManifestError::CurrentMissing { .. }
            | ManifestError::Io { .. }),
        ) => {
            report.damage(CURRENT, "pointer", None, error.to_string());
            Ok(None)
        }
        // No store, a newer format: nothing to repair here.
        Err(error) => Err(error.into()),
    }
}

/// Whole manifest copies with their digests, and the newest generation that left a name.
struct Copies {
    whole: Vec<(Manifest, u128)>,
    named_max: u64,
}

impl Copies {
    fn named_by(&self, pointer: &Pointer) -> Option<Manifest> {
        let found = self.whole.iter().find(|(manifest, digest)| {
            manifest.generation == pointer.generation
                && manifest.store_id == pointer.store_id
                && *digest == pointer.digest
        });
        found.map(|(manifest, _)| manifest.clone())
    }

    fn newest(&self) -> Option<Manifest> {
        let newest = self.whole.iter().max_by_key(|(m, _)| m.generation);
        newest.map(|(manifest, _)| manifest.clone())
    }

    /// The newest generation, where it is whole and no file on disk says that there was a
    /// later one. Without `CURRENT` it may be one that was never published; all that it names
    /// was written by then, and says the same as the generation before it and the log.
    fn newest_of_all(&self, env: &Env, source: &Path) -> Result<Option<Manifest>, Error> {
        let on_disk = data_names(env, source)?;
        let logs = log_numbers(env, source)?;
        Ok(self.newest().filter(|newest| {
            let is_there = |name: &DataName| on_disk.contains(name);
            let is_older = |name: &DataName| name.file_number < newest.next_file_number;
            let has_log = newest.generation == 1 || logs.contains(&newest.floor_file);
            let is_newest = newest.generation == self.named_max;
            let fits = newest.data_files().iter().all(is_there) && on_disk.iter().all(is_older);
            is_newest && fits && has_log
        }))
    }
}

fn read_copies(
    env: &Env,
    source: &Path,
    pointer: Option<&Pointer>,
    report: &mut RepairReport,
) -> Result<Copies, Error> {
    let entries = list(env, &source.join(MANIFEST_DIR))?;
    let names = entries
        .iter()
        .filter_map(|entry| ManifestName::parse(&entry.name))
        .filter(|name| !name.temp);
    let mut generations: Vec<u64> = names.map(|name| name.generation).collect();
    generations.extend(pointer.map(|pointer| pointer.generation));
    generations.sort_unstable();
    generations.dedup();
    let mut copies = Copies {
        whole: Vec::new(),
        named_max: generations.last().copied().unwrap_or(0),
    };
    for generation in generations.into_iter().rev() {
        for copy in CopyName::ALL {
            let file = ManifestName::new(generation, copy).shown();
            match manifest::read_copy(&*env.vfs, source, generation, copy) {
                Ok((manifest, digest)) => {
                    let is_foreign = pointer.is_some_and(|p| p.store_id != manifest.store_id);
                    let is_other =
                        pointer.is_some_and(|p| p.generation == generation && p.digest != digest);
                    if is_foreign || is_other {
                        report.damage(file, "digest", None, "is not the copy CURRENT names");
                    } else {
                        copies.whole.push((manifest, digest));
                    }
                }
                Err(error @ ManifestError::NewerFormat { .. }) => return Err(error.into()),
                Err(ManifestError::Io { source, path, .. }) if is_refusal(&source) => {
                    return Err(Error::io("read", path, source));
                }
                Err(error) => {
                    // Of an older generation one copy may be gone already.
                    let is_gone = matches!(error, ManifestError::GenerationMissing { .. });
                    if !is_gone || generation == copies.named_max {
                        report.damage(file, "copy", None, error.to_string());
                    }
                }
            }
        }
    }
    Ok(copies)
}

/// What is in a directory; nothing where it is missing. One that cannot be listed may hold all
/// that seems to be missing, so that is no damage but an error.
fn list(env: &Env, dir: &Path) -> Result<Vec<DirEntry>, Error> {
    match env.vfs.list(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        listed => listed.map_err(|error| Error::io("list", dir, error)),
    }
}

/// Numbers of the log files, ascending.
pub(super) fn log_numbers(env: &Env, source: &Path) -> Result<Vec<FileNumber>, Error> {
    match list_logs(env, &source.join(WAL_DIR)) {
        Err(WalError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            Ok(Vec::new())
        }
        numbers => Ok(numbers?),
    }
}

/// Finished files of the segments directory, ascending.
pub(super) fn data_names(env: &Env, source: &Path) -> Result<Vec<DataName>, Error> {
    let entries = list(env, &source.join(SEGMENTS_DIR))?;
    let mut names: Vec<DataName> = entries
        .iter()
        .filter_map(|entry| DataName::parse(&entry.name))
        .filter(|name| !name.temp)
        .collect();
    names.sort_unstable();
    Ok(names)
}

fn read_footers(env: &Env, source: &Path) -> Result<Vec<Description>, Error> {
    let dir = source.join(SEGMENTS_DIR);
    Ok(data_names(env, source)?
        .into_iter()
        .filter(|name| name.kind == DataKind::Segment)
        .filter_map(|name| Description::read(&*env.vfs, &dir, name.file_number).ok())
        .collect())
}

fn id_of_logs(env: &Env, source: &Path) -> Result<Option<StoreId>, Error> {
    let dir = source.join(WAL_DIR);
    let numbers = log_numbers(env, source)?.into_iter();
    Ok(most_named(
        numbers.filter_map(|number| peek_store_id(env, &dir, number)),
    ))
}

/// What most say; of equals the smallest.
fn most_named<T: Ord>(values: impl IntoIterator<Item = T>) -> Option<T> {
    let mut votes: BTreeMap<T, usize> = BTreeMap::new();
    for value in values {
        *votes.entry(value).or_default() += 1;
    }
    let most = votes.values().copied().max()?;
    votes
        .into_iter()
        .find_map(|(value, count)| (count == most).then_some(value))
}

/// Settings of a store without a manifest: what footers say, the caller's setup, defaults.
fn settings_from_footers(
    footers: &[Description],
    options: &RepairOptions,
    report: &mut RepairReport,
) -> Result<Settings, Error> {
    let mut seed = [0; 8];
    options.env.entropy.fill(&mut seed);
    let given = options.setup.clone();
    if let Some(setup) = &given {
        setup.check()?;
    }
    if footers.is_empty() && given.is_none() {
        return Err(RepairError::SetupUnknown.into());
    }
    let setup = given.clone().unwrap_or_default();
    let mut settings = settings_of(&setup, u64::from_le_bytes(seed))?;
    report
        .assumed
        .push("the seed, and when the store was made".into());
    if given.is_none() {
        report
            .assumed
            .push("the weight of meaning against words: the default".into());
    }
    let Some(newest) = footers.iter().max_by_key(|f| f.meta.file.file_number) else {
        return Ok(settings);
    };
    let analyzer = Analyzer::parse_id(&newest.analyzer_id).map_err(|_| {
        Error::Internal(format!(
            "segments name the analyzer {}, which this release does not know",
            newest.analyzer_id
        ))
    })?;
    settings.analyzer = newest.analyzer_id.clone();
    let index = analyzer.options();
    settings.index = manifest::IndexOptions {
        summary_words: index.summary,
        speaker_words: index.speaker,
        date_words: index.event_date,
    };
    set_spaces(&mut settings, footers, report);
    let counter: TokenCounter = newest.token_counter;
    settings.token_counter = counter_name(counter).to_owned();
    match most_named(footers.iter().filter_map(base_of)) {
        Some(base_us) => settings.bucket_base_us = base_us,
        None if given.is_none() => report
            .assumed
            .push("the width of a bucket: a day (no segment has a bounded one)".into()),
        None => {}
    }
    Ok(settings)
}

/// The spaces as the newest segments name them. Which one was the default stands nowhere else
/// than in the manifest.
fn set_spaces(settings: &mut Settings, footers: &[Description], report: &mut RepairReport) {
    let mut by_number: BTreeMap<SpaceNumber, (u64, &NumberedSpace)> = BTreeMap::new();
    for footer in footers {
        let file_number = footer.meta.file.file_number;
        for (own, _) in &footer.spaces {
            let newest = by_number.entry(own.number).or_insert((file_number, own));
            if file_number > newest.0 {
                *newest = (file_number, own);
            }
        }
    }
    let main = by_number.get(&SpaceNumber::MAIN);
    settings.vector_space = main.map(|(_, own)| stored_space(&own.space));
    if by_number.keys().all(|number| number.is_main()) {
        return;
    }
    let mut set = SpaceSet::default();
    for (_, own) in by_number.into_values() {
        // Dropped spaces lie in old segments: a name that was given again is the later one's.
        set.spaces.retain(|older| older.name != own.name);
        set.spaces.push(own.clone());
    }
    let surplus = set.spaces.len().saturating_sub(limits::SPACES_MAX);
    set.spaces.drain(..surplus);
    let last = set.spaces.last().map_or(0, |own| own.number.get());
    set.next = SpaceNumber::new(last.saturating_add(1));
    set.default = set.spaces.first().map_or(set.default, |own| own.number);
    settings.spaces = Some(table_of(&set));
    report
        .assumed
        .push("the default vector space: the oldest that segments name".into());
}

/// The width of level 0 that a segment's bucket follows from.
fn base_of(footer: &Description) -> Option<i64> {
    let bucket = footer.meta.bucket;
    let units = i64::from(*LADDER.get(usize::from(bucket.level))?);
    let width_us = bucket.end_us.checked_sub(bucket.start_us)?;
    let base_us = width_us / units;
    let fits = width_us % units == 0 && (BUCKET_MIN_US..=BUCKET_MAX_US).contains(&base_us);
    fits.then_some(base_us)
}
