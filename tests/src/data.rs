//! How does the engine do on real text? The shared evaluation sets, and the figures over them.
//!
//! The sets may not be redistributed, so they are no part of the checkout: `CHRONOLITH_DATA`
//! names their directory, else `../shared/data` beside the workspace. A suite that finds
//! neither says `skipped: ...` and passes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use chronolith::{Batch, Record, Request, Scope, ScopeSelector, Store, VectorFormat, VectorSpace};
use chronolith_segments::widen;
use chronolith_vfs::{RealVfs, Vfs};
use serde_json::Value;

/// Dimension of every embedding of the sets.
pub const DIM: u32 = 384;
/// Length of the header of every `.npy` file of the sets.
const NPY_PREFIX_BYTES: usize = 10;

/// True where the deep tier was asked for: everything instead of a sample.
pub fn deep() -> bool {
    std::env::var_os("CHRONOLITH_DEEP").is_some_and(|value| value != "0")
}

/// A number from the environment, or `default`.
pub fn knob(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

/// The next number of a splitmix64 stream: repeatable randomness for tests.
pub fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Where the shared sets are, if they are here.
pub fn data_dir() -> Option<PathBuf> {
    let dir = std::env::var_os("CHRONOLITH_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"),
        PathBuf::from,
    );
    dir.join("README.md").is_file().then_some(dir)
}

/// A whole file.
///
/// # Panics
/// If it cannot be read: the set is not whole.
pub fn read(path: &Path) -> Vec<u8> {
    let file = RealVfs::new().open_read(path);
    let file = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let len = file.len().expect("a length");
    let mut bytes = vec![0; usize::try_from(len).expect("fits memory")];
    file.read_exact_at(&mut bytes, 0).expect("readable");
    bytes
}

fn lines(path: &Path) -> Vec<Value> {
    let text = String::from_utf8(read(path)).expect("UTF-8");
    let parse = |line: &str| serde_json::from_str(line).expect("JSON");
    text.lines().map(parse).collect()
}

/// Rows of a NumPy float16 matrix of [`DIM`] columns.
fn matrix(path: &Path) -> Vec<Vec<f32>> {
    let bytes = read(path);
    assert!(bytes.starts_with(b"\x93NUMPY\x01"), "no NumPy file");
    let header = NPY_PREFIX_BYTES + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let row_bytes = DIM as usize * VectorFormat::F16.bytes();
    let rows = bytes[header..].chunks_exact(row_bytes);
    rows.map(|row| widen(row, VectorFormat::F16)).collect()
}

/// One question of a set.
#[derive(Debug, Clone)]
pub struct Query {
    /// Its id.
    pub id: String,
    /// In words.
    pub text: String,
    /// Whose records it may see.
    pub scope: String,
    /// What kind of question it is.
    pub category: String,
    /// Its embedding, where the set has some.
    pub vector: Option<Vec<f32>>,
    /// Inclusive, µs.
    pub time_from_us: Option<i64>,
    /// Exclusive, µs.
    pub time_to_us: Option<i64>,
}

impl Query {
    /// The request for ten hits inside the query's scope, words and vector given.
    ///
    /// # Panics
    /// If the set's scope is none.
    pub fn request(&self) -> Request {
        let scope = ScopeSelector::parse(&self.scope).expect("a scope");
        let request = Request::within(scope).text(&self.text);
        match &self.vector {
            Some(vector) => request.vector(vector.clone()),
            None => request,
        }
    }
}

/// One set: records, queries and judgements.
#[derive(Debug)]
pub struct Set {
    /// Name of its folder.
    pub name: &'static str,
    /// In file order.
    pub records: Vec<Record>,
    /// In file order.
    pub queries: Vec<Query>,
    /// Query id to judged records and their grades.
    pub judged: BTreeMap<String, Judgements>,
    /// True where records and queries have embeddings.
    pub has_vectors: bool,
}

