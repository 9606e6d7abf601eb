//! What holds for a store's life, and what everything in a handle shares.

use chronolith_segments::analyze::{Analyzed, Analyzer};
use chronolith_segments::{
    Prepared, Record, Refused, StoredVectors, TokenCounter, VectorFormat, VectorSpace, prepare,
    prepare_replayed,
};
use chronolith_vfs::Env;

use crate::error::Error;
use crate::manifest::{self, Settings, StoreId};
use crate::options::{Options, ReadMode, RunPolicy, Setup};
use crate::query::Fusion;
use crate::spaces::Spaces;
use crate::swap::ArcSwap;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Widths of the bucket levels in units of the base: day, week, four weeks, twelve weeks,
/// forty-eight weeks. Each is a multiple of the one before, so a bucket lies inside exactly one
/// of the next level; above the last is all time.
pub(crate) const LADDER: [u32; 5] = [1, 7, 28, 84, 336];

/// Most analyzer buffers kept for the next batches: more writers than this are rare.
const SCRATCHES_MAX: usize = 16;

/// Name of the lock file.
pub(crate) const LOCK_NAME: &str = "LOCK";
/// Directory of the log.
pub(crate) const WAL_DIR: &str = "wal";
/// Directory of segments and side files.
pub(crate) const SEGMENTS_DIR: &str = "segments";

/// What every part of a handle needs and nobody changes.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) env: Env,
    pub(crate) dir: PathBuf,
    pub(crate) store_id: StoreId,
    pub(crate) settings: Settings,
    pub(crate) analyzer: Analyzer,
    pub(crate) analyzer_id: String,
    /// The vector spaces of now; replaced whole under the apply lock.
    spaces: ArcSwap<Spaces>,
    pub(crate) token_counter: TokenCounter,
    pub(crate) fusion: Fusion,
    pub(crate) memtable_bytes_max: u64,
    pub(crate) read_mode: ReadMode,
    pub(crate) runs: RunPolicy,
    pub(crate) probe_rows_min: u64,
    /// Buffers that are not in use; results do not depend on what is in them.
    scratches: Mutex<Vec<Analyzed>>,
}

impl Shared {
    /// Reads a manifest's settings back; names of another release are an error.
    pub(crate) fn new(
        options: &Options,
        dir: &Path,
        store_id: StoreId,
        settings: &Settings,
    ) -> Result<Self, Error> {
        let unknown = |what: &str, name: &str| {
            Error::Internal(format!(
                "the manifest names {what} {name}, which this release does not know"
            ))
        };
        let analyzer = Analyzer::parse_id(&settings.analyzer)
            .map_err(|_| unknown("the analyzer", &settings.analyzer))?;
        let token_counter = parse_counter(&settings.token_counter)
            .ok_or_else(|| unknown("the token counter", &settings.token_counter))?;
        let spaces = Spaces::of(settings, &store_id);
        Ok(Self {
            env: options.env.clone(),
            dir: dir.to_path_buf(),
            store_id,
            settings: settings.clone(),
            analyzer,
            analyzer_id: settings.analyzer.clone(),
            spaces: ArcSwap::from_pointee(spaces),
            token_counter,
            fusion: Fusion::Convex {
                dense_weight: f64::from(settings.dense_weight_ppm) / 1e6,
            },
            memtable_bytes_max: options.memtable_bytes_max,
            read_mode: options.read_mode,
            runs: options.runs,
            probe_rows_min: options.probe_rows_min,
            scratches: Mutex::default(),
        })
    }

