//! Goal: whatever the disk keeps, recovery gives a prefix of what was appended, with all that
//! was acknowledged as synced, and nothing else; also when it is cut short itself.
//!
//! Mechanism: each script runs on the simulated disk once to count its operations, then
//! again with a crash at each of them, for each crash image. Bodies are unique, so a hole,
//! a ghost or a swapped batch shows. What the log answered decides what must be there.

use chronolith_vfs::Env;
use chronolith_wal::{Log, LogOptions, WalError};

use crate::bed::{Bed, DIR, STORE, body, small};
use crate::disk::Image;

/// What the log was asked and what it answered.
#[derive(Default, Clone)]
struct Model {
    /// Bodies in the order of their appends; the last may be one whose outcome is unknown.
    appended: Vec<Vec<u8>>,
    /// The first so many were answered as synced.
    synced: usize,
    last_seq: u64,
    epoch: u32,
}

/// One script's hands: a log and the model beside it.
struct Hand<'a> {
    log: Log,
    model: &'a mut Model,
    made: &'a mut u64,
}

type Outcome = Result<(), WalError>;

impl Hand<'_> {
    fn append(&mut self, len: usize) -> Outcome {
        *self.made += 1;
        let body = body(*self.made, len);
        // Noted first: a crash inside leaves the outcome unknown.
        self.model.appended.push(body.clone());
        let seqs = self.log.append(&body, 2)?;
        // A late begin is durable before a seq is given; one cut short has given none.
        self.model.epoch = self.log.epoch();
        self.model.last_seq = seqs.last_seq;
        Ok(())
    }

    fn sync(&mut self) -> Outcome {
        self.log.sync_upto(self.model.last_seq)?;
        self.model.synced = self.model.appended.len();
        self.log.write_status(self.model.last_seq)
    }

    fn commit(&mut self, len: usize) -> Outcome {
        self.append(len)?;
        self.sync()
    }

    fn seal(&mut self) -> Outcome {
        self.log.seal()?;
        self.model.synced = self.model.appended.len();
        Ok(())
    }
}

