//! Which sections does a segment have, and what goes into each?

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::file::FileWriter;
use super::order::Merge;
use super::terms::write_terms;
use super::{Result, SegmentSpec};
use crate::columns::write_columns;
use crate::format::bytes::index;
use crate::format::{Counts, SectionKind, VecSink};
use crate::ids::{IdList, encode_filter, id_hash, write_id_order, write_names};
use crate::read::Zone;
use crate::scope_dir::{ScopeFacts, encode_scopes};
use crate::tags::TagsWriter;
use crate::text::{SAMPLE_BYTES_MAX, TextWriter, encode_detailed, encode_distilled, train};
use crate::timeline::write_timeline;
use crate::vectors::VectorsWriter;

/// Writes every section; gives the zone and the counts for the footer.
pub(super) fn write_sections(
    file: &mut FileWriter,
    spec: &SegmentSpec,
    merge: &Merge<'_>,
) -> Result<(Zone, Counts)> {
    let mut scopes = merge.scopes.clone();
    file.section(SectionKind::Timeline, |sink| {
        write_timeline(sink, &merge.times_us, &mut scopes)
    })?;
    file.put_section(SectionKind::Scopes, &encode_scopes(&scopes, &merge.zone))?;
    write_fields(file, merge)?;
    write_ids(file, merge, &scopes)?;
    let (terms, counted) = file.section(SectionKind::Postings, |sink| {
        write_terms(sink, merge, hash_seed(spec))
    })?;
    file.put_section(SectionKind::PostingsSkip, &terms.skip)?;
    file.put_section(SectionKind::Terms, &terms.terms)?;
    drop(terms);
    write_tags(file, merge)?;
    let vectors = write_vectors(file, spec, merge)?;
    let summaries = write_texts(file, spec, merge)?;
    let zone = Zone {
        vectors,
        ..merge.zone
    };
    let counts = Counts {
        summaries,
        terms: counted.terms,
        postings: counted.postings,
        length_sum: merge.length_sum,
    };
    Ok((zone, counts))
}

/// Seed of the hash of terms: of the store's random id and the file, so that no caller can aim
/// collisions, and the same rows still give the same bytes.
fn hash_seed(spec: &SegmentSpec) -> u64 {
    xxh3_64_with_seed(&spec.store_id, spec.file_number)
}

fn write_fields(file: &mut FileWriter, merge: &Merge<'_>) -> Result<()> {
    let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
    // Number in order of first sight + 1; 0 = none.
    let mut source_ids = Vec::with_capacity(merge.times_us.len());
    for (partition, row) in merge.rows() {
        source_ids.push(match partition.source_id(row)? {
            None => 0,
            Some(name) => {
                let next = u32::try_from(numbers.len() + 1).expect("at most ROWS_MAX");
                match numbers.get(&*name) {
                    Some(number) => *number,
                    None => *numbers.entry(name.into_owned()).or_insert(next),
                }
            }
        });
    }
    let mut ranks = vec![0_u32; numbers.len() + 1];
    for (rank, number) in (1_u32..).zip(numbers.values()) {
        ranks[index(*number)] = rank;
    }
    file.section(SectionKind::Columns, |sink| {
        write_columns(sink, merge.zone.rows, |at| {
            let (partition, row) = merge.row(at);
            Ok((partition.fields(row)?, ranks[index(source_ids[index(at)])]))
        })
    })?;
    if !numbers.is_empty() {
        file.section(SectionKind::SourceIds, |sink| {
            write_names(sink, numbers.keys().map(String::as_str))
        })?;
    }
    Ok(())
}

fn write_ids(file: &mut FileWriter, merge: &Merge<'_>, scopes: &[ScopeFacts]) -> Result<()> {
    let mut ids = IdList::default();
    for (partition, row) in merge.rows() {
        ids.push(&partition.id(row)?);
    }
    file.section(SectionKind::Ids, |sink| write_names(sink, ids.iter()))?;
    file.section(SectionKind::IdOrder, |sink| {
        write_id_order(sink, &ids, &merge.seqs, scopes)
    })?;
    let hashes: Vec<u64> = scopes
        .iter()
        .enumerate()
        .flat_map(|(number, scope)| scope.rows.clone().map(move |row| (number, row)))
        .map(|(number, row)| id_hash(number, ids.get(row)))
        .collect();
    file.put_section(SectionKind::IdFilter, &encode_filter(&hashes))
}