impl Set {
    /// Loads a set; `None`, with a visible line, where the shared data is not here.
    ///
    /// # Panics
    /// If the set is not as its README says.
    pub fn load(name: &'static str) -> Option<Self> {
        let Some(dir) = data_dir() else {
            println!("skipped: {name}: no shared data (set CHRONOLITH_DATA to its directory)");
            return None;
        };
        let dir = dir.join(name);
        let has_vectors = dir.join("records.f16.npy").is_file();
        let vectors = |file: &str| match has_vectors {
            true => matrix(&dir.join(file)).into_iter().map(Some).collect(),
            false => Vec::new(),
        };
        let (mut of_records, mut of_queries) = (
            vectors("records.f16.npy").into_iter(),
            vectors("queries.f16.npy").into_iter(),
        );
        let records = lines(&dir.join("records.jsonl"));
        let records = records
            .iter()
            .map(|line| record_of(line, of_records.next().flatten()));
        let queries = lines(&dir.join("queries.jsonl"));
        let queries = queries
            .iter()
            .map(|line| query_of(line, of_queries.next().flatten()));
        Some(Self {
            name,
            records: records.collect(),
            queries: queries.collect(),
            judged: judgements(&dir.join("qrels.tsv")),
            has_vectors,
        })
    }

    /// What the set's vectors are, kept in this precision.
    pub fn space(&self, format: VectorFormat) -> Option<VectorSpace> {
        self.has_vectors.then(|| VectorSpace {
            model: "all-MiniLM-L6-v2".into(),
            dim: DIM,
            format,
            normalised: true,
        })
    }

    /// The scopes of its records, ascending.
    pub fn scopes(&self) -> Vec<String> {
        let mut scopes: Vec<_> = self
            .records
            .iter()
            .map(|record| record.scope.path())
            .collect();
        scopes.sort();
        scopes.dedup();
        scopes
    }
}

/// Writes records in batches of 500.
///
/// # Panics
/// If the store refuses one.
pub fn write_all<'a>(store: &Store, records: impl IntoIterator<Item = &'a Record>) {
    let mut batch = Batch::new();
    for record in records {
        batch.upsert(record.clone());
        if batch.len() == 500 {
            store.write(std::mem::take(&mut batch)).expect("written");
        }
    }
    store.write(batch).expect("written");
}

fn text_of(line: &Value, field: &str) -> String {
    line[field].as_str().unwrap_or_default().to_owned()
}

fn record_of(line: &Value, vector: Option<Vec<f32>>) -> Record {
    let scope = Scope::parse(&text_of(line, "scope")).expect("a scope");
    let time_us = line["ts"].as_i64().expect("a time");
    let tags = line["tags"].as_array().expect("tags").iter();
    Record {
        speaker: line["speaker"]
            .as_str()
            .filter(|s| !s.is_empty())
            .map(str::to_owned),
        source: line["source"].as_str().map(str::to_owned),
        tags: tags
            .map(|tag| tag.as_str().expect("a tag").to_owned())
            .collect(),
        vector,
        ..Record::new(scope, text_of(line, "id"), time_us, text_of(line, "text"))
    }
}

fn query_of(line: &Value, vector: Option<Vec<f32>>) -> Query {
    Query {
        id: text_of(line, "id"),
        text: text_of(line, "text"),
        scope: text_of(line, "scope"),
        category: text_of(line, "category"),
        vector,
        time_from_us: line["time_from"].as_i64(),
        time_to_us: line["time_to"].as_i64(),
    }
}

fn judgements(path: &Path) -> BTreeMap<String, Judgements> {
    let mut judged: BTreeMap<String, Judgements> = BTreeMap::new();
    if !path.is_file() {
        return judged;
    }
    for line in String::from_utf8(read(path)).expect("UTF-8").lines() {
        let mut fields = line.split('\t');
        let mut next = || fields.next().expect("three fields").to_owned();
        let (query, record, grade) = (next(), next(), next());
        judged
            .entry(query)
            .or_default()
            .insert(record, grade.parse().expect("a grade"));
    }
    judged
}

/// Judged records of one query and their grades, all above 0.
pub type Judgements = BTreeMap<String, u32>;

