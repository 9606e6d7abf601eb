//! Attacks the target `tag_graph`.
#![no_main]

chronolith_fuzz::attack!("tag_graph");
