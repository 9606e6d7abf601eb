//! What goes into the sections of vectors, space by space?

use super::file::FileWriter;
use super::order::Merge;
use super::{Result, SegmentSpec};
use crate::format::{FooterSpace, SectionKind};
use crate::space::NumberedSpace;
use crate::vectors::{CodeScratch, Coder, CodesWriter, RunsWriter, VectorsWriter, code_seed};

/// The store's spaces beside the main one in which an input has vectors: what makes a file of
/// several spaces.
pub(super) fn further_spaces<'s>(
    spec: &'s SegmentSpec,
    merge: &Merge<'_>,
) -> impl Iterator<Item = &'s NumberedSpace> {
    let further = spec.spaces.iter().filter(|own| !own.number.is_main());
    further.filter(|own| merge.has_vectors(own.number))
}

/// Writes the vectors of each space; gives the spaces that the footer names.
pub(super) fn write_spaces(
    file: &mut FileWriter<'_>,
    spec: &SegmentSpec,
    merge: &Merge<'_>,
) -> Result<Vec<FooterSpace>> {
    let main = spec.spaces.iter().filter(|own| own.number.is_main());
    let named = main.chain(further_spaces(spec, merge));
    let mut written = Vec::new();
    for own in named {
        written.push(FooterSpace {
            own: own.clone(),
            vectors: write_vectors(file, spec, own, merge)?,
        });
    }
    Ok(written)
}

/// Writes the vectors of a space, if an input has any; gives their count.
fn write_vectors(
    file: &mut FileWriter<'_>,
    spec: &SegmentSpec,
    own: &NumberedSpace,
    merge: &Merge<'_>,
) -> Result<u32> {
    let (number, space) = (own.number, &own.space);
    if !merge.has_vectors(number) {
        return Ok(0);
    }
    let runs = match number == spec.layout {
        true => &merge.runs[..],
        false => &[],
    };
    let (mut writer, mut runs) = (VectorsWriter::new(space), RunsWriter::new(space, runs));
    file.section_in(SectionKind::Vectors, number, |sink| {
        for (to, (partition, row)) in (0_u32..).zip(merge.rows()) {
            let vector = partition.vector(number, row)?;
            writer.push(sink, vector.as_deref())?;
            if let Some(vector) = vector {
                runs.see(to, &vector);
            }
        }
        Ok(())
    })?;
    let vectors = writer.vectors();
    let presence = writer.finish();
    file.section_in(SectionKind::VectorRows, number, |sink| {
        sink.write(&presence)
    })?;
    if vectors > 0 {
        write_codes(file, spec, own, merge)?;
    }
    if let Some(bytes) = runs.finish(merge.zone.rows) {
        file.section_in(SectionKind::VectorRuns, number, |sink| sink.write(&bytes))?;
    }
    Ok(vectors)
}

/// Writes the codes of the vectors: those of the inputs, which depend on vector and store
/// alone, and new ones where an input has none of this store.
fn write_codes(
    file: &mut FileWriter<'_>,
    spec: &SegmentSpec,
    own: &NumberedSpace,
    merge: &Merge<'_>,
) -> Result<()> {
    let (number, seed) = (own.number, code_seed(&spec.store_id));
    let inputs = merge.inputs().iter();
    let has_codes: Vec<bool> = inputs
        .map(|input| input.partition.code_seed(number) == Some(seed))
        .collect();
    let coder = Coder::new(&own.space, seed);
    let mut writer = CodesWriter::new(&own.space, seed);
    let (mut code, mut scratch) = (Vec::new(), CodeScratch::default());
    file.section_in(SectionKind::VectorCodes, number, |sink| {
        for (input, row) in merge.origins() {
            let partition = merge.inputs()[input].partition;
            code.clear();
            let factor = match has_codes[input] {
                true => partition.code(number, row, &mut code)?,
                false => partition
                    .vector(number, row)?
                    .map(|vector| coder.encode_with(&vector, &mut code, &mut scratch)),
            };
            if let Some(factor) = factor {
                writer.push(sink, &code, factor)?;
            }
        }
        writer.finish(sink)
    })
}