/// The figures of one query, or their means over several.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Quality {
    /// Judged records among the first five, as a share of all judged.
    pub recall_5: f64,
    /// The same among the first ten.
    pub recall_10: f64,
    /// One over the rank of the first judged record, 0 past rank ten.
    pub mrr_10: f64,
    /// Discounted gain over the ideal one, as trec_eval's `ndcg_cut`.
    pub ndcg_10: f64,
}

impl Quality {
    /// Judges the ids of one answer, best first.
    pub fn of(ids: &[&str], judged: &Judgements) -> Self {
        let recall = |k: usize| {
            let found = ids.iter().take(k).filter(|id| judged.contains_key(**id));
            ratio(found.count(), judged.len().max(1))
        };
        let first = ids.iter().take(10).position(|id| judged.contains_key(*id));
        let gain = |(at, grade): (usize, u32)| f64::from(grade) / ratio(at + 2, 1).log2();
        let got = ids
            .iter()
            .take(10)
            .map(|id| judged.get(*id).copied().unwrap_or(0));
        let mut ideal: Vec<u32> = judged.values().copied().collect();
        ideal.sort_unstable_by(|a, b| b.cmp(a));
        let best: f64 = ideal.into_iter().take(10).enumerate().map(gain).sum();
        Self {
            recall_5: recall(5),
            recall_10: recall(10),
            mrr_10: first.map_or(0.0, |at| ratio(1, at + 1)),
            ndcg_10: if best > 0.0 {
                got.enumerate().map(gain).sum::<f64>() / best
            } else {
                0.0
            },
        }
    }

    /// The means over several queries; zeros for none.
    pub fn mean(all: &[Self]) -> Self {
        let mean = |field: fn(&Self) -> f64| {
            all.iter().map(field).sum::<f64>() / ratio(all.len().max(1), 1)
        };
        Self {
            recall_5: mean(|q| q.recall_5),
            recall_10: mean(|q| q.recall_10),
            mrr_10: mean(|q| q.mrr_10),
            ndcg_10: mean(|q| q.ndcg_10),
        }
    }

    /// R@5, R@10, MRR@10 and nDCG@10, in this order.
    pub fn figures(&self) -> [f64; 4] {
        [self.recall_5, self.recall_10, self.mrr_10, self.ndcg_10]
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn ratio(a: usize, b: usize) -> f64 {
    a as f64 / b as f64
}

/// The reference figures of a run, as the data's README lists them.
///
/// # Panics
/// If the table is not in its form.
pub fn reference(set: &str, run: &str) -> Option<Quality> {
    let text = String::from_utf8(read(&data_dir()?.join("README.md"))).expect("UTF-8");
    let cells = |line: &str| -> Vec<String> {
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let row = text
        .lines()
        .map(cells)
        .find(|cells| cells.len() == 10 && cells[1] == set && cells[2] == run)?;
    let figure = |at: usize| row[at].parse().expect("a figure");
    // | set | run | R@1 | R@5 | R@10 | R@100 | MRR@10 | nDCG@10 |
    Some(Quality {
        recall_5: figure(4),
        recall_10: figure(5),
        mrr_10: figure(7),
        ndcg_10: figure(8),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_follow_their_definitions() {
        let judged = Judgements::from([("a".into(), 2), ("b".into(), 1), ("c".into(), 1)]);
        let quality = Quality::of(&["x", "a", "y", "z", "w", "b"], &judged);
        let dcg = 2.0 / 3f64.log2() + 1.0 / 7f64.log2();
        let ideal = 2.0 + 1.0 / 3f64.log2() + 1.0 / 2.0;
        assert_eq!(quality.figures()[..3], [1.0 / 3.0, 2.0 / 3.0, 0.5]);
        assert!((quality.ndcg_10 - dcg / ideal).abs() < 1e-12);
        assert_eq!(Quality::mean(&[quality, Quality::default()]).mrr_10, 0.25);
    }

    #[test]
    fn the_reference_table_is_read() {
        if data_dir().is_none() {
            println!("skipped: no shared data");
            return;
        }
        let figures = reference("locomo", "bm25-stem-scope-idf").expect("listed");
        assert_eq!(figures.figures(), [0.477, 0.557, 0.400, 0.422]);
        assert_eq!(reference("locomo", "no-such-run"), None);
    }
}
