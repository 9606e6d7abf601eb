//! How do runs get sizes that are worth it? Large ones are cut, small ones given away.

use super::assign::{Centroids, assign_all};
use super::random::Random;
use super::train::train;
use super::{Result, RunPolicy, Work, index, u32_of};

/// What evens out the runs of a scope.
pub(super) struct Sizes<'s, 'w> {
    pub(super) policy: &'s RunPolicy,
    /// All vectors of the scope.
    pub(super) work: &'s Work<'w>,
}

impl Sizes<'_, '_> {
    /// Gives the run of each vector and how many runs there are, none empty and none below the
    /// minimum; `None` where less than two are left.
    pub(super) fn even_out(
        &self,
        mut runs: Vec<u32>,
        mut centroids: Centroids,
        random: &mut Random,
    ) -> Result<Option<(Vec<u32>, u32)>> {
        self.cut_large(&mut runs, &mut centroids, random)?;
        self.give_small_away(&mut runs, &centroids)?;
        let count = renumber(&mut runs);
        Ok((count >= 2).then_some((runs, count)))
    }

    /// Cuts runs above the maximum, once: the parts of one that cannot be told apart stay
    /// together.
    fn cut_large(
        &self,
        runs: &mut [u32],
        centroids: &mut Centroids,
        random: &mut Random,
    ) -> Result<()> {
        let rows_max = self.policy.rows_max.max(self.policy.rows_min);
        let aimed = self.policy.rows_aimed(self.work.count()).max(1);
        let before = centroids.count();
        let sizes = sizes_of(runs, before);
        let mut values = std::mem::take(&mut centroids.values);
        let dim = self.work.dim();
        let mut members = members_of(runs, &sizes, |size| size > rows_max);
        for (run, size) in (0_u32..before)
            .zip(&sizes)
            .filter(|(_, size)| **size > rows_max)
        {
            let members = std::mem::take(&mut members[index(run)]);
            let part = Work {
                places: Some(&members),
                ..*self.work
            };
            let parts = train(&part, size.div_ceil(aimed).max(2), &[], random)?;
            let within = assign_all(&part, &parts)?;
            // The first part takes the place of the whole, the others come last.
            let first_new = u32_of(values.len() / dim);
            for (place, part) in members.iter().zip(within) {
                runs[index(*place)] = match part {
                    0 => run,
                    part => first_new + part - 1,
                };
            }
            values[index(run) * dim..][..dim].copy_from_slice(&parts.values[..dim]);
            values.extend_from_slice(&parts.values[dim..]);
        }
        *centroids = Centroids::new(dim, values);
        Ok(())
    }

    /// Gives the vectors of runs below the minimum to the nearest of the others; where all are
    /// below it, to the largest.
    fn give_small_away(&self, runs: &mut [u32], centroids: &Centroids) -> Result<()> {
        let sizes = sizes_of(runs, centroids.count());
        let largest = sizes.iter().copied().max().unwrap_or(0);
        let least = self.policy.rows_min.min(largest);
        let kept: Vec<u32> = (0_u32..)
            .zip(&sizes)
            .filter(|(_, size)| **size >= least)
            .map(|(run, _)| run)
            .collect();
        let small = |size: u32| size > 0 && size < least;
        let members = members_of(runs, &sizes, small);
        let members: Vec<u32> = members.into_iter().flatten().collect();
        if members.is_empty() {
            return Ok(());
        }
        let dim = self.work.dim();
        let values = kept
            .iter()
            .flat_map(|run| &centroids.values[index(*run) * dim..][..dim]);
        let kept_centroids = Centroids::new(dim, values.copied().collect());
        let part = Work {
            places: Some(&members),
            ..*self.work
        };
        let nearest = assign_all(&part, &kept_centroids)?;
        for (place, nearest) in members.iter().zip(nearest) {
            runs[index(*place)] = kept[index(nearest)];
        }
        Ok(())
    }
}

/// Vectors of each run.
fn sizes_of(runs: &[u32], count: u32) -> Vec<u32> {
    let mut sizes = vec![0; index(count)];
    for run in runs {
        sizes[index(*run)] += 1;
    }
    sizes
}

/// By run the places of its vectors, ascending, where `wanted` says so of the run's size.
fn members_of(runs: &[u32], sizes: &[u32], wanted: impl Fn(u32) -> bool) -> Vec<Vec<u32>> {
    let mut members = vec![Vec::new(); sizes.len()];
    for (place, run) in (0_u32..).zip(runs) {
        if wanted(sizes[index(*run)]) {
            members[index(*run)].push(place);
        }
    }
    members
}

/// Leaves out numbers that no vector has; gives how many are left.
fn renumber(runs: &mut [u32]) -> u32 {
    let most = runs.iter().copied().max().map_or(0, |run| run + 1);
    let mut next = 0;
    let sizes = sizes_of(runs, most);
    let numbers: Vec<u32> = sizes
        .iter()
        .map(|size| {
            let number = next;
            next += u32::from(*size > 0);
            number
        })
        .collect();
    for run in runs {
        *run = numbers[index(*run)];
    }
    next
}
