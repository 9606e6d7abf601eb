//! Attacks the target `deletes`.
#![no_main]

chronolith_fuzz::attack!("deletes");
