//! Attacks the target `batch`.
#![no_main]

chronolith_fuzz::attack!("batch");
