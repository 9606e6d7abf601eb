//! What does an execution hold? Counted by the allocator of this binary.

use std::alloc::System;

use chronolith_tests::fuzz::Memory;
use peakmem_alloc::{PeakMemAlloc, PeakMemAllocTrait};

#[global_allocator]
static COUNTING: PeakMemAlloc<System> = PeakMemAlloc::new(System);

/// The process's allocator.
#[derive(Debug, Default)]
pub(crate) struct Counted;

impl Memory for Counted {
    fn start(&self) {
        COUNTING.reset_peak_memory();
    }

    fn peak(&self) -> usize {
        COUNTING.get_peak_memory()
    }
}

#[test]
fn what_is_held_is_counted() {
    let _alone = super::alone();
    let memory = Counted;
    memory.start();
    let block = vec![1_u8; 5 << 20];
    drop(block);
    let peak = memory.peak();
    assert!((5 << 20..7 << 20).contains(&peak), "{peak} bytes");
    memory.start();
    assert!(memory.peak() < 1 << 20, "{} bytes", memory.peak());
}
