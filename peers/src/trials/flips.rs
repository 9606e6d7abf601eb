//! What does one flipped bit do? Reopen the store with it, ask everything, compare.
//!
//! Half of the flips choose a file first, so that small files are hit as well; the other half
//! choose among all bytes. Sectors of zeros (space that was only reserved) are left alone.

use std::collections::BTreeMap;
use std::io;

use super::{Bench, each, work};
use crate::ask::{Reply, expected_get};
use crate::child::{Job, Work};
use crate::engine::Engine;
use crate::image::{Flip, Image};
use crate::outcome::{Outcome, Verdict, judge_damage, reply_of};
use crate::records::{PER_COMMIT, RECORDS, Record, commit};
use crate::report::{Cell, Section, TRIALS};
use crate::runner::{Scratch, run};
use crate::seeded::Seeded;

const CLOSED: &str = "one-bit flips, closed store";
const KILLED: &str = "one-bit flips, log of a killed store";

/// Both sections.
pub fn run_all(bench: &mut Bench) -> io::Result<()> {
    for (title, killed) in [(CLOSED, false), (KILLED, true)] {
        let mut cells = BTreeMap::new();
        for engine in bench.engines {
            let cell = one(bench, &**engine, title, killed)?;
            let cell = match cell {
                Ok(verdicts) => bench.report.tally(title, engine.name(), &verdicts),
                Err(why) => Cell::skipped(why),
            };
            cells.insert(engine.name(), cell);
        }
        bench.report.sections.push(Section {
            title: title.to_owned(),
            rows: rows(),
            cells,
        });
    }
    Ok(())
}

fn rows() -> Vec<&'static str> {
    let outcomes = [
        Outcome::Equal,
        Outcome::NamedError,
        Outcome::Reported,
        Outcome::SilentlyWrong,
        Outcome::Panic,
        Outcome::Abort,
        Outcome::Hang,
        Outcome::OverCap,
    ];
    std::iter::once(TRIALS)
        .chain(outcomes.map(Outcome::label))
        .collect()
}

/// The verdicts of one engine, or why there are none.
fn one(
    bench: &Bench,
    engine: &dyn Engine,
    title: &str,
    killed: bool,
) -> io::Result<Result<Vec<Verdict>, String>> {
    let image = match built(bench, engine, killed)? {
        Ok(image) => image,
        Err(why) => return Ok(Err(why)),
    };
    let files: Vec<usize> = (0..image.files.len())
        .filter(|index| image.files[*index].live_bytes() > 0)
        .filter(|index| !killed || engine.is_log(&image.files[*index].path))
        .collect();
    if files.is_empty() {
        return Ok(Err("it has no log".into()));
    }
    let whole = match whole(bench, engine, &image)? {
        Ok(whole) => whole,
        Err(why) => return Ok(Err(why)),
    };
    let records = records(bench.seed);
    let count = if killed {
        bench.trials / 2
    } else {
        bench.trials
    };
    let name = format!("{title}, {}", engine.name());
    let verdicts = each(&name, count.max(1), |index| {
        let mut seeded = Seeded::new(bench.seed ^ ((index as u64 + 1) << 20));
        let flip = choose(&image, &files, &mut seeded);
        let run = ask(bench, engine, &image, Some(flip))?;
        let mut verdict = judge_damage(&run, &whole, &records, PER_COMMIT);
        verdict.seen = format!(
            "{} byte {} bit {}: {}",
            image.files[flip.file].path, flip.offset, flip.bit, verdict.seen
        );
        Ok(verdict)
    });
    verdicts.into_iter().collect::<io::Result<_>>().map(Ok)
}

fn records(seed: u64) -> Vec<Record> {
    (0..RECORDS / PER_COMMIT)
        .flat_map(|number| commit(seed, number, PER_COMMIT, 0))
        .collect()
}

fn asking(bench: &Bench, engine: &dyn Engine, scratch: &Scratch, job: Job) -> Work {
    let mut work = work(job, engine.name(), scratch.store(), bench.seed);
    work.commits = RECORDS / PER_COMMIT;
    work.per_commit = PER_COMMIT;
    work.search = true;
    work
}

/// The bytes of the small store, closed or killed.
fn built(bench: &Bench, engine: &dyn Engine, killed: bool) -> io::Result<Result<Image, String>> {
    let scratch = Scratch::new(bench.base)?;
    let mut work = asking(bench, engine, &scratch, Job::Build);
    work.kill = killed;
    let run = run(&work, scratch.path())?;
    if run.acknowledged().len() != work.commits {
        return Ok(Err(format!("cannot be built: {}", run.describe())));
    }
    Image::read(&scratch.store()).map(Ok)
}

fn ask(
    bench: &Bench,
    engine: &dyn Engine,
    image: &Image,
    flip: Option<Flip>,
) -> io::Result<crate::runner::Run> {
    let scratch = Scratch::new(bench.base)?;
    image.lay_out(&scratch.store(), flip)?;
    run(&asking(bench, engine, &scratch, Job::Ask), scratch.path())
}

/// The answers of the undamaged store: twice the same, and what was written.
fn whole(bench: &Bench, engine: &dyn Engine, image: &Image) -> io::Result<Result<Reply, String>> {
    let mut replies = Vec::new();
    for _ in 0..2 {
        match reply_of(&ask(bench, engine, image, None)?) {
            Ok(reply) => replies.push(reply),
            Err(verdict) => return Ok(Err(format!("undamaged store: {}", verdict.seen))),
        }
    }
    let same = replies.windows(2).all(|pair| pair[0] == pair[1]);
    let reply = replies.swap_remove(0);
    let right = records(bench.seed)
        .iter()
        .enumerate()
        .all(|(index, record)| reply.got(index) == Some(&Ok(expected_get(record))));
    let error = reply.first_error();
    Ok(match error {
        Some(error) => Err(format!("undamaged store: {error}")),
        None if !same => Err("undamaged store: two answers to one question".into()),
        None if !right => Err("undamaged store: an answer is not what was written".into()),
        None => Ok(reply),
    })
}

fn choose(image: &Image, files: &[usize], seeded: &mut Seeded) -> Flip {
    let live = |file: usize| image.files[file].live_bytes();
    let mut file = files[seeded.below(files.len())];
    let mut index = seeded.below(live(file));
    if seeded.coin() {
        index = seeded.below(files.iter().map(|file| live(*file)).sum());
        for candidate in files {
            file = *candidate;
            if index < live(file) {
                break;
            }
            index -= live(file);
        }
    }
    Flip {
        file,
        offset: image.files[file].live_offset(index).unwrap_or(0),
        bit: u8::try_from(seeded.below(8)).unwrap_or(0),
    }
}
