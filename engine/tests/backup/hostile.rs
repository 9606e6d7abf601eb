//! What does a restore make of an index or a file that is not as it was written?

use std::path::Path;

use chronolith::{BackupError, Error, ErrorKind};
use chronolith_vfs::{CrashImage, Env, SimVfs, Vfs};

use crate::support::{self, INDEX, back_up, bring_back, names, reseal};

const ITEMS_AT: usize = 64;
const ITEM_BYTES: usize = 56;

/// A disk with a backup, and the backup's index.
fn backed_up(seed: u64) -> (Env, SimVfs, Vec<u8>) {
    let (env, sim, _clock) = Env::sim(seed);
    drop(support::store(&env));
    back_up(&env, true).expect("backs up");
    let index = sim.content(Path::new(INDEX)).expect("there");
    (env, sim, index)
}

/// A restore with another index, which must be refused and leave nothing.
fn refused(env: &Env, sim: &SimVfs, what: &str, index: &[u8]) -> Error {
    let disk = sim.crash(CrashImage::KeepAll);
    disk.damage(Path::new(INDEX), |content| *content = index.to_vec())
        .expect("damaged");
    let error = bring_back(&env.with_vfs(disk.clone()), "/new").expect_err(what);
    assert!(names(&disk, "/new").is_empty() && names(&disk, "/new.restoring").is_empty());
    error
}

#[test]
fn no_flipped_or_missing_byte_of_an_index_passes() {
    let (env, sim, index) = backed_up(14);
    let mut tried = vec![("one byte more".to_owned(), [&index[..], &[0]].concat())];
    for at in 0..index.len() {
        let mut flipped = index.clone();
        flipped[at] ^= 1 << (at % 8);
        tried.push((format!("flip at {at}"), flipped));
        tried.push((format!("cut at {at}"), index[..at].to_vec()));
    }
    for (what, bytes) in tried {
        let error = refused(&env, &sim, &what, &bytes);
        let is_named = matches!(error, Error::Backup(BackupError::Damaged { .. }));
        assert!(
            is_named && error.to_string().contains("BACKUP"),
            "{what}: {error}"
        );
    }
    // Nor is it written over: what it was is for a person to judge.
    sim.damage(Path::new(INDEX), |bytes| bytes[70] ^= 1)
        .expect("damaged");
    assert_eq!(
        back_up(&env, true).expect_err("refused").kind(),
        ErrorKind::Damaged
    );
}

/// Indexes that are wrong in one way each.
fn hostile(index: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let item = |i: usize| ITEMS_AT + i * ITEM_BYTES..ITEMS_AT + (i + 1) * ITEM_BYTES;
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = index.to_vec();
        change(&mut bytes);
        reseal(bytes)
    };
    let set = |at: usize, value: u64| {
        with(&|bytes| bytes[at..at + 8].copy_from_slice(&value.to_le_bytes()))
    };
    let count = (index.len() - ITEMS_AT - 16) / ITEM_BYTES;
    let mut tried = vec![
        ("more items than bytes", with(&|bytes| bytes[12] += 1)),
        ("2^32 - 1 items", with(&|bytes| bytes[12..16].fill(0xff))),
        ("another store", with(&|bytes| bytes[16] ^= 1)),
        ("a point that is not there", set(32, 7)),
        ("no point", set(32, 0)),
        ("another last seq", set(40, 1 << 50)),
    ];
    for i in 0..count {
        let at = item(i).start;
        let bytes: [u8; 8] = index[at + 16..at + 24].try_into().expect("eight");
        let longer = u64::from_le_bytes(bytes) + 1;
        for (what, value) in [
            ("huge", u64::MAX),
            ("over every cap", 1 << 41),
            ("empty", 0),
        ] {
            tried.push((what, set(at + 16, value)));
        }
        tried.push(("longer than its file", set(at + 16, longer)));
        tried.push(("a number of no file", set(at + 8, 0xdead_beef)));
        tried.push(("another digest", set(at + 40, 1)));
        tried.push(("another origin", set(at + 24, 1)));
        for kind in [0, 9, b'.', b'/', 0xff] {
            tried.push(("no kind", with(&|bytes| bytes[at] = kind)));
        }
        tried.push(("reserved bytes", with(&|bytes| bytes[at + 7] = 1)));
        let twice = with(&|bytes| {
            let same = bytes[item(i)].to_vec();
            bytes.splice(item(i).end..item(i).end, same);
            bytes[12] += 1;
        });
        tried.push(("twice", twice));
        let without = with(&|bytes| {
            bytes.drain(item(i));
            bytes[12] -= 1;
        });
        tried.push(("left out", without));
    }
    let swapped = with(&|bytes| {
        let (a, b) = (
            bytes[item(count - 2)].to_vec(),
            bytes[item(count - 1)].to_vec(),
        );
        bytes[item(count - 2)].copy_from_slice(&b);
        bytes[item(count - 1)].copy_from_slice(&a);
    });
    tried.push(("out of order", swapped));
    tried
}

#[test]
fn hostile_indexes_with_checksums_that_hold_are_refused() {
    let (env, sim, index) = backed_up(15);
    for (what, bytes) in hostile(&index) {
        let error = refused(&env, &sim, what, &bytes);
        assert_eq!(error.kind(), ErrorKind::Damaged, "{what}: {error}");
    }
    let mut newer = index.clone();
    newer[8] = 9;
    let error = refused(&env, &sim, "a newer version", &reseal(newer));
    assert_eq!(error.kind(), ErrorKind::WrongVersion, "{error}");
    // The changes alone are at fault: the index itself, sealed again, is good.
    sim.damage(Path::new(INDEX), |content| *content = reseal(index))
        .expect("damaged");
    bring_back(&env, "/new").expect("restores");
}

#[test]
fn damage_to_any_file_of_a_backup_is_named() {
    let (env, sim, _index) = backed_up(16);
    let mut files = names(&sim, "/backup");
    files.retain(|path| !path.ends_with("LOCK") && !path.ends_with("BACKUP"));
    assert!(files.len() >= 9, "{files:?}");
    for path in files {
        let len = sim.content(&path).expect("there").len();
        let damage: [&dyn Fn(&SimVfs); 5] = [
            &|disk| {
                disk.damage(&path, |bytes| bytes[len / 2] ^= 8)
                    .expect("damaged")
            },
            &|disk| {
                disk.damage(&path, |bytes| bytes[len - 1] ^= 8)
                    .expect("damaged")
            },
            &|disk| {
                disk.damage(&path, |bytes| bytes.truncate(len - 1))
                    .expect("damaged")
            },
            &|disk| disk.damage(&path, |bytes| bytes.push(0)).expect("damaged"),
            &|disk| disk.remove_file(&path).expect("removed"),
        ];
        for damage in damage {
            let disk = sim.crash(CrashImage::KeepAll);
            damage(&disk);
            let error = bring_back(&env.with_vfs(disk.clone()), "/new").expect_err("seen");
            assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
            let text = error.to_string();
            let (path, advice) = (path.display().to_string(), "restore another backup");
            assert!(
                text.contains(&path) && text.contains(advice),
                "{path}: {text}"
            );
            assert!(names(&disk, "/new").is_empty() && names(&disk, "/new.restoring").is_empty());
        }
    }
}
