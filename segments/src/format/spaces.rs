//! What does a footer say of vector spaces?
//!
//! A file that has none but the main one says it as files always did; see `footer` for the
//! fields.

use super::bytes::{Put, Take};
use super::footer::FooterSpace;
use super::{FORMAT_VERSION, ONE_SPACE};
use crate::error::SegmentError;
use crate::limits::{DIM_MAX, NAME_BYTES_MAX, SPACE_NAME_BYTES_MAX, SPACES_MAX};
use crate::prepared::{VectorFormat, VectorSpace};
use crate::read::Zone;
use crate::space::{NumberedSpace, SpaceNumber, check_space_name};

type Result<T> = std::result::Result<T, SegmentError>;

const NONE: u8 = 0;
const MAIN_ALONE: u8 = 1;
const LISTED: u8 = 2;

/// The oldest format version of a file with these spaces.
pub(crate) fn version_of(spaces: &[FooterSpace]) -> u32 {
    match is_listed(spaces) {
        true => FORMAT_VERSION,
        false => ONE_SPACE,
    }
}

fn is_listed(spaces: &[FooterSpace]) -> bool {
    spaces.iter().any(|space| !space.own.number.is_main())
}

pub(super) fn put_spaces(out: &mut Vec<u8>, spaces: &[FooterSpace]) {
    match spaces {
        [] => out.put_u8(NONE),
        [main] if !is_listed(spaces) => {
            out.put_u8(MAIN_ALONE);
            put_space(out, &main.own.space);
        }
        spaces => {
            out.put_u8(LISTED);
            out.put_u8(u8::try_from(spaces.len()).expect("at most SPACES_MAX"));
            for FooterSpace { own, vectors } in spaces {
                out.put_u8(own.number.get());
                out.put_prefixed(own.name.as_bytes());
                put_space(out, &own.space);
                out.put_u32(*vectors);
            }
        }
    }
}

fn put_space(out: &mut Vec<u8>, space: &VectorSpace) {
    out.put_prefixed(space.model.as_bytes());
    out.put_u32(space.dim);
    out.put_u8(match space.format {
        VectorFormat::F16 => 0,
        VectorFormat::F32 => 1,
    });
    out.put_u8(u8::from(space.normalised));
}

/// What was read, until the zone is known.
pub(super) enum TakenSpaces {
    /// The main one or none: how many vectors it has is in the zone.
    Main(Option<VectorSpace>),
    Listed(Vec<FooterSpace>),
}

impl TakenSpaces {
    /// The spaces, whose vectors are no more than the rows of the zone.
    pub(super) fn fit(self, take: &Take<'_>, zone: &Zone) -> Result<Vec<FooterSpace>> {
        let spaces = match self {
            Self::Listed(spaces) => spaces,
            Self::Main(space) => {
                let main = space.map(|space| FooterSpace {
                    own: NumberedSpace::main(space),
                    vectors: zone.vectors,
                });
                return Ok(main.into_iter().collect());
            }
        };
        let main = spaces.iter().find(|space| space.own.number.is_main());
        let fits = spaces.iter().all(|space| space.vectors <= zone.rows);
        if !fits || main.map_or(0, |main| main.vectors) != zone.vectors {
            return Err(
                take.corrupt("vectors of a space outnumber the rows, or are not the zone's")
            );
        }
        Ok(spaces)
    }
}

pub(super) fn take_spaces(take: &mut Take<'_>) -> Result<TakenSpaces> {
    match take.u8()? {
        NONE => Ok(TakenSpaces::Main(None)),
        MAIN_ALONE => Ok(TakenSpaces::Main(Some(take_space(take)?))),
        LISTED => take_listed(take).map(TakenSpaces::Listed),
        other => Err(take.corrupt(format!("vector space flag is {other}, not 0 to 2"))),
    }
}

fn take_listed(take: &mut Take<'_>) -> Result<Vec<FooterSpace>> {
    let count = usize::from(take.u8()?);
    if !(1..=SPACES_MAX).contains(&count) {
        return Err(take.corrupt(format!("{count} vector spaces; 1 to {SPACES_MAX}")));
    }
    let mut spaces: Vec<FooterSpace> = Vec::with_capacity(count);
    for _ in 0..count {
        let number = SpaceNumber::new(take.u8()?);
        let name = take.text("name of a vector space", SPACE_NAME_BYTES_MAX)?;
        let name = name.to_owned();
        let own = NumberedSpace {
            number,
            name,
            space: take_space(take)?,
        };
        let ascends = spaces.last().is_none_or(|last| last.own.number < number);
        if !ascends || check_space_name(&own.name).is_err() {
            return Err(take.corrupt("a vector space is out of order or has no name"));
        }
        let vectors = take.u32()?;
        spaces.push(FooterSpace { own, vectors });
    }
    match is_listed(&spaces) {
        true => Ok(spaces),
        false => Err(take.corrupt("a list of the main vector space alone")),
    }
}

fn take_space(take: &mut Take<'_>) -> Result<VectorSpace> {
    let model = take.text("vector model", NAME_BYTES_MAX)?.to_owned();
    let dim = take.u32()?;
    if dim == 0 || dim as usize > DIM_MAX {
        return Err(take.corrupt(format!("dimension {dim}; 1 to {DIM_MAX}")));
    }
    let format = match take.u8()? {
        0 => VectorFormat::F16,
        1 => VectorFormat::F32,
        other => return Err(take.corrupt(format!("vector format {other} is none"))),
    };
    let normalised = match take.u8()? {
        0 => false,
        1 => true,
        other => return Err(take.corrupt(format!("normalised is {other}, not 0 or 1"))),
    };
    Ok(VectorSpace {
        model,
        dim,
        format,
        normalised,
    })
}
