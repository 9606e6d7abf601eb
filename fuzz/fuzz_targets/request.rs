//! Attacks the target `request`.
#![no_main]

chronolith_fuzz::attack!("request");
