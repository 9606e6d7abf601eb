//! Attacks the target `store`.
#![no_main]

chronolith_fuzz::attack!("store");
