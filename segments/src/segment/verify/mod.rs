//! Is every byte of a segment what was written, and do its parts agree with each other?
//!
//! First every checksum block, whatever it belongs to, and the zeros between sections; then, where all blocks are whole, the
//! sections against each other: a writer's mistake, or a file of another hand, has right
//! checksums too.
//!
//! | check | says |
//! | --- | --- |
//! | `rows` | columns, scope directory, zone, timelines, ids with order and filter |
//! | `vectors` | vectors of each space with presence, codes and runs |
//! | `index` | postings and tags by row and by name; words, lengths and token costs against the stored text, analysed anew |

mod index;
mod rows;
mod vectors;

use std::path::Path;

use chronolith_vfs::Vfs;

use super::load::Loaded;
use super::{Result, Segment};
use crate::error::SegmentError;
use crate::format::frame::HEADER_BYTES;
use crate::format::{BLOCK_BYTES, ReadMode, Section, SectionKind};
use crate::space::SpaceNumber;

/// Findings after which a scrub stops: a file that is damaged all over needs no longer list.
const FINDINGS_MAX: usize = 1000;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// File name inside the store.
    pub file: String,
    /// Section of the file.
    pub section: &'static str,
    /// Byte offset in the file.
    pub offset: u64,
    /// Found against expected.
    pub message: String,
}

/// What a scrub saw.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scrub {
    /// Checksum blocks that were read.
    pub blocks: u64,
    /// What is wrong; empty for a sound file.
    pub findings: Vec<Finding>,
}

impl Segment {
    /// Reads every block anew, then compares the sections with each other. The comparison is
    /// left out where a block is damaged: it would only repeat that.
    pub fn verify_all(&self) -> Scrub {
        self.verify(&mut |_| {}, false)
    }

    /// As [`Segment::verify_all`], and compares what was derived from a record with the
    /// record: words, length and token costs with the text, unit vectors with their length,
    /// codes with their vectors.
    /// `progress` is told how many of the file's bytes are done, ever more up to its length;
    /// half of them count for the blocks, half for the comparison.
    pub fn verify_content(&self, progress: &mut dyn FnMut(u64)) -> Scrub {
        self.verify(progress, true)
    }

    fn verify(&self, progress: &mut dyn FnMut(u64), content: bool) -> Scrub {
        let _in_order = self.read_in_order();
        let bytes = self.loaded.file.bytes;
        let mut found = Found::new(self);
        found.scrub(&self.loaded.sections, &mut |read| progress(read / 2));
        if found.scrub.findings.is_empty() {
            let checks: [fn(&Self, &mut Found) -> Result<()>; 7] = [
                Self::check_columns,
                Self::check_timeline,
                Self::check_ids,
                Self::check_tags,
                Self::check_vector_rows,
                Self::check_code_rows,
                Self::check_vector_runs,
            ];
            for check in checks {
                let checked = check(self, &mut found);
                found.note(checked);
            }
            if content {
                for check in [Self::check_vectors, Self::check_codes] {
                    let checked = check(self, &mut found);
                    found.note(checked);
                }
            }
            let mut at_row = |row: u32| {
                let share = u128::from(bytes - bytes / 2) * u128::from(row);
                let done = share / u128::from(self.scopes.rows().max(1));
                progress(bytes / 2 + u64::try_from(done).unwrap_or(0));
            };
            let checked = self.check_words(&mut found, content, &mut at_row);
            found.note(checked);
        }
        progress(bytes);
        found.scrub
    }

    /// Reads every block of a file that [`Segment::open`] refuses, as far as its frame and
    /// footer can be read: damage in one section does not hide damage in the others.
    ///
    /// # Errors
    /// As [`super::Description::read`].
    pub fn scrub_blocks(vfs: &dyn Vfs, dir: &Path, file_number: u64) -> Result<Scrub> {
        let loaded = Loaded::read(vfs, dir, file_number, ReadMode::Positioned)?;
        let mut found = Found {
            file: loaded.name.to_string(),
            scrub: Scrub::default(),
        };
        found.scrub(&loaded.sections, &mut |_| {});
        Ok(found.scrub)
    }

    fn damage(&self, kind: SectionKind, message: String) -> SegmentError {
        match self.loaded.section(kind) {
            Ok(section) => section.corrupt(0, message),
            Err(missing) => missing,
        }
    }

    fn damage_in(&self, kind: SectionKind, space: SpaceNumber, message: String) -> SegmentError {
        match self.loaded.section_in(kind, space) {
            Ok(section) => section.corrupt(0, message),
            Err(missing) => missing,
        }
    }
}

/// The bytes before a section are zeros. Nobody reads them, so no checksum covers them; a disk
/// that changed them is worth a word all the same.
fn check_gap(section: &Section, from: u64) -> Result<()> {
    let gap = section.gap_before(from)?;
    if gap.iter().all(|byte| *byte == 0) {
        return Ok(());
    }
    Err(section.corrupt(
        0,
        format!("the bytes between {from} and the section are not zeros"),
    ))
}

/// Collects what is wrong with one file.
struct Found {
    file: String,
    scrub: Scrub,
}

impl Found {
    fn new(segment: &Segment) -> Self {
        Self {
            file: segment.file_name().to_owned(),
            scrub: Scrub::default(),
        }
    }

    /// Every block of every section; unknown kinds too. `progress` gets bytes read so far.
    fn scrub(&mut self, sections: &[Section], progress: &mut dyn FnMut(u64)) {
        let mut read = 0;
        let mut end = HEADER_BYTES as u64;
        for section in sections {
            self.note(check_gap(section, end));
            end = section.file_place().end;
            for block in 0..section.blocks() {
                self.scrub.blocks += 1;
                self.note(section.scrub_block(block));
                if self.is_full() {
                    return;
                }
                progress(read + (section.len()).min((block + 1) * BLOCK_BYTES as u64));
            }
            read += section.len();
        }
    }

    fn is_full(&self) -> bool {
        self.scrub.findings.len() >= FINDINGS_MAX
    }

    /// Notes damage at the start of a section and goes on.
    fn damage(&mut self, segment: &Segment, kind: SectionKind, message: String) {
        self.note(Err(segment.damage(kind, message)));
    }

    /// As [`Found::damage`], of a section of a space.
    fn damage_in(
        &mut self,
        segment: &Segment,
        (kind, space): (SectionKind, SpaceNumber),
        message: String,
    ) {
        self.note(Err(segment.damage_in(kind, space, message)));
    }

    fn note(&mut self, result: Result<()>) {
        let Err(error) = result else {
            return;
        };
        if self.is_full() {
            return;
        }
        self.scrub.findings.push(match error {
            SegmentError::Corrupt {
                file,
                section,
                offset,
                message,
            } => Finding {
                file,
                section,
                offset,
                message,
            },
            other => Finding {
                file: self.file.clone(),
                section: "file",
                offset: 0,
                message: other.to_string(),
            },
        });
    }
}
