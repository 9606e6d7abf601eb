//! Which vector spaces does a store have, and which vector of a record belongs to which?
//!
//! A space is known by its number, which is never given twice in a store: log and segments name
//! it by that, so that no vector passes for one of another model, whatever became of the names.

use serde::{Deserialize, Serialize};

use crate::error::Refused;
use crate::limits::SPACE_NAME_BYTES_MAX;
use crate::prepared::VectorSpace;

/// Number of a vector space in its store; given by the store, ascending, never again.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct SpaceNumber(u8);

impl SpaceNumber {
    /// The space that a store is made with.
    pub const MAIN: Self = Self(0);
    /// The name of that space.
    pub const MAIN_NAME: &'static str = "main";

    /// The space of this number.
    pub const fn new(number: u8) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// True of [`SpaceNumber::MAIN`].
    pub fn is_main(self) -> bool {
        self == Self::MAIN
    }
}

/// A vector space with what it is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedSpace {
    /// Known by it in log and segments.
    pub number: SpaceNumber,
    /// Known by it to callers; see [`check_space_name`].
    pub name: String,
    /// What its vectors are.
    pub space: VectorSpace,
}

impl NumberedSpace {
    /// The space that a store is made with.
    pub fn main(space: VectorSpace) -> Self {
        Self {
            number: SpaceNumber::MAIN,
            name: SpaceNumber::MAIN_NAME.to_owned(),
            space,
        }
    }
}

/// The vector spaces of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpaceSet {
    /// Ascending by number; no name stands twice.
    pub spaces: Vec<NumberedSpace>,
    /// The one that is meant where none is named; it need not be there.
    pub default: SpaceNumber,
    /// The lowest number that no space of the store ever had.
    pub next: SpaceNumber,
}

impl SpaceSet {
    /// The set of a store that was just made with this space, or with none.
    pub fn main(space: Option<VectorSpace>) -> Self {
        let next = SpaceNumber::new(u8::from(space.is_some()));
        Self {
            spaces: space.into_iter().map(NumberedSpace::main).collect(),
            default: SpaceNumber::MAIN,
            next,
        }
    }

    /// The space of this number.
    pub fn get(&self, number: SpaceNumber) -> Option<&NumberedSpace> {
        self.spaces.iter().find(|space| space.number == number)
    }

    /// The space of this name.
    pub fn named(&self, name: &str) -> Option<&NumberedSpace> {
        self.spaces.iter().find(|space| space.name == name)
    }

    /// The space that is meant: the one of this name, or the default.
    ///
    /// # Errors
    /// [`Refused`] on `space` where there is none of the name, on `vector` where the store has
    /// no default.
    pub fn meant(&self, name: Option<&str>) -> Result<&NumberedSpace, Refused> {
        match name {
            Some(name) => self.named(name).ok_or_else(|| {
                let message = format!("is named {name:?}; this store has none of that name");
                Refused::new("space", message)
            }),
            None => self.get(self.default).ok_or_else(|| {
                let message = "this store takes none; create one with --dim or an embedder";
                Refused::new("vector", message)
            }),
        }
    }
}

impl NumberedSpace {
    /// Refuses a vector that `model` is said to have made, where that is not the space's:
    /// vectors of two models have nothing to do with each other, whatever their dimension.
    ///
    /// # Errors
    /// [`Refused`] on `vector`.
    pub fn check_model(&self, model: Option<&str>) -> Result<(), Refused> {
        match model {
            Some(model) if model != self.space.model => {
                let message = format!(
                    "was made by {model}; the vectors of space {} come from {}",
                    self.name, self.space.model
                );
                Err(Refused::new("vector", message))
            }
            _ => Ok(()),
        }
    }
}

/// Checks the name of a vector space: 1 to [`SPACE_NAME_BYTES_MAX`] of ASCII letters, digits,
/// `-`, `_` and `.`.
///
/// # Errors
/// [`Refused`] on `space`.
pub fn check_space_name(name: &str) -> Result<(), Refused> {
    let is_named = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if (1..=SPACE_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_named) {
        return Ok(());
    }
    let message = format!(
        "must be named by 1 to {SPACE_NAME_BYTES_MAX} letters a to z, digits, and the signs - _ ."
    );
    Err(Refused::new("space", message))
}

/// The vectors of one record as their spaces store them, ascending by space.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredVectors(Vec<(SpaceNumber, Vec<u8>)>);

impl StoredVectors {
    /// None.
    pub const NONE: &'static Self = &Self(Vec::new());

    /// At most one, in the space that the store was made with.
    pub fn main(vector: Option<Vec<u8>>) -> Self {
        let vector = vector.map(|vector| (SpaceNumber::MAIN, vector));
        Self(vector.into_iter().collect())
    }

    /// The vector in this space.
    pub fn get(&self, space: SpaceNumber) -> Option<&[u8]> {
        let found = self.0.iter().find(|(number, _)| *number == space);
        found.map(|(_, vector)| vector.as_slice())
    }

    /// Puts a vector in, in the place of one of the same space.
    pub fn put(&mut self, space: SpaceNumber, vector: Vec<u8>) {
        match self.0.binary_search_by_key(&space, |(number, _)| *number) {
            Ok(at) => self.0[at].1 = vector,
            Err(at) => self.0.insert(at, (space, vector)),
        }
    }

    /// Leaves those of the spaces that `keeps`.
    pub fn retain(&mut self, keeps: impl Fn(SpaceNumber) -> bool) {
        self.0.retain(|(number, _)| keeps(*number));
    }

    /// Spaces with their vectors, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (SpaceNumber, &[u8])> {
        let all = self.0.iter();
        all.map(|(number, vector)| (*number, vector.as_slice()))
    }

    /// Those in other spaces than [`SpaceNumber::MAIN`].
    pub fn others(&self) -> impl Iterator<Item = (SpaceNumber, &[u8])> {
        self.iter().filter(|(number, _)| !number.is_main())
    }

    /// True without a vector.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        for good in [
            "a",
            "main",
            "MiniLM-L6_v2.1",
            &"x".repeat(SPACE_NAME_BYTES_MAX),
        ] {
            assert_eq!(check_space_name(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "a b",
            "ä",
            "a/b",
            "a\0",
            &"x".repeat(SPACE_NAME_BYTES_MAX + 1),
        ] {
            assert!(check_space_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn vectors_stand_once_and_in_order() {
        let mut vectors = StoredVectors::main(Some(vec![1]));
        vectors.put(SpaceNumber::new(3), vec![3]);
        vectors.put(SpaceNumber::new(2), vec![2]);
        vectors.put(SpaceNumber::new(3), vec![4]);
        let numbers: Vec<u8> = vectors.iter().map(|(number, _)| number.get()).collect();
        assert_eq!(numbers, [0, 2, 3]);
        assert_eq!(vectors.get(SpaceNumber::new(3)), Some(&[4][..]));
        assert_eq!(vectors.others().count(), 2);
        vectors.retain(|number| number != SpaceNumber::new(2));
        assert_eq!(vectors.get(SpaceNumber::new(2)), None);
    }
}
