//! Attacks the target `segment_merge`.
#![no_main]

chronolith_fuzz::attack!("segment_merge");
