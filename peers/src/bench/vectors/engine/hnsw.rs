//! How is hnsw_rs used? One thread, f32, dumped to two files.
//!
//! Distances are Euclidean: on vectors of length 1 the order is that of the inner product, and
//! the crate's own inner product refuses what rounding lifts above 1.

use std::path::{Path, PathBuf};

use hnsw_rs::prelude::{AnnT, DistL2, FilterT, Hnsw, HnswIo};

use super::{Ask, Asker, Columns, Failure, Filler, Filter, K, Kind, Row, Rows};

const NAME: &str = "graph";
const LAYERS: usize = 16;

pub fn filler(dir: &Path, rows: &Rows) -> Box<dyn Filler> {
    Box::new(Filling {
        graph: Hnsw::new(16, rows.count, LAYERS, 200, DistL2 {}),
        dir: dir.to_owned(),
    })
}

struct Filling {
    graph: Hnsw<'static, f32, DistL2>,
    dir: PathBuf,
}

impl Filler for Filling {
    fn put(&mut self, rows: Vec<Row>) -> Result<(), Failure> {
        for row in rows {
            self.graph.insert((&row.vector, row.number));
        }
        Ok(())
    }

    fn settle(self: Box<Self>) -> Result<(), Failure> {
        let dumped = self.graph.file_dump(&self.dir, NAME);
        dumped.map_err(|error| error.to_string())?;
        Ok(())
    }
}

pub fn asker(dir: &Path) -> Result<Box<dyn Asker>, Failure> {
    // The graph borrows from its reader; both live as long as this process.
    let reader: &'static mut HnswIo = Box::leak(Box::new(HnswIo::new(dir, NAME)));
    let graph = reader.load_hnsw().map_err(|error| error.to_string())?;
    Ok(Box::new(Open {
        graph,
        passes: Vec::new(),
    }))
}

struct Open {
    graph: Hnsw<'static, f32, DistL2>,
    /// By row.
    passes: Vec<bool>,
}

impl Asker for Open {
    fn prepare(&mut self, columns: &Columns, filter: Filter) {
        let rows = 0..columns.len();
        self.passes = rows.map(|row| columns.passes(filter, row)).collect();
    }

    fn ask(
        &mut self,
        ask: &Ask,
        _kind: Kind,
        filter: Filter,
        knob: Option<usize>,
    ) -> Result<Vec<usize>, Failure> {
        let passes = |row: &usize| self.passes.get(*row).copied().unwrap_or(false);
        let filtered: Option<&dyn FilterT> = match filter {
            Filter::None => None,
            _ => Some(&passes),
        };
        let width = knob.unwrap_or(K);
        let found = self.graph.search_filter(&ask.vector, K, width, filtered);
        Ok(found.into_iter().map(|near| near.d_id).collect())
    }
}
