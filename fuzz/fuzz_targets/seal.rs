//! Attacks the target `seal`.
#![no_main]

chronolith_fuzz::attack!("seal");
