//! Attacks the target `segment`.
#![no_main]

chronolith_fuzz::attack!("segment");
