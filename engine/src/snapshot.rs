//! One consistent view of a store, for as long as it is held.

use std::sync::Arc;

use chronolith_segments::{
    Partition, Scope, ScopeRanges, ScopeSelector, SegmentError, SourceClass, SpaceVector,
    segment_file_name, widen,
};

use crate::catalog::Locator;
use crate::error::Error;
use crate::query::{
    Asked, Exactness, MissingPartition, PartitionName, Request, Response, Source, run,
};
use crate::settings::Shared;
use crate::spaces::{SpaceInfo, Spaces};
use crate::version::Version;

/// A record as it is stored, without ranking.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRecord {
    /// The record. Its vectors are as stored: scaled and narrowed.
    pub record: chronolith_segments::Record,
    /// Seq of the operation that wrote it.
    pub commit_seq: u64,
    /// When it became known, µs.
    pub commit_time_us: i64,
    /// Counted tokens of the indexed text.
    pub length: u32,
}

/// An immutable view: commits, flushes and compactions after it change nothing in it.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(crate) shared: Arc<Shared>,
    pub(crate) spaces: Arc<Spaces>,
    pub(crate) version: Arc<Version>,
    pub(crate) seq: u64,
}

impl Snapshot {
    /// The last commit seq inside.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The vector spaces of the store, the oldest first.
    pub fn spaces(&self) -> Vec<SpaceInfo> {
        self.spaces.infos()
    }

    /// Answers a request.
    ///
    /// # Errors
    /// [`Error::Refused`] for a request outside the limits; damage in a partition that holds
    /// rows of its scopes.
    pub fn retrieve(&self, request: &Request) -> Result<Response, Error> {
        let mut sources = self.version.sources(self.seq);
        if !request.partial {
            self.check_whole()?;
            return self.run(&sources, request);
        }
        let mut missing: Vec<MissingPartition> = Vec::new();
        for lost in &self.version.lost {
            missing.push(MissingPartition {
                file: segment_file_name(lost.file_number),
                error: lost.error().to_string(),
            });
        }
        loop {
            match self.run(&sources, request) {
                Err(Error::Segment(error)) => missing.push(leave_out(&mut sources, error)?),
                Ok(mut response) if !missing.is_empty() => {
                    let missing_count = u32::try_from(missing.len()).unwrap_or(u32::MAX);
                    response.exactness = Exactness::Partial {
                        missing: missing_count,
                    };
                    response.missing = missing;
                    return Ok(response);
                }
                answered => return answered,
            }
        }
    }

    /// An error where a segment of this view could not even be opened.
    pub(crate) fn check_whole(&self) -> Result<(), Error> {
        match self.version.lost.first() {
            Some(lost) => Err(lost.error().into()),
            None => Ok(()),
        }
    }

    fn run(&self, sources: &[Source], request: &Request) -> Result<Response, Error> {
        let asked = Asked {
            sources,
            at_seq: self.seq,
            analyzer: &self.shared.analyzer,
            spaces: &self.spaces,
            probe_rows_min: self.shared.probe_rows_min,
            fusion: self.shared.fusion,
            tag_graph: self.version.tag_graph_at(self.seq),
            clock: &*self.shared.env.clock,
            threads: &*self.shared.env.threads,
        };
        run(&asked, request)
    }

    /// The record of this (scope, id), or `None`.
    ///
    /// # Errors
    /// Damage in a partition.
    pub fn get(&self, scope: &Scope, id: &str) -> Result<Option<StoredRecord>, Error> {
        self.get_near(scope, id, None)
    }

    /// As [`Snapshot::get`], looking at the hinted segment before the others. The hint is
    /// verified against the row: a wrong one costs time and changes nothing.
    pub(crate) fn get_near(
        &self,
        scope: &Scope,
        id: &str,
        hint: Option<Locator>,
    ) -> Result<Option<StoredRecord>, Error> {
        self.check_whole()?;
        let sources = self.version.sources(self.seq);
        let hinted = hint.map(|locator| PartitionName::Segment(locator.file_number));
        let (near, far): (Vec<&Source>, Vec<&Source>) = sources
            .iter()
            .rev()
            .partition(|source| Some(&source.name) == hinted.as_ref());
        for source in near.into_iter().chain(far) {
            if let Some(row) = source.partition.find(scope.key(), id, self.seq)?
                && !source.dead.contains(row)
            {
                return self.stored_record(&*source.partition, row).map(Some);
            }
        }
        Ok(None)
    }

    /// Calls `visit` with every live record of the scopes: scope ascending within a partition,
    /// partitions in no order that means anything.
    ///
    /// # Errors
    /// What `visit` returns; damage in a partition.
    pub fn for_each_record(
        &self,
        scopes: &[ScopeSelector],
        visit: &mut dyn FnMut(StoredRecord) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.check_whole()?;
        let ranges = ScopeRanges::new(scopes)?;
        for source in self.version.sources(self.seq) {
            for run in source.partition.select(&ranges, self.seq)? {
                let mut rows = Vec::new();
                source
                    .partition
                    .for_each_row(&run, &mut |row| rows.push(row));
                for row in rows.into_iter().filter(|row| !source.dead.contains(*row)) {
                    visit(self.stored_record(&*source.partition, row)?)?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn stored_record(
        &self,
        partition: &dyn Partition,
        row: u32,
    ) -> Result<StoredRecord, Error> {
        let fields = partition.fields(row)?;
        let stored = partition.stored(row)?;
        let key = partition.scope_key(row)?;
        let scope = Scope::from_key(&key)
            .ok_or_else(|| Error::Internal("a row's scope key is none".into()))?;
        let (mut vector, mut vectors) = (None, Vec::new());
        for own in &self.spaces.set().spaces {
            let Some(bytes) = partition.vector(own.number, row)? else {
                continue;
            };
            let found = widen(&bytes, own.space.format);
            if own.number == self.spaces.set().default {
                vector = Some(found);
                continue;
            }
            vectors.push(SpaceVector {
                space: own.name.clone(),
                model: Some(own.space.model.clone()),
                vector: found,
            });
        }
        let record = chronolith_segments::Record {
            id: partition.id(row)?.into_owned(),
            scope,
            event_time_us: fields.event_time_us,
            text: stored.text,
            summary: stored.summary,
            speaker: stored.speaker,
            tags: partition.tags(row)?,
            vector,
            vectors,
            source: stored.source,
            source_class: SourceClass::from_column(fields.source_class),
            importance: Some(fields.importance).filter(|value| !value.is_nan()),
            source_id: partition.source_id(row)?.map(std::borrow::Cow::into_owned),
            attributes: stored.attributes,
            impacts: stored.impacts,
        };
        Ok(StoredRecord {
            record,
            commit_seq: fields.commit_seq,
            commit_time_us: fields.commit_time_us,
            length: fields.length,
        })
    }
}

/// Takes the damaged segment out of `sources`; the error where it is none of them.
fn leave_out(
    sources: &mut Vec<Source>,
    error: SegmentError,
) -> Result<MissingPartition, SegmentError> {
    let SegmentError::Corrupt { file, .. } = &error else {
        return Err(error);
    };
    let file = file.clone();
    let at = sources.iter().position(|source| {
        matches!(source.name, PartitionName::Segment(number) if segment_file_name(number) == file)
    });
    let Some(at) = at else { return Err(error) };
    sources.remove(at);
    Ok(MissingPartition {
        file,
        error: error.to_string(),
    })
}
