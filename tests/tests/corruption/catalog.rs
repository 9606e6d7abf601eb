//! Damage to the catalog's files, which only the system's file system has: a store is closed
//! there, and its files damaged on a simulated disk.
//!
//! Nothing that an answer needs is in them, so the verdict is harder than elsewhere: a scrub
//! names every damage, and a store around it opens, answers as before and gets its catalog
//! back.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chronolith::{FindingKind, Maintenance, Options, ReadMode, Setup, Store};
use chronolith_tests::data::{deep, knob};
use chronolith_vfs::{Clock, CrashImage, Env, RealVfs, SimVfs, Vfs};

use super::answers::{Answers, answers};
use super::damage::{Damage, of_file};
use super::fixture::{DIR, START_US, contents, forget, write};

/// Bytes of a file that are damaged under a scrub, and under a whole store, in the fast tier.
const SCRUBS_A_FILE: usize = 120;
const OPENS_A_FILE: usize = 3;
/// The same under a whole store in the deep tier.
const DEEP_OPENS_A_FILE: usize = 250;

/// The wall stands still, so that two answers are the same.
#[derive(Debug)]
struct Standing(chronolith_vfs::RealClock);

impl Clock for Standing {
    fn now_us(&self) -> i64 {
        START_US + 90 * 86_400_000_000
    }

    fn monotonic_ns(&self) -> u64 {
        self.0.monotonic_ns()
    }

    fn sleep(&self, duration: Duration) {
        self.0.sleep(duration);
    }
}

fn options() -> Options {
    let clock = std::sync::Arc::new(Standing(chronolith_vfs::RealClock::default()));
    let env = Env {
        clock,
        ..Env::real()
    };
    let manual = super::fixture::options(&env, ReadMode::Mapped);
    Options {
        maintenance: Maintenance::Background,
        catalog_segments_min: 0,
        ..manual
    }
}

/// Waits until the catalog follows, or has given up.
fn wait(store: &Store) -> String {
    let clock = Env::real().clock;
    loop {
        let state = store.stats().expect("counted").catalog;
        let state = state.expect("there is a catalog");
        if state != "opening" && state != "catching up" {
            return state;
        }
        clock.sleep(Duration::from_millis(1));
    }
}

/// Copies what is below a directory of the system onto a simulated disk.
fn load(disk: &SimVfs, from: &Path, to: &Path) {
    disk.create_dir(to).expect("created");
    for entry in RealVfs::new().list(from).expect("listed") {
        let (from, to) = (from.join(&entry.name), to.join(&entry.name));
        if entry.is_dir {
            load(disk, &from, &to);
            continue;
        }
        disk.create_new(&to).expect("created");
        let bytes = chronolith_tests::data::read(&from);
        disk.damage(&to, |content| *content = bytes).expect("there");
    }
}

/// And back.
fn unload(disk: &SimVfs, to: &Path) {
    let vfs = RealVfs::new();
    for path in disk.files() {
        let path_to = to.join(path.strip_prefix(DIR).expect("inside"));
        let mut dirs: Vec<_> = path_to.ancestors().skip(1).collect();
        dirs.reverse();
        dirs.iter().for_each(|dir| drop(vfs.create_dir(dir)));
        let file = vfs.create_new(&path_to).expect("created");
        let content = disk.content(&path).expect("there");
        file.write_all_at(&content, 0).expect("written");
    }
}

/// A closed store with a catalog under its seal, and its answers.
fn build() -> (SimVfs, Answers) {
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().join("store");
    let store = Store::open(&dir, options()).expect("created");
    for from in [0, 20] {
        write(&store, from..from + 20, chronolith::Durability::Synced);
        store.flush().expect("flushed");
    }
    forget(&store, &[2, 21]);
    wait(&store);
    store.close().expect("closed");
    let disk = SimVfs::new();
    load(&disk, &dir, DIR.as_ref());
    let store = Store::open(&dir, options()).expect("opens");
    let whole = answers(&store.snapshot()).expect("answers");
    (disk, whole)
}

