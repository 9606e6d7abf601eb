//! Does every decoder survive its mutations?

use std::time::Duration;

use chronolith_tests::data::{deep, knob};
use chronolith_tests::fuzz::{Hunt, TARGETS, hunt};

use super::memory::Counted;
use super::{MEMORY_MAX, alone, scratch};

const FAST_SECONDS: u64 = 40;
const DEEP_SECONDS: u64 = 45 * 60;
/// Far above what any execution takes, on a machine that is busy.
const HANG: Duration = Duration::from_secs(60);

#[test]
fn no_mutation_hurts_a_decoder() {
    let _alone = alone();
    let only = std::env::var("CHRONOLITH_FUZZ_TARGET").ok();
    let seconds = match deep() {
        true => DEEP_SECONDS,
        false => FAST_SECONDS,
    };
    let seconds = knob("CHRONOLITH_FUZZ_SECONDS", seconds);
    let seed = knob("CHRONOLITH_FUZZ_SEED", 1);
    let chosen: Vec<_> = TARGETS
        .into_iter()
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
