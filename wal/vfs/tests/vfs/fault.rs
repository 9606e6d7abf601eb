//! Goal: a rule hits exactly the operations it names.

use std::path::Path;
use std::sync::Arc;

use chronolith_vfs::{
    CrashImage, Errno, FailedSync, FaultAction, FaultRule, FaultVfs, OpKind, SimVfs, Vfs,
};

fn faulty() -> (SimVfs, FaultVfs) {
    let sim = SimVfs::new();
    let faults = FaultVfs::over_sim(&sim);
    (sim, faults)
}

#[test]
fn the_nth_operation_of_a_kind_fails_once() {
    let (_, vfs) = faulty();
    let file = vfs.create_new(Path::new("/a")).expect("created");
    vfs.add(FaultRule::error(Errno::NoSpace).on(OpKind::Write).nth(1));
    file.write_at(b"0", 0).expect("not yet");
    file.sync_all().expect("another kind");
    let error = file.write_at(b"1", 1).expect_err("hit");
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    file.write_at(b"2", 2).expect("spent");
    assert_eq!((vfs.hits(), vfs.count(OpKind::Write)), (1, 3));
    assert_eq!(vfs.total(), 5);
}

#[test]
fn a_rule_can_hold_for_ever_and_for_some_paths() {
    let (_, vfs) = faulty();
    vfs.add(FaultRule::error(Errno::Io).at_path("bad").forever());
    let file = vfs.create_new(Path::new("/good")).expect("another path");
    for _ in 0..3 {
        vfs.create_new(Path::new("/bad")).expect_err("hit");
        vfs.rename(Path::new("/good"), Path::new("/bad"))
            .expect_err("hit by its target");
        file.len().expect("another path");
    }
    vfs.clear();
    vfs.create_new(Path::new("/bad")).expect("faults stopped");
    assert_eq!(vfs.hits(), 6);
}

#[test]
fn every_kind_of_operation_can_be_hit_and_keeps_its_errno() {
    let (sim, vfs) = faulty();
    let path = Path::new("/a");
    let file = vfs.create_new(path).expect("created");
    file.write_all_at(b"abc", 0).expect("written");
    let operate = |kind| match kind {
        OpKind::OpenRead => vfs.open_read(path).err(),
        OpKind::OpenWrite => vfs.open_write(path).err(),
        OpKind::Create => vfs.create_new(Path::new("/b")).err(),
        OpKind::Read => file.read_at(&mut [0], 0).err(),
        OpKind::Write => file.write_at(b"x", 0).err(),
        OpKind::Sync => file.sync_all().err().or(file.sync_data().err()),
        OpKind::SetLen => file.set_len(0).err(),
        OpKind::Len => file.len().err(),
        OpKind::Map => file.map(1).err(),
        OpKind::Rename => vfs.rename(path, Path::new("/b")).err(),
        OpKind::Remove => vfs.remove_file(path).err(),
        OpKind::RemoveDir => vfs.remove_dir_all(Path::new("/")).err(),
        OpKind::CreateDir => vfs.create_dir(Path::new("/d")).err(),
        OpKind::SyncDir => vfs.sync_dir(Path::new("/")).err(),
        OpKind::List => vfs.list(Path::new("/")).err(),
        OpKind::Stat => vfs.stat(path).err(),
        OpKind::Seal => vfs.seal(path).err(),
        OpKind::Lock => vfs.try_lock(path).err(),
        OpKind::Link => vfs.hard_link(path, Path::new("/b")).err(),
    };
    let before = (sim.ops(), sim.content(path).expect("named"));
    for kind in OpKind::ALL {
        for errno in Errno::ALL {
            vfs.clear();
            vfs.add(FaultRule::error(errno).on(kind).forever());
            let error = operate(kind).expect("fails");
            let wanted = std::io::Error::from(errno).raw_os_error();
            assert!(wanted.is_some());
            assert_eq!(error.raw_os_error(), wanted, "{kind:?}");
        }
    }
    let after = (sim.ops(), sim.content(path).expect("named"));
    assert_eq!(after, before, "a failed operation has no effect");
}

#[test]
fn short_and_interrupted_transfers_are_gone_on_with() {
    let (_, vfs) = faulty();
    let file = vfs.create_new(Path::new("/a")).expect("created");
    vfs.add(FaultRule::error(Errno::Interrupted).nth(2));
    vfs.add(FaultRule::new(FaultAction::Short(3)).forever());
    assert_eq!(file.write_at(b"abcdefgh", 0).expect("short"), 3);
    file.write_all_at(b"abcdefgh", 0).expect("whole");
    let mut buf = [0; 8];
    assert_eq!(file.read_at(&mut buf, 0).expect("short"), 3);
    file.read_exact_at(&mut buf, 0).expect("whole");
    assert_eq!(&buf, b"abcdefgh");
    assert_eq!(
        vfs.count(OpKind::Write),
        5,
        "1 + 3 short ones + 1 interrupted"
    );
}

#[test]
fn an_error_after_the_fact_leaves_the_effect() {
    let (sim, vfs) = faulty();
    vfs.create_new(Path::new("/a")).expect("created");
    vfs.add(FaultRule::new(FaultAction::ErrorAfter(Errno::Io)).on(OpKind::Rename));
    vfs.rename(Path::new("/a"), Path::new("/b"))
        .expect_err("reported");
    assert_eq!(sim.files(), [Path::new("/b")]);
}

#[test]
fn a_failed_sync_takes_the_dirty_pages() {
    for mode in [FailedSync::CacheKeepsNew, FailedSync::CacheReverts] {
        let (sim, vfs) = faulty();
        let file = vfs.create_new(Path::new("/a")).expect("created");
        vfs.sync_dir(Path::new("/")).expect("synced");
        vfs.add(
            FaultRule::new(FaultAction::FailedSync(mode))
                .on(OpKind::Sync)
                .at_path("/a"),
        );
        file.write_all_at(b"lost", 0).expect("written");
        file.sync_data().expect_err("fails");
        file.sync_data().expect("the next one lies");
        let after = sim.crash(CrashImage::KeepAll);
        assert_eq!(after.content(Path::new("/a")).expect("named"), [0; 4]);
        assert_eq!(vfs.hits(), 1);
    }
}

#[test]
#[should_panic(expected = "over_sim")]
fn a_failed_sync_cannot_be_asked_of_any_file_system() {
    let vfs = FaultVfs::new(Arc::new(SimVfs::new()));
    let action = FaultAction::FailedSync(FailedSync::CacheReverts);
    vfs.add(FaultRule::new(action).on(OpKind::Sync));
}
