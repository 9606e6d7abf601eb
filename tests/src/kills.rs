//! What does a child write before its process or its file system dies, and what must be there
//! afterwards? Both sides compute it from a seed and the number of the batch.
//!
//! A child has one or more *lanes*: a thread and scopes of its own in one store. A lane's
//! batches are numbered from 0; what they leave is [`Lane::expected`]. The child says on its
//! pipe what was acknowledged ([`Said`]); an [`Account`] of that tells what is owed.

mod account;
mod child;

use std::collections::BTreeMap;

use chronolith::{
    Batch, Durability, Error, Options, Record, Scope, Setup, Snapshot, VectorFormat, VectorSpace,
};

pub use account::{Account, Owed};
pub use child::{Child, Said};

use crate::data::next_random;

/// Dimension of the vectors.
pub const DIM: u32 = 8;
/// Id of the record that every batch replaces: it tells the last batch.
pub const HEAD: &str = "head";
/// Batch `n` forgets what batch `n - FORGET_AFTER` wrote first.
const FORGET_AFTER: u64 = 7;
/// Batch `n` takes the ids of batch `n - WINDOW`: a store stays small however long it lives.
const WINDOW: u64 = 150;
/// First event time, µs.
const START_US: i64 = 1_700_000_000_000_000;

/// Tiny limits, so that flush, compaction and log rotation happen all the time.
pub fn child_options() -> Options {
    let space = VectorSpace {
        model: "test".into(),
        dim: DIM,
        format: VectorFormat::F32,
        normalised: false,
    };
    Options {
        memtable_bytes_max: 48 << 10,
        log_file_bytes_max: 32 << 10,
        log_preallocate_bytes: 8 << 10,
        ..Options::create(Setup {
            vectors: Some(space),
            ..Setup::default()
        })
    }
}

/// What a child does beside writing batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// Nothing: flushes and compactions are the background's.
    Write,
    /// Only every tenth batch is `Synced`.
    Lazy,
    /// Flushes, compacts and syncs.
    Maintain,
    /// Maintains, closes and drops the handle, and opens the store again.
    Reopen,
    /// Three lanes at once: they share syncs. The first one maintains.
    Lanes,
    /// Says `Synced` and writes `Buffered`: what an oracle must notice.
    Lie,
}

/// Something a child does between two batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chore {
    /// [`chronolith::Store::flush`].
    Flush,
    /// [`chronolith::Store::compact`], forced or not.
    Compact(bool),
    /// [`chronolith::Store::sync`].
    Sync,
    /// [`chronolith::Store::close`], then an open.
    Close,
    /// Drops the handle, then an open.
    Drop,
}

impl Script {
    /// All that tell the truth.
    pub const HONEST: [Self; 5] = [
        Self::Write,
        Self::Lazy,
        Self::Maintain,
        Self::Reopen,
        Self::Lanes,
    ];

    /// How a child is told.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Lazy => "lazy",
            Self::Maintain => "maintain",
            Self::Reopen => "reopen",
            Self::Lanes => "lanes",
            Self::Lie => "lie",
        }
    }

    /// The script of this name.
    pub fn parse(name: &str) -> Option<Self> {
        let all = Self::HONEST.into_iter().chain([Self::Lie]);
        all.into_iter().find(|script| script.name() == name)
    }

    /// The lanes of a child.
    pub fn lanes(self, seed: u64) -> Vec<Lane> {
        let count = if self == Self::Lanes { 3 } else { 1 };
        (0..count).map(|index| Lane { seed, index }).collect()
    }

    /// What batch `number` waits for.
    pub fn durability(self, number: u64) -> Durability {
        let is_synced = match self {
            Self::Lazy => number % 10 == 9,
            _ => !number.is_multiple_of(3),
        };
        match is_synced {
            true => Durability::Synced,
            false => Durability::Buffered,
        }
    }

    /// What comes after batch `number` of a lane.
    pub fn chore(self, lane: Lane, number: u64) -> Option<Chore> {
        let maintains = match self {
            Self::Maintain | Self::Reopen => true,
            Self::Lanes => lane.index == 0,
            Self::Write | Self::Lazy | Self::Lie => false,
        };
        let reopens = self == Self::Reopen;
        match number {
            _ if reopens && number % 13 == 7 => Some(Chore::Close),
            _ if reopens && number % 19 == 11 => Some(Chore::Drop),
            _ if maintains && number % 9 == 4 => Some(Chore::Flush),
            _ if maintains && number % 31 == 17 => Some(Chore::Compact(number % 2 == 1)),
            _ if maintains && number % 7 == 3 => Some(Chore::Sync),
            _ => None,
        }
    }
}

/// (scope path, id) and text of every record.
pub type Records = BTreeMap<(String, String), String>;

