//! Attacks the command's reader of JSON lines.
#![no_main]
#![allow(dead_code, reason = "the command uses more of these modules")]

#[path = "../../tests/tests/fuzz/command.rs"]
mod command;
#[path = "../../tools/src/interchange.rs"]
mod interchange;
#[path = "../../tools/src/lines.rs"]
mod lines;
#[path = "../../tools/src/npy.rs"]
mod npy;
#[path = "../../tools/src/times.rs"]
mod times;

use command::{failure, files};

chronolith_fuzz::libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    command::read_lines(bytes);
});
