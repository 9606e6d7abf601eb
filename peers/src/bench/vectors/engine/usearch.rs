//! How is usearch used? One thread, halves, a graph in one file.

use std::path::{Path, PathBuf};

use usearch::{Index, IndexOptions, MetricKind, ScalarKind};

use super::{Ask, Asker, Columns, Failure, Filler, Filter, K, Kind, Row, Rows};

fn index(rows: &Rows) -> Result<Index, Failure> {
    let options = IndexOptions {
        dimensions: rows.dim,
        metric: MetricKind::IP,
        quantization: ScalarKind::F16,
        connectivity: 16,
        expansion_add: 128,
        expansion_search: 64,
        multi: false,
    };
    Ok(Index::new(&options)?)
}

fn file(dir: &Path) -> Result<String, Failure> {
    let path: PathBuf = dir.join("index.usearch");
    let name = path.to_str().ok_or("a path that is not UTF-8")?;
    Ok(name.to_owned())
}

pub fn filler(dir: &Path, rows: &Rows) -> Result<Box<dyn Filler>, Failure> {
    let index = index(rows)?;
    index.reserve_capacity_and_threads(rows.count, 1)?;
    let file = file(dir)?;
    Ok(Box::new(Filling { index, file }))
}

struct Filling {
    index: Index,
    file: String,
}

impl Filler for Filling {
    fn put(&mut self, rows: Vec<Row>) -> Result<(), Failure> {
        for row in rows {
            self.index.add(u64::try_from(row.number)?, &row.vector)?;
        }
        Ok(())
    }

    fn settle(self: Box<Self>) -> Result<(), Failure> {
        Ok(self.index.save(&self.file)?)
    }
}

pub fn asker(dir: &Path, rows: &Rows) -> Result<Box<dyn Asker>, Failure> {
    let index = index(rows)?;
    index.load(&file(dir)?)?;
    Ok(Box::new(Open {
        index,
        passes: Vec::new(),
    }))
}

struct Open {
    index: Index,
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
        if let Some(expansion) = knob {
            self.index.change_expansion_search(expansion);
        }
        let found = match filter {
            Filter::None => self.index.search(&ask.vector, K)?,
            _ => self.index.filtered_search(&ask.vector, K, |row: u64| {
                let row = usize::try_from(row).unwrap_or(usize::MAX);
                self.passes.get(row).copied().unwrap_or(false)
            })?,
        };
        let rows = found.keys.into_iter();
        rows.map(|row| Ok(usize::try_from(row)?)).collect()
    }
}
