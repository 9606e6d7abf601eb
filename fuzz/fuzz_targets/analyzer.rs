//! Attacks the target `analyzer`.
#![no_main]

chronolith_fuzz::attack!("analyzer");