/// A line of batches into scopes that no other lane writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lane {
    /// Steers every batch.
    pub seed: u64,
    /// From 0.
    pub index: u64,
}

/// What a batch does to the records: (scope, id) to text, `None` = forgotten.
type Effects = Vec<((Scope, String), Option<String>)>;

impl Lane {
    /// The first lane of a run.
    pub fn first(seed: u64) -> Self {
        Self { seed, index: 0 }
    }

    /// The scope of record `at` of any batch.
    ///
    /// # Panics
    /// Never: the paths are scopes.
    pub fn scope(self, at: u64) -> Scope {
        let base = ["user/ana", "user/ben", "team"][usize::try_from(at % 3).unwrap_or(0)];
        Scope::parse(&format!("{base}/lane{}", self.index)).expect("a scope")
    }

    fn effects(self, number: u64) -> Effects {
        let salt = number.wrapping_mul(0x1234_5678_9ABC_DEF1) ^ (self.index << 56);
        let mut random = self.seed ^ salt;
        let records = 1 + next_random(&mut random) % 12;
        let id = |batch: u64, at: u64| format!("{}-{at}", batch % WINDOW);
        let mut effects: Effects = Vec::new();
        for at in 0..records {
            let word = next_random(&mut random) % 50;
            let text = format!("batch {number} record {at} of {records} word{word}");
            effects.push(((self.scope(at), id(number, at)), Some(text)));
        }
        if number >= FORGET_AFTER {
            effects.push(((self.scope(0), id(number - FORGET_AFTER, 0)), None));
        }
        effects.push(((self.scope(0), HEAD.into()), Some(format!("{number}"))));
        effects
    }

    /// Batch `number`.
    pub fn batch(self, number: u64) -> Batch {
        let mut batch = Batch::new();
        for (at, ((scope, id), text)) in (0..).zip(self.effects(number)) {
            let Some(text) = text else {
                batch.forget(scope, id);
                continue;
            };
            let day = i64::try_from(number % 40).unwrap_or(0);
            let mut record = Record::new(scope, id, START_US + day * 86_400_000_000 + at, text);
            record.tags = vec![format!("batch-{}", number % 5), "all".into()];
            record.vector = Some((0..8u8).map(|i| f32::from(i) + 1.0).collect());
            batch.upsert(record);
        }
        batch
    }

    /// Every record of the lane after the batches from 0 to `last`.
    pub fn expected(self, last: Option<u64>) -> Records {
        let mut model = Model::new(self);
        if let Some(last) = last {
            model.advance_to(last);
        }
        model.records
    }

    /// The lane's part of the records.
    pub fn part(self, records: &Records) -> Records {
        let suffix = format!("/lane{}", self.index);
        let part = records
            .iter()
            .filter(|((path, _), _)| path.ends_with(&suffix));
        part.map(|(key, text)| (key.clone(), text.clone()))
            .collect()
    }

    /// The last batch that the records show, by the head record.
    ///
    /// # Panics
    /// If the head record is no number.
    pub fn last_batch(self, records: &Records) -> Option<u64> {
        let head = records.get(&(self.scope(0).path(), HEAD.to_owned()))?;
        Some(head.parse().expect("the head names a batch"))
    }
}

/// A lane's records, batch after batch.
#[derive(Debug)]
pub struct Model {
    lane: Lane,
    next: u64,
    /// Every record after batch `next - 1`.
    pub records: Records,
}

impl Model {
    /// Before batch 0.
    pub fn new(lane: Lane) -> Self {
        Self {
            lane,
            next: 0,
            records: Records::new(),
        }
    }

    /// Applies every batch up to `last`.
    pub fn advance_to(&mut self, last: u64) {
        while self.next <= last {
            for ((scope, id), text) in self.lane.effects(self.next) {
                let key = (scope.path(), id);
                match text {
                    Some(text) => self.records.insert(key, text),
                    None => self.records.remove(&key),
                };
            }
            self.next += 1;
        }
    }
}

/// Every record that a snapshot shows, by export: no index is asked.
///
/// # Errors
/// Damage in a partition.
///
/// # Panics
/// If one record is shown twice.
pub fn found(snapshot: &Snapshot) -> Result<Records, Error> {
    let mut records = Records::new();
    let scopes = ["user", "team"].map(chronolith::ScopeSelector::parse);
    let scopes = scopes.into_iter().collect::<Result<Vec<_>, _>>()?;
    snapshot.for_each_record(&scopes, &mut |stored| {
        let record = stored.record;
        let twice = records.insert((record.scope.path(), record.id), record.text);
        assert_eq!(twice, None, "one record is shown twice");
        Ok(())
    })?;
    Ok(records)
}
