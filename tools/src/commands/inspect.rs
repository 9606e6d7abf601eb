//! `inspect`: what do a store's files say of themselves?

use std::io::Write;
use std::path::Path;

use chronolith::manifest::names::{DataKind, DataName, ManifestName, WAL_DIR};
use chronolith::manifest::{self, Manifest, VectorSpace};
use chronolith_segments::Description;
use chronolith_vfs::{Env, Vfs};
use chronolith_wal::{Log, LogOptions, list_logs, log_name, parse_log_name};
use serde_json::{Value, json};

use crate::cli::Inspect;
use crate::failure::Failure;
use crate::output::{bytes, clean};
use crate::{files, output, times};

/// Most frames that are shown to a person.
const FRAMES_SHOWN: usize = 40;

pub(crate) fn run(args: &Inspect) -> Result<(), Failure> {
    let path = &args.path;
    let is_dir = files::vfs()
        .stat(path)
        .map_err(|error| Failure::io("look at", path, &error))?
        .is_dir;
    if is_dir {
        let loaded =
            manifest::load_read_only(&files::vfs(), path).map_err(chronolith::Error::from)?;
        return show_manifest(&loaded.manifest, Some(path), args.json);
    }
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let dir = path.parent().unwrap_or(Path::new("."));
    let store = match dir.parent() {
        Some(up) if !up.as_os_str().is_empty() => up.to_owned(),
        _ => dir.join(".."),
    };
    if let Some(number) = parse_log_name(name) {
        return show_log(&store, dir, number, args.json);
    }
    if let Some(name) = ManifestName::parse(name) {
        let (manifest, _) = manifest::read_copy(&files::vfs(), &store, name.generation, name.copy)
            .map_err(chronolith::Error::from)?;
        return show_manifest(&manifest, None, args.json);
    }
    match DataName::parse(name) {
        Some(data) if data.kind == DataKind::Segment => {
            let description = Description::read(&files::vfs(), dir, data.file_number)
                .map_err(chronolith::Error::from)?;
            show_segment(&description, args.json)
        }
        Some(data) => show_side_file(&store, data, args.json),
        None => Err(Failure::Failed(format!(
            "{} is no store and no file of one (a .seg, .del, .tags, .log or MANIFEST file)",
            path.display()
        ))),
    }
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn manifest_json(manifest: &Manifest) -> Value {
    let mut value = serde_json::to_value(manifest).unwrap_or_default();
    value["store_id"] = hex(&manifest.store_id).into();
    if let Some(table) = &manifest.settings.spaces {
        value["settings"]["spaces"] = serde_json::to_value(table).unwrap_or_default();
    }
    value["created"] = times::show(manifest.created_us).into();
    // Digests are 128 bits wide: more than a JSON number carries everywhere.
    for (entry, shown) in manifest
        .segments
        .iter()
        .zip(value["segments"].as_array_mut().into_iter().flatten())
    {
        shown["digest"] = format!("{:032x}", entry.digest).into();
        if let Some(side) = &entry.deletes {
            shown["deletes"]["digest"] = format!("{:032x}", side.digest).into();
        }
    }
    value
}

fn show_manifest(manifest: &Manifest, store: Option<&Path>, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return output::print_json(&manifest_json(manifest));
    }
    let mut out = output::for_people();
    let settings = &manifest.settings;
    let mut line = |name: &str, value: String| writeln!(out, "{name:<12} {}", clean(&value));
    line("store", hex(&manifest.store_id))?;
    line("created", times::show(manifest.created_us))?;
    line(
        "generation",
        format!("{} (epoch {})", manifest.generation, manifest.epoch),
    )?;
    line(
        "flushed",
        format!(
            "seq {}, log from file {}",
            manifest.flushed_seq, manifest.floor_file
        ),
    )?;
    line(
        "formats",
        format!(
            "segment {}, log {}, side files {}",
            settings.segment_format, settings.log_format, settings.side_file_format
        ),
    )?;
    line("analyzer", settings.analyzer.clone())?;
    let shown = |space: &VectorSpace| {
        let (model, dim, format) = (&space.model, space.dim, space.format);
        format!("{model}, {dim} components, {format:?}")
    };
    match &settings.spaces {
        None => {
            let vectors = settings.vector_space.as_ref();
            line("vectors", vectors.map_or("none".into(), shown))?;
        }
        Some(table) => {
            for own in &table.spaces {
                let mark = if own.number == table.default {
                    ", the default"
                } else {
                    ""
                };
                let what = format!(
                    "space {} ({}), {}{mark}",
                    own.name,
                    own.number,
                    shown(&own.space)
                );
                line("vectors", what)?;
            }
        }
    }
    line(
        "buckets",
        format!(
            "{} s, ladder {:?}",
            settings.bucket_base_us / 1_000_000,
            settings.bucket_ladder
        ),
    )?;
    line(
        "rows",
        format!(
            "{} live, {} dead",
            manifest.statistics.live_rows, manifest.statistics.dead_rows
        ),
    )?;
    line("segments", manifest.segments.len().to_string())?;
    if !manifest.segments.is_empty() {
        let mut table = output::table(&["segment", "level", "from", "to", "rows", "dead", "size"]);
        for entry in &manifest.segments {
            table.add_row([
                format!("{:016x}", entry.file_number),
                entry.level.to_string(),
                times::show_minute(entry.event_time_min_us),
                times::show_minute(entry.event_time_max_us),
                entry.rows.to_string(),
                entry.deletes.map_or(0, |side| side.entries).to_string(),
                bytes(entry.bytes),
            ]);
        }
        writeln!(out, "{table}")?;
    }
    if let Some(store) = store {
        let wal = store.join(WAL_DIR);
        for number in list_logs(&Env::real(), &wal).unwrap_or_default() {
            let name = log_name(number);
            writeln!(out, "{name} {}", bytes(files::bytes_of(&wal.join(&name))))?;
        }
    }
    Ok(out.flush()?)
}

