//! What must hold in a manifest? Checked before it is written and after it is read.

use super::error::Invalid;
use super::model::{
    EPOCH_MAX, LADDER_MAX, Manifest, NAME_BYTES_MAX, NamedSpace, SEGMENTS_MAX, SEQ_COUNTER_BITS,
    SPACES_MAX, SegmentEntry, Settings, SpaceTable, Statistics, VectorSpace,
};
use chronolith_segments::check_space_name;

/// Longest vector, the limit that a record's vector has.
const DIM_MAX: u32 = 4096;
const PPM: u32 = 1_000_000;

fn ensure(
    holds: bool,
    field: &'static str,
    message: impl FnOnce() -> String,
) -> Result<(), Invalid> {
    if holds {
        Ok(())
    } else {
        Err(Invalid {
            field,
            message: message(),
        })
    }
}

impl Manifest {
    /// Checks every rule that can be checked without opening a file.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn validate(&self) -> Result<(), Invalid> {
        // The next one must exist too.
        let numbered = (1..u64::MAX).contains(&self.generation);
        ensure(numbered, "generation", || {
            format!("{}, the first is 1, and one must follow", self.generation)
        })?;
        ensure(self.epoch <= EPOCH_MAX, "epoch", || {
            format!("{}, at most {EPOCH_MAX}", self.epoch)
        })?;
        let flushed_epoch = self.flushed_seq >> SEQ_COUNTER_BITS;
        ensure(
            flushed_epoch <= u64::from(self.epoch),
            "flushed_seq",
            || {
                format!(
                    "of epoch {flushed_epoch}, the highest known is {}",
                    self.epoch
                )
            },
        )?;
        self.settings.validate()?;
        let count = self.segments.len();
        ensure(count <= SEGMENTS_MAX, "segments", || {
            format!("{count}, at most {SEGMENTS_MAX}")
        })?;
        for segment in &self.segments {
            self.validate_segment(segment)?;
        }
        self.validate_file_numbers()?;
        let witness = &self.witness;
        ensure(
            witness.generation <= self.generation,
            "witness.generation",
            || {
                format!(
                    "{} is above generation {}",
                    witness.generation, self.generation
                )
            },
        )?;
        ensure(
            witness.watermark <= self.flushed_seq,
            "witness.watermark",
            || {
                format!(
                    "{} is above flushed_seq {}",
                    witness.watermark, self.flushed_seq
                )
            },
        )?;
        let sums = Statistics::of(&self.segments);
        ensure(self.statistics == sums, "statistics", || {
            format!("{:?}, the segments add up to {sums:?}", self.statistics)
        })
    }

    fn validate_segment(&self, segment: &SegmentEntry) -> Result<(), Invalid> {
        let at = |what: String| format!("segment {:016x}: {what}", segment.file_number);
        let levels = self.settings.bucket_ladder.len();
        ensure(usize::from(segment.level) <= levels, "level", || {
            at(format!(
                "level {}, the ladder ends with {levels}",
                segment.level
            ))
        })?;
        let (start, end) = (segment.bucket_start_us, segment.bucket_end_us);
        ensure(start < end, "bucket", || {
            at(format!("[{start}, {end}) is empty"))
        })?;
        let (min, max) = (segment.event_time_min_us, segment.event_time_max_us);
        let inside = start <= min && min <= max && (max < end || end == i64::MAX);
        ensure(inside, "event_time", || {
            at(format!(
                "[{min}, {max}] is not inside bucket [{start}, {end})"
            ))
        })?;
        let (first, last) = (segment.first_seq, segment.last_seq);
        ensure(first <= last && last <= self.flushed_seq, "seq", || {
            at(format!(
                "[{first}, {last}] is not a range up to flushed_seq {}",
                self.flushed_seq
            ))
        })?;
        ensure(segment.rows >= 1, "rows", || at("0 rows".to_owned()))?;
        let dead = segment.deletes.map_or(0, |deletes| deletes.entries);
        ensure(dead <= u64::from(segment.rows), "deletes", || {
            at(format!("{dead} dead rows of {}", segment.rows))
        })
    }

    fn validate_file_numbers(&self) -> Result<(), Invalid> {
        let ascending = self
            .segments
            .is_sorted_by(|a, b| a.file_number < b.file_number);
        ensure(ascending, "segments", || {
            "file numbers do not ascend".to_owned()
        })?;
        // Sorted by number first, so two files of one number stand side by side.
        let names = self.data_files();
        for pair in names.windows(2) {
            ensure(
                pair[0].file_number < pair[1].file_number,
                "file_number",
                || format!("{:016x} is named twice", pair[0].file_number),
            )?;
        }
        let highest = names.last().map_or(0, |name| name.file_number);
        let next = self.next_file_number;
        ensure(
            next > highest && next < u64::MAX,
            "next_file_number",
            || format!("{next} is not above {highest}, or the last there is"),
        )
    }
}

