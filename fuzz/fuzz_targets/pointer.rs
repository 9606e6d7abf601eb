//! Attacks the target `pointer`.
#![no_main]

chronolith_fuzz::attack!("pointer");
