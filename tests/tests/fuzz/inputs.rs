//! Is the committed corpus what it claims?

#![expect(
    clippy::disallowed_methods,
    reason = "the corpus is part of the source tree"
)]

use chronolith_tests::fuzz::{TARGETS, check_one, corpus, corpus_dir, remake, seeds, target};

use super::command;
use super::memory::Counted;
use super::{MEMORY_MAX, alone};

#[test]
fn valid_inputs_are_taken_and_found_ones_do_no_harm() {
    let _alone = alone();
    if std::env::var_os("CHRONOLITH_FUZZ_WRITE_SEEDS").is_some() {
        for (name, file, bytes) in seeds() {
            std::fs::create_dir_all(corpus_dir(name)).expect("a directory");
            std::fs::write(corpus_dir(name).join(file), bytes).expect("written");
        }
    }
    let memory = Counted;
    let mut wrong = Vec::new();
    for target in TARGETS.into_iter().chain(command::TARGETS) {
        for (file, bytes) in corpus(target.corpus) {
            match check_one(&target, &bytes, MEMORY_MAX, &memory) {
                Ok((taken, _)) if taken || !file.starts_with("valid-") => {}
                Ok(_) => wrong.push(format!("{}: {file} is refused", target.name)),
                Err(what) => wrong.push(format!("{}: {file}: {what}", target.name)),
            }
            if let Some(forge) = target.forge.filter(|_| file.starts_with("valid-")) {
                let mut patched = bytes.clone();
                (forge.patch)(&mut patched);
                let parts = (forge.take_apart)(&bytes).expect("a valid file has parts");
                let whole = (forge.put_together)(&parts);
                // Zeros that a log writes ahead are no part of it.
                let cut = &bytes[..bytes.len().min(whole.len())];
                if patched != bytes || whole != cut {
                    wrong.push(format!("{}: {file} is not forged to itself", target.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A mark is worth nothing without the file that it speaks of, and an epoch frame without those
/// before it: changes of them must still be read as a log, or nothing behind their checksums is
/// ever tried.
#[test]
fn changed_marks_and_epoch_frames_are_read_on() {
    const TRIES: u64 = 400;
    let _alone = alone();
    let (target, memory) = (target("log"), Counted);
    let inputs = corpus("log");
    for name in ["valid-pair-cut", "valid-pair-rotated", "valid-epochs"] {
        let input = inputs.iter().find(|(file, _)| file == name);
        let (_, input) = input.unwrap_or_else(|| panic!("no {name}"));
        let changed = (0..TRIES).map(|seed| remake(&target, input, input, seed));
        let changed = changed.filter(|bytes| bytes != input);
        let taken = changed.filter(|bytes| {
            let ran = check_one(&target, bytes, MEMORY_MAX, &memory);
            ran.unwrap_or_else(|what| panic!("{name}: {what}")).0
        });
        let count = taken.count();
        assert!(count > 50, "{name}: {count} changed inputs are taken");
    }
}
