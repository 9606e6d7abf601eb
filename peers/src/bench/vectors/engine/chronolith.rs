//! How is Chronolith used? As a service would: the public API, defaults, ids without text.

use std::path::Path;
use std::time::Duration;

use chronolith::{
    Batch, Durability, Mode, Options, Record, Request, Scope, ScopeSelector, Setup, Store,
    VectorFormat, VectorSpace,
};

use super::{Ask, Asker, Columns, Failure, Filler, Filter, K, Kind, Row, Rows};

/// Longest that background work may go on after the last write.
const IDLE_MAX: Duration = Duration::from_secs(3600);

pub fn filler(dir: &Path, rows: &Rows) -> Result<Box<dyn Filler>, Failure> {
    let space = VectorSpace {
        model: "generator".into(),
        dim: u32::try_from(rows.dim)?,
        format: VectorFormat::F16,
        normalised: true,
    };
    let setup = Setup {
        vectors: Some(space),
        ..Setup::default()
    };
    Ok(Box::new(Filling {
        store: Store::open(dir, Options::create(setup))?,
    }))
}

struct Filling {
    store: Store,
}

fn scope_name(scope: usize) -> String {
    format!("u{scope}/p")
}

fn record(row: Row) -> Result<Record, Failure> {
    let scope = Scope::parse(&scope_name(row.scope))?;
    let mut record = Record::new(scope, row.number.to_string(), row.time_us, row.text);
    for below in [1, 10, 100] {
        if row.bucket < below {
            record.tags.push(format!("f{below}"));
        }
    }
    record.vector = Some(row.vector);
    Ok(record)
}

impl Filler for Filling {
    fn put(&mut self, rows: Vec<Row>) -> Result<(), Failure> {
        let mut batch = Batch::new();
        for row in rows {
            batch.upsert(record(row)?);
        }
        self.store.write_with(batch, Durability::Buffered)?;
        Ok(())
    }

    fn settle(self: Box<Self>) -> Result<(), Failure> {
        self.store.flush()?;
        if !self.store.wait_idle(IDLE_MAX) {
            return Err("the store did not come to rest within an hour".into());
        }
        self.store.compact(false, &mut |_| ())?;
        if let Some(error) = self.store.stats()?.maintenance_error {
            return Err(error.into());
        }
        Ok(self.store.close()?)
    }
}

pub fn asker(dir: &Path) -> Result<Box<dyn Asker>, Failure> {
    Ok(Box::new(Open {
        store: Store::open(dir, Options::default())?,
        place: "/".into(),
    }))
}

struct Open {
    store: Store,
    /// Where queries look that name no scope: the only one, or everywhere.
    place: String,
}

impl Asker for Open {
    fn prepare(&mut self, columns: &Columns, _filter: Filter) {
        if columns.scopes() == 1 {
            self.place = scope_name(0);
        }
    }

    fn ask(
        &mut self,
        ask: &Ask,
        kind: Kind,
        filter: Filter,
        knob: Option<usize>,
    ) -> Result<Vec<usize>, Failure> {
        let place = match filter {
            Filter::Scope(scope) => scope_name(scope),
            _ => self.place.clone(),
        };
        let mut request = Request::within(ScopeSelector::parse(&place)?)
            .vector(ask.vector.clone())
            .mode(Mode::Dense)
            .k(K)
            .ids_only();
        match filter {
            Filter::Bucket(below) => request = request.tag(format!("f{below}")),
            Filter::Since(time_us) => request = request.since_us(time_us),
            Filter::None | Filter::Scope(_) => (),
        }
        if kind == Kind::Hybrid {
            request = request.text(ask.words.as_str()).mode(Mode::Hybrid);
        }
        if let Some(candidates) = knob {
            request = request.candidates(candidates);
        }
        let hits = self.store.retrieve(&request)?.hits.into_iter();
        hits.map(|hit| Ok(hit.id.parse()?)).collect()
    }
}
