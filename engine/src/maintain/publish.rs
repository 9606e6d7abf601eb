//! How does a new version become the truth? Side files, manifest, pointer; then the memory.
//!
//! One publish at a time. What a publish no longer names is unlinked after it is durable and
//! never before; an unknown outcome ends all writing until the store is reopened.

use std::sync::Arc;

use chronolith_segments::Death;
use chronolith_vfs::planted::{self, Bug};

use crate::error::Error;
use crate::manifest::deletes::{DeadRow, write_deletes};
use crate::manifest::tag_graph::{StoredEdge, write_tag_graph};
use crate::manifest::{self, Manifest, PublishError, SideFile, Statistics};
use crate::settings::Shared;
use crate::tag_graph::TagGraph;
use crate::version::LiveSegment;

/// The manifest that counts, as this handle knows it. Lives behind the publish lock.
#[derive(Debug)]
pub(crate) struct Publisher {
    manifest: Manifest,
    /// Next number for a segment or side file; above all on disk.
    next_file_number: u64,
    /// True once the manifest is known to be durable as `CURRENT`'s, see [`manifest::prove`].
    is_proven: bool,
    /// Why nothing is published any more.
    failed: Option<String>,
    /// The graph of the last publish, to see whether it changed.
    tag_graph: Arc<TagGraph>,
}

impl Publisher {
    /// The publisher behind a manifest that was loaded, and proven if `is_proven`.
    pub(crate) fn new(
        manifest: Manifest,
        next_file_number: u64,
        tag_graph: Arc<TagGraph>,
        is_proven: bool,
    ) -> Self {
        Self {
            manifest,
            next_file_number,
            is_proven,
            failed: None,
            tag_graph,
        }
    }

    /// The manifest that counts.
    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Takes the number of a new file.
    pub(crate) fn take_file_number(&mut self) -> u64 {
        let number = self.next_file_number;
        self.next_file_number += 1;
        number
    }

