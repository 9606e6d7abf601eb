//! Records, batches and asks over a tiny world.

use chronolith::{
    Clause, DAY_US, Fusion, Mode, PackPolicy, Recency, Record, Scope, ScopeSelector, Setup,
    SourceClass, TagEdge, TokenBudget, VectorFormat, VectorSpace,
};

use super::{Ask, Op, Rng};

/// Dimension of every vector.
pub const DIM: usize = 8;
/// Around when everything happens: 2025-01-01.
pub const BASE_US: i64 = 1_735_689_600_000_000;
/// Every scope: siblings whose names are prefixes, parents and children.
pub const SCOPES: [&str; 9] = [
    "a",
    "a-b",
    "a/b",
    "a/b/c",
    "a/b-c",
    "b",
    "b/x",
    "user/ana",
    "user/ana-b",
];
const WORDS: [&str; 16] = [
    "alpha",
    "beta",
    "gamma",
    "port",
    "ports",
    "proxy",
    "staging",
    "deploy",
    "8443",
    "src/main.rs",
    "E0277",
    "snake_case",
    "東京都",
    "running",
    "naïve",
    "it's",
];
/// Of impacts; one is also a word, and they do not stand in order.
const TOKENS: [&str; 4] = ["port", "##ing", "東", "a b"];
const TAGS: [&str; 6] = ["t0", "t1", "t2", "t3", "t4", "t5"];

/// Parses a scope that the test wrote.
///
/// # Panics
/// If it is none.
pub fn scope(path: &str) -> Scope {
    Scope::parse(path).expect("a scope of the test")
}

/// A store with vectors of [`DIM`] components; the seed chooses their form.
pub fn setup(seed: u64) -> Setup {
    let space = VectorSpace {
        model: "test".into(),
        dim: 8,
        format: if seed.is_multiple_of(2) {
            VectorFormat::F32
        } else {
            VectorFormat::F16
        },
        normalised: !seed.is_multiple_of(3),
    };
    Setup {
        vectors: Some(space),
        ..Setup::default()
    }
}

/// A source of records, batches and asks.
#[derive(Debug, Clone)]
pub struct World {
    /// Its randomness; open for a test's own choices.
    pub rng: Rng,
    scopes: Vec<&'static str>,
    ids: usize,
}

