//! Does a hunt see what it is for? Decoders with planted faults.

#![expect(
    clippy::disallowed_methods,
    reason = "the input of a finding is a real file"
)]

use std::time::Duration;

use chronolith_tests::fuzz::{Hunt, Target, hunt};

use super::memory::Counted;
use super::{alone, scratch};

fn found(run: fn(&[u8]) -> bool) -> Vec<(String, Vec<u8>)> {
    let target = Target {
        name: "planted",
        corpus: "scope",
        run,
        forge: None,
        weight: 1,
    };
    let plan = Hunt {
        seed: 1,
        time: Duration::from_secs(1),
        hang: Duration::from_secs(60),
        memory_max: 4 << 20,
        scratch: scratch(),
    };
    let tally = hunt(&target, &plan, &Counted);
    let read = |file| std::fs::read(file).expect("the input was kept");
    tally
        .findings
        .into_iter()
        .map(|finding| (finding.what, read(finding.file)))
        .collect()
}

#[test]
fn a_panic_is_found_and_its_input_made_small() {
    let _alone = alone();
    let found = found(|bytes| {
        assert!(!bytes.contains(&0x80), "planted");
        true
    });
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0.ends_with("planted") && found[0].0.contains("planted.rs"));
    assert_eq!(found[0].1, [0x80]);
}

#[test]
fn an_allocation_beyond_the_cap_is_found() {
    let _alone = alone();
    let found = found(|bytes| {
        let claimed = bytes.first().map_or(0, |byte| usize::from(*byte) << 16);
        std::hint::black_box(vec![1_u8; claimed]);
        true
    });
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].0.contains("too much memory"), "{found:?}");
}

#[test]
fn a_sound_decoder_gives_no_finding() {
    let _alone = alone();
    let none: Vec<(String, Vec<u8>)> = Vec::new();
    assert_eq!(found(|bytes| bytes.len() > 3), none);
}
