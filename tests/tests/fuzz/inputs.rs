//! Is the committed corpus what it claims?

#![expect(
    clippy::disallowed_methods,
    reason = "the corpus is part of the source tree"
)]

use chronolith_tests::fuzz::{TARGETS, check_one, corpus, corpus_dir, seeds};

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