fn named(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
}

fn length(name: &str) -> String {
    let bytes = name.len();
    format!("name of {bytes} bytes, allowed 1 to {NAME_BYTES_MAX}")
}

impl VectorSpace {
    fn validate(&self) -> Result<(), Invalid> {
        let field = "settings.vector_space.model";
        ensure(named(&self.model), field, || length(&self.model))?;
        let fits = (1..=DIM_MAX).contains(&self.dim);
        ensure(fits, "settings.vector_space.dim", || {
            format!("{}, allowed 1 to {DIM_MAX}", self.dim)
        })
    }
}

impl SpaceTable {
    fn validate(&self) -> Result<(), Invalid> {
        let (spaces, field) = (&self.spaces, "settings.spaces");
        ensure(spaces.len() <= SPACES_MAX, field, || {
            format!("{}, at most {SPACES_MAX}", spaces.len())
        })?;
        let ascend = spaces.is_sorted_by(|a, b| a.number < b.number);
        let last = spaces.last().is_none_or(|last| last.number < self.next);
        ensure(ascend && last, field, || {
            format!("numbers do not ascend to below {}", self.next)
        })?;
        let is_default = |own: &NamedSpace| own.number == self.default;
        let has_default = spaces.is_empty() || spaces.iter().any(is_default);
        ensure(has_default, field, || {
            format!("the default, {}, is none of them", self.default)
        })?;
        for (at, own) in spaces.iter().enumerate() {
            own.space.validate()?;
            let twice = spaces[..at].iter().any(|other| other.name == own.name);
            let good = check_space_name(&own.name).is_ok() && !twice;
            ensure(good, field, || {
                format!("{:?} stands twice or is no name", own.name)
            })?;
        }
        Ok(())
    }
}

impl Settings {
    fn validate(&self) -> Result<(), Invalid> {
        ensure(named(&self.analyzer), "settings.analyzer", || {
            length(&self.analyzer)
        })?;
        ensure(named(&self.token_counter), "settings.token_counter", || {
            length(&self.token_counter)
        })?;
        if let Some(space) = &self.vector_space {
            space.validate()?;
        }
        if let Some(spaces) = &self.spaces {
            spaces.validate()?;
        }
        ensure(self.bucket_base_us >= 1, "settings.bucket_base_us", || {
            format!("{}", self.bucket_base_us)
        })?;
        let ladder = &self.bucket_ladder;
        let rises = ladder.len() <= LADDER_MAX
            && ladder.first() == Some(&1)
            && ladder.is_sorted_by(|a, b| a < b);
        ensure(rises, "settings.bucket_ladder", || {
            format!(
                "{} levels; it begins with 1, ascends, and has at most {LADDER_MAX}",
                ladder.len()
            )
        })?;
        let widest = ladder.last().copied().unwrap_or(1);
        let fits = self.bucket_base_us.checked_mul(i64::from(widest)).is_some();
        ensure(fits, "settings.bucket_ladder", || {
            format!("{widest} times the base leaves the range of times")
        })?;
        ensure(
            self.dense_weight_ppm <= PPM,
            "settings.dense_weight_ppm",
            || format!("{}, at most {PPM}", self.dense_weight_ppm),
        )
    }
}