impl World {
    /// The world of a seed: some have few scopes and ids, some many.
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let count = 1 + rng.below(SCOPES.len());
        let from = rng.below(SCOPES.len());
        let scopes = SCOPES.iter().cycle().skip(from).take(count).copied();
        Self {
            scopes: scopes.collect(),
            ids: *rng.pick(&[4, 12, 40]),
            rng,
        }
    }

    /// The same world over these scopes alone.
    pub fn with_scopes(seed: u64, scopes: &[&'static str]) -> Self {
        Self {
            scopes: scopes.to_vec(),
            ..Self::new(seed)
        }
    }

    /// One of the scopes.
    pub fn scope(&mut self) -> Scope {
        scope(self.rng.pick::<&str>(&self.scopes))
    }

    /// One of the ids.
    pub fn id(&mut self) -> String {
        format!("r{}", self.rng.below(self.ids))
    }

    /// Zero to twelve words.
    pub fn text(&mut self, words_max: usize) -> String {
        let count = self.rng.below(words_max + 1);
        let words = (0..count).map(|_| *self.rng.pick(&WORDS));
        words.collect::<Vec<_>>().join(" ")
    }

    /// An event time: often one of a few, sometimes far away.
    #[expect(clippy::cast_possible_wrap, reason = "small numbers")]
    pub fn time_us(&mut self) -> i64 {
        let step = self.rng.below(8) as i64;
        match self.rng.below(10) {
            0..5 => BASE_US + step * 1000,
            5..8 => BASE_US - step * DAY_US,
            8 => BASE_US + step * 40 * DAY_US,
            _ => *self.rng.pick(&[
                0,
                -DAY_US,
                BASE_US - 4000 * DAY_US,
                chronolith::TIME_MIN_US,
                chronolith::TIME_MAX_US - 1,
            ]),
        }
    }

    /// One of few vectors, so that similarities tie; some point the other way.
    pub fn vector(&mut self) -> Vec<f32> {
        let axis = self.rng.below(4);
        let sign = if self.rng.percent(25) { -1.0 } else { 1.0 };
        let mut vector = vec![0.0; DIM];
        vector[axis] = sign * if self.rng.percent(20) { 0.5 } else { 1.0 };
        if self.rng.percent(50) {
            vector[(axis + 1) % DIM] = 0.25;
        }
        if self.rng.percent(15) {
            for value in &mut vector {
                *value += f32::from(u8::try_from(self.rng.below(100)).unwrap_or(0)) / 100.0;
            }
        }
        vector
    }

    /// A record with some of everything.
    pub fn record(&mut self) -> Record {
        let (scope, id, time_us) = (self.scope(), self.id(), self.time_us());
        let mut record = Record::new(scope, id, time_us, self.text(12));
        if self.rng.percent(30) {
            record.summary = Some(self.text(3));
        }
        if self.rng.percent(20) {
            record.speaker = Some("Ana".into());
        }
        let tags = if self.rng.percent(60) {
            self.rng.below(4)
        } else {
            0
        };
        record.tags = (0..tags).map(|_| self.tag()).collect();
        if self.rng.percent(60) {
            record.vector = Some(self.vector());
        }
        if self.rng.percent(20) {
            record.source = Some("log.txt".into());
        }
        if self.rng.percent(70) {
            record.source_class = Some(*self.rng.pick(&SourceClass::ALL));
        }
        if self.rng.percent(30) {
            record.importance = Some(*self.rng.pick(&[0.0, 0.5, 1.0]));
        }
        if self.rng.percent(50) {
            record.source_id = Some(format!("doc{}", self.rng.below(4)));
        }
        if self.rng.percent(20) {
            record.attributes = r#"{"n":1}"#.into();
        }
        if self.rng.percent(25) {
            let from = self.rng.below(TOKENS.len());
            let tokens = TOKENS.iter().skip(from);
            record.impacts = tokens
                .map(|token| {
                    let weight = *self.rng.pick(&[0.5, 1.234, 0.000_1, 64.0, 3.0]);
                    ((*token).to_owned(), weight)
                })
                .collect();
        }
        record
    }

    /// One of the tags.
    pub fn tag(&mut self) -> String {
        (*self.rng.pick(&TAGS)).to_owned()
    }

    /// An edge that may close a cycle.
    pub fn edge(&mut self) -> TagEdge {
        TagEdge {
            scope: self.scope(),
            parent: self.tag(),
            child: self.tag(),
        }
    }

    /// One to eight operations; ids repeat. A link comes alone: what it may close depends on
    /// what stands before it.
    pub fn batch(&mut self) -> Vec<Op> {
        match self.rng.below(20) {
            0 | 1 => return vec![Op::Link(self.edge())],
            2 => return vec![Op::Unlink(self.edge())],
            _ => {}
        }
        let count = 1 + self.rng.below(8);
        (0..count)
            .map(|_| match self.rng.below(20) {
                0..12 => Op::Upsert(self.record()),
                12 => Op::Insert(self.record()),
                13..15 => Op::Add(self.record()),
                _ => Op::Forget(self.scope(), self.id()),
            })
            .collect()
    }

    fn selector(&mut self) -> ScopeSelector {
        let scope = scope(self.rng.pick::<&str>(&SCOPES));
        match self.rng.below(8) {
            0 => ScopeSelector::Root,
            1 => ScopeSelector::Exact(scope),
            2 => ScopeSelector::SubtreeAndUp(scope),
            3 => ScopeSelector::Subtree(scope.parent().unwrap_or(scope)),
            _ => ScopeSelector::Subtree(self.scope()),
        }
    }

    /// A question of any mode, with any filters.
    #[expect(clippy::cast_possible_wrap, reason = "small numbers")]
    pub fn ask(&mut self) -> Ask {
        let now_us = BASE_US + DAY_US * self.rng.below(90) as i64;
        let mut ask = Ask::within(self.selector(), now_us);
        while self.rng.percent(20) {
            ask.scopes.push(self.selector());
        }
        if self.rng.percent(70) {
            ask.text = Some(self.text(5));
        }
        while self.rng.percent(30) {
            ask.clauses.push(self.clause());
        }
        if self.rng.percent(45) {
            ask.vector = Some(self.vector());
        }
        ask.k = *self.rng.pick(&[0, 1, 2, 3, 5, 10, 10, 30, 60, 1000]);
        ask.mode = *self.rng.pick(&[
            Mode::Auto,
            Mode::Auto,
            Mode::Sparse,
            Mode::Dense,
            Mode::Hybrid,
        ]);
        self.filters(&mut ask);
        self.ranking(&mut ask);
        self.shape(&mut ask);
        ask
    }

    /// A clause of any kind, seldom one without a word.
    fn clause(&mut self) -> Clause {
        let weight = *self.rng.pick(&[1.0, 1.0, 2.5, 0.1, 100.0]);
        let mut words = self.text(3);
        if words.is_empty() && self.rng.percent(80) {
            words.push_str(self.rng.pick::<&str>(&WORDS));
        }
        match self.rng.below(14) {
            12 | 13 => Clause::Impact {
                token: (*self.rng.pick(&TOKENS)).into(),
                weight,
            },
            0 | 1 => Clause::Require { words, weight },
            2 | 3 => Clause::Exclude { words },
            4 | 5 => Clause::Phrase { words, weight },
            6 | 7 => Clause::Prefix {
                start: (*self
                    .rng
                    .pick(&["p", "po", "s", "st", "東", "SRC/m", "na", "zz", "\u{ad}"]))
                .into(),
                weight,
            },
            8 | 9 => Clause::Fuzzy {
                word: (*self.rng.pick(&[
                    "prot", "alpa", "Betta", "stging", "naive", "東都", "8334", "run", "zzzzz",
                ]))
                .into(),
                distance: 1 + u8::from(self.rng.percent(50)),
                weight,
            },
            _ => Clause::Words { words, weight },
        }
    }

    fn filters(&mut self, ask: &mut Ask) {
        if self.rng.percent(20) {
            ask.since_us = Some(self.time_us());
        }
        if self.rng.percent(20) {
            ask.until_us = Some(self.time_us());
        }
        while self.rng.percent(20) {
            let count = 1 + self.rng.below(2);
            let group = (0..count).map(|_| self.tag()).collect();
            ask.tags.push(group);
        }
        if self.rng.percent(15) {
            ask.min_source = Some(*self.rng.pick(&SourceClass::ALL));
        }
    }

    fn ranking(&mut self, ask: &mut Ask) {
        let tau_us = *self.rng.pick(&[1, DAY_US, 30 * DAY_US]);
        ask.recency = match self.rng.below(6) {
            0 => Recency::Decay { tau_us },
            1 => Recency::Boost { beta: 0.3, tau_us },
            _ => Recency::Off,
        };
        ask.fusion = match self.rng.below(5) {
            0 => Some(Fusion::Convex {
                dense_weight: *self.rng.pick(&[0.0, 0.25, 1.0]),
            }),
            1 => Some(Fusion::Rrf {
                sparse_weight: 1.0,
                dense_weight: *self.rng.pick(&[0.0, 0.5, 1.0]),
            }),
            _ => None,
        };
        ask.distinct = self.rng.percent(25);
    }

    fn shape(&mut self, ask: &mut Ask) {
        if self.rng.percent(25) {
            ask.context = (self.rng.below(4), self.rng.below(4));
        }
        if self.rng.percent(25) {
            ask.budget = Some(TokenBudget {
                tokens: self.rng.below(60) as u64,
                overhead_tokens: self.rng.below(10) as u64,
                policy: *self.rng.pick(&[
                    PackPolicy::RankPrefix,
                    PackPolicy::RankSkip,
                    PackPolicy::Density,
                ]),
            });
        }
        ask.ids_only = self.rng.percent(10);
        ask.explain = self.rng.percent(25);
    }
}
