//! Whatever the system refuses while a segment is written, nothing half-written is left.

use chronolith_segments::{MergeInput, SegmentError, write_segment};

use crate::corruption::rows;
use crate::memory::MemoryVfs;
use crate::naive::{Naive, dir, spec};

#[test]
fn a_refused_call_is_an_error_and_leaves_no_file() {
    let naive = Naive { rows: rows(20) };
    let write = |vfs: &MemoryVfs| {
        write_segment(
            vfs,
            dir(),
            &spec(1),
            &[MergeInput {
                partition: &naive,
                keep: (0..20).collect(),
            }],
        )
    };
    let sound = MemoryVfs::default();
    write(&sound).expect("written");
    assert_eq!(sound.names().len(), 1);
    // create, one write, sync, seal, rename
    assert_eq!(sound.calls(), 5);
    for call in 1..=sound.calls() {
        let vfs = MemoryVfs::failing_at(call);
        assert!(
            matches!(write(&vfs), Err(SegmentError::Io { .. })),
            "call {call}"
        );
        assert!(vfs.names().is_empty(), "call {call}");
    }
}
