//! `restore`: a backup becomes a store again.

use std::io::Write;

use chronolith_vfs::Env;
use serde_json::json;

use crate::cli::Restore;
use crate::failure::Failure;
use crate::{output, progress, times};

pub(crate) fn run(args: &Restore) -> Result<(), Failure> {
    let bar = progress::stages();
    let made = chronolith::restore(&Env::real(), &args.backup, &args.store, &mut |step| {
        progress::show(&bar, step);
    });
    bar.finish_and_clear();
    let report = made?;
    if args.json {
        return output::print_json(&json!({
            "point": report.point,
            "made_us": report.made_us,
            "generation": report.generation,
            "last_seq": report.last_seq,
            "files": report.files,
            "bytes": report.bytes,
        }));
    }
    let mut out = output::for_people();
    writeln!(
        out,
        "restored backup {} of {}: {} files, {}, up to seq {}; verified",
        report.point,
        times::show_minute(report.made_us),
        report.files,
        output::bytes(report.bytes),
        report.last_seq
    )?;
    Ok(out.flush()?)
}
