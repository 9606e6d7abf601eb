//! What else lies in the directory: the catalog under its seal, leftovers, foreign names.

use std::io::ErrorKind as IoKind;
use std::path::Path;

use chronolith_vfs::is_unreadable;
use chronolith_wal::{STATUS_NAME, parse_log_name};

use super::look::unreadable;
use super::report::{FindingKind, VerifyFinding};
use super::run::Run;
use crate::catalog::{self, CATALOG_DIR};
use crate::error::Error;
use crate::manifest::names::{
    CURRENT, CURRENT_TEMP, DataName, LOCK, MANIFEST_DIR, ManifestName, RESERVE, SEGMENTS_DIR,
    WAL_DIR,
};
use crate::manifest::{self, Manifest, StoreId};
use crate::options::Options;

/// Compares the catalog's files with the seal of the last clean close. Without one, as beside
/// a writer or after a crash, nothing is known of them and nothing relies on them.
pub(super) fn check_catalog(
    run: &mut Run<'_>,
    options: &Options,
    dir: &Path,
    store_id: &StoreId,
) -> Result<(), Error> {
    let path = dir.join(CATALOG_DIR);
    let sealed = match catalog::compare_with_seal(&options.env, &path, store_id) {
        Ok(Some(sealed)) => sealed,
        Ok(None) => return Ok(()),
        Err(error) if is_unreadable(&error) => {
            run.find(VerifyFinding {
                kind: FindingKind::Degraded,
                ..unreadable(CATALOG_DIR, &error)
            });
            return Ok(());
        }
        Err(source) => return Err(Error::io("read", path, source)),
    };
    if let Some(version) = sealed.later {
        run.find(VerifyFinding::new(
            FindingKind::Extra,
            format!("{CATALOG_DIR}/{}", catalog::SEAL_NAME),
            "file",
            None,
            format!(
                "written by a newer release (version {version}), so nothing here reads the \
                 catalog; the next open for writing rebuilds it"
            ),
        ));
    }
    let mut differences = sealed.differences;
    // Read after the seal, so a writer that closed meanwhile is not ahead of it.
    let now = manifest::load_read_only(&*options.env.vfs, dir).ok();
    if let Some(flushed_seq) = now.map(|loaded| loaded.manifest.flushed_seq)
        && sealed.watermark > flushed_seq
    {
        let message = format!(
            "followed up to seq {}, the manifest has flushed {flushed_seq}: of another future",
            sealed.watermark
        );
        differences.push((catalog::SEAL_NAME.to_owned(), message));
    }
    for (file, message) in differences {
        let message = format!("{message}; the next open for writing rebuilds the catalog");
        let file = format!("{CATALOG_DIR}/{file}");
        run.find(VerifyFinding::new(
            FindingKind::Degraded,
            file,
            "file",
            None,
            message,
        ));
    }
    for (file, bytes) in sealed.files {
        run.file(format!("{CATALOG_DIR}/{file}"), "catalog", bytes, 0);
    }
    Ok(())
}

/// What a name in one of the store's directories is.
enum Name {
    /// Needed, or kept for good reason.
    Known,
    /// The engine's own, and not needed.
    Leftover,
    /// Not made by the engine.
    Foreign,
}

/// Says what a name in one directory is.
type Sort<'a> = &'a dyn Fn(&str) -> Name;

/// Sorts every name in the store's directories. `manifest`: the generation that was verified;
/// a writer may have moved on, so what it does not name is at most a leftover.
pub(super) fn check_names(
    run: &mut Run<'_>,
    options: &Options,
    dir: &Path,
    manifest: Option<&Manifest>,
) -> Result<(), Error> {
    let of_store = |name: &str| match name {
        CURRENT | LOCK | RESERVE => Name::Known,
        MANIFEST_DIR | SEGMENTS_DIR | WAL_DIR | CATALOG_DIR => Name::Known,
        CURRENT_TEMP => Name::Leftover,
        _ => Name::Foreign,
    };
    let named = manifest.map(Manifest::data_files);
    let rooms: [(&str, Sort<'_>); 5] = [
        ("", &of_store),
        (MANIFEST_DIR, &|name| of_manifest(name, manifest)),
        (
            SEGMENTS_DIR,
            &|name| match (DataName::parse(name), &named) {
                (None, _) => Name::Foreign,
                (Some(name), Some(named)) if named.binary_search(&name).is_err() => Name::Leftover,
                (Some(_), _) => Name::Known,
            },
        ),
        (WAL_DIR, &of_log),
        (CATALOG_DIR, &|name| match name {
            catalog::DB_DIR | catalog::SEAL_NAME => Name::Known,
            catalog::SEAL_TEMP | catalog::ASIDE_DIR => Name::Leftover,
            _ => Name::Foreign,
        }),
    ];
    for (room, sort) in rooms {
        let path = dir.join(room);
        let entries = match options.env.vfs.list(&path) {
            Ok(entries) => entries,
            // The catalog and, before the first open ends, the log need not be there.
            Err(error) if error.kind() == IoKind::NotFound => continue,
            Err(error) if is_unreadable(&error) || error.kind() == IoKind::NotADirectory => {
                run.find(unreadable(room, &error));
                continue;
            }
            Err(error) => return Err(Error::io("list", path, error)),
        };
        for entry in entries {
            let shown = match room {
                "" => entry.name.clone(),
                room => format!("{room}/{}", entry.name),
            };
            match sort(&entry.name) {
                Name::Known => {}
                Name::Leftover => run.leftover(shown),
                Name::Foreign => {
                    let message = "is not a name that the engine makes; nothing reads it";
                    let kind = FindingKind::Extra;
                    run.find(VerifyFinding::new(kind, shown, "file", None, message));
                }
            }
        }
    }
    Ok(())
}

fn of_manifest(name: &str, manifest: Option<&Manifest>) -> Name {
    let Some(name) = ManifestName::parse(name) else {
        return Name::Foreign;
    };
    // The generation before stays for readers that have just read the pointer to it.
    let is_kept = manifest.is_none_or(|manifest| {
        name.generation == manifest.generation
            || name.generation.checked_add(1) == Some(manifest.generation)
    });
    match is_kept && !name.temp {
        true => Name::Known,
        false => Name::Leftover,
    }
}

fn of_log(name: &str) -> Name {
    let is_temp = |name: &str| {
        name.strip_suffix(".tmp")
            .is_some_and(|log| parse_log_name(log).is_some())
    };
    match name {
        STATUS_NAME => Name::Known,
        // Files below the floor go with the next publish: known, and not needed.
        name if parse_log_name(name).is_some() => Name::Known,
        name if is_temp(name) => Name::Leftover,
        _ => Name::Foreign,
    }
}
