//! Attacks the target `log`.
#![no_main]

chronolith_fuzz::attack!("log");