type Script = fn(&mut Hand<'_>) -> Outcome;

const SCRIPTS: &[(&str, Script)] = &[
    ("commits", |h| {
        (0..4).try_for_each(|n| h.commit(40 + n * 300))
    }),
    ("buffered", |h| {
        h.append(10)?;
        h.append(900)?;
        h.sync()?;
        h.append(5)?;
        h.append(1400)?;
        h.append(0)
    }),
    ("rotation", |h| {
        h.append(700)?;
        h.append(700)?;
        h.append(2500)?;
        h.append(700)?;
        h.log.rotate()?;
        h.commit(20)?;
        h.log.rotate()?;
        h.append(30)
    }),
    ("seals", |h| {
        h.commit(100)?;
        h.seal()?;
        h.seal()?;
        h.append(50)?;
        h.seal()?;
        h.append(60)
    }),
    // What the next life finds is settled: it begins at its first append.
    ("closed", |h| {
        h.commit(100)?;
        h.append(700)?;
        h.commit(900)?;
        h.seal()
    }),
];

/// Creates a log and runs the script; an error ends it, as it ends a process.
fn first_life(env: &Env, script: Script, model: &mut Model, made: &mut u64) -> Outcome {
    let log = Log::create(env, DIR.as_ref(), &small(), 1)?;
    model.epoch = 1;
    script(&mut Hand { log, model, made })
}

/// Recovers, checks against the model, and runs the script again in the next epoch.
fn next_life(env: &Env, script: Script, model: &mut Model, made: &mut u64) -> Outcome {
    let opts = LogOptions {
        floor_file: 1,
        ..small()
    };
    let mut recovered = Log::recover(env, DIR.as_ref(), &opts)?;
    let frames: Vec<_> = recovered.frames().collect::<Result<_, _>>()?;
    let bodies: Vec<_> = frames.iter().map(|f| f.body.clone()).collect();
    assert!(
        bodies.len() >= model.synced,
        "a synced batch is lost: {} < {}",
        bodies.len(),
        model.synced
    );
    assert_eq!(
        bodies[..],
        model.appended[..bodies.len()],
        "not a prefix of what was appended"
    );
    assert!(
        frames.windows(2).all(|w| w[0].first_seq < w[1].first_seq),
        "seqs rise"
    );
    let epoch = recovered.report().epoch_highest + 1;
    // One life in three finds a disk without a file to give.
    let is_late = !(*made).is_multiple_of(3) && recovered.is_settled();
    let begun_in = if is_late { model.epoch } else { epoch };
    let log = match *made % 3 {
        0 => recovered.take_over(epoch)?,
        _ if is_late => recovered.start_late(epoch)?,
        _ => recovered.start(epoch)?,
    };
    // The next epoch is in force: what was recovered is durable, the rest will never appear.
    assert!(
        epoch > model.epoch || model.appended.is_empty(),
        "a seq would be given twice"
    );
    *model = Model {
        synced: bodies.len(),
        appended: bodies,
        last_seq: log.last_seq(),
        epoch: begun_in,
    };
    script(&mut Hand { log, model, made })
}

/// True where `create` got far enough for the engine to have published the log's floor.
fn was_created(env: &Env) -> bool {
    chronolith_wal::list_logs(env, DIR.as_ref()).is_ok_and(|l| !l.is_empty())
}

fn must(outcome: Outcome, what: &str) {
    if let Err(e) = outcome {
        panic!("{what}: {e}");
    }
}

/// Crashes the first life at operation `at`; false where the script ended before that.
fn crashed_bed(
    script: Script,
    at: u64,
    salt: u64,
    image: Image,
    model: &mut Model,
    made: &mut u64,
) -> (Bed, bool) {
    let bed = Bed::new(salt * 1000 + at);
    bed.crash_at(at);
    let ended = first_life(&bed.env, script, model, made).is_ok();
    bed.crash(image);
    (bed, ended)
}

#[test]
fn a_crash_at_any_operation_loses_nothing_synced_and_invents_nothing() {
    for &(name, script) in SCRIPTS {
        let mut cases = 0;
        for at in 0.. {
            let mut all_ended = true;
            let images = (0..4).flat_map(|salt| Image::all().map(|image| (salt, image)));
            for (salt, image) in images {
                let (mut model, mut made) = (Model::default(), 0);
                let (bed, ended) = crashed_bed(script, at, salt, image, &mut model, &mut made);
                all_ended &= ended;
                if !was_created(&bed.env) {
                    assert_eq!(model.synced, 0, "{name} at {at} {image:?}");
                    continue;
                }
                let what = format!("{name}, crash at {at}, {image:?}");
                must(next_life(&bed.env, script, &mut model, &mut made), &what);
                bed.crash(image);
                must(
                    next_life(&bed.env, |_| Ok(()), &mut model, &mut made),
                    &what,
                );
                cases += 1;
            }
            if all_ended {
                break;
            }
        }
        assert!(cases > 250, "{name}: {cases} cases");
    }
}

#[test]
fn a_crash_inside_recovery_repeats_to_the_same() {
    for &(name, script) in SCRIPTS {
        let total = operations_of(script);
        for at in (total / 3..=total).step_by(3) {
            for (image, second) in Image::all().into_iter().zip(Image::all().into_iter().rev()) {
                for inside in 0.. {
                    let (mut model, mut made) = (Model::default(), 0);
                    let (bed, _) = crashed_bed(script, at, inside, image, &mut model, &mut made);
                    if !was_created(&bed.env) {
                        break;
                    }
                    bed.crash_at(inside);
                    let ended =
                        next_life(&bed.env, |h| h.append(33), &mut model, &mut made).is_ok();
                    bed.crash(second);
                    if !was_created(&bed.env) {
                        // Killed inside `create`: the name was in the cache only.
                        assert_eq!(model.synced, 0, "{name} {at} {image:?} {inside} {second:?}");
                        continue;
                    }
                    let what =
                        format!("{name}, crash at {at} {image:?}, then at {inside} {second:?}");
                    must(
                        next_life(&bed.env, |h| h.commit(9), &mut model, &mut made),
                        &what,
                    );
                    bed.crash(image);
                    must(
                        next_life(&bed.env, |_| Ok(()), &mut model, &mut made),
                        &what,
                    );
                    if ended {
                        break;
                    }
                }
            }
        }
    }
}

/// After a crash anywhere the newest file goes, and `STATUS` with it: either that is named, or
/// nothing was in it that anybody was promised.
#[test]
fn the_newest_file_never_goes_with_a_synced_batch_and_without_a_trace() {
    let (mut named, mut harmless) = (0, 0);
    for &(name, script) in SCRIPTS {
        for at in 0..=operations_of(script) {
            for image in Image::all() {
                let (mut model, mut made) = (Model::default(), 0);
                let (bed, _) = crashed_bed(script, at, 1, image, &mut model, &mut made);
                if at % 2 == 1 && was_created(&bed.env) {
                    // Lost is what the recovery and a life after it began.
                    let what = format!("{name}, crash at {at}, {image:?}");
                    let more: Script = |h| h.commit(30);
                    must(next_life(&bed.env, more, &mut model, &mut made), &what);
                    bed.crash(Image::Synced);
                }
                let Some(newest) = chronolith_wal::list_logs(&bed.env, DIR.as_ref())
                    .expect("lists")
                    .pop()
                else {
                    continue;
                };
                bed.remove(&chronolith_wal::log_name(newest));
                if bed.names().contains(&"STATUS".to_owned()) {
                    bed.remove("STATUS");
                }
                let opts = LogOptions {
                    floor_file: 1,
                    ..small()
                };
                match Log::recover(&bed.env, DIR.as_ref(), &opts) {
                    Ok(recovered) => {
                        let left = recovered.frames().count();
                        let what = format!("{name}, crash at {at}, {image:?}: {left} are left");
                        assert!(left >= model.synced, "{what} of {}", model.synced);
                        harmless += 1;
                    }
                    Err(error) => {
                        assert!(error.is_damage(), "{error}");
                        named += 1;
                    }
                }
            }
        }
    }
    assert!(named > 500, "{named} named, {harmless} harmless");
}

/// Killed inside one recovery, then a power cut inside the next: the first one's file must not
/// vanish under a file that names it.
#[test]
fn a_power_cut_inside_the_recovery_of_a_recovery_finds_every_file() {
    let script = SCRIPTS[1].1;
    let mut cases = 0;
    for inside in 0.. {
        let mut ended = false;
        for (then, salt) in (0..12).flat_map(|then| (0..8).map(move |salt| (then, salt))) {
            for image in Image::all() {
                let (mut model, mut made) = (Model::default(), 0);
                let bed = Bed::new(salt);
                must(
                    first_life(&bed.env, script, &mut model, &mut made),
                    "no crash",
                );
                bed.crash(Image::All);
                bed.crash_at(inside);
                ended |= next_life(&bed.env, |_| Ok(()), &mut model, &mut made).is_ok();
                bed.crash(Image::All);
                bed.crash_at(then);
                let _ = next_life(&bed.env, |_| Ok(()), &mut model, &mut made);
                bed.crash(image);
                let what = format!("killed at {inside}, power cut at {then}, {salt} {image:?}");
                must(
                    next_life(&bed.env, |_| Ok(()), &mut model, &mut made),
                    &what,
                );
                cases += 1;
            }
        }
        if ended {
            break;
        }
    }
    assert!(cases > 5000, "{cases}");
}

fn operations_of(script: Script) -> u64 {
    let bed = Bed::new(0);
    must(
        first_life(&bed.env, script, &mut Model::default(), &mut 0),
        "no crash",
    );
    bed.operations()
}

/// `create` that is cut short before anything was published can be called again.
#[test]
fn a_creation_cut_short_can_be_repeated() {
    for at in 0.. {
        let mut ended = true;
        for image in Image::all() {
            let bed = Bed::new(at);
            bed.crash_at(at);
            ended &= Log::create(&bed.env, DIR.as_ref(), &small(), 1).is_ok();
            bed.crash(image);
            let log = Log::create(&bed.env, DIR.as_ref(), &small(), 1)
                .unwrap_or_else(|e| panic!("at {at} {image:?}: {e}"));
            let floor_file = log.current_file();
            log.append(b"x", 1).expect("append");
            log.sync_upto(log.last_seq()).expect("sync");
            bed.crash(image);
            let opts = LogOptions {
                floor_file,
                ..LogOptions::new(STORE)
            };
            let recovered = Log::recover(&bed.env, DIR.as_ref(), &opts)
                .unwrap_or_else(|e| panic!("at {at} {image:?}: {e}"));
            assert_eq!(recovered.frames().count(), 1);
        }
        if ended {
            break;
        }
    }
}
