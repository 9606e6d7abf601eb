//! What does damage in one segment do to questions that do not need it, and to those that do?

use std::path::{Path, PathBuf};

use chronolith::{
    Batch, Error, ErrorKind, Exactness, Maintenance, Options, ReadMode, ReadOnlyStore, Record,
    Request, Response, Scope, ScopeSelector, Setup, Store,
};
use chronolith_segments::Segment;
use chronolith_vfs::{Env, SimVfs};

const DIR: &str = "/store";

fn options(env: &Env) -> Options {
    Options {
        maintenance: Maintenance::Manual,
        env: env.clone(),
        ..Options::create(Setup::default())
    }
}

/// Two scopes, each in a segment of its own, and what a whole store answers in each.
fn store(seed: u64) -> (Env, SimVfs, [Response; 2]) {
    let (env, disk, _clock) = Env::sim(seed);
    let store = Store::open(DIR, options(&env)).expect("opens");
    for user in ["ana", "ben"] {
        let mut batch = Batch::new();
        for at in 0..40 {
            let text = format!("the staging proxy of {user} listens on port {at}");
            let scope = Scope::parse(&format!("user/{user}")).expect("a scope");
            batch.upsert(Record::new(
                scope,
                format!("{user}-{at}"),
                1_000_000 * at,
                text,
            ));
        }
        store.write(batch).expect("writes");
        store.flush().expect("flushes");
    }
    let answers = ["ana", "ben"].map(|user| store.retrieve(&request(user)).expect("answers"));
    store.close().expect("closes");
    (env, disk, answers)
}

fn request(user: &str) -> Request {
    let scope = ScopeSelector::parse(&format!("user/{user}")).expect("a scope");
    Request::within(scope).text("proxy port").k(5).now_us(0)
}

fn both() -> Request {
    let scope = ScopeSelector::parse("user").expect("a scope");
    Request::within(scope).text("proxy port").k(100).now_us(0)
}

fn segments(disk: &SimVfs) -> Vec<PathBuf> {
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|end| end == "seg");
    let mut files: Vec<_> = disk.files().into_iter().filter(is_segment).collect();
    files.sort();
    files
}

/// Flips a bit in the middle of each block of the first `len` bytes of a file.
fn spoil(disk: &SimVfs, path: &Path, range: impl Fn(usize) -> std::ops::Range<usize>) {
    disk.damage(path, |bytes| {
        let range = range(bytes.len());
        bytes[range].iter_mut().for_each(|byte| *byte ^= 0x10);
    })
    .expect("the file is there");
}

#[test]
fn damaged_blocks_fail_what_needs_them_and_nothing_else() {
    let (env, disk, [_, whole_ben]) = store(21);
    // The first segment is Ana's; everything between its header and its tail is spoilt.
    let first = &segments(&disk)[0];
    let tail = |bytes: usize| 4096.min(bytes / 8)..bytes / 2;
    spoil(&disk, first, tail);
    let name = first
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();

    let reader = ReadOnlyStore::open(DIR, options(&env)).expect("the open needs no block of it");
    let found = reader.retrieve(&request("ben"));
    if let Ok(found) = &found {
        assert_eq!(found.hits, whole_ben.hits);
        assert_eq!(found.exactness, Exactness::Exact);
    }
    let error = reader
        .retrieve(&request("ana"))
        .expect_err("it needs the damaged one");
    assert_eq!(error.kind(), ErrorKind::Damaged);
    assert!(error.to_string().contains(&name), "{error}");

    let partial = reader.retrieve(&both().partial()).expect("Ben is whole");
    assert_eq!(partial.exactness, Exactness::Partial { missing: 1 });
    assert_eq!(partial.missing[0].file, name);
    assert_eq!(partial.hits.len(), 40);
    assert!(partial.hits.iter().all(|hit| hit.id.starts_with("ben")));
}

#[test]
fn a_segment_that_cannot_be_opened_is_left_out_on_request_only() {
    let (env, disk, [whole_ana, _]) = store(22);
    let second = &segments(&disk)[1];
    spoil(&disk, second, |bytes| bytes - 8..bytes);
    let name = second
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();

    let refused = Store::open(DIR, options(&env)).expect_err("a writer must know every id");
    assert_eq!(refused.kind(), ErrorKind::Damaged);

    let reader = ReadOnlyStore::open(DIR, options(&env)).expect("a reader opens");
    let error = reader
        .retrieve(&request("ana"))
        .expect_err("Ana may have rows in it");
    assert!(matches!(error, Error::Segment(_)), "{error}");
    assert!(error.to_string().contains(&name), "{error}");
    let ana = Scope::parse("user/ana").expect("a scope");
    assert!(reader.get(&ana, "ana-1").is_err() && reader.stats().is_err());

    let partial = reader
        .retrieve(&request("ana").partial())
        .expect("Ana is whole");
    assert_eq!(partial.hits, whole_ana.hits);
    assert_eq!(partial.exactness, Exactness::Partial { missing: 1 });
    assert_eq!(partial.missing[0].file, name);
}