/// A segment for programs.
fn segment_json(segment: &Description) -> Value {
    let (meta, counts) = (&segment.meta, &segment.counts);
    let sections: Vec<Value> = segment
        .sections
        .iter()
        .map(|section| {
            json!({"name": section.name, "kind": section.kind, "offset": section.offset,
                "bytes": section.bytes, "blocks": section.blocks})
        })
        .collect();
    let spaces: Vec<Value> = segment
        .spaces
        .iter()
        .map(|(own, vectors)| {
            json!({"number": own.number.get(), "name": own.name, "model": own.space.model,
                "dim": own.space.dim, "vectors": vectors})
        })
        .collect();
    json!({
        "file_number": meta.file.file_number,
        "bytes": meta.file.bytes,
        "digest": format!("{:032x}", meta.file.digest),
        "format_version": segment.format_version,
        "store_id": hex(&segment.store_id),
        "analyzer": segment.analyzer_id,
        "level": meta.bucket.level,
        "bucket_start_us": meta.bucket.start_us,
        "bucket_end_us": meta.bucket.end_us,
        "rows": meta.zone.rows,
        "vectors": meta.zone.vectors,
        "spaces": spaces,
        "scopes": meta.zone.scopes,
        "terms": counts.terms,
        "postings": counts.postings,
        "summaries": counts.summaries,
        "lineage": segment.lineage,
        "sections": sections,
    })
}

fn show_segment(segment: &Description, as_json: bool) -> Result<(), Failure> {
    let (meta, counts) = (&segment.meta, &segment.counts);
    if as_json {
        return output::print_json(&segment_json(segment));
    }
    let mut out = output::for_people();
    let mut line = |name: &str, value: String| writeln!(out, "{name:<12} {}", clean(&value));
    line(
        "segment",
        format!(
            "{:016x}, {}, format {}",
            meta.file.file_number,
            bytes(meta.file.bytes),
            segment.format_version
        ),
    )?;
    line("store", hex(&segment.store_id))?;
    line("analyzer", segment.analyzer_id.clone())?;
    line(
        "bucket",
        format!(
            "level {}, {} to {}",
            meta.bucket.level,
            times::show(meta.bucket.start_us),
            times::show(meta.bucket.end_us)
        ),
    )?;
    let (from, to) = meta.zone.event_time_us;
    line(
        "times",
        format!("{} to {}", times::show(from), times::show(to)),
    )?;
    line(
        "rows",
        format!(
            "{}, {} with a vector, in {} scopes",
            meta.zone.rows, meta.zone.vectors, meta.zone.scopes
        ),
    )?;
    for (own, vectors) in segment
        .spaces
        .iter()
        .filter(|(own, _)| !own.number.is_main())
    {
        let what = format!(
            "space {} ({}), {vectors} vectors of {}",
            own.name,
            own.number.get(),
            own.space.model
        );
        line("vectors", what)?;
    }
    line(
        "words",
        format!(
            "{} terms, {} postings, {} tokens",
            counts.terms, counts.postings, counts.length_sum
        ),
    )?;
    if !segment.lineage.is_empty() {
        line("replaces", format!("{:x?}", segment.lineage))?;
    }
    let mut table = output::table(&["section", "kind", "offset", "bytes", "blocks"]);
    for section in &segment.sections {
        table.add_row([
            section.name.to_owned(),
            section.kind.to_string(),
            section.offset.to_string(),
            section.bytes.to_string(),
            section.blocks.to_string(),
        ]);
    }
    writeln!(out, "{table}")?;
    Ok(out.flush()?)
}

