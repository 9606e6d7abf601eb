//! Goal: all file systems keep one contract, so that what holds on the simulated disk holds on
//! the real one.
//!
//! Mechanism: each check is a function over a `Vfs` and an empty directory; every file system
//! runs every check.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use chronolith_vfs::{Access, FaultVfs, FileKind, RealVfs, SimVfs, Vfs};

type Check = fn(&dyn Vfs, &Path);

const CHECKS: [(&str, Check); 13] = [
    ("reads", reads),
    ("creation", creation),
    ("lengths", lengths),
    ("renames", renames),
    ("links", links),
    ("kinds", kinds),
    ("removal", removal),
    ("directories", directories),
    ("wrong kinds", wrong_kinds),
    ("maps", maps),
    ("seals", seals),
    ("locks", locks),
    ("syncs", syncs),
];

fn run(name: &str, vfs: &dyn Vfs, root: &Path) {
    for (index, (what, check)) in CHECKS.iter().enumerate() {
        println!("{name}: {what}");
        let dir = root.join(format!("check-{index}"));
        vfs.create_dir(&dir).expect("an empty directory");
        check(vfs, &dir);
    }
}

#[test]
fn the_real_file_system_conforms() {
    let temp = tempfile::tempdir().expect("a temporary directory");
    run("real", &RealVfs::new(), temp.path());
}

#[test]
fn the_real_file_system_without_maps_conforms() {
    let temp = tempfile::tempdir().expect("a temporary directory");
    run("positioned", &RealVfs::positioned(), temp.path());
}

#[test]
fn the_simulated_disk_conforms() {
    run("sim", &SimVfs::new(), Path::new("/"));
}

#[test]
fn a_fault_layer_without_rules_conforms() {
    run(
        "fault",
        &FaultVfs::new(Arc::new(SimVfs::new())),
        Path::new("/"),
    );
}

