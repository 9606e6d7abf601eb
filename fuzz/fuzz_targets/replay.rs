//! Attacks the target `replay`.
#![no_main]

chronolith_fuzz::attack!("replay");