/// The log from one file on: a file's frames are judged together with what follows.
fn show_log(store: &Path, dir: &Path, number: u64, as_json: bool) -> Result<(), Failure> {
    let pointer = manifest::read_current(&files::vfs(), store).map_err(chronolith::Error::from)?;
    let options = LogOptions {
        floor_file: number,
        ..LogOptions::new(pointer.store_id)
    };
    let recovered = Log::recover(&Env::real(), dir, &options).map_err(chronolith::Error::from)?;
    let report = recovered.report();
    let mut frames = Vec::new();
    for frame in recovered.frames() {
        let frame = frame.map_err(chronolith::Error::from)?;
        frames.push((frame.first_seq, frame.ops, frame.body.len()));
    }
    if as_json {
        let shown: Vec<Value> = frames
            .iter()
            .map(|(first_seq, ops, len)| json!({"first_seq": first_seq, "ops": ops, "bytes": len}))
            .collect();
        return output::print_json(&json!({
            "files": report.files, "sealed": report.sealed, "last_seq": report.last_seq,
            "bytes_dropped": report.bytes_dropped, "ambiguous": report.ambiguous,
            "acked_lost_upto": report.acked_lost_upto, "frames": shown,
        }));
    }
    let mut out = output::for_people();
    writeln!(
        out,
        "log from file {number} on: {} files, {} batches, {} operations, last seq {}, {}",
        report.files,
        report.frames,
        report.ops,
        report.last_seq,
        if report.sealed {
            "closed cleanly"
        } else {
            "not closed"
        }
    )?;
    if let Some(tail) = &report.dropped {
        writeln!(
            out,
            "cut off in {} at offset {}: {} bytes",
            tail.file, tail.offset, report.bytes_dropped
        )?;
    }
    if let Some(acked_upto) = report.acked_lost_upto {
        writeln!(
            out,
            "acknowledged up to seq {acked_upto}: what is behind the end is lost"
        )?;
    }
    let mut table = output::table(&["first seq", "operations", "bytes"]);
    for (first_seq, ops, len) in frames.iter().take(FRAMES_SHOWN) {
        table.add_row([first_seq.to_string(), ops.to_string(), len.to_string()]);
    }
    writeln!(out, "{table}")?;
    if frames.len() > FRAMES_SHOWN {
        writeln!(out, "… and {} more batches", frames.len() - FRAMES_SHOWN)?;
    }
    Ok(out.flush()?)
}

/// A side file is read through whoever names it: its digest and its owner stand there.
fn show_side_file(store: &Path, name: DataName, as_json: bool) -> Result<(), Failure> {
    let loaded = manifest::load_read_only(&files::vfs(), store).map_err(chronolith::Error::from)?;
    let manifest = &loaded.manifest;
    let owner = manifest.segments.iter().find(|entry| {
        entry
            .deletes
            .is_some_and(|side| side.file_number == name.file_number)
    });
    if let Some((entry, side)) = owner.and_then(|entry| Some((entry, entry.deletes?))) {
        let dead = manifest::deletes::read_deletes(
            &files::vfs(),
            store,
            &manifest.store_id,
            &side,
            entry.file_number,
            entry.rows,
        )
        .map_err(chronolith::Error::from)?;
        let (rows, segment) = (dead.len(), entry.file_number);
        return match as_json {
            true => output::print_json(&json!({"segment": segment, "dead_rows": rows})),
            false => Ok(writeln!(
                output::for_people(),
                "delete set of segment {segment:016x}: {rows} of {} rows",
                entry.rows
            )?),
        };
    }
    if let Some(side) = manifest
        .tag_graph
        .filter(|side| side.file_number == name.file_number)
    {
        let edges =
            manifest::tag_graph::read_tag_graph(&files::vfs(), store, &manifest.store_id, &side)
                .map_err(chronolith::Error::from)?;
        return match as_json {
            true => output::print_json(&json!({"edges": edges.len()})),
            false => Ok(writeln!(
                output::for_people(),
                "tag graph: {} edges",
                edges.len()
            )?),
        };
    }
    Err(Failure::Failed(format!(
        "the current generation does not name {}: it is left over, or of an older generation",
        name.format()
    )))
}
