//! Goal: the real doors give what they promise, and the simulated ones repeat themselves.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chronolith_vfs::{Clock, Entropy, Env, FileKind, SeededEntropy, SimClock, SimVfs, Vfs};

#[test]
fn modes_are_the_owners_alone() {
    let temp = tempfile::tempdir().expect("a temporary directory");
    let vfs = Env::real().vfs;
    let mode = |name: &str| {
        let meta = std::fs::metadata(temp.path().join(name)).expect("exists");
        meta.permissions().mode() & 0o777
    };
    vfs.create_dir(&temp.path().join("d")).expect("made");
    vfs.create_new(&temp.path().join("d/a")).expect("created");
    let lock = vfs.try_lock(&temp.path().join("LOCK")).expect("locked");
    assert_eq!(
        (mode("d"), mode("d/a"), mode("LOCK")),
        (0o700, 0o600, 0o600)
    );
    vfs.seal(&temp.path().join("d/a")).expect("sealed");
    assert_eq!(mode("d/a"), 0o400);
    drop(lock);
}

/// An open that waited for a writer of the pipe would never end.
#[test]
fn what_is_no_file_is_not_opened() {
    let temp = tempfile::tempdir().expect("a temporary directory");
    let vfs = Env::real().vfs;
    let at = |name: &str| temp.path().join(name);
    vfs.create_dir(&at("directory")).expect("made");
    drop(std::os::unix::net::UnixListener::bind(at("socket")).expect("bound"));
    let made = std::process::Command::new("mkfifo")
        .arg(at("pipe"))
        .status();
    assert!(made.expect("mkfifo runs").success());
    for name in ["directory", "socket", "pipe"] {
        for opened in [vfs.open_read(&at(name)), vfs.open_write(&at(name))] {
            let error = opened.expect_err(name);
            assert!(error.to_string().contains(name), "{name}: {error}");
            assert!(chronolith_vfs::is_unreadable(&error), "{name}: {error}");
        }
    }
    vfs.try_lock(&at("pipe"))
        .expect_err("a pipe is no lock file");
    vfs.sync_dir(&at("directory")).expect("synced");
    vfs.open_read(&at("nothing")).expect_err("not there");
}

#[test]
fn a_symbolic_link_and_a_socket_are_neither_file_nor_directory() {
    let temp = tempfile::tempdir().expect("a temporary directory");
    let vfs = Env::real().vfs;
    vfs.create_new(&temp.path().join("a")).expect("created");
    vfs.create_dir(&temp.path().join("d")).expect("made");
    let kind = |name: &str| vfs.kind(&temp.path().join(name)).expect("known");
    assert_eq!((kind("a"), kind("d")), (FileKind::File, FileKind::Dir));
    for target in ["a", "d", "nothing"] {
        let link = temp.path().join(format!("to-{target}"));
        std::os::unix::fs::symlink(target, &link).expect("linked");
        assert_eq!(kind(&format!("to-{target}")), FileKind::Other);
    }
    let _listening =
        std::os::unix::net::UnixListener::bind(temp.path().join("s")).expect("a socket");
    assert_eq!(kind("s"), FileKind::Other);
}

#[test]
fn real_time_entropy_and_threads_work() {
    let env = Env::real();
    assert!(env.clock.now_us() > 1_700_000_000_000_000);
    let before = env.clock.monotonic_ns();
    env.clock.sleep(Duration::from_millis(1));
    assert!(env.clock.monotonic_ns() >= before + 1_000_000);
    let (mut a, mut b) = ([0; 16], [0; 16]);
    env.entropy.fill(&mut a);
    env.entropy.fill(&mut b);
    assert_ne!(a, b);
    let ran = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ran);
    let body = Box::new(move || seen.store(true, Ordering::SeqCst));
    assert!(env.threads.spawn("test", body).expect("started").join());
    assert!(ran.load(Ordering::SeqCst));
    let panics = Box::new(|| panic!("on purpose"));
    assert!(!env.threads.spawn("test", panics).expect("started").join());
}

#[test]
fn a_simulated_clock_stands_still_and_moves_when_told() {
    let clock = SimClock::new();
    let start_us = clock.now_us();
    assert_eq!((clock.now_us(), clock.monotonic_ns()), (start_us, 0));
    clock.sleep(Duration::from_secs(2));
    assert_eq!(clock.now_us(), start_us + 2_000_000);
    assert_eq!(clock.monotonic_ns(), 2_000_000_000);
    clock.set_us(5);
    assert_eq!((clock.now_us(), clock.monotonic_ns()), (5, 2_000_000_000));
}

#[test]
fn equal_seeds_give_equal_bytes() {
    let draw = |seed| {
        let entropy = SeededEntropy::new(seed);
        let (mut a, mut b) = ([0; 13], [0; 13]);
        entropy.fill(&mut a);
        entropy.fill(&mut b);
        (a, b)
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    assert_ne!(draw(1).0, draw(1).1);
}

#[test]
fn a_simulated_environment_is_one_disk_and_one_clock() {
    let (env, sim, clock) = Env::sim(7);
    env.vfs.create_new("/a".as_ref()).expect("created");
    assert_eq!(sim.files().len(), 1);
    clock.set_us(1);
    assert_eq!(env.clock.now_us(), 1);
    let other = env.with_vfs(SimVfs::new());
    assert!(other.vfs.list("/".as_ref()).expect("listed").is_empty());
    assert_eq!(other.clock.now_us(), 1);
}

#[test]
fn trace_lines_tell_what_was_done() {
    let sim = SimVfs::new();
    let file = sim.create_new("/a".as_ref()).expect("created");
    file.write_all_at(b"abc", 4).expect("written");
    file.set_len(5).expect("cut");
    let lines: Vec<_> = sim.trace().iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["0 Create /a", "1 Write /a @4 +3", "2 SetLen /a =5"]);
}
