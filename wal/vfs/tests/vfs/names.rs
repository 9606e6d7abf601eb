//! Goal: names are lost and kept one by one, and a rename whole.
//!
//! Mechanism: small directories, all images and many seeds; the set of outcomes must be
//! exactly the allowed one, so that a simulation that is too kind fails too.

use std::collections::BTreeSet;
use std::path::Path;

use chronolith_vfs::{CrashImage, SimVfs, Vfs};

fn create(sim: &SimVfs, path: &str) {
    let file = sim.create_new(Path::new(path)).expect("created");
    file.write_all_at(path.as_bytes(), 0).expect("written");
    file.sync_all().expect("synced");
}

fn rename(sim: &SimVfs, from: &str, to: &str) {
    sim.rename(Path::new(from), Path::new(to)).expect("renamed");
}

fn sync_dir(sim: &SimVfs, path: &str) {
    sim.sync_dir(Path::new(path)).expect("synced");
}

/// Each file as `path=content`.
fn files(sim: &SimVfs) -> String {
    let files = sim.files();
    let files = files.iter().map(|path| {
        let content = sim.content(path).expect("listed");
        format!("{}={}", path.display(), String::from_utf8_lossy(&content))
    });
    files.collect::<Vec<_>>().join(" ")
}

fn outcomes(sim: &SimVfs) -> BTreeSet<String> {
    let images = (0..64).flat_map(CrashImage::all_seeded);
    images.map(|image| files(&sim.crash(image))).collect()
}

fn set<const N: usize>(outcomes: [&str; N]) -> BTreeSet<String> {
    outcomes.into_iter().map(String::from).collect()
}

#[test]
fn a_synced_file_without_a_synced_directory_can_be_gone() {
    let sim = SimVfs::new();
    create(&sim, "/a");
    assert_eq!(files(&sim.crash(CrashImage::LoseUnsynced)), "");
    assert_eq!(files(&sim.crash(CrashImage::DataOnly)), "");
    assert_eq!(files(&sim.crash(CrashImage::NamesOnly)), "/a=/a");
    sync_dir(&sim, "/");
    assert_eq!(outcomes(&sim), set(["/a=/a"]));
}

#[test]
fn names_are_lost_one_by_one() {
    let sim = SimVfs::new();
    create(&sim, "/old");
    sync_dir(&sim, "/");
    create(&sim, "/new");
    sim.remove_file(Path::new("/old")).expect("removed");
    let want = ["", "/new=/new", "/new=/new /old=/old", "/old=/old"];
    assert_eq!(outcomes(&sim), set(want));
}

#[test]
fn a_rename_is_lost_or_kept_whole() {
    let sim = SimVfs::new();
    create(&sim, "/a");
    create(&sim, "/b");
    sync_dir(&sim, "/");
    rename(&sim, "/a", "/b");
    assert_eq!(outcomes(&sim), set(["/a=/a /b=/b", "/b=/a"]));
    sync_dir(&sim, "/");
    assert_eq!(outcomes(&sim), set(["/b=/a"]));
}

#[test]
fn a_file_has_one_name_whatever_survives() {
    let sim = SimVfs::new();
    create(&sim, "/a");
    rename(&sim, "/a", "/b");
    rename(&sim, "/b", "/c");
    assert_eq!(outcomes(&sim), set(["", "/a=/a", "/b=/a", "/c=/a"]));
}

#[test]
fn a_directory_needs_its_parents_sync() {
    let sim = SimVfs::new();
    sim.create_dir(Path::new("/d")).expect("made");
    create(&sim, "/d/a");
    sync_dir(&sim, "/d");
    assert_eq!(outcomes(&sim), set(["", "/d/a=/d/a"]));
    sync_dir(&sim, "/");
    assert_eq!(outcomes(&sim), set(["/d/a=/d/a"]));
}

#[test]
fn a_rename_across_directories_is_durable_with_the_targets_sync() {
    let sim = SimVfs::new();
    for dir in ["/d", "/e"] {
        sim.create_dir(Path::new(dir)).expect("made");
    }
    sync_dir(&sim, "/");
    create(&sim, "/d/a");
    rename(&sim, "/d/a", "/e/b");
    assert_eq!(outcomes(&sim), set(["", "/d/a=/d/a", "/e/b=/d/a"]));
    sync_dir(&sim, "/d");
    assert_eq!(outcomes(&sim), set(["/d/a=/d/a", "/e/b=/d/a"]));
    sync_dir(&sim, "/e");
    assert_eq!(outcomes(&sim), set(["/e/b=/d/a"]));
}

#[test]
fn the_targets_sync_settles_how_the_file_came_there() {
    let sim = SimVfs::new();
    for dir in ["/d", "/e"] {
        sim.create_dir(Path::new(dir)).expect("made");
    }
    sync_dir(&sim, "/");
    create(&sim, "/d/a");
    rename(&sim, "/d/a", "/d/x");
    rename(&sim, "/d/x", "/e/b");
    sync_dir(&sim, "/e");
    assert_eq!(outcomes(&sim), set(["/e/b=/d/a"]));
}

