//! Which vector spaces has a store, and how do they come and go?
//!
//! The set is a part of the manifest: a change is published before anything is written that
//! needs it, so log and segments never name a space that the manifest does not know of. A space
//! that is dropped is forgotten at once; its vectors lie in segments until these are merged.
//! Numbers are never given twice, so what lies there passes for nothing else.

use chronolith_segments::{
    Coder, NumberedSpace, Refused, SpaceNumber, SpaceSet, VectorSpace, check_space_name, code_seed,
    limits,
};
use serde::Serialize;

use crate::manifest::{self, Settings, SpaceTable, StoreId};
use crate::settings::{space_of, stored_space};

/// A vector space of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpaceInfo {
    /// Its name.
    pub name: String,
    /// What its vectors are.
    pub space: VectorSpace,
    /// True of the space that is meant where none is named.
    pub is_default: bool,
}

/// Why a vector space cannot be added, made the default, or dropped. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpaceError {
    /// There is another space of this name.
    #[error(
        "the store has a vector space {name}, of model {model} with {dim} dimensions; take \
         another name, or drop that one first"
    )]
    Exists {
        /// Its name.
        name: String,
        /// Its model.
        model: String,
        /// Its dimension.
        dim: u32,
    },
    /// There is no space of this name.
    #[error("the store has no vector space {name}; it has {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// There are as many as a store can have.
    #[error("the store has {count} vector spaces, and can have no more; drop one first")]
    TooMany {
        /// How many there are.
        count: usize,
    },
    /// The store has used up the numbers that tell spaces apart.
    #[error("the store had {count} vector spaces in its life, and can have no more; export it")]
    NumbersUsedUp {
        /// How many it had.
        count: usize,
    },
    /// The default cannot be dropped.
    #[error("the vector space {name} is the default; make another one the default first")]
    IsDefault {
        /// Its name.
        name: String,
    },
}

/// The vector spaces of a store as they are at one time.
#[derive(Debug, Clone)]
pub(crate) struct Spaces {
    set: SpaceSet,
    /// Of each space, in the order of the set.
    coders: Vec<Coder>,
    /// Of their codes.
    seed: u64,
}

impl Spaces {
    /// Those that a manifest names.
    pub(crate) fn of(settings: &Settings, store_id: &StoreId) -> Self {
        Self::new(set_of(settings), code_seed(store_id))
    }

    /// Those after a change, of the same store.
    pub(crate) fn changed(&self, set: SpaceSet) -> Self {
        Self::new(set, self.seed)
    }

    fn new(set: SpaceSet, seed: u64) -> Self {
        let coders = set.spaces.iter().map(|own| Coder::new(&own.space, seed));
        Self {
            coders: coders.collect(),
            seed,
            set,
        }
    }

    pub(crate) fn set(&self) -> &SpaceSet {
        &self.set
    }

    /// The default, where there is one.
    pub(crate) fn default_space(&self) -> Option<&NumberedSpace> {
        self.set.get(self.set.default)
    }

    /// Makes queries for the codes of a space.
    pub(crate) fn coder(&self, number: SpaceNumber) -> Option<&Coder> {
        let mut spaces = self.set.spaces.iter().zip(&self.coders);
        let found = spaces.find(|(own, _)| own.number == number);
        found.map(|(_, coder)| coder)
    }

    /// The spaces for a caller.
    pub(crate) fn infos(&self) -> Vec<SpaceInfo> {
        let info = |own: &NumberedSpace| SpaceInfo {
            name: own.name.clone(),
            space: own.space.clone(),
            is_default: own.number == self.set.default,
        };
        self.set.spaces.iter().map(info).collect()
    }

    /// What of a segment's spaces cannot be: one that the store never had, or has as another.
    pub(crate) fn contradiction<'s>(
        &self,
        of_file: impl Iterator<Item = &'s NumberedSpace>,
    ) -> Option<String> {
        let mut has_main = self.set.get(SpaceNumber::MAIN).is_none();
        for own in of_file {
            has_main |= own.number.is_main();
            let known = self.set.get(own.number);
            if own.number >= self.set.next || known.is_some_and(|known| known != own) {
                return Some(format!(
                    "vector space {} ({}, {} dimensions) is not the store's",
                    own.name, own.space.model, own.space.dim
                ));
            }
        }
        (!has_main).then(|| "vector space of the store is not named".to_owned())
    }
}