#[test]
fn a_segment_without_its_delete_set_is_left_out_and_what_was_forgotten_stays_away() {
    let (env, disk, [whole_ana, _]) = store(25);
    let store = Store::open(DIR, options(&env)).expect("opens");
    let ben = Scope::parse("user/ben").expect("a scope");
    assert!(store.forget(ben, "ben-1").expect("forgets"));
    store.close().expect("closes");
    let is_set = |path: &PathBuf| path.extension().is_some_and(|end| end == "del");
    let set = disk.files().into_iter().find(is_set).expect("one");
    spoil(&disk, &set, |bytes| bytes - 20..bytes - 19);

    let refused = Store::open(DIR, options(&env)).expect_err("a writer must know every death");
    assert_eq!(refused.kind(), ErrorKind::Damaged);

    let reader = ReadOnlyStore::open(DIR, options(&env)).expect("a reader opens");
    let error = reader
        .retrieve(&request("ben"))
        .expect_err("it needs the set");
    assert!(error.to_string().contains(".del"), "{error}");
    let partial = reader.retrieve(&both().partial()).expect("Ana is whole");
    assert_eq!(partial.exactness, Exactness::Partial { missing: 1 });
    assert!(partial.missing[0].error.contains(".del"));
    assert!(partial.hits.iter().all(|hit| hit.id.starts_with("ana")));
    let ana = reader.retrieve(&request("ana").partial()).expect("whole");
    assert_eq!(ana.hits, whole_ana.hits);
}

#[test]
fn a_partial_answer_of_a_whole_store_is_the_answer() {
    let (env, _disk, [whole_ana, _]) = store(23);
    let reader = ReadOnlyStore::open(DIR, options(&env)).expect("opens");
    let found = reader.retrieve(&request("ana").partial()).expect("answers");
    assert_eq!(found.hits, whole_ana.hits);
    assert_eq!(found.exactness, Exactness::Exact);
    assert!(found.missing.is_empty());
}

#[test]
fn damage_in_the_way_of_a_write_is_found_before_the_log() {
    let (env, disk, _clock) = Env::sim(24);
    let scope = Scope::parse("user/ana").expect("a scope");
    // Neighbours share no beginning that a dictionary could leave out.
    let id = |at: i64| format!("{:016x}-{at:06}", at.wrapping_mul(0x1e37_79b9_7f4a_7c15));
    let put = |store: &Store, at: i64| {
        let mut batch = Batch::new();
        batch.upsert(Record::new(scope.clone(), id(at), at, "text"));
        store.write(batch)
    };
    let store = Store::open(DIR, options(&env)).expect("opens");
    for at in 0..3000 {
        put(&store, at).expect("writes");
    }
    store.close().expect("closes");
    let held = id(2500);
    disk.damage(&segments(&disk)[0], |bytes| {
        let tail = &held.as_bytes()[4..];
        let at = bytes.windows(tail.len()).position(|found| found == tail);
        bytes[at.expect("ids are stored as they are")] ^= 1;
    })
    .expect("the file is there");

    let store = Store::open(DIR, options(&env)).expect("the open reads no block of ids");
    let error = put(&store, 2500).expect_err("its look-up meets the damage");
    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    put(&store, 3001).expect("nothing was written, and the handle still writes");
    let error = store.forget(scope.clone(), id(2500)).expect_err("the same");
    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    drop(store);
    let store =
        Store::open(DIR, options(&env)).expect("the log holds no batch that cannot be applied");
    assert!(store.get(&scope, &id(3001)).expect("healthy").is_some());
}

#[test]
fn every_damaged_section_fails_its_own_scope_at_most() {
    let sections = {
        let (_env, disk, _) = store(25);
        let path = &segments(&disk)[0];
        let number = path.file_stem().expect("a name").to_string_lossy();
        let number = u64::from_str_radix(&number, 16).expect("a number");
        let dir = path.parent().expect("a directory");
        let mode = ReadMode::Positioned;
        let segment = Segment::open_unreferenced(&disk, dir, number, mode).expect("opens");
        segment.describe().sections
    };
    let mut local = Vec::new();
    for section in sections.iter().filter(|section| section.bytes > 0) {
        let (env, disk, [_, whole_ben]) = store(25);
        let path = &segments(&disk)[0];
        let place = |bytes: u64| usize::try_from(bytes).expect("a small file");
        let (start, len) = (place(section.offset), place(section.bytes));
        spoil(&disk, path, |_| start..start + len);
        let reader = ReadOnlyStore::open(DIR, options(&env)).expect("a reader opens");
        match reader.retrieve(&request("ben")) {
            Ok(found) => {
                assert_eq!(found.hits, whole_ben.hits, "{}", section.name);
                local.push(section.name);
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Damaged, "{}", section.name),
        }
        let ana = reader.retrieve(&request("ana").partial()).expect("partial");
        assert!(
            ana.hits.is_empty() || ana.exactness == Exactness::Exact,
            "{}",
            section.name
        );
    }
    for name in [
        "terms",
        "postings",
        "tags",
        "row_tags",
        "detailed",
        "detailed_index",
    ] {
        assert!(
            local.contains(&name),
            "damage in {name} reached another scope: {local:?}"
        );
    }
}

#[test]
fn a_segment_that_is_missing_is_damage_and_is_left_out_on_request() {
    let (env, disk, [whole_ana, _]) = store(26);
    let second = segments(&disk)[1].clone();
    env.vfs.remove_file(&second).expect("removed");
    let name = second
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();

    let refused = Store::open(DIR, options(&env)).expect_err("a writer must know every id");
    assert_eq!(refused.kind(), ErrorKind::Damaged, "{refused}");
    let reader = ReadOnlyStore::open(DIR, options(&env)).expect("a reader opens");
    let error = reader
        .retrieve(&request("ana"))
        .expect_err("Ana may have rows in it");
    assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
    assert!(error.to_string().contains(&name), "{error}");
    let partial = reader
        .retrieve(&request("ana").partial())
        .expect("Ana is whole");
    assert_eq!(partial.hits, whole_ana.hits);
    assert_eq!(partial.missing[0].file, name);
}
