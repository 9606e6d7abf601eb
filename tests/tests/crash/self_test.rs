//! The harness can fail: a disk that lies and an oracle that claims too much are caught.

use chronolith_vfs::{CrashImage, Env};

use chronolith_tests::crash::scripts::{all, put};
use chronolith_tests::crash::{Bed, End, Layer, Shared, the_setup};

#[test]
fn a_sync_that_does_nothing_is_caught() {
    let mut caught = 0;
    for script in all() {
        let (env, disk, _) = Env::sim(1);
        let oracle = Shared::new(&the_setup());
        let bed = Bed::over(&env, Layer::lying(disk.clone()), &script);
        if bed.live(&script, &oracle).is_err() {
            continue;
        }
        let left = disk.crash(CrashImage::LoseUnsynced);
        let bed = Bed::new(&env, left, &script);
        caught += usize::from(bed.recover(&oracle, End::PowerCut).is_err());
    }
    assert!(caught > 10, "only {caught} scripts noticed");
}

#[test]
fn a_commit_that_never_was_is_missed() {
    for script in all() {
        let (env, disk, _) = Env::sim(1);
        let oracle = Shared::new(&the_setup());
        let lived = Bed::new(&env, disk.clone(), &script).live(&script, &oracle);
        lived.unwrap_or_else(|error| panic!("{}: {error}", script.name));
        let bed = Bed::new(&env, disk.crash(CrashImage::KeepAll), &script);
        let honest = bed.recover(&oracle.fork(), End::Kill);
        assert!(honest.is_ok(), "{}: {honest:?}", script.name);
        drop(honest);
        oracle.lock().lie(&[put("a", "never", 5000)]);
        let bed = Bed::new(&env, disk.crash(CrashImage::KeepAll), &script);
        let why = bed.recover(&oracle, End::PowerCut).map(|_| ());
        let why = why.expect_err("a lost commit");
        assert!(why.contains("lost"), "{}: {why}", script.name);
    }
}
