//! What does a child write before it is killed, and what must be there afterwards? Both sides
//! compute it from a seed and the number of the batch.

use std::collections::BTreeMap;

use chronolith::{
    Batch, Error, Options, Record, Scope, Setup, Snapshot, VectorFormat, VectorSpace,
};

use crate::data::next_random;

/// Dimension of the vectors.
pub const DIM: u32 = 8;
/// Id of the record that every batch replaces: it tells the last batch.
pub const HEAD: &str = "head";
/// Batch `n` forgets what batch `n - FORGET_AFTER` wrote first.
const FORGET_AFTER: u64 = 7;
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

/// The scope of record `at` of any batch.
///
/// # Panics
/// Never: the paths are scopes.
pub fn scope(at: u64) -> Scope {
    Scope::parse(["user/ana", "user/ben", "team"][usize::try_from(at % 3).unwrap_or(0)])
        .expect("a scope")
}

/// What a batch does to the records: (scope path, id) to text, `None` = forgotten.
type Effects = Vec<((u64, String), Option<String>)>;

fn effects(seed: u64, number: u64) -> Effects {
    let mut random = seed ^ number.wrapping_mul(0x1234_5678_9ABC_DEF1);
    let records = 1 + next_random(&mut random) % 12;
    let id = |batch: u64, at: u64| format!("{batch}-{at}");
    let mut effects: Effects = Vec::new();
    for at in 0..records {
        let word = next_random(&mut random) % 50;
        let text = format!("batch {number} record {at} of {records} word{word}");
        effects.push(((at, id(number, at)), Some(text)));
    }
    if number >= FORGET_AFTER {
        effects.push(((0, id(number - FORGET_AFTER, 0)), None));
    }
    effects.push(((0, HEAD.into()), Some(format!("{number}"))));
    effects
}

/// Batch `number` of a run.
pub fn batch(seed: u64, number: u64) -> Batch {
    let mut batch = Batch::new();
    for ((at, id), text) in effects(seed, number) {
        let Some(text) = text else {
            batch.forget(scope(at), id);
            continue;
        };
        let day = i64::try_from(number % 40).unwrap_or(0);
        let time_us = START_US + day * 86_400_000_000 + i64::try_from(at).unwrap_or(0);
        let mut record = Record::new(scope(at), id, time_us, text);
        record.tags = vec![format!("batch-{}", number % 5), "all".into()];
        record.vector = Some((0..8u8).map(|i| f32::from(i) + 1.0).collect());
        batch.upsert(record);
    }
    batch
}

/// (scope path, id) and text of every record.
pub type Records = BTreeMap<(String, String), String>;

/// Every record there must be after the batches from 0 on, `number` the last one of them.
pub fn expected(seed: u64, last: Option<u64>) -> Records {
    let mut records = Records::new();
    for number in 0..last.map_or(0, |last| last + 1) {
        for ((at, id), text) in effects(seed, number) {
            let key = (scope(at).path(), id);
            match text {
                Some(text) => records.insert(key, text),
                None => records.remove(&key),
            };
        }
    }
    records
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

/// The last batch that the records show, by the head record.
///
/// # Panics
/// If the head record is no number.
pub fn last_batch(records: &Records) -> Option<u64> {
    let head = records.get(&(scope(0).path(), HEAD.to_owned()))?;
    Some(head.parse().expect("the head names a batch"))
}
