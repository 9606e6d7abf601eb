//! Vector spaces of an open store: add, list, make the default, drop.

use std::sync::PoisonError;

use chronolith_segments::VectorSpace;

use super::{FLUSH, Store};
use crate::error::Error;
use crate::maintain::fail_if_unknown;
use crate::reserve::name_full;
use crate::spaces::{Change, SpaceInfo, table_of};

impl Store {
    /// The vector spaces of the store, the oldest first.
    pub fn spaces(&self) -> Vec<SpaceInfo> {
        self.core().shared.spaces().infos()
    }

    /// Adds a vector space, durably; no error where there is the same one. A store without any
    /// takes it as its default. Records that are there lack it: see [`Store::migrate_space`].
    ///
    /// # Errors
    /// [`Error::Space`] where there is another one of the name, or there are too many;
    /// [`Error::Refused`] for a name, model or dimension outside the limits; those of a publish,
    /// as [`Store::flush`].
    pub fn add_space(&self, name: &str, space: &VectorSpace) -> Result<(), Error> {
        self.change_spaces(Change::Add(name, space))
    }

    /// Makes a vector space the one that is meant where none is named, durably: in records, in
    /// requests, and where merges lay out rows by what they look like.
    ///
    /// # Errors
    /// [`Error::Space`] where there is none of the name; those of a publish.
    pub fn set_default_space(&self, name: &str) -> Result<(), Error> {
        self.change_spaces(Change::SetDefault(name))
    }

    /// Drops a vector space with all its vectors, durably. No request can ask it any more;
    /// merges free its room, [`Store::compact`] with `force` all of it.
    ///
    /// # Errors
    /// [`Error::Space`] where there is none of the name, or it is the default; those of a
    /// publish.
    pub fn drop_space(&self, name: &str) -> Result<(), Error> {
        self.change_spaces(Change::Drop(name))
    }

    /// Publishes the set first: what is written from then on may name it.
    fn change_spaces(&self, change: Change<'_>) -> Result<(), Error> {
        let core = self.core();
        core.pipeline.check()?;
        core.check_lock()?;
        core.hold_reserve()?;
        let publisher = core.publisher.lock();
        let mut publisher = publisher.unwrap_or_else(PoisonError::into_inner);
        let before = core.shared.spaces();
        let Some(after) = change.of(before.set()).map_err(Error::of_change)? else {
            return Ok(());
        };
        let mut manifest = publisher.successor();
        manifest.settings.spaces = Some(table_of(&after));
        let published = publisher.publish(&core.shared, manifest);
        published
            .inspect_err(|error| fail_if_unknown(&core.pipeline, error))
            .map_err(name_full)?;
        let mut applier = core.pipeline.lock_to_swap();
        core.shared.replace_spaces(before.changed(after));
        applier.renew(&core.shared, &core.current);
        drop((applier, publisher));
        match self.inner.worker {
            Some(_) => core.signal.notify(),
            // The change is made: a flush that fails is tried again by the next write.
            None => core.signal.note(FLUSH, self.flush_sealed()),
        }
        Ok(())
    }
}
