//! Every damage to every file, and the verdict on what came of it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use chronolith::{Error, ReadMode, ReadOnlyStore, RecoveryReport, Store};
use chronolith_tests::data::{deep, knob};
use chronolith_vfs::CrashImage;

use super::answers::all;
use super::damage::{Damage, of_file};
use super::fixture::{DIR, Fixture, build, contents, env_over, kind, options};

/// Bytes of a file that are damaged in the fast tier, about.
const PLACES_A_FILE: usize = 60;

/// What a damaged store did, as far as it is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// All answers as before.
    Equal,
    /// Some answers as before, the others a named error.
    Partly,
    /// The open gave a named error.
    Refused,
    /// The tail of the log was dropped, and the report says so.
    TailReported,
}

#[derive(Debug, Default)]
struct Tally {
    trials: u64,
    by_kind: BTreeMap<String, BTreeMap<Outcome, u64>>,
    wrong: Vec<String>,
}

/// True where an error says which file, or a file of the same store that it contradicts.
fn is_named(fixture: &Fixture, error: &Error) -> bool {
    let message = error.to_string();
    let own = [
        ".seg",
        ".del",
        ".tags",
        ".log",
        "MANIFEST-",
        "CURRENT",
        "STATUS",
    ];
    fixture.disk.files().iter().any(|path| {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        message.contains(&name)
    }) || own.iter().any(|part| message.contains(part))
}

/// Judges the answers of a store that opened.
fn judge(
    fixture: &Fixture,
    found: Vec<Result<String, Error>>,
    report: Option<&RecoveryReport>,
) -> Result<Outcome, String> {
    let mut errors = 0;
    let mut differs = None;
    for (at, (found, whole)) in found.iter().zip(&fixture.whole).enumerate() {
        match found {
            Ok(answer) if answer == whole => {}
            Ok(_) => differs = differs.or(Some(at)),
            Err(error) if is_named(fixture, error) => errors += 1,
            Err(error) => return Err(format!("question {at}: no file named in: {error}")),
        }
    }
    let Some(at) = differs else {
        return Ok(if errors == 0 {
            Outcome::Equal
        } else {
            Outcome::Partly
        });
    };
    // Cut at a frame's end no byte is left to count; then the status tells of the loss.
    let dropped =
        report.is_some_and(|report| report.bytes_dropped > 0 || report.acked_lost_upto.is_some());
    let is_earlier = fixture.earlier.iter().any(|earlier| {
        found
            .iter()
            .zip(earlier)
            .all(|(found, earlier)| found.as_ref().ok() == Some(earlier))
    });
    match (dropped, is_earlier) {
        (true, true) => Ok(Outcome::TailReported),
        _ => Err(format!(
            "question {at} has another answer (dropped reported: {dropped}, earlier state: \
             {is_earlier})\n  found {:?}\n  whole {:?}",
            found[at], fixture.whole[at]
        )),
    }
}

fn refused(fixture: &Fixture, error: &Error) -> Result<Outcome, String> {
    match is_named(fixture, error) {
        true => Ok(Outcome::Refused),
        false => Err(format!("no file named in: {error}")),
    }
}

fn as_writer(
    fixture: &Fixture,
    damage: &Damage,
    mode: ReadMode,
) -> Option<Result<Outcome, String>> {
    let disk = fixture.disk.crash(CrashImage::ProcessKill);
    if !damage.apply(&disk) {
        return None;
    }
    let mut options = options(&env_over(fixture, &disk), mode);
    options.create = None;
    Some(match Store::open(DIR, options) {
        Err(error) => refused(fixture, &error),
        Ok(store) => judge(
            fixture,
            all(&store.snapshot()),
            Some(store.recovery_report()),
        ),
    })
}

fn as_reader(
    fixture: &Fixture,
    damage: &Damage,
    mode: ReadMode,
) -> Option<Result<Outcome, String>> {
    let disk = fixture.disk.crash(CrashImage::ProcessKill);
    if !damage.apply(&disk) {
        return None;
    }
    let reader = match ReadOnlyStore::open(DIR, options(&env_over(fixture, &disk), mode)) {
        Err(error) => return Some(refused(fixture, &error)),
        Ok(reader) => reader,
    };
    Some(judge(fixture, all(&reader.snapshot()), None))
}

type Role = fn(&Fixture, &Damage, ReadMode) -> Option<Result<Outcome, String>>;

impl Tally {
    fn run(&mut self, fixture: &Fixture, damage: &Damage) {
        let roles: [(&str, Role); 2] = [("writer", as_writer), ("reader", as_reader)];
        // Modes differ in segments only; elsewhere one of them is enough.
        let is_segment = damage.paths().iter().any(|path| kind(path) == "seg");
        let modes = [ReadMode::Positioned, ReadMode::Mapped];
        for mode in &modes[..if is_segment { 2 } else { 1 }] {
            for (role, trial) in roles {
                let outcome = catch_unwind(AssertUnwindSafe(|| trial(fixture, damage, *mode)));
                let outcome = outcome.unwrap_or_else(|_| Some(Err("a panic".into())));
                self.note(fixture, damage, &format!("{role} {mode:?}"), outcome);
            }
        }
    }

