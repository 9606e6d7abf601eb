//! Records and questions made from a seed, for benches that read no files: short texts of
//! invented words, some frequent and most rare, of many users over three years.

use std::time::Duration;

use chronolith::{Batch, Durability, Mode, Record, Request, Scope, ScopeSelector, Store};

const MINUTE_US: i64 = 60_000_000;
const TIME_0_US: i64 = 1_600_000_000_000_000;
/// Words of the language.
const WORDS: u64 = 60_000;
/// Users; each has one scope.
pub(crate) const USERS: u64 = 200;
/// Records of a batch while a store is filled.
const BATCH: u64 = 1000;

/// What happens next.
pub(crate) struct World {
    state: u64,
    /// Records so far.
    pub(crate) count: u64,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            state: seed,
            count: 0,
        }
    }

    /// Uniform over 64 bits (Steele, Lea and Flood 2014, "Fast Splittable Pseudorandom Number
    /// Generators", figure 17).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A word's rank: the frequency falls with it as words do.
    fn rank(&mut self) -> u64 {
        ((WORDS as f64).powf(self.share()) - 1.0) as u64
    }

    /// The next record, some minutes after the last one.
    pub(crate) fn record(&mut self) -> Record {
        let id = self.count;
        self.count += 1;
        let user = self.below(USERS);
        let length = 10 + self.below(50);
        let words: Vec<String> = (0..length).map(|_| word(self.rank())).collect();
        let scope = Scope::parse(&format!("u{user}")).unwrap();
        let time_us = TIME_0_US + id as i64 * 15 * MINUTE_US;
        Record::new(scope, format!("r{id}"), time_us, words.join(" "))
    }

    /// Three to five words as someone looks for a fact with.
    pub(crate) fn fact(&mut self) -> String {
        let count = 3 + self.below(3);
        let words: Vec<String> = (0..count).map(|_| self.one()).collect();
        words.join(" ")
    }

    /// Ten words, of which some are in very many records.
    pub(crate) fn sentence(&mut self) -> String {
        let words: Vec<String> = (0..10).map(|_| word(self.rank())).collect();
        words.join(" ")
    }

    /// One word as [`World::fact`] has them.
    pub(crate) fn one(&mut self) -> String {
        word(100 + self.rank())
    }

    /// Two frequent words.
    pub(crate) fn pair(&mut self) -> String {
        let rank = self.below(20);
        format!("{} {}", word(rank), word(self.below(20)))
    }

    /// A user's scope.
    pub(crate) fn user(&mut self) -> String {
        format!("u{}", self.below(USERS))
    }

    /// So many days anywhere in the history.
    pub(crate) fn days(&mut self, days: i64) -> (i64, i64) {
        let length_us = days * 1440 * MINUTE_US;
        let from_us = TIME_0_US + self.below(self.count) as i64 * 15 * MINUTE_US;
        (from_us, from_us + length_us)
    }

    /// The event time of the newest record.
    pub(crate) fn now_us(&self) -> i64 {
        TIME_0_US + self.count as i64 * 15 * MINUTE_US
    }

    /// Facts, in all scopes or each in one.
    pub(crate) fn questions(&mut self, count: u64, one_scope: bool) -> Vec<Request> {
        let mut question = |_| {
            let scope = match one_scope {
                true => self.user(),
                false => "/".to_owned(),
            };
            ask(&scope, self.fact())
        };
        (0..count).map(&mut question).collect()
    }
}

/// The ten best by words to come, ids alone.
pub(crate) fn words(scope: &str) -> Request {
    Request::within(ScopeSelector::parse(scope).unwrap())
        .k(10)
        .mode(Mode::Sparse)
        .ids_only()
}

/// As [`words`], with the words.
pub(crate) fn ask(scope: &str, text: String) -> Request {
    words(scope).text(text)
}

/// Writes so many records.
pub(crate) fn fill(store: &Store, world: &mut World, records: u64) {
    let mut left = records;
    while left > 0 {
        let mut batch = Batch::new();
        for _ in 0..left.min(BATCH) {
            batch.upsert(world.record());
        }
        left -= left.min(BATCH);
        store.write_with(batch, Durability::Buffered).unwrap();
    }
}

/// Two syllables and more for each rank, no two words alike.
fn word(rank: u64) -> String {
    const FIRST: &[u8] = b"bdfgklmnprstvz";
    const SECOND: &[u8] = b"aeiou";
    let (mut rest, mut word) = (rank + 70, String::new());
    while rest > 0 {
        let syllable = rest % 70;
        word.push(char::from(FIRST[(syllable / 5) as usize]));
        word.push(char::from(SECOND[(syllable % 5) as usize]));
        rest /= 70;
    }
    word
}

/// The longest that background work may take to come to rest.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(600);
