//! How is Chronolith used? As a service would: the public API, defaults, ids without text.

use std::path::Path;
use std::time::Duration;

use chronolith::{
    Batch, Durability, Mode, Options, Recency, Request, Response, Scope, ScopeSelector, Setup,
    Store,
};

use super::{Counters, Found, K, Layout, Loader, Searcher};
use crate::bench::corpus::{Query, Record};
use crate::engine::Failure;

/// Longest that background work may go on after the last write.
const IDLE_MAX: Duration = Duration::from_secs(3600);

pub fn loader(dir: &Path, layout: Layout) -> Result<Box<dyn Loader>, Failure> {
    let setup = Setup {
        bucket_us: layout.bucket_us,
        ..Setup::default()
    };
    Ok(Box::new(Filling {
        store: Store::open(dir, Options::create(setup))?,
        force: layout.force,
    }))
}

struct Filling {
    store: Store,
    force: bool,
}

impl Loader for Filling {
    fn put(&mut self, records: &[Record], _terms: &[String]) -> Result<(), Failure> {
        let mut batch = Batch::new();
        for record in records {
            batch.upsert(chronolith::Record::new(
                Scope::parse(&record.scope)?,
                record.id.as_str(),
                record.time_us,
                record.text.as_str(),
            ));
        }
        self.store.write_with(batch, Durability::Buffered)?;
        Ok(())
    }

    fn settle(self: Box<Self>) -> Result<(), Failure> {
        self.store.flush()?;
        if !self.store.wait_idle(IDLE_MAX) {
            return Err("the store did not come to rest within an hour".into());
        }
        self.store.compact(self.force, &mut |_| ())?;
        if let Some(error) = self.store.stats()?.maintenance_error {
            return Err(error.into());
        }
        Ok(self.store.close()?)
    }
}

pub fn searcher(dir: &Path) -> Result<Box<dyn Searcher>, Failure> {
    Ok(Box::new(Open {
        store: Store::open(dir, Options::default())?,
        last: None,
    }))
}

struct Open {
    store: Store,
    last: Option<Response>,
}

fn request_of(query: &Query) -> Result<Request, Failure> {
    let mut request = Request::within(ScopeSelector::parse(&query.scope)?)
        .text(query.text.as_str())
        .k(K)
        .mode(Mode::Sparse)
        .ids_only();
    if let Some((from_us, to_us)) = query.window_us {
        request = request.since_us(from_us).until_us(to_us);
    }
    if let Some((tau_us, now_us)) = query.decay_us {
        request = request.recency(Recency::Decay { tau_us }).now_us(now_us);
    }
    Ok(request)
}

impl Searcher for Open {
    fn search(&mut self, query: &Query) -> Result<Vec<Found>, Failure> {
        let mut response = self.store.retrieve(&request_of(query)?)?;
        let hits = response.hits.drain(..);
        let found = hits.map(|hit| Found {
            id: hit.id,
            time_us: hit.event_time_us,
        });
        let found = found.collect();
        self.last = Some(response);
        Ok(found)
    }

    /// Whatever the plan counts, by its own names, so that a new counter needs no line here.
    fn counters(&self) -> Result<Counters, Failure> {
        let mut counters = Counters::new();
        let Some(response) = &self.last else {
            return Ok(counters);
        };
        let layout = serde_json::to_value(&response.plan.layout)?;
        if let Some(sparse) = layout["sparse"].as_object() {
            for (name, value) in sparse {
                if let Some(value) = value.as_f64() {
                    counters.insert(name.clone(), value);
                }
            }
        }
        for partition in layout["partitions"].as_array().into_iter().flatten() {
            let decision = match &partition["decision"] {
                serde_json::Value::String(name) => name.clone(),
                serde_json::Value::Object(named) => {
                    named.keys().next().cloned().unwrap_or_default()
                }
                other => other.to_string(),
            };
            *counters
                .entry(format!("partitions: {decision}"))
                .or_default() += 1.0;
        }
        let exact = layout_is_exact(response);
        counters.insert("exact".into(), f64::from(u8::from(exact)));
        Ok(counters)
    }

    fn partitions(&self) -> Result<u64, Failure> {
        Ok(self.store.stats()?.segments)
    }
}

fn layout_is_exact(response: &Response) -> bool {
    response.exactness == chronolith::Exactness::Exact
}
