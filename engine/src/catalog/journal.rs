//! How much room do the database's journals take after a clean close?
//!
//! fjall gives each new journal 64 MiB of zeros in advance, ends one only after 64 MB and lets
//! nobody choose less. Left alone, a small catalog would be read and proved 64 MiB at a time
//! by every open and close, and a large one replayed up to as much. So a close cuts the zeros
//! off, as fjall's own recovery does, and empties a journal whose rows all lie in tables.

use std::io;
use std::path::{Path, PathBuf};

use chronolith_vfs::{Vfs, VfsFile};

/// Ending of a journal's name; the number before it rises.
const ENDING: &str = ".jnl";
/// Bytes read at once while looking for the end.
const CHUNK_BYTES: usize = 1 << 20;

/// The journal that is written to and where its content ends; `None` without one. Every batch
/// in it ends with letters, so zeros at its end are none of it.
pub(super) fn active(vfs: &dyn Vfs, dir: &Path) -> io::Result<Option<(PathBuf, u64)>> {
    let numbers = vfs.list(dir)?.into_iter().filter_map(|entry| {
        let number = entry.name.strip_suffix(ENDING)?.parse::<u64>().ok()?;
        (!entry.is_dir).then_some((number, entry.name))
    });
    let Some((_, name)) = numbers.max() else {
        return Ok(None);
    };
    let path = dir.join(name);
    let end = content_end(&*vfs.open_read(&path)?)?;
    Ok(Some((path, end)))
}

fn content_end(file: &dyn VfsFile) -> io::Result<u64> {
    let mut end = file.len()?;
    let mut chunk = vec![0; CHUNK_BYTES];
    while end > 0 {
        let start = end.saturating_sub(CHUNK_BYTES as u64);
        let part = usize::try_from(end - start).map_err(|_| io::ErrorKind::InvalidData)?;
        let part = &mut chunk[..part];
        file.read_exact_at(part, start)?;
        if let Some(last) = part.iter().rposition(|byte| *byte != 0) {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// Ends a journal at `len`. Nobody may have it open.
pub(super) fn cut(vfs: &dyn Vfs, path: &Path, len: u64) -> io::Result<()> {
    let file = vfs.open_write(path)?;
    if file.len()? > len {
        file.set_len(len)?;
        file.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use chronolith_vfs::SimVfs;

    use super::*;

    #[test]
    fn the_newest_journal_ends_where_its_zeros_begin() {
        let disk = SimVfs::new();
        let dir = Path::new("/db");
        disk.create_dir(dir).expect("created");
        assert_eq!(active(&disk, dir).expect("listed"), None);
        for (name, content, zeros) in [
            ("2.jnl", &b"old"[..], 0),
            ("10.jnl", b"a\0b", 3 * CHUNK_BYTES),
            ("x.jnl", b"none", 0),
        ] {
            let file = disk.create_new(&dir.join(name)).expect("created");
            file.write_all_at(content, 0).expect("written");
            file.set_len((content.len() + zeros) as u64).expect("set");
        }
        let path = dir.join("10.jnl");
        let found = active(&disk, dir).expect("read");
        assert_eq!(found, Some((path.clone(), 3)));
        cut(&disk, &path, 3).expect("cut");
        assert_eq!(disk.content(&path).expect("there"), b"a\0b");
        cut(&disk, &path, 0).expect("cut");
        assert_eq!(active(&disk, dir).expect("read"), Some((path, 0)));
    }
}
