//! What may a store hold after a crash? The model after each commit, and how many must be there.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chronolith::{Durability, Mode, ScopeSelector, Setup, Snapshot};

use crate::generate::{Ask, BASE_US, Op};
use crate::model::{Model, difference};

/// The states that a store goes through, and what was acknowledged of them.
#[derive(Debug, Clone)]
pub struct Oracle {
    /// After each commit; the last one's outcome may be unknown. Never empty.
    states: Vec<Model>,
    /// Index of the last acknowledged state.
    acked: usize,
    /// Index of the last state that a power cut cannot take.
    durable: usize,
    /// True once an open for writing was acknowledged.
    pub created: bool,
    /// The state that the last acknowledged backup holds at least.
    pub backed_up: Option<usize>,
    seq: u64,
}

/// What ended a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The page cache lives on.
    Kill,
    /// What was not synced may be gone.
    PowerCut,
}

/// An oracle that a script and its hooks share.
#[derive(Debug, Clone)]
pub struct Shared(Arc<Mutex<Oracle>>);

impl Shared {
    /// An empty store that nobody has created yet.
    pub fn new(setup: &Setup) -> Self {
        Self(Arc::new(Mutex::new(Oracle::new(setup))))
    }

    /// The oracle itself.
    pub fn lock(&self) -> MutexGuard<'_, Oracle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy that goes its own way.
    pub fn fork(&self) -> Self {
        Self(Arc::new(Mutex::new(self.lock().clone())))
    }
}

impl Oracle {
    fn new(setup: &Setup) -> Self {
        Self {
            states: vec![Model::new(setup)],
            acked: 0,
            durable: 0,
            created: false,
            backed_up: None,
            seq: 0,
        }
    }

    /// Noted before a batch is tried: a crash inside leaves its outcome unknown.
    pub fn try_batch(&mut self, ops: &[Op]) {
        let mut next = self.last().clone();
        next.apply(ops, self.seq + 1, 0, &[]);
        self.seq += ops.len() as u64;
        self.states.push(next);
    }

    /// The last batch tried was acknowledged.
    pub fn acknowledge(&mut self, durability: Durability) {
        self.acked = self.states.len() - 1;
        if durability == Durability::Synced {
            self.durable = self.acked;
        }
    }

    /// A definite error: the batch must never appear.
    pub fn refuse(&mut self) {
        self.states.pop();
    }

    /// Everything acknowledged is durable now.
    pub fn settle(&mut self) {
        self.durable = self.acked;
    }

    /// The newest state.
    pub fn last(&self) -> &Model {
        &self.states[self.states.len() - 1]
    }

    /// For self-tests: claims that a batch which was never written is durable.
    pub fn lie(&mut self, ops: &[Op]) {
        self.try_batch(ops);
        self.acknowledge(Durability::Synced);
    }

    /// Finds the state that the snapshot shows; from here on it is the only one. An open for
    /// writing makes it durable.
    ///
    /// # Errors
    /// As [`Oracle::find`].
    pub fn settle_on(&mut self, snapshot: &Snapshot, end: End) -> Result<(), String> {
        let n = self.find(snapshot, self.floor(end))?;
        self.states.truncate(n + 1);
        // It may hold more than what is left of the store it was made from.
        self.backed_up = self.backed_up.filter(|state| *state <= n);
        self.acked = n;
        self.durable = n;
        self.created = true;
        Ok(())
    }

    /// The least that must be there after this end.
    pub fn floor(&self, end: End) -> usize {
        match end {
            End::Kill => self.acked,
            End::PowerCut => self.durable,
        }
    }

    /// Index of the last acknowledged state.
    pub fn acked(&self) -> usize {
        self.acked
    }

    /// True if the snapshot shows a state that was acknowledged.
    ///
    /// # Errors
    /// It fails.
    pub fn is_acked(&self, snapshot: &Snapshot) -> Result<bool, String> {
        let found = census(snapshot)?;
        let acked = self.states[..=self.acked].iter();
        Ok(acked
            .filter(|state| expected(state) == found)
            .any(|state| answers(snapshot, state).is_ok()))
    }

    /// Which state, at or after `floor`, the snapshot shows.
    ///
    /// # Errors
    /// It shows none of them, an earlier one, or fails.
    pub fn find(&self, snapshot: &Snapshot, floor: usize) -> Result<usize, String> {
        let found = census(snapshot)?;
        // Commits that change tag edges alone leave the same rows: the answers tell them apart.
        let mut why = format!(
            "no prefix of the commits: found {found:#?}, last state {:#?}",
            expected(self.last())
        );
        for (n, state) in self.states.iter().enumerate().rev() {
            if expected(state) != found {
                continue;
            }
            match answers(snapshot, state) {
                Ok(()) if n < floor => {
                    return Err(format!("acknowledged commits are lost: {n} of {floor}"));
                }
                Ok(()) => return Ok(n),
                Err(difference) => why = difference,
            }
        }
        Err(why)
    }
}

/// Every record, as text. Seqs and commit times of unacknowledged batches are nobody's.
fn census(snapshot: &Snapshot) -> Result<Vec<String>, String> {
    let mut rows = Vec::new();
    let collected = snapshot.for_each_record(&[ScopeSelector::Root], &mut |stored| {
        rows.push(format!("{:?}", stored.record));
        Ok(())
    });
    collected.map_err(|error| format!("reading every record: {error}"))?;
    rows.sort();
    Ok(rows)
}

fn expected(state: &Model) -> Vec<String> {
    let mut rows: Vec<String> = state
        .rows()
        .map(|row| format!("{:?}", row.record))
        .collect();
    rows.sort();
    rows
}

/// Queries of every mode answer as the model's state; tag edges show in the filter.
fn answers(snapshot: &Snapshot, state: &Model) -> Result<(), String> {
    let root = || Ask::within(ScopeSelector::Root, BASE_US);
    let mut vector = vec![0.0; crate::generate::DIM];
    vector[0] = 1.0;
    let latest = Ask {
        context: (2, 2),
        ..root()
    };
    let sparse = Ask {
        text: Some("alpha port".into()),
        ..root()
    };
    let hybrid = Ask {
        text: Some("alpha".into()),
        vector: Some(vector),
        mode: Mode::Hybrid,
        ..root()
    };
    let tagged = |tag: &str| Ask {
        tags: vec![vec![tag.into()]],
        explain: true,
        ..root()
    };
    for ask in [latest, sparse, hybrid, tagged("t0"), tagged("t1")] {
        let found = snapshot.retrieve(&ask.request());
        if let Some(difference) = difference(&state.answer(&ask), found) {
            return Err(format!("{ask:?}: {difference}"));
        }
    }
    for row in state.rows() {
        let found = snapshot.get(&row.record.scope, &row.record.id);
        if !matches!(found, Ok(Some(_))) {
            return Err(format!("get {}: {found:?}", row.record.id));
        }
    }
    Ok(())
}
