//! `backup`: a copy of a store elsewhere, taken while it is used.

use std::io::Write;

use chronolith::{BackupOptions, BackupReport};
use chronolith_vfs::Env;
use serde_json::json;

use crate::cli::Backup;
use crate::failure::Failure;
use crate::{output, progress};

pub(crate) fn run(args: &Backup) -> Result<(), Failure> {
    let options = match args.copy {
        true => BackupOptions::copies(),
        false => BackupOptions::default(),
    };
    let bar = progress::stages();
    let made = chronolith::backup(
        &Env::real(),
        &args.store,
        &args.dest,
        &options,
        &mut |step| {
            progress::show(&bar, step);
        },
    );
    bar.finish_and_clear();
    let report = made?;
    if args.json {
        return output::print_json(&json!({
            "point": report.point,
            "generation": report.generation,
            "last_seq": report.last_seq,
            "files": report.files,
            "bytes": report.bytes,
            "kept": report.kept,
            "linked": report.linked,
            "copied": report.copied,
            "removed": report.removed,
        }));
    }
    print(&report)
}

fn print(report: &BackupReport) -> Result<(), Failure> {
    let mut out = output::for_people();
    writeln!(
        out,
        "backup {}: {} files, {}, up to seq {}; read back and verified",
        report.point,
        report.files,
        output::bytes(report.bytes),
        report.last_seq
    )?;
    writeln!(
        out,
        "data files: {} kept, {} linked, {} copied; {} of earlier backups removed",
        report.kept, report.linked, report.copied, report.removed
    )?;
    if report.linked > 0 {
        writeln!(
            out,
            "linked files share their blocks with the store; --copy makes copies"
        )?;
    }
    Ok(out.flush()?)
}
