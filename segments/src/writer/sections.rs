//! Which sections does a segment have, and what goes into each?

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::file::FileWriter;
use super::order::Merge;
use super::terms::write_terms;
use super::vectors::write_spaces;
use super::{ROW_DROPPED, Result, SegmentSpec};
use crate::columns::{Column, write_columns};
use crate::format::bytes::{Put, index};
use crate::format::{Counts, FooterSpace, SectionKind, VecSink};
use crate::ids::{IdList, encode_filter, id_hash, write_id_order, write_names};
use crate::read::Zone;
use crate::scope_dir::{ScopeFacts, encode_scopes};
use crate::stream::RowStream;
use crate::tags::TagsWriter;
use crate::text::{SAMPLE_BYTES, SAMPLES_BYTES, TextWriter, train};
use crate::timeline::write_timeline;

pub(super) use super::vectors::further_spaces;

/// What the footer says of what was written.
pub(super) struct Summed {
    pub(super) zone: Zone,
    pub(super) counts: Counts,
    pub(super) spaces: Vec<FooterSpace>,
}

/// Writes every section.
pub(super) fn write_sections(
    file: &mut FileWriter<'_>,
    spec: &SegmentSpec,
    merge: &Merge<'_>,
) -> Result<Summed> {
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
    let spaces = write_spaces(file, spec, merge)?;
    let summaries = write_texts(file, spec, merge)?;
    let main = spaces.iter().find(|space| space.own.number.is_main());
    let zone = Zone {
        vectors: main.map_or(0, |main| main.vectors),
        ..merge.zone
    };
    let counts = Counts {
        summaries,
        terms: counted.terms,
        postings: counted.postings,
        length_sum: merge.length_sum,
    };
    Ok(Summed {
        zone,
        counts,
        spaces,
    })
}

/// Seed of the hash of terms: of the store's random id and the file, so that no caller can aim
/// collisions, and the same rows still give the same bytes.
fn hash_seed(spec: &SegmentSpec) -> u64 {
    xxh3_64_with_seed(&spec.store_id, spec.file_number)
}

fn write_fields(file: &mut FileWriter<'_>, merge: &Merge<'_>) -> Result<()> {
    let sources = SourceIds::of(merge)?;
    file.section(SectionKind::Columns, |sink| {
        write_columns(sink, merge.zone.rows, |column, values| match column {
            Column::SourceId => sources.fill(merge, values),
            Column::Cluster => {
                values.fill(0);
                for (value, cluster) in values.iter_mut().zip(&merge.clusters) {
                    *value = u64::from(*cluster);
                }
                Ok(())
            }
            column => merge.each_value(column, |to, value| values[index(to)] = value),
        })
    })?;
    if !sources.names.is_empty() {
        file.section(SectionKind::SourceIds, |sink| {
            write_names(sink, sources.names.iter().map(String::as_str))
        })?;
    }
    Ok(())
}

/// The source ids of the kept rows.
#[derive(Debug)]
struct SourceIds {
    /// Ascending.
    names: Vec<String>,
    /// Of each input: value in its column to value in the new one.
    values: Vec<BTreeMap<u64, u64>>,
}

impl SourceIds {
    fn of(merge: &Merge<'_>) -> Result<Self> {
        let mut values: Vec<BTreeMap<u64, u64>> = vec![BTreeMap::new(); merge.inputs().len()];
        // Ranked once all are known.
        let mut ranks: BTreeMap<String, u64> = BTreeMap::new();
        for (number, (input, stream)) in merge.inputs().iter().zip(merge.streams()?).enumerate() {
            let (own, remap) = (&mut values[number], merge.remap(number));
            input
                .partition
                .each_value(Column::SourceId, &input.keep, &mut |row, value| {
                    if value > 0 && remap[index(row)] != ROW_DROPPED {
                        own.insert(value, 0);
                    }
                })?;
            for value in own.keys() {
                ranks.insert(name_of(&*stream, *value)?, 0);
            }
        }
        for (rank, value) in (1..).zip(ranks.values_mut()) {
            *value = rank;
        }
        for (own, stream) in values.iter_mut().zip(merge.streams()?) {
            for (value, to) in own {
                *to = ranks[&name_of(&*stream, *value)?];
            }
        }
        Ok(Self {
            names: ranks.into_keys().collect(),
            values,
        })
    }

    fn fill(&self, merge: &Merge<'_>, values: &mut [u64]) -> Result<()> {
        values.fill(0);
        if self.names.is_empty() {
            return Ok(());
        }
        for (number, (input, own)) in merge.inputs().iter().zip(&self.values).enumerate() {
            let remap = merge.remap(number);
            input
                .partition
                .each_value(Column::SourceId, &input.keep, &mut |row, value| {
                    let to = remap[index(row)];
                    if value > 0 && to != ROW_DROPPED {
                        values[index(to)] = own[&value];
                    }
                })?;
        }
        Ok(())
    }
}