fn kind<T>(result: std::io::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

fn put(vfs: &dyn Vfs, path: &Path, bytes: &[u8]) {
    let file = vfs.create_new(path).expect("a new file");
    file.write_all_at(bytes, 0).expect("written");
}

fn get(vfs: &dyn Vfs, path: &Path) -> Vec<u8> {
    let file = vfs.open_read(path).expect("an existing file");
    let mut bytes = vec![0; usize::try_from(file.len().expect("a length")).expect("small")];
    file.read_exact_at(&mut bytes, 0).expect("read");
    bytes
}

fn reads(vfs: &dyn Vfs, dir: &Path) {
    let path = dir.join("a");
    put(vfs, &path, b"hello");
    let file = vfs.open_read(&path).expect("opened");
    let mut buf = [0xEE; 8];
    assert_eq!(file.read_at(&mut buf, 1).expect("read"), 4);
    assert_eq!(&buf, b"ello\xEE\xEE\xEE\xEE");
    assert_eq!(file.read_at(&mut buf, 5).expect("at the end"), 0);
    assert_eq!(file.read_at(&mut buf, 1 << 40).expect("behind the end"), 0);
    let beyond = file.read_exact_at(&mut buf, 0);
    assert_eq!(kind(beyond), Some(ErrorKind::UnexpectedEof));
}

fn creation(vfs: &dyn Vfs, dir: &Path) {
    let path = dir.join("a");
    assert_eq!(kind(vfs.open_read(&path)), Some(ErrorKind::NotFound));
    assert_eq!(kind(vfs.open_write(&path)), Some(ErrorKind::NotFound));
    put(vfs, &path, b"one");
    assert_eq!(kind(vfs.create_new(&path)), Some(ErrorKind::AlreadyExists));
    assert_eq!(get(vfs, &path), b"one");
    let in_nowhere = vfs.create_new(&dir.join("no/a"));
    assert_eq!(kind(in_nowhere), Some(ErrorKind::NotFound));
    let file = vfs.open_write(&path).expect("opened again");
    file.write_all_at(b"w", 1).expect("overwritten");
    assert_eq!(get(vfs, &path), b"owe");
}

fn lengths(vfs: &dyn Vfs, dir: &Path) {
    let path = dir.join("a");
    let file = vfs.create_new(&path).expect("created");
    assert_eq!(file.len().expect("empty"), 0);
    file.write_all_at(b"xy", 3).expect("behind a hole");
    assert_eq!(get(vfs, &path), b"\0\0\0xy");
    file.set_len(4).expect("cut");
    file.set_len(6).expect("extended");
    assert_eq!(get(vfs, &path), b"\0\0\0x\0\0");
    assert_eq!(file.write_at(b"", 100).expect("nothing written"), 0);
    assert_eq!(vfs.stat(&path).expect("known").len, 6);
}

fn renames(vfs: &dyn Vfs, dir: &Path) {
    let (a, b) = (dir.join("a"), dir.join("b"));
    assert_eq!(kind(vfs.rename(&a, &b)), Some(ErrorKind::NotFound));
    put(vfs, &a, b"new");
    put(vfs, &b, b"old");
    let old = vfs.open_read(&b).expect("opened before");
    let moved = vfs.open_read(&a).expect("opened before");
    vfs.rename(&a, &b).expect("replaces");
    assert_eq!(get(vfs, &b), b"new");
    assert_eq!(kind(vfs.stat(&a)), Some(ErrorKind::NotFound));
    let mut buf = [0; 3];
    old.read_exact_at(&mut buf, 0).expect("still readable");
    assert_eq!(&buf, b"old");
    moved.read_exact_at(&mut buf, 0).expect("still readable");
    assert_eq!(&buf, b"new");
    vfs.rename(&b, &b).expect("onto itself");
    let sub = dir.join("sub");
    vfs.create_dir(&sub).expect("made");
    vfs.rename(&b, &sub.join("c")).expect("across directories");
    assert_eq!(get(vfs, &sub.join("c")), b"new");
}

fn links(vfs: &dyn Vfs, dir: &Path) {
    let (a, b) = (dir.join("a"), dir.join("b"));
    assert_eq!(kind(vfs.hard_link(&a, &b)), Some(ErrorKind::NotFound));
    put(vfs, &a, b"one");
    vfs.hard_link(&a, &b).expect("a second name");
    assert_eq!(kind(vfs.hard_link(&a, &b)), Some(ErrorKind::AlreadyExists));
    let file = vfs.open_write(&a).expect("opened");
    file.write_all_at(b"u", 0).expect("written");
    assert_eq!(get(vfs, &b), b"une", "one file under two names");
    vfs.remove_file(&a).expect("one name goes");
    assert_eq!(get(vfs, &b), b"une", "the other one stays");
    vfs.hard_link(&b, &a).expect("a second name again");
    vfs.rename(&b, &dir.join("c")).expect("one name moves");
    assert_eq!(get(vfs, &a), b"une", "the other one does not");
    let into_nowhere = vfs.hard_link(&a, &dir.join("no/a"));
    assert_eq!(kind(into_nowhere), Some(ErrorKind::NotFound));
}

fn kinds(vfs: &dyn Vfs, dir: &Path) {
    assert_eq!(kind(vfs.kind(&dir.join("a"))), Some(ErrorKind::NotFound));
    put(vfs, &dir.join("a"), b"one");
    assert_eq!(vfs.kind(&dir.join("a")).expect("known"), FileKind::File);
    assert_eq!(vfs.kind(dir).expect("known"), FileKind::Dir);
}

fn removal(vfs: &dyn Vfs, dir: &Path) {
    let path = dir.join("a");
    assert_eq!(kind(vfs.remove_file(&path)), Some(ErrorKind::NotFound));
    put(vfs, &path, b"bytes");
    let file = vfs.open_write(&path).expect("opened");
    let map = vfs.open_read(&path).and_then(|f| f.map(5)).expect("mapped");
    vfs.remove_file(&path).expect("removed");
    assert_eq!(vfs.list(dir).expect("listed"), []);
    file.write_all_at(b"!", 5).expect("lives on");
    assert_eq!(file.len().expect("lives on"), 6);
    assert_eq!(&*map, b"bytes");
    put(vfs, &path, b"another");
    assert_eq!(get(vfs, &path), b"another");
}

fn directories(vfs: &dyn Vfs, dir: &Path) {
    let sub = dir.join("sub");
    assert_eq!(kind(vfs.list(&sub)), Some(ErrorKind::NotFound));
    assert_eq!(kind(vfs.sync_dir(&sub)), Some(ErrorKind::NotFound));
    assert_eq!(kind(vfs.remove_dir_all(&sub)), Some(ErrorKind::NotFound));
    assert_eq!(
        kind(vfs.create_dir(&sub.join("x"))),
        Some(ErrorKind::NotFound)
    );
    vfs.create_dir(&sub).expect("made");
    assert_eq!(kind(vfs.create_dir(&sub)), Some(ErrorKind::AlreadyExists));
    let stat = vfs.stat(&sub).expect("known");
    assert_eq!((stat.len, stat.is_dir), (0, true));
    vfs.create_dir(&sub.join("deep")).expect("made");
    for name in ["b", "a", "deep/c"] {
        put(vfs, &sub.join(name), name.as_bytes());
    }
    let listed = vfs.list(&sub).expect("listed");
    let listed: Vec<_> = listed.iter().map(|e| (e.name.as_str(), e.is_dir)).collect();
    assert_eq!(listed, [("a", false), ("b", false), ("deep", true)]);
    vfs.rename(&sub, &dir.join("moved")).expect("moved whole");
    assert_eq!(get(vfs, &dir.join("moved/deep/c")), b"deep/c");
    vfs.remove_dir_all(&dir.join("moved")).expect("removed");
    assert_eq!(vfs.list(dir).expect("listed"), []);
}

fn wrong_kinds(vfs: &dyn Vfs, dir: &Path) {
    let (file, sub) = (dir.join("f"), dir.join("sub"));
    put(vfs, &file, b"f");
    vfs.create_dir(&sub).expect("made");
    assert_eq!(kind(vfs.open_write(&sub)), Some(ErrorKind::IsADirectory));
    assert_eq!(kind(vfs.remove_file(&sub)), Some(ErrorKind::IsADirectory));
    assert_eq!(kind(vfs.list(&file)), Some(ErrorKind::NotADirectory));
    assert_eq!(
        kind(vfs.remove_dir_all(&file)),
        Some(ErrorKind::NotADirectory)
    );
    let below_file = vfs.open_read(&file.join("x"));
    assert_eq!(kind(below_file), Some(ErrorKind::NotADirectory));
    assert_eq!(kind(vfs.create_new(&sub)), Some(ErrorKind::AlreadyExists));
    assert_eq!(kind(vfs.create_dir(&file)), Some(ErrorKind::AlreadyExists));
    assert_eq!(kind(vfs.rename(&file, &sub)), Some(ErrorKind::IsADirectory));
    assert_eq!(
        kind(vfs.rename(&sub, &file)),
        Some(ErrorKind::NotADirectory)
    );
    let into_itself = vfs.rename(&sub, &sub.join("x"));
    assert_eq!(kind(into_itself), Some(ErrorKind::InvalidInput));
    put(vfs, &sub.join("inside"), b"f");
    let onto_its_parent = vfs.rename(&sub.join("inside"), &sub);
    assert_eq!(kind(onto_its_parent), Some(ErrorKind::DirectoryNotEmpty));
}

fn maps(vfs: &dyn Vfs, dir: &Path) {
    let path = dir.join("a");
    put(vfs, &path, b"mapped");
    let file = vfs.open_read(&path).expect("opened");
    let map = file.map(4).expect("a prefix");
    assert_eq!(&*map, b"mapp");
    for access in [Access::InOrder, Access::Scattered] {
        map.advise(access);
        map.will_need(1..3);
        map.will_need(2..usize::MAX);
        map.will_need(9..10);
        assert_eq!(&*map, b"mapp", "a hint changes nothing");
    }
    assert_eq!(&*map.clone(), b"mapp");
    assert_eq!(&*file.map(0).expect("empty"), b"");
    assert_eq!(kind(file.map(7)), Some(ErrorKind::UnexpectedEof));
    assert_eq!(kind(file.map(u64::MAX)), Some(ErrorKind::UnexpectedEof));
    put(vfs, &dir.join("empty"), b"");
    let empty = vfs.open_read(&dir.join("empty")).expect("opened");
    assert_eq!(&*empty.map(0).expect("empty"), b"");
    drop(file);
    assert_eq!(&*map, b"mapp", "a map outlives its handle");
}

fn seals(vfs: &dyn Vfs, dir: &Path) {
    let path = dir.join("a");
    assert_eq!(kind(vfs.seal(&path)), Some(ErrorKind::NotFound));
    put(vfs, &path, b"sealed");
    vfs.seal(&path).expect("sealed");
    assert_eq!(get(vfs, &path), b"sealed");
    vfs.rename(&path, &dir.join("b")).expect("may be renamed");
    vfs.remove_file(&dir.join("b")).expect("may be removed");
}

fn locks(vfs: &dyn Vfs, dir: &Path) {
    let path = dir.join("LOCK");
    let lock = vfs.try_lock(&path).expect("free");
    assert!(lock.is_valid());
    assert_eq!(kind(vfs.try_lock(&path)), Some(ErrorKind::WouldBlock));
    drop(lock);
    let lock = vfs.try_lock(&path).expect("free again");
    vfs.remove_file(&path).expect("removed by someone");
    assert!(!lock.is_valid(), "no file of that name any more");
    let other = vfs.try_lock(&path).expect("a new file, a new lock");
    assert!(!lock.is_valid(), "another file of that name");
    assert!(other.is_valid());
    drop(lock);
    assert_eq!(kind(vfs.try_lock(&path)), Some(ErrorKind::WouldBlock));
}

fn syncs(vfs: &dyn Vfs, dir: &Path) {
    let path = dir.join("a");
    put(vfs, &path, b"synced");
    let file = vfs.open_write(&path).expect("opened");
    file.sync_data().expect("synced");
    file.sync_all().expect("synced");
    vfs.sync_dir(dir).expect("synced");
    vfs.remove_file(&path).expect("removed");
    file.sync_all().expect("synced without a name");
    assert_eq!(vfs.list(dir).expect("listed"), []);
}