    /// Lends `work` an analyzer's buffers, whose stem cache is warm from earlier batches.
    pub(crate) fn with_scratch<T>(&self, work: impl FnOnce(&mut Analyzed) -> T) -> T {
        let pool = || {
            self.scratches
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let mut scratch = pool().pop().unwrap_or_default();
        let done = work(&mut scratch);
        let mut pool = pool();
        if pool.len() < SCRATCHES_MAX {
            pool.push(scratch);
        }
        done
    }

    /// The vector spaces of now.
    pub(crate) fn spaces(&self) -> Arc<Spaces> {
        self.spaces.load_full()
    }

    /// Replaces the vector spaces. Only under the apply lock.
    pub(crate) fn replace_spaces(&self, spaces: Spaces) {
        self.spaces.store(Arc::new(spaces));
    }

    /// Checks and analyses a caller's record.
    pub(crate) fn prepare(
        &self,
        record: Record,
        scratch: &mut Analyzed,
    ) -> Result<Prepared, Refused> {
        prepare(
            record,
            &self.analyzer,
            scratch,
            self.spaces().set(),
            self.token_counter,
        )
    }

    /// Analyses a record that the log gave back.
    pub(crate) fn prepare_replayed(
        &self,
        record: Record,
        vectors: StoredVectors,
        scratch: &mut Analyzed,
    ) -> Result<Prepared, Refused> {
        prepare_replayed(
            record,
            vectors,
            &self.analyzer,
            scratch,
            self.spaces().set(),
            self.token_counter,
        )
    }

    pub(crate) fn wal_dir(&self) -> PathBuf {
        self.dir.join(WAL_DIR)
    }

    pub(crate) fn segments_dir(&self) -> PathBuf {
        self.dir.join(SEGMENTS_DIR)
    }
}

pub(crate) fn space_of(space: &manifest::VectorSpace) -> VectorSpace {
    let format = match space.format {
        manifest::VectorFormat::F16 => VectorFormat::F16,
        manifest::VectorFormat::F32 => VectorFormat::F32,
    };
    VectorSpace {
        model: space.model.clone(),
        dim: space.dim,
        format,
        normalised: space.normalised,
    }
}

/// A vector space as the manifest holds it.
pub(crate) fn stored_space(space: &VectorSpace) -> manifest::VectorSpace {
    manifest::VectorSpace {
        model: space.model.clone(),
        dim: space.dim,
        format: match space.format {
            VectorFormat::F16 => manifest::VectorFormat::F16,
            VectorFormat::F32 => manifest::VectorFormat::F32,
        },
        normalised: space.normalised,
    }
}

const BYTES_OVER_FOUR: &str = "bytes/4";
const CHARACTERS: &str = "characters";

pub(crate) fn counter_name(counter: TokenCounter) -> &'static str {
    match counter {
        TokenCounter::BytesOverFour => BYTES_OVER_FOUR,
        TokenCounter::Characters => CHARACTERS,
    }
}

fn parse_counter(name: &str) -> Option<TokenCounter> {
    match name {
        BYTES_OVER_FOUR => Some(TokenCounter::BytesOverFour),
        CHARACTERS => Some(TokenCounter::Characters),
        _ => None,
    }
}

/// A setup as the manifest holds it.
pub(crate) fn settings_of(setup: &Setup, seed: u64) -> Result<Settings, Refused> {
    let vector_space = setup.vectors.as_ref().map(stored_space);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to lie in [0, 1]"
    )]
    let dense_weight_ppm = (setup.dense_weight * 1e6).round() as u32;
    let analyzer = Analyzer::new(setup.analyzer, setup.language, setup.index)
        .map_err(|error| Refused::new("analyzer", error.to_string()))?;
    Ok(Settings {
        log_format: chronolith_wal::FORMAT_NEWEST,
        segment_format: chronolith_segments::format::ONE_SPACE,
        side_file_format: manifest::SIDE_FILE_FORMAT_VERSION,
        analyzer: analyzer.id(),
        vector_space,
        spaces: None,
        token_counter: counter_name(setup.token_counter).to_owned(),
        bucket_base_us: setup.bucket_us,
        bucket_ladder: LADDER.to_vec(),
        index: manifest::IndexOptions {
            summary_words: setup.index.summary,
            speaker_words: setup.index.speaker,
            date_words: setup.index.event_date,
        },
        dense_weight_ppm,
        seed,
    })
}

/// The setup that a manifest's settings came from.
pub(crate) fn setup_of(settings: &Settings) -> Result<Setup, Error> {
    let unknown = |name: &str| {
        Error::Internal(format!(
            "the manifest names {name}, which this release does not know"
        ))
    };
    let analyzer =
        Analyzer::parse_id(&settings.analyzer).map_err(|_| unknown(&settings.analyzer))?;
    Ok(Setup {
        analyzer: analyzer.kind(),
        language: analyzer.language(),
        index: analyzer.options(),
        vectors: settings.vector_space.as_ref().map(space_of),
        token_counter: parse_counter(&settings.token_counter)
            .ok_or_else(|| unknown(&settings.token_counter))?,
        bucket_us: settings.bucket_base_us,
        dense_weight: f64::from(settings.dense_weight_ppm) / 1e6,
    })
}
