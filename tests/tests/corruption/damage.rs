//! One place of one disk, damaged.

use std::fmt;
use std::path::{Path, PathBuf};

use chronolith_vfs::{SimVfs, Vfs};

/// What happened to a disk.
#[derive(Debug, Clone)]
pub(crate) enum Damage {
    /// One byte has another value.
    Byte { path: PathBuf, at: usize, value: u8 },
    /// The file ends here.
    Cut { path: PathBuf, len: usize },
    /// A 512-byte sector is zeros.
    ZeroSector { path: PathBuf, at: usize },
    /// Two blocks of the file changed places.
    SwapBlocks {
        path: PathBuf,
        a: usize,
        b: usize,
        len: usize,
    },
    /// Two files changed places.
    SwapFiles { a: PathBuf, b: PathBuf },
    /// The file is as it was earlier.
    Stale { path: PathBuf, content: Vec<u8> },
    /// Bytes follow the file's end.
    Longer { path: PathBuf, byte: u8 },
    /// The file is gone.
    Missing { path: PathBuf },
}

impl Damage {
    /// Damages the disk; false where nothing changed.
    pub(crate) fn apply(&self, disk: &SimVfs) -> bool {
        let change = |path: &Path, change: &dyn Fn(&mut Vec<u8>)| {
            let before = disk.content(path).expect("there");
            disk.damage(path, change).expect("there");
            disk.content(path).expect("there") != before
        };
        match self {
            Self::Byte { path, at, value } => change(path, &|bytes| bytes[*at] = *value),
            Self::Cut { path, len } => change(path, &|bytes| bytes.truncate(*len)),
            Self::ZeroSector { path, at } => change(path, &|bytes| {
                let end = (at + 512).min(bytes.len());
                bytes[*at..end].fill(0);
            }),
            Self::SwapBlocks { path, a, b, len } => change(path, &|bytes| {
                let (front, back) = bytes.split_at_mut(*b);
                let len = (*len).min(back.len());
                front[*a..a + len].swap_with_slice(&mut back[..len]);
            }),
            Self::SwapFiles { a, b } => {
                let (of_a, of_b) = (disk.content(a), disk.content(b));
                let (of_a, of_b) = (of_a.expect("there"), of_b.expect("there"));
                change(a, &|bytes| bytes.clone_from(&of_b))
                    & change(b, &|bytes| bytes.clone_from(&of_a))
            }
            Self::Stale { path, content } => change(path, &|bytes| bytes.clone_from(content)),
            Self::Longer { path, byte } => change(path, &|bytes| bytes.extend([*byte; 64])),
            Self::Missing { path } => {
                disk.remove_file(path).expect("removed");
                true
            }
        }
    }

    /// The files that are not what they were.
    pub(crate) fn paths(&self) -> Vec<&Path> {
        match self {
            Self::SwapFiles { a, b } => vec![a, b],
            Self::Byte { path, .. }
            | Self::Cut { path, .. }
            | Self::ZeroSector { path, .. }
            | Self::SwapBlocks { path, .. }
            | Self::Stale { path, .. }
            | Self::Longer { path, .. }
            | Self::Missing { path } => vec![path],
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { path, .. } => write!(f, "Stale {}", path.display()),
            other => write!(f, "{other:?}"),
        }
    }
}

/// Every damage to the bytes of one file; bytes by stride.
pub(crate) fn of_file(path: &Path, content: &[u8], stride: usize, start: usize) -> Vec<Damage> {
    let path = || path.to_path_buf();
    let mut all = Vec::new();
    for at in (start..content.len()).step_by(stride) {
        let bit = 1u8 << (at % 8);
        for value in [content[at] ^ bit, 0x00, 0xFF] {
            all.push(Damage::Byte {
                path: path(),
                at,
                value,
            });
        }
    }
    let cuts = (start..content.len()).step_by(stride * 3);
    let edges = [0, 1, content.len().saturating_sub(1)];
    all.extend(
        cuts.chain(edges)
            .map(|len| Damage::Cut { path: path(), len }),
    );
    let sectors = (0..content.len()).step_by(512);
    all.extend(sectors.map(|at| Damage::ZeroSector { path: path(), at }));
    // Small files have no two blocks of 16 KiB: halves and sectors change places as well.
    for len in [512, 4 << 10, 16 << 10] {
        let blocks = content.len() / len;
        for a in 0..blocks.min(6) {
            for b in a + 1..blocks.min(6) {
                all.push(Damage::SwapBlocks {
                    path: path(),
                    a: a * len,
                    b: b * len,
                    len,
                });
            }
        }
    }
    for byte in [0x00, 0xA5] {
        all.push(Damage::Longer { path: path(), byte });
    }
    all.push(Damage::Missing { path: path() });
    all
}