/// The spaces that a manifest names.
pub(crate) fn set_of(settings: &Settings) -> SpaceSet {
    let Some(table) = &settings.spaces else {
        return SpaceSet::main(settings.vector_space.as_ref().map(space_of));
    };
    let own = |own: &manifest::NamedSpace| NumberedSpace {
        number: SpaceNumber::new(own.number),
        name: own.name.clone(),
        space: space_of(&own.space),
    };
    SpaceSet {
        spaces: table.spaces.iter().map(own).collect(),
        default: SpaceNumber::new(table.default),
        next: SpaceNumber::new(table.next),
    }
}

/// A set as the manifest holds it.
pub(crate) fn table_of(set: &SpaceSet) -> SpaceTable {
    let own = |own: &NumberedSpace| manifest::NamedSpace {
        number: own.number.get(),
        name: own.name.clone(),
        space: stored_space(&own.space),
    };
    SpaceTable {
        default: set.default.get(),
        next: set.next.get(),
        spaces: set.spaces.iter().map(own).collect(),
    }
}

/// A change of the set; pure.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change<'c> {
    Add(&'c str, &'c VectorSpace),
    SetDefault(&'c str),
    Drop(&'c str),
}

impl Change<'_> {
    /// The set after it; `None` where it changes nothing.
    pub(crate) fn of(self, set: &SpaceSet) -> Result<Option<SpaceSet>, ChangeError> {
        match self {
            Self::Add(name, space) => add(set, name, space),
            Self::SetDefault(name) => {
                let number = known(set, name)?.number;
                Ok((number != set.default).then(|| SpaceSet {
                    default: number,
                    ..set.clone()
                }))
            }
            Self::Drop(name) => {
                let number = known(set, name)?.number;
                if number == set.default {
                    let name = name.to_owned();
                    return Err(SpaceError::IsDefault { name }.into());
                }
                let mut after = set.clone();
                after.spaces.retain(|own| own.number != number);
                Ok(Some(after))
            }
        }
    }
}

/// Why a change is refused.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ChangeError {
    Refused(Refused),
    Space(SpaceError),
}

impl From<SpaceError> for ChangeError {
    fn from(error: SpaceError) -> Self {
        Self::Space(error)
    }
}

fn add(set: &SpaceSet, name: &str, space: &VectorSpace) -> Result<Option<SpaceSet>, ChangeError> {
    check_space_name(name).map_err(ChangeError::Refused)?;
    check_space(space).map_err(ChangeError::Refused)?;
    if let Some(own) = set.named(name) {
        if own.space == *space {
            return Ok(None);
        }
        let error = SpaceError::Exists {
            name: name.to_owned(),
            model: own.space.model.clone(),
            dim: own.space.dim,
        };
        return Err(error.into());
    }
    let count = set.spaces.len();
    if count >= limits::SPACES_MAX {
        return Err(SpaceError::TooMany { count }.into());
    }
    // Number 0 is the main space's, also where the store was made without it.
    let number = set.next.get().max(1);
    let Some(next) = number.checked_add(1) else {
        let count = usize::from(number);
        return Err(SpaceError::NumbersUsedUp { count }.into());
    };
    let number = SpaceNumber::new(number);
    let mut after = set.clone();
    after.spaces.push(NumberedSpace {
        number,
        name: name.to_owned(),
        space: space.clone(),
    });
    after.next = SpaceNumber::new(next);
    if count == 0 {
        after.default = number;
    }
    Ok(Some(after))
}

fn known<'s>(set: &'s SpaceSet, name: &str) -> Result<&'s NumberedSpace, SpaceError> {
    let found = set.named(name);
    found.ok_or_else(|| SpaceError::unknown(set, name))
}