    fn note(
        &mut self,
        fixture: &Fixture,
        damage: &Damage,
        how: &str,
        outcome: Option<Result<Outcome, String>>,
    ) {
        let Some(outcome) = outcome else { return };
        self.trials += 1;
        match outcome {
            Ok(outcome) => {
                let kind = kind(damage.paths()[0]);
                *self
                    .by_kind
                    .entry(kind)
                    .or_default()
                    .entry(outcome)
                    .or_default() += 1;
            }
            Err(wrong) => self
                .wrong
                .push(format!("{} {how}: {damage}: {wrong}", fixture.name)),
        }
    }

    fn finish(self, what: &str) {
        println!("{what}: {} trials", self.trials);
        for (kind, outcomes) in &self.by_kind {
            println!("  {kind}: {outcomes:?}");
        }
        for wrong in self.wrong.iter().take(40) {
            println!("WRONG {}", wrong.chars().take(600).collect::<String>());
        }
        assert!(
            self.wrong.is_empty(),
            "{} of {} trials are wrong",
            self.wrong.len(),
            self.trials
        );
    }
}

fn kinds_are_all_there(fixture: &Fixture) {
    let mut kinds: Vec<_> = fixture.disk.files().iter().map(|path| kind(path)).collect();
    kinds.sort();
    kinds.dedup();
    for needed in [
        "CURRENT", "LOCK", "STATUS", "del", "manifest", "seg", "tags",
    ] {
        assert!(
            kinds.iter().any(|kind| kind == needed),
            "no {needed} among {kinds:?}"
        );
    }
    let count = |wanted: &str| {
        fixture
            .disk
            .files()
            .iter()
            .filter(|path| kind(path) == wanted)
            .count()
    };
    let logs = fixture
        .disk
        .files()
        .iter()
        .filter(|path| is_log(path))
        .count();
    assert!(
        count("seg") >= 2 && count("manifest") >= 2 && logs >= 2,
        "{kinds:?}, {logs} logs"
    );
}

fn is_log(path: &Path) -> bool {
    path.parent().is_some_and(|dir| dir.ends_with("wal")) && !path.ends_with("STATUS")
}

fn bytes_of_every_file(clean: bool) {
    let fixture = build(clean);
    kinds_are_all_there(&fixture);
    let mut tally = Tally::default();
    let places = usize::try_from(knob("CHRONOLITH_PLACES", PLACES_A_FILE as u64)).expect("fits");
    for (path, content) in contents(&fixture.disk) {
        // Nobody reads what is in the reserve.
        let stride = match deep() && kind(&path) != "RESERVE" {
            true => 1,
            false => (content.len() / places).max(1),
        };
        println!(
            "{}: {} bytes, every {stride}",
            path.display(),
            content.len()
        );
        for damage in of_file(&path, &content, stride, content.len() % stride) {
            tally.run(&fixture, &damage);
        }
    }
    tally.finish(&format!("damaged bytes, {} log", fixture.name));
}

fn whole_files(clean: bool) {
    let fixture = build(clean);
    let mut tally = Tally::default();
    let files = contents(&fixture.disk);
    for (at, (a, _)) in files.iter().enumerate() {
        for (b, _) in &files[at + 1..] {
            if kind(a) == kind(b) {
                tally.run(
                    &fixture,
                    &Damage::SwapFiles {
                        a: a.clone(),
                        b: b.clone(),
                    },
                );
            }
        }
    }
    for (path, content) in &fixture.stale {
        tally.run(
            &fixture,
            &Damage::Stale {
                path: path.clone(),
                content: content.clone(),
            },
        );
    }
    for (to, _) in &files {
        // One file's content under the name of another one of its kind.
        for (from, content) in files.iter().filter(|(from, _)| from != to) {
            if kind(from) == kind(to) {
                tally.run(
                    &fixture,
                    &Damage::Stale {
                        path: to.clone(),
                        content: content.clone(),
                    },
                );
            }
        }
    }
    tally.finish(&format!("swapped and stale files, {} log", fixture.name));
}

#[test]
fn an_undamaged_copy_answers_as_before() {
    for clean in [true, false] {
        let fixture = build(clean);
        let nothing = Damage::Missing {
            path: Path::new(DIR).join("LOCK"),
        };
        for mode in [ReadMode::Mapped, ReadMode::Positioned] {
            assert_eq!(
                as_writer(&fixture, &nothing, mode),
                Some(Ok(Outcome::Equal))
            );
            assert_eq!(
                as_reader(&fixture, &nothing, mode),
                Some(Ok(Outcome::Equal))
            );
        }
    }
}

#[test]
fn damaged_bytes_under_a_sealed_log_are_harmless_or_named() {
    bytes_of_every_file(true);
}

#[test]
fn damaged_bytes_under_a_pending_log_are_harmless_or_named() {
    bytes_of_every_file(false);
}

/// Frames end at multiples of 8: a log that is cut there looks as if it had ended there.
#[test]
fn the_newest_log_file_cut_at_any_frames_end_is_harmless_or_named() {
    let fixture = build(false);
    let logs = contents(&fixture.disk);
    let (path, content) = logs
        .into_iter()
        .rfind(|(path, _)| is_log(path))
        .expect("a log");
    let mut tally = Tally::default();
    for len in (0..content.len()).step_by(if deep() { 1 } else { 8 }) {
        let path = path.clone();
        tally.run(&fixture, &Damage::Cut { path, len });
    }
    tally.finish("the newest log file cut");
}

#[test]
fn whole_files_swapped_or_stale_are_harmless_or_named() {
    whole_files(true);
    whole_files(false);
}