fn write_tags(file: &mut FileWriter, merge: &Merge<'_>) -> Result<()> {
    let mut writer = TagsWriter::new();
    for (partition, row) in merge.rows() {
        let tags = partition.tags(row)?;
        writer.push(tags.iter().map(String::as_str))?;
    }
    let bytes = writer.finish()?;
    file.put_section(SectionKind::Tags, &bytes.tags)?;
    file.put_section(SectionKind::TagSets, &bytes.sets)?;
    file.put_section(SectionKind::RowTags, &bytes.row_tags)
}

/// Writes the vectors, if an input has any; gives their count.
fn write_vectors(file: &mut FileWriter, spec: &SegmentSpec, merge: &Merge<'_>) -> Result<u32> {
    let any = merge
        .inputs()
        .iter()
        .any(|input| input.partition.zone().vectors > 0);
    let Some(space) = spec.vector_space.as_ref().filter(|_| any) else {
        assert!(!any, "vectors belong to a space");
        return Ok(0);
    };
    let mut writer = VectorsWriter::new(space);
    file.section(SectionKind::Vectors, |sink| {
        for (partition, row) in merge.rows() {
            writer.push(sink, partition.vector(row)?.as_deref())?;
        }
        Ok(())
    })?;
    let vectors = writer.vectors();
    file.put_section(SectionKind::VectorRows, &writer.finish())?;
    Ok(vectors)
}

/// Writes dictionary, texts and summaries; gives the count of summaries.
fn write_texts(file: &mut FileWriter, spec: &SegmentSpec, merge: &Merge<'_>) -> Result<u32> {
    let dictionary = if spec.train_dictionary {
        train_dictionary(merge)?
    } else {
        None
    };
    if let Some(dictionary) = &dictionary {
        file.put_section(SectionKind::TextDictionary, dictionary)?;
    }
    let mut detailed = TextWriter::new(dictionary.as_deref())?;
    let mut distilled = TextWriter::new(dictionary.as_deref())?;
    // Summaries are few or short: they wait in memory, so that each row is read once.
    let mut distilled_sink = VecSink::default();
    let mut summaries = 0;
    let detailed_index = file.section(SectionKind::Detailed, |sink| {
        let mut bytes = Vec::new();
        for (partition, row) in merge.rows() {
            let stored = partition.stored(row)?;
            bytes.clear();
            encode_detailed(&stored, &mut bytes);
            detailed.push(sink, &bytes)?;
            bytes.clear();
            encode_distilled(stored.summary.as_deref(), &mut bytes);
            distilled.push(&mut distilled_sink, &bytes)?;
            summaries += u32::from(stored.summary.is_some());
        }
        detailed.finish(sink)
    })?;
    file.put_section(SectionKind::DetailedIndex, &detailed_index)?;
    let distilled_index = distilled.finish(&mut distilled_sink)?;
    if summaries > 0 {
        file.put_section(SectionKind::Distilled, &distilled_sink.bytes)?;
        file.put_section(SectionKind::DistilledIndex, &distilled_index)?;
    }
    Ok(summaries)
}

/// Trains on evenly spread rows, at most [`SAMPLE_BYTES_MAX`] of them.
fn train_dictionary(merge: &Merge<'_>) -> Result<Option<Vec<u8>>> {
    let text_bytes = estimate_text_bytes(merge)?;
    let stride = usize::try_from(text_bytes / SAMPLE_BYTES_MAX)
        .unwrap_or(usize::MAX)
        .max(1);
    let mut samples = Vec::new();
    let (mut sampled_bytes, mut sampled_rows) = (0_u64, 0_u64);
    for (partition, row) in merge.rows().step_by(stride) {
        let mut bytes = Vec::new();
        encode_detailed(&partition.stored(row)?, &mut bytes);
        sampled_bytes += bytes.len() as u64;
        sampled_rows += 1;
        samples.push(bytes);
        if sampled_bytes >= 2 * SAMPLE_BYTES_MAX {
            break;
        }
    }
    // What all rows take by the samples' mean: a dictionary must not outweigh its text.
    let text_bytes = (sampled_bytes / sampled_rows.max(1)) * u64::from(merge.zone.rows);
    Ok(train(&samples, text_bytes))
}

/// Token costs stand in columns: four bytes a token is near enough to choose a stride.
fn estimate_text_bytes(merge: &Merge<'_>) -> Result<u64> {
    merge
        .rows()
        .map(|(partition, row)| Ok(u64::from(partition.fields(row)?.text_tokens) * 4))
        .sum()
}
