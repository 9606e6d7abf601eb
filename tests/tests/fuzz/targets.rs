//! Does every decoder survive its mutations?

use std::process::Command;
use std::time::Duration;

use chronolith_tests::data::{deep, knob};
use chronolith_tests::fuzz::{Hunt, TARGETS, hunt};

use super::memory::Counted;
use super::{MEMORY_MAX, alone, command, scratch};

const FAST_SECONDS: u64 = 40;
const DEEP_SECONDS: u64 = 45 * 60;
/// Far above what any execution takes, on a machine that is busy.
const HANG: Duration = Duration::from_secs(60);
/// Set in the processes that share the work.
const LANE: &str = "CHRONOLITH_FUZZ_LANE";
/// Seeds of two lanes are so far apart.
const LANE_SEEDS: u64 = 1 << 40;

#[test]
fn no_mutation_hurts_a_decoder() {
    let _alone = alone();
    let seconds = match deep() {
        true => DEEP_SECONDS,
        false => FAST_SECONDS,
    };
    let seconds = knob("CHRONOLITH_FUZZ_SECONDS", seconds);
    let seed = knob("CHRONOLITH_FUZZ_SEED", 1);
    let lanes = std::thread::available_parallelism().map_or(1, usize::from);
    match std::env::var_os(LANE).is_some() || !deep() || lanes < 2 {
        true => attack(seconds, seed),
        false => share(u64::try_from(lanes).expect("few"), seconds, seed),
    }
}

/// One process for each core: the allocator counts for all threads of one.
fn share(lanes: u64, seconds: u64, seed: u64) {
    let test = std::env::current_exe().expect("this test's file");
    let start = |lane: u64| {
        Command::new(&test)
            .args([
                "--exact",
                "targets::no_mutation_hurts_a_decoder",
                "--nocapture",
            ])
            .env(LANE, lane.to_string())
            .env("CHRONOLITH_FUZZ_SECONDS", (seconds / lanes).to_string())
            .env(
                "CHRONOLITH_FUZZ_SEED",
                (seed + lane * LANE_SEEDS).to_string(),
            )
            .spawn()
            .expect("started")
    };
    let children: Vec<_> = (0..lanes).map(start).collect();
    for mut child in children {
        let ended = child.wait().expect("waited for");
        assert!(ended.success(), "a lane found something: see above");
    }
    println!("{seconds} s of fuzzing in {lanes} lanes");
}

fn attack(seconds: u64, seed: u64) {
    let only = std::env::var("CHRONOLITH_FUZZ_TARGET").ok();
    let chosen: Vec<_> = TARGETS
        .into_iter()
        .chain(command::TARGETS)
        .filter(|target| only.as_deref().is_none_or(|only| only == target.name))
        .collect();
    assert!(!chosen.is_empty(), "no target {only:?}");
    let weights: u32 = chosen.iter().map(|target| target.weight).sum();
    let memory = Counted;
    let (mut wrong, mut lines) = (Vec::new(), Vec::new());
    for target in &chosen {
        let plan = Hunt {
            seed,
            time: Duration::from_millis(
                seconds * 1000 * u64::from(target.weight) / u64::from(weights),
            ),
            hang: HANG,
            memory_max: MEMORY_MAX,
            scratch: scratch(),
        };
        let tally = hunt(target, &plan, &memory);
        let line = format!(
            "{:14} {:9} executions from seed {seed}, {:8} taken, {:9} bytes held at most",
            target.name, tally.executions, tally.taken, tally.memory_peak
        );
        println!("{line}");
        lines.push(line);
        assert!(tally.executions > 0);
        for finding in tally.findings {
            let (name, file) = (target.name, finding.file.display());
            wrong.push(format!(
                "{name}: seed {}: {}\n    {file}",
                finding.seed, finding.what
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} findings:\n{}\n{}",
        wrong.len(),
        wrong.join("\n"),
        lines.join("\n")
    );
}