#[test]
fn the_removal_of_a_tree_can_stop_in_its_middle() {
    let sim = SimVfs::new();
    sim.create_dir(Path::new("/d")).expect("made");
    create(&sim, "/d/a");
    create(&sim, "/d/b");
    sync_dir(&sim, "/d");
    sync_dir(&sim, "/");
    let point = sim.ops() + 1;
    let whole = sim.crash(CrashImage::KeepAll);
    whole.remove_dir_all(Path::new("/d")).expect("removed");
    let want = ["", "/d/a=/d/a", "/d/a=/d/a /d/b=/d/b", "/d/b=/d/b"];
    assert_eq!(outcomes(&whole), set(want));
    sync_dir(&whole, "/");
    assert_eq!(outcomes(&whole), set([""]));
    sim.set_crash_point(point);
    sim.remove_dir_all(Path::new("/d")).expect_err("stopped");
    assert_eq!(files(&sim.crash(CrashImage::KeepAll)), "/d/b=/d/b");
}

#[test]
fn a_name_made_again_is_the_new_file() {
    let sim = SimVfs::new();
    create(&sim, "/a");
    sync_dir(&sim, "/");
    sim.damage(Path::new("/a"), |bytes| bytes.push(b'!'))
        .expect("told apart");
    sim.remove_file(Path::new("/a")).expect("removed");
    create(&sim, "/a");
    assert_eq!(outcomes(&sim), set(["", "/a=/a", "/a=/a!"]));
    sync_dir(&sim, "/");
    assert_eq!(outcomes(&sim), set(["/a=/a"]));
}

#[test]
fn a_killed_process_loses_no_name_but_syncs_none_either() {
    let sim = SimVfs::new();
    create(&sim, "/a");
    rename(&sim, "/a", "/b");
    let killed = sim.crash(CrashImage::ProcessKill);
    assert_eq!(files(&killed), "/b=/a");
    assert_eq!(files(&killed.crash(CrashImage::LoseUnsynced)), "");
    sync_dir(&killed, "/");
    assert_eq!(files(&killed.crash(CrashImage::LoseUnsynced)), "/b=/a");
}

#[test]
fn a_hard_link_is_a_name_of_its_own() {
    let sim = SimVfs::new();
    for dir in ["/d", "/e"] {
        sim.create_dir(Path::new(dir)).expect("made");
    }
    create(&sim, "/d/a");
    sync_dir(&sim, "/d");
    sync_dir(&sim, "/");
    let link = |to: &str| sim.hard_link(Path::new("/d/a"), Path::new(to));
    link("/e/b").expect("linked");
    assert_eq!(outcomes(&sim), set(["/d/a=/d/a", "/d/a=/d/a /e/b=/d/a"]));
    sync_dir(&sim, "/e");
    assert_eq!(outcomes(&sim), set(["/d/a=/d/a /e/b=/d/a"]));
    sim.remove_file(Path::new("/d/a")).expect("removed");
    assert_eq!(
        outcomes(&sim),
        set(["/d/a=/d/a /e/b=/d/a", "/e/b=/d/a"]),
        "the removal of one name takes no other"
    );
}

#[test]
fn a_rename_moves_one_of_two_names_and_settles_no_other() {
    let sim = SimVfs::new();
    for dir in ["/d", "/e"] {
        sim.create_dir(Path::new(dir)).expect("made");
    }
    sync_dir(&sim, "/");
    create(&sim, "/d/a");
    sim.hard_link(Path::new("/d/a"), Path::new("/e/b"))
        .expect("linked");
    rename(&sim, "/d/a", "/d/c");
    let (lost, kept) = ("/e/b=/d/a", "/d/c=/d/a");
    let both = format!("{kept} {lost}");
    let old = format!("/d/a=/d/a {lost}");
    let want = ["", "/d/a=/d/a", lost, kept, &both, &old];
    assert_eq!(outcomes(&sim), set(want));
    sync_dir(&sim, "/d");
    assert_eq!(outcomes(&sim), set([kept, &both]));
}

#[test]
fn a_file_of_two_names_is_one_file_after_a_crash() {
    let sim = SimVfs::new();
    create(&sim, "/a");
    sim.hard_link(Path::new("/a"), Path::new("/b"))
        .expect("linked");
    sync_dir(&sim, "/");
    for image in [CrashImage::LoseUnsynced, CrashImage::ProcessKill] {
        let after = sim.crash(image);
        let file = after.open_write(Path::new("/a")).expect("there");
        file.write_all_at(b"!", 0).expect("written");
        assert_eq!(files(&after), "/a=!a /b=!a");
    }
}