impl SpaceError {
    /// There is no space of this name in the set.
    pub(crate) fn unknown(set: &SpaceSet, name: &str) -> Self {
        let names: Vec<&str> = set.spaces.iter().map(|own| own.name.as_str()).collect();
        Self::Unknown {
            name: name.to_owned(),
            known: match names.is_empty() {
                true => "none".to_owned(),
                false => names.join(", "),
            },
        }
    }
}

/// Checks what the vectors of a new space are to be.
///
/// # Errors
/// [`Refused`] on `dim` or `model`.
pub(crate) fn check_space(space: &VectorSpace) -> Result<(), Refused> {
    if space.dim == 0 || space.dim as usize > limits::DIM_MAX {
        return Err(Refused::new(
            "dim",
            format!("must lie between 1 and {}", limits::DIM_MAX),
        ));
    }
    if space.model.is_empty() || space.model.len() > manifest::NAME_BYTES_MAX {
        return Err(Refused::new(
            "model",
            "must name the embedder in 1 to 256 bytes",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use chronolith_segments::VectorFormat;

    use super::*;

    fn space(model: &str) -> VectorSpace {
        VectorSpace {
            model: model.into(),
            dim: 4,
            format: VectorFormat::F16,
            normalised: true,
        }
    }

    fn changed(set: &SpaceSet, change: Change<'_>) -> SpaceSet {
        change.of(set).expect("fits").expect("changes something")
    }

    #[test]
    fn numbers_are_never_given_twice_and_the_first_is_kept_for_the_main_space() {
        let mut set = SpaceSet::main(None);
        for round in 1..=3 {
            set = changed(&set, Change::Add("a", &space("m")));
            assert_eq!(
                set.named("a").map(|own| own.number.get()),
                Some(2 * round - 1)
            );
            set = changed(&set, Change::Add("b", &space("m")));
            set = changed(&set, Change::SetDefault("b"));
            set = changed(&set, Change::Drop("a"));
            set = changed(&set, Change::Add("c", &space("m")));
            set = changed(&set, Change::SetDefault("c"));
            set = changed(&set, Change::Drop("b"));
            set.spaces.clear();
            set.next = SpaceNumber::new(2 * round + 1);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let (m, n) = (space("m"), space("n"));
        let set = changed(&SpaceSet::main(Some(m.clone())), Change::Add("a", &m));
        assert_eq!(set.default, SpaceNumber::MAIN);
        let refused = |change: Change<'_>| change.of(&set).expect_err("refused");
        assert_eq!(Change::Add("a", &m).of(&set), Ok(None), "it is there");
        assert_eq!(Change::SetDefault("main").of(&set), Ok(None));
        assert!(matches!(
            refused(Change::Add("a", &n)),
            ChangeError::Space(SpaceError::Exists { .. })
        ));
        for change in [Change::SetDefault("x"), Change::Drop("x")] {
            let ChangeError::Space(SpaceError::Unknown { known, .. }) = refused(change) else {
                panic!("another error");
            };
            assert_eq!(known, "main, a");
        }
        assert!(matches!(
            refused(Change::Drop("main")),
            ChangeError::Space(SpaceError::IsDefault { .. })
        ));
        assert!(matches!(
            refused(Change::Add("a b", &m)),
            ChangeError::Refused(_)
        ));
        let mut full = set.clone();
        for at in 2..limits::SPACES_MAX {
            full = changed(&full, Change::Add(&format!("s{at}"), &m));
        }
        assert_eq!(
            Change::Add("more", &m).of(&full),
            Err(SpaceError::TooMany { count: 8 }.into())
        );
        full.spaces.truncate(1);
        full.next = SpaceNumber::new(u8::MAX);
        assert_eq!(
            Change::Add("more", &m).of(&full),
            Err(SpaceError::NumbersUsedUp { count: 255 }.into())
        );
    }

    #[test]
    fn a_set_comes_back_from_the_manifest_as_it_was() {
        let set = changed(
            &SpaceSet::main(Some(space("m"))),
            Change::Add("a", &space("n")),
        );
        let setup = crate::Setup::default();
        let mut settings = crate::settings::settings_of(&setup, 7).expect("fits");
        settings.spaces = Some(table_of(&set));
        assert_eq!(set_of(&settings), set);
    }
}
