//! Attacks the target `salvage`.
#![no_main]

chronolith_fuzz::attack!("salvage");
