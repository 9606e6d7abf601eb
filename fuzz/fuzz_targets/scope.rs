//! Attacks the target `scope`.
#![no_main]

chronolith_fuzz::attack!("scope");
