//! Attacks the target `status`.
#![no_main]

chronolith_fuzz::attack!("status");
