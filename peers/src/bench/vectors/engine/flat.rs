//! What does it cost to score every row? A plain loop over f32: the reference of every other
//! figure, and the exact answer.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;

use super::{Ask, Asker, Columns, Failure, Filler, Filter, K, Kind, Row, Rows};

const NAME: &str = "vectors.f32";
/// Sums that a loop keeps side by side, so that the compiler may use wide registers.
const LANES: usize = 16;

pub fn filler(dir: &Path) -> Result<Box<dyn Filler>, Failure> {
    let file = BufWriter::new(File::create(dir.join(NAME))?);
    Ok(Box::new(Filling { file }))
}

struct Filling {
    file: BufWriter<File>,
}

impl Filler for Filling {
    fn put(&mut self, rows: Vec<Row>) -> Result<(), Failure> {
        for number in rows.iter().flat_map(|row| &row.vector) {
            self.file.write_all(&number.to_le_bytes())?;
        }
        Ok(())
    }

    fn settle(self: Box<Self>) -> Result<(), Failure> {
        let file = self.file.into_inner().map_err(|error| error.to_string())?;
        Ok(file.sync_all()?)
    }
}

pub fn asker(dir: &Path, rows: &Rows) -> Result<Box<dyn Asker>, Failure> {
    let mut file = BufReader::with_capacity(1 << 20, File::open(dir.join(NAME))?);
    let mut vectors = Vec::with_capacity(rows.count * rows.dim);
    let mut row = vec![0; rows.dim * 4];
    for _ in 0..rows.count {
        file.read_exact(&mut row)?;
        let numbers = row.as_chunks::<4>().0.iter();
        vectors.extend(numbers.map(|bytes| f32::from_le_bytes(*bytes)));
    }
    Ok(Box::new(Open {
        vectors,
        dim: rows.dim,
        passing: Vec::new(),
    }))
}

struct Open {
    vectors: Vec<f32>,
    dim: usize,
    /// Rows that pass the filter, where there is one.
    passing: Vec<usize>,
}

impl Asker for Open {
    fn prepare(&mut self, columns: &Columns, filter: Filter) {
        self.passing = match filter {
            Filter::None => Vec::new(),
            _ => columns.passing(filter),
        };
    }

    fn ask(
        &mut self,
        ask: &Ask,
        _kind: Kind,
        filter: Filter,
        _knob: Option<usize>,
    ) -> Result<Vec<usize>, Failure> {
        let vectors = self.vectors.chunks_exact(self.dim);
        Ok(match filter {
            Filter::None => best(&ask.vector, vectors.enumerate()),
            _ => {
                let row =
                    |row: &usize| Some((*row, self.vectors.chunks_exact(self.dim).nth(*row)?));
                best(&ask.vector, self.passing.iter().filter_map(row))
            }
        })
    }
}

/// The sum of products.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

/// The best [`K`] so far, best first; of equals the earlier row.
#[derive(Default)]
struct Best(Vec<(f32, usize)>);

impl Best {
    fn offer(&mut self, score: f32, row: usize) {
        if self.0.len() == K && self.0.last().is_some_and(|last| last.0 >= score) {
            return;
        }
        let at = self.0.partition_point(|kept| kept.0 >= score);
        self.0.insert(at, (score, row));
        self.0.truncate(K);
    }

    fn rows(self) -> Vec<usize> {
        self.0.into_iter().map(|(_, row)| row).collect()
    }
}

fn best<'a>(query: &[f32], rows: impl Iterator<Item = (usize, &'a [f32])>) -> Vec<usize> {
    let mut best = Best::default();
    for (row, vector) in rows {
        best.offer(dot(query, vector), row);
    }
    best.rows()
}

/// The exact answer of each query under its filter, one read of the folder for all.
pub fn exact(
    rows: &Rows,
    columns: &Columns,
    asks: &[Ask],
    filters: &[Filter],
) -> Result<Vec<Vec<usize>>, Failure> {
    let mut all: Vec<Best> = asks.iter().map(|_| Best::default()).collect();
    rows.for_each(&mut |row| {
        for ((ask, filter), best) in asks.iter().zip(filters).zip(&mut all) {
            if columns.passes(*filter, row.number) {
                best.offer(dot(&ask.vector, &row.vector), row.number);
            }
        }
        Ok(())
    })?;
    Ok(all.into_iter().map(Best::rows).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_are_kept_in_order_and_of_equals_the_earlier() {
        let mut best = Best::default();
        for (row, score) in [0.1, 0.9, 0.5, 0.9, 0.3]
            .into_iter()
            .cycle()
            .take(50)
            .enumerate()
        {
            best.offer(score, row);
        }
        assert_eq!(best.rows(), [1, 3, 6, 8, 11, 13, 16, 18, 21, 23]);
    }

    #[test]
    fn a_dot_of_any_length_is_the_naive_sum() {
        for length in [0_u8, 1, 15, 16, 17, 40] {
            let a: Vec<f32> = (0..length).map(f32::from).collect();
            let naive: f32 = a.iter().map(|x| x * x).sum();
            assert!((dot(&a, &a) - naive).abs() < 0.01, "{length}");
        }
    }
}