fn name_of(stream: &dyn RowStream, value: u64) -> Result<String> {
    let value = u32::try_from(value).expect("a column of 32 bits is read with a check of them");
    Ok(stream.source_name(value)?.into_owned())
}

fn write_ids(file: &mut FileWriter<'_>, merge: &Merge<'_>, scopes: &[ScopeFacts]) -> Result<()> {
    let (mut ids, mut streams) = (IdList::default(), merge.streams()?);
    for (input, row) in merge.origins() {
        ids.push(|text| streams[input].id(row, text))?;
    }
    file.section(SectionKind::Ids, |sink| write_names(sink, ids.iter()))?;
    file.section(SectionKind::IdOrder, |sink| {
        write_id_order(sink, &ids, &merge.seqs, scopes)
    })?;
    let numbered = scopes.iter().enumerate();
    let hashes = numbered
        .flat_map(|(number, scope)| scope.rows.clone().map(move |row| (number, row)))
        .map(|(number, row)| id_hash(number, ids.get(row)));
    file.put_section(
        SectionKind::IdFilter,
        &encode_filter(merge.zone.rows, hashes),
    )
}

fn write_tags(file: &mut FileWriter<'_>, merge: &Merge<'_>) -> Result<()> {
    const UNKNOWN: u32 = u32::MAX;
    let (mut writer, mut streams) = (TagsWriter::new(), merge.streams()?);
    // Of each input: its number of a tag to the writer's.
    let mut known: Vec<Vec<u32>> = vec![Vec::new(); streams.len()];
    let mut tags = Vec::new();
    for (input, row) in merge.origins() {
        let (stream, known) = (&mut streams[input], &mut known[input]);
        tags.clear();
        stream.tags(row, &mut tags)?;
        for tag in &mut tags {
            if known.len() <= index(*tag) {
                known.resize(index(*tag) + 1, UNKNOWN);
            }
            let known = &mut known[index(*tag)];
            if *known == UNKNOWN {
                *known = writer.number(&stream.tag_name(*tag)?)?;
            }
            *tag = *known;
        }
        writer.push(tags.iter().copied())?;
    }
    let bytes = writer.finish()?;
    file.put_section(SectionKind::Tags, &bytes.tags)?;
    file.put_section(SectionKind::TagSets, &bytes.sets)?;
    file.put_section(SectionKind::RowTags, &bytes.row_tags)
}

/// Writes dictionary, texts and summaries; gives the count of summaries.
fn write_texts(file: &mut FileWriter<'_>, spec: &SegmentSpec, merge: &Merge<'_>) -> Result<u32> {
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
        let (mut streams, mut bytes) = (merge.streams()?, Vec::new());
        for (input, row) in merge.origins() {
            bytes.clear();
            streams[input].detailed(row, &mut bytes)?;
            detailed.push(sink, &bytes)?;
            bytes.clear();
            streams[input].distilled(row, &mut bytes)?;
            distilled.push(&mut distilled_sink, &bytes)?;
            summaries += u32::from(!bytes.is_empty());
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

/// Trains on evenly spread stretches of neighbouring rows, [`SAMPLES_BYTES`] in all. A stretch is about
/// half a block, which is what the dictionary will meet; to the trainer many short samples cost far
/// more than as much text in few.
fn train_dictionary(merge: &Merge<'_>) -> Result<Option<Vec<u8>>> {
    // Token costs stand in columns: four bytes a token is near enough to choose the stretches.
    let mut text_bytes = 0_u64;
    merge.each_value(Column::TextTokens, |_, tokens| text_bytes += tokens * 4)?;
    let rows = u64::from(merge.zone.rows);
    let of_a_stretch = (SAMPLE_BYTES * rows / text_bytes.max(1)).max(1);
    let step = of_a_stretch * (text_bytes / SAMPLES_BYTES).max(1);
    let (mut samples, mut streams) = (Vec::new(), merge.streams()?);
    let (mut sampled_bytes, mut sampled_rows, mut bytes) = (0_u64, 0_u64, Vec::new());
    for (at, (input, row)) in (0_u64..).zip(merge.origins()) {
        match at % step {
            0 if sampled_bytes >= 2 * SAMPLES_BYTES => break,
            0 => samples.push(Vec::new()),
            within if within >= of_a_stretch => continue,
            _ => {}
        }
        bytes.clear();
        streams[input].detailed(row, &mut bytes)?;
        sampled_bytes += bytes.len() as u64;
        sampled_rows += 1;
        samples
            .last_mut()
            .expect("the first row starts one")
            .put_prefixed(&bytes);
    }
    // What all rows take by the samples' mean: a dictionary must not outweigh its text.
    let text_bytes = (sampled_bytes / sampled_rows.max(1)) * rows;
    Ok(train(&samples, text_bytes))
}
