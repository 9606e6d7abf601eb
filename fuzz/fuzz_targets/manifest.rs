//! Attacks the target `manifest`.
#![no_main]

chronolith_fuzz::attack!("manifest");