    /// Refuses where an earlier publish has an unknown outcome.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match &self.failed {
            Some(cause) => Err(Error::Poisoned {
                cause: cause.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Proves the manifest that was loaded, unless that was done.
    ///
    /// # Errors
    /// `Poisoned`: a sync failed, and nothing is published any more.
    pub(crate) fn prove(&mut self, shared: &Shared) -> Result<(), Error> {
        self.check()?;
        if self.is_proven {
            return Ok(());
        }
        if let Err(error) = manifest::prove(&*shared.env.vfs, &shared.dir) {
            self.failed = Some(error.to_string());
            return self.check();
        }
        self.is_proven = true;
        Ok(())
    }

    /// A manifest to be edited and given to [`Publisher::publish`].
    pub(crate) fn successor(&self) -> Manifest {
        self.manifest.successor()
    }

    /// Writes the delete set of a segment; `None` where nothing is dead.
    pub(crate) fn write_deletes(
        &mut self,
        shared: &Shared,
        segment: u64,
        dead: &[Death],
    ) -> Result<Option<SideFile>, Error> {
        if dead.is_empty() {
            return Ok(None);
        }
        let mut rows: Vec<DeadRow> = dead
            .iter()
            .map(|death| DeadRow {
                row: death.row,
                seq: death.seq,
                kind: death.kind as u8,
                valid_to_us: death.valid_to_us,
            })
            .collect();
        rows.sort_unstable_by_key(|row| row.row);
        let number = self.take_file_number();
        let written = write_deletes(
            &*shared.env.vfs,
            &shared.dir,
            number,
            &shared.store_id,
            segment,
            &rows,
        );
        Ok(Some(written.map_err(Error::SideFile)?))
    }

    /// Brings the delete sets of `segments` in `manifest` up to its `flushed_seq`: deaths that
    /// lie in the log below it will not be replayed, so they must be durable here.
    pub(crate) fn settle_deaths(
        &mut self,
        shared: &Shared,
        manifest: &mut Manifest,
        segments: &[Arc<LiveSegment>],
    ) -> Result<(), Error> {
        for live in segments {
            let number = live.entry.file_number;
            let Some(at) = manifest
                .segments
                .iter()
                .position(|entry| entry.file_number == number)
            else {
                continue;
            };
            let dead = live.deaths.entries_at(manifest.flushed_seq);
            let settled = manifest.segments[at].deletes.map_or(0, |side| side.entries);
            if dead.len() as u64 != settled && !planted::is_on(Bug::DeletesNotSettled) {
                manifest.segments[at].deletes = self.write_deletes(shared, number, &dead)?;
            }
        }
        Ok(())
    }

    /// Writes the tag graph into `manifest` where it is not the published one.
    /// [`Publisher::tags_published`] tells that the publish went well.
    pub(crate) fn settle_tags(
        &mut self,
        shared: &Shared,
        manifest: &mut Manifest,
        graph: &Arc<TagGraph>,
    ) -> Result<(), Error> {
        if *self.tag_graph == **graph || planted::is_on(Bug::TagsNotSettled) {
            return Ok(());
        }
        manifest.tag_graph = None;
        if graph.len() > 0 {
            let stored = |edge: &crate::tag_graph::TagEdge| StoredEdge {
                scope_key: edge.scope.key().to_vec(),
                parent: edge.parent.clone(),
                child: edge.child.clone(),
            };
            let edges: Vec<StoredEdge> = graph.edges().map(stored).collect();
            let number = self.take_file_number();
            let written = write_tag_graph(
                &*shared.env.vfs,
                &shared.dir,
                number,
                &shared.store_id,
                &edges,
            );
            manifest.tag_graph = Some(written.map_err(Error::SideFile)?);
        }
        Ok(())
    }

    /// Notes the graph of the manifest that was just published. Not before: a publish that
    /// fails is tried again from the manifest before it, which names the old graph.
    pub(crate) fn tags_published(&mut self, graph: Arc<TagGraph>) {
        self.tag_graph = graph;
    }

    /// Publishes `manifest` and unlinks what it no longer names.
    pub(crate) fn publish(&mut self, shared: &Shared, mut manifest: Manifest) -> Result<(), Error> {
        self.prove(shared)?;
        manifest.next_file_number = self.next_file_number;
        manifest
            .segments
            .sort_unstable_by_key(|entry| entry.file_number);
        manifest.statistics = Statistics::of(&manifest.segments);
        if planted::is_on(Bug::UnlinkBeforePublish) {
            for name in self.manifest.retired_by(&manifest) {
                let _ = shared.env.vfs.remove_file(&name.path(&shared.dir));
            }
        }
        if let Err(error) = manifest::publish(&*shared.env.vfs, &shared.dir, &manifest) {
            match error {
                _ if error.is_outcome_unknown() => self.failed = Some(error.to_string()),
                // The directory is no longer what this handle knows: its files may be another's.
                PublishError::OutOfOrder { .. } | PublishError::Current(_) => {}
                _ => self.discard(shared, &manifest),
            }
            return Err(Error::Publish(error));
        }
        let before = std::mem::replace(&mut self.manifest, manifest);
        self.remove_retired(shared, &before);
        Ok(())
    }

    /// Unlinks what was written for `manifest`, which is not published: the next try writes anew,
    /// and a full disk must not fill up further.
    pub(crate) fn discard(&self, shared: &Shared, manifest: &Manifest) {
        for name in manifest.retired_by(&self.manifest) {
            let _ = shared.env.vfs.remove_file(&name.path(&shared.dir));
        }
    }

    /// What cannot be unlinked now is an orphan for the sweep of the next open.
    fn remove_retired(&self, shared: &Shared, before: &Manifest) {
        for name in before.retired_by(&self.manifest) {
            let _ = shared.env.vfs.remove_file(&name.path(&shared.dir));
        }
        let _ = manifest::remove_obsolete(&*shared.env.vfs, &shared.dir, self.manifest.generation);
    }
}
