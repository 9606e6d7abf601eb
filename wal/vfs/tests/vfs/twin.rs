//! Goal: the simulated disk answers like the operating system.
//!
//! Mechanism: random operations over few names on both; results (error kinds included),
//! listings and contents must be equal.

use std::io;
use std::path::Path;

use chronolith_vfs::{RealVfs, SimVfs, Vfs};
use proptest::prelude::*;

const NAMES: [&str; 6] = ["a", "b", "d", "d/a", "d/b", "d/e"];

#[derive(Debug, Clone)]
enum Op {
    Create(usize),
    CreateDir(usize),
    Write(usize, u64, u8, usize),
    SetLen(usize, u64),
    Rename(usize, usize),
    Remove(usize),
    RemoveDir(usize),
    Sync(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let name = || 0..NAMES.len();
    prop_oneof![
        3 => name().prop_map(Op::Create),
        2 => name().prop_map(Op::CreateDir),
        3 => (name(), 0u64..700, any::<u8>(), 0usize..700)
            .prop_map(|(name, at, byte, len)| Op::Write(name, at, byte, len)),
        1 => (name(), 0u64..900).prop_map(|(name, len)| Op::SetLen(name, len)),
        3 => (name(), name()).prop_map(|(from, to)| Op::Rename(from, to)),
        1 => name().prop_map(Op::Remove),
        1 => name().prop_map(Op::RemoveDir),
        1 => name().prop_map(Op::Sync),
    ]
}

fn apply(vfs: &dyn Vfs, root: &Path, op: &Op) -> Result<(), io::ErrorKind> {
    let at = |name: usize| root.join(NAMES[name]);
    let done = match op {
        Op::Create(name) => vfs.create_new(&at(*name)).map(drop),
        Op::CreateDir(name) => vfs.create_dir(&at(*name)),
        Op::Write(name, offset, byte, len) => vfs
            .open_write(&at(*name))
            .and_then(|file| file.write_all_at(&vec![*byte; *len], *offset)),
        Op::SetLen(name, len) => vfs
            .open_write(&at(*name))
            .and_then(|file| file.set_len(*len)),
        Op::Rename(from, to) => vfs.rename(&at(*from), &at(*to)),
        Op::Remove(name) => vfs.remove_file(&at(*name)),
        Op::RemoveDir(name) => vfs.remove_dir_all(&at(*name)),
        Op::Sync(name) => vfs.open_write(&at(*name)).and_then(|file| file.sync_all()),
    };
    done.map_err(|error| error.kind())
}

/// Everything below a directory: name, and content of a file.
fn tree(vfs: &dyn Vfs, dir: &Path) -> io::Result<Vec<(String, Option<Vec<u8>>)>> {
    let mut found = Vec::new();
    for entry in vfs.list(dir)? {
        let path = dir.join(&entry.name);
        if entry.is_dir {
            found.push((entry.name, None));
            found.extend(tree(vfs, &path)?);
        } else {
            let len = vfs.stat(&path)?.len;
            let bytes = vfs.open_read(&path)?.map(len)?.to_vec();
            found.push((entry.name, Some(bytes)));
        }
    }
    Ok(found)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_simulated_disk_answers_like_the_real_one(
        ops in proptest::collection::vec(op(), 1..40),
    ) {
        let temp = tempfile::tempdir()?;
        let (real, sim) = (RealVfs::positioned(), SimVfs::new());
        for op in &ops {
            let want = apply(&real, temp.path(), op);
            prop_assert_eq!(apply(&sim, Path::new("/"), op), want, "{:?}", op);
        }
        prop_assert_eq!(tree(&sim, Path::new("/"))?, tree(&real, temp.path())?);
    }
}
