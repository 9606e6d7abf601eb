//! The catalog's seal, as a scrub of the store around it reads it.

use std::path::Path;
use std::sync::OnceLock;

use chronolith_vfs::CrashImage;
use xxhash_rust::xxh3::xxh3_128;

use super::Forge;
use super::disk::{fixed, put};
use super::store::{DIR, base, files, options};
use chronolith::ReadMode;

const HEADER: usize = 28;
const DIGEST: usize = 16;
/// The one file below the database's directory.
const FILE: (&str, &[u8]) = ("0.jnl", b"bytes");

/// Corrects and rebuilds the digest.
pub(super) const FORGE: Forge = Forge {
    patch: |bytes| {
        if let Some(digest_at) = bytes.len().checked_sub(DIGEST) {
            let digest = xxh3_128(&bytes[..digest_at]).to_le_bytes();
            bytes[digest_at..].copy_from_slice(&digest);
        }
    },
    take_apart: |bytes| {
        let digest_at = bytes.len().checked_sub(DIGEST)?;
        Some(vec![
            bytes.get(..HEADER - 4)?.to_vec(),
            bytes.get(HEADER..digest_at)?.to_vec(),
        ])
    },
    put_together: |parts| {
        let part = |at: usize| parts.get(at).map_or(&[][..], Vec::as_slice);
        let header = fixed::<{ HEADER - 4 }>(part(0));
        let body: Vec<u8> = parts.iter().skip(1).flatten().copied().collect();
        let length = u32::try_from(body.len()).expect("small");
        let mut bytes = [&header[..], &length.to_le_bytes(), &body, &[0; DIGEST]].concat();
        (FORGE.patch)(&mut bytes);
        bytes
    },
};

/// The store id of every input of the corpora.
pub(super) fn store_id() -> [u8; 16] {
    static ID: OnceLock<[u8; 16]> = OnceLock::new();
    *ID.get_or_init(|| {
        let disk = &base().disk;
        let segment = disk.content(&files(disk, ".seg")[0]).expect("there");
        fixed(&segment[12..28])
    })
}

/// Puts the bytes under the name of the seal and scrubs the store. Taken: all is as it says.
pub(super) fn run(bytes: &[u8]) -> bool {
    let base = base();
    let disk = base.disk.crash(CrashImage::ProcessKill);
    let catalog = Path::new(DIR).join("catalog");
    put(&disk, &catalog.join("db").join(FILE.0), FILE.1);
    put(&disk, &catalog.join("SEAL"), bytes);
    let options = options(&base.env.with_vfs(disk), ReadMode::Positioned);
    let report = chronolith::verify(DIR, &options, &mut |_| {});
    let report = report.expect("damage is a finding and no error");
    let of_catalog = |file: &str| file.starts_with("catalog");
    let others = report.findings.iter();
    let others = others.filter(|finding| !of_catalog(&finding.file)).count();
    assert_eq!(others, 0, "nothing else is damaged: {:?}", report.findings);
    report.findings.is_empty() && report.files.iter().any(|file| of_catalog(&file.file))
}

/// Seals over the file, of an earlier version and of a later one too, and over none.
pub(super) fn seeds() -> [(&'static str, Vec<u8>); 4] {
    let seal = |version: u8, files: &[u8]| {
        let header = [&b"chrocat"[..], &[version], &store_id()[..]].concat();
        // Generation, watermark, locators, two segments, and where a third one went.
        let moved: &[u8] = if version == 0 { &[] } else { &[1, 5, 7] };
        let body = [&[3, 1, 40, 2, 1, 7], moved, files].concat();
        (FORGE.put_together)(&[header, body])
    };
    let mut one = vec![1, 5];
    one.extend_from_slice(FILE.0.as_bytes());
    one.push(5);
    let mut digest = xxh3_128(FILE.1);
    while digest >= 0x80 {
        one.push(digest.to_le_bytes()[0] | 0x80);
        digest >>= 7;
    }
    one.push(digest.to_le_bytes()[0]);
    [
        ("valid-one-file", seal(1, &one)),
        ("valid-earlier", seal(0, &one)),
        ("odd-no-file", seal(1, &[0])),
        ("odd-later", seal(2, &one)),
    ]
}