/// The catalog's files.
fn files(disk: &SimVfs) -> Vec<(PathBuf, Vec<u8>)> {
    let catalog = Path::new(DIR).join("catalog");
    let mut files = contents(disk);
    files.retain(|(path, _)| path.starts_with(&catalog));
    files
}

fn every(disk: &SimVfs, places: usize) -> Vec<Damage> {
    let damages = files(disk).into_iter().flat_map(|(path, content)| {
        let stride = (content.len() / places).max(1);
        of_file(&path, &content, stride, content.len() % stride)
    });
    damages.collect()
}

#[test]
fn a_scrub_names_every_damage_to_the_catalog() {
    let (disk, _) = build();
    let env = Env::real();
    let scrub = |disk: &SimVfs| {
        let options = Options {
            env: env.with_vfs(disk.clone()),
            ..Options::create(Setup::default())
        };
        let report = chronolith::verify(DIR, &options, &mut |_| {});
        report.expect("damage is a finding and no error").findings
    };
    assert_eq!(scrub(&disk), [], "nothing is damaged yet");
    let places = knob("CHRONOLITH_PLACES", SCRUBS_A_FILE as u64);
    let places = if deep() {
        usize::MAX
    } else {
        usize::try_from(places).expect("fits")
    };
    let seal = Path::new(DIR).join("catalog/SEAL");
    let (mut trials, mut wrong) = (0, Vec::new());
    for damage in every(&disk, places) {
        let damaged = disk.crash(CrashImage::ProcessKill);
        if !damage.apply(&damaged) {
            continue;
        }
        trials += 1;
        let findings = scrub(&damaged);
        // Without a seal nothing is claimed of the files.
        let is_unsealed = matches!(&damage, Damage::Missing { path } if *path == seal);
        let named = |finding: &chronolith::VerifyFinding| {
            finding.kind == FindingKind::Degraded && finding.file.starts_with("catalog/")
        };
        if is_unsealed != findings.is_empty() || !findings.iter().all(named) {
            wrong.push(format!("{damage}: {findings:?}"));
        }
    }
    println!("{trials} damages to the catalog under a scrub");
    assert!(wrong.is_empty(), "{} wrong: {wrong:#?}", wrong.len());
    assert!(trials > 1000, "{trials}");
}

#[test]
fn a_store_around_a_damaged_catalog_answers_as_before_and_gets_it_back() {
    let (disk, whole) = build();
    let places = if deep() {
        DEEP_OPENS_A_FILE
    } else {
        OPENS_A_FILE
    };
    // In memory where there is such a place: the trials are about bytes, not about syncs.
    let memory = Path::new("/dev/shm");
    let root = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    };
    let root = root.expect("a directory");
    let (mut trials, mut wrong) = (0, Vec::new());
    for damage in every(&disk, places) {
        let damaged = disk.crash(CrashImage::ProcessKill);
        if !damage.apply(&damaged) {
            continue;
        }
        let dir = root.path().join(format!("s{trials}"));
        unload(&damaged, &dir);
        trials += 1;
        if let Err(why) = check(&dir, &whole) {
            wrong.push(format!("{damage}: {why}"));
        }
        RealVfs::new().remove_dir_all(&dir).expect("removed");
    }
    println!("{trials} stores around a damaged catalog");
    assert!(wrong.is_empty(), "{} wrong: {wrong:#?}", wrong.len());
    assert!(trials > 100, "{trials}");
}

fn check(dir: &Path, whole: &Answers) -> Result<(), String> {
    let store = Store::open(dir, options()).map_err(|error| format!("open: {error}"))?;
    let ask = || answers(&store.snapshot()).map_err(|error| format!("ask: {error}"));
    let at_once = ask()?;
    let state = wait(&store);
    let later = ask()?;
    match (
        at_once == *whole && later == *whole,
        state.contains("degraded"),
    ) {
        (true, false) => Ok(()),
        (false, _) => Err("another answer".into()),
        (true, true) => Err(state),
    }
}
