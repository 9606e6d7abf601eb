//! Log files, `STATUS`, and the batch that a frame carries.

use std::path::Path;

use chronolith_segments::{OpRef, decode_batch, encode_batch};
use chronolith_wal::{
    EPOCH_MAX, Log, LogOptions, LogReader, STATUS_NAME, Status, log_name, read_status,
};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128, xxh3_128_with_seed};

use super::Forge;
use super::disk::{env, fixed, number, put};

/// Log files.
pub(super) const FORGE: Forge = Forge {
    patch: |bytes| patch(bytes),
    take_apart,
    put_together,
};
/// `STATUS`.
pub(super) const STATUS_FORGE: Forge = Forge {
    patch: |bytes| {
        bytes.resize(STATUS_BYTES, 0);
        let crc = status_crc(bytes);
        bytes[36..].copy_from_slice(&crc.to_le_bytes());
    },
    take_apart: |bytes| Some(vec![bytes.get(..36)?.to_vec()]),
    put_together: |parts| {
        let mut bytes = parts.concat();
        (STATUS_FORGE.patch)(&mut bytes);
        bytes
    },
};

const DIR: &str = "/wal";
const FILE_HEADER: usize = 128;
const FRAME_HEADER: usize = 64;
const DIGEST: usize = 16;
const STATUS_BYTES: usize = 40;
/// The store that a `STATUS` of the corpus belongs to: see `store`.
pub(super) const STORE_ID: [u8; 16] = *b"fuzz store here.";

/// As it is, and with the first frame torn: of all behind it the headers alone are evidence, with
/// whatever epochs and promises they have.
pub(super) fn run(bytes: &[u8]) -> bool {
    if let Some(len) = frame_len(bytes, FILE_HEADER) {
        let mut torn = bytes.to_vec();
        torn[FILE_HEADER + len - 1] ^= 1;
        recover(&torn);
    }
    recover(bytes)
}

/// Recovers a log of this one file, reads and follows it, and starts a new file behind it.
fn recover(bytes: &[u8]) -> bool {
    let (env, disk) = env();
    let number = number(bytes, 32, 8).unwrap_or(0);
    let store_id = fixed(bytes.get(16..32).unwrap_or_default());
    put(&disk, &Path::new(DIR).join(log_name(number)), bytes);
    let options = LogOptions {
        floor_file: number,
        preallocate_bytes: 0,
        ..LogOptions::new(store_id)
    };
    follow(&env, store_id, number);
    let Ok(mut recovered) = Log::recover(&env, DIR.as_ref(), &options) else {
        return false;
    };
    for frame in recovered.frames() {
        let Ok(frame) = frame else { break };
        assert!(frame.last_seq() >= frame.first_seq);
        let _ = decode_batch(&frame.body);
    }
    let next = recovered.report().epoch_highest + 1;
    if next <= EPOCH_MAX
        && let Ok(log) = recovered.start(next)
    {
        // A caller may append behind what it recovered.
        let _ = log
            .append(b"behind", 1)
            .map(|at| log.sync_upto(at.last_seq));
        let _ = log.seal();
    }
    true
}

fn follow(env: &chronolith_vfs::Env, store_id: [u8; 16], number: u64) {
    for (acked_upto, durable_upto) in [(u64::MAX, 0), (u64::MAX - 1, u64::MAX), (1 << 41, 0)] {
        let status = Status {
            epoch: 1,
            acked_upto,
            durable_upto,
        };
        if let Ok(mut reader) = LogReader::open(env, DIR.as_ref(), store_id, number) {
            while let Ok(Some(_)) = reader.next(&status) {}
            let _ = reader.proven_ahead();
        }
    }
}

/// Reads `STATUS`, and recovers an empty log beside it.
pub(super) fn run_status(bytes: &[u8]) -> bool {
    let (env, disk) = env();
    put(&disk, &Path::new(DIR).join(STATUS_NAME), bytes);
    let status = read_status(&env, DIR.as_ref(), &STORE_ID);
    let options = LogOptions {
        preallocate_bytes: 0,
        ..LogOptions::new(STORE_ID)
    };
    if let Ok(log) = Log::create(&env, DIR.as_ref(), &options, 1) {
        let _ = log.append(b"one", 1);
        drop(log);
        put(&disk, &Path::new(DIR).join(STATUS_NAME), bytes);
        let _ = Log::recover(&env, DIR.as_ref(), &options);
    }
    matches!(status, Ok(Some(_)))
}

/// Decodes a batch; what is taken encodes to the same bytes.
pub(super) fn run_batch(bytes: &[u8]) -> bool {
    let Ok(batch) = decode_batch(bytes) else {
        return false;
    };
    let ops: Vec<OpRef<'_>> = batch.ops.iter().map(|op| op.borrowed()).collect();
    let mut again = Vec::new();
    encode_batch(&ops, batch.commit_time_us, &mut again).expect("it fitted a frame");
    assert_eq!(again, bytes, "a batch has one encoding");
    true
}

fn status_crc(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..36]);
    hasher.update(&STORE_ID);
    hasher.finalize()
}

/// Bytes of the frame at `at`, as its header claims; `None` where there is none.
fn frame_len(bytes: &[u8], at: usize) -> Option<usize> {
    let header = bytes.get(at..at.checked_add(FRAME_HEADER)?)?;
    let body = usize::try_from(number(header, 8, 4)?).ok()?;
    let len = FRAME_HEADER + body.next_multiple_of(8) + DIGEST;
    (header[..4] == *b"CHFR" && len <= bytes.len() - at).then_some(len)
}

/// Checksum, chain and digest of the frame at `at`; gives its digest.
fn seal_frame(bytes: &mut [u8], at: usize, len: usize, chain: [u8; 16]) -> [u8; 16] {
    let store_id: [u8; 16] = fixed(&bytes[16..32]);
    bytes[at + 40..at + 56].copy_from_slice(&chain);
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[at..at + 60]);
    hasher.update(&store_id);
    hasher.update(&(at as u64).to_le_bytes());
    let crc = hasher.finalize();
    bytes[at + 60..at + 64].copy_from_slice(&crc.to_le_bytes());
    let mut salt = store_id.to_vec();
    salt.extend_from_slice(&bytes[at + 32..at + 36]);
    salt.extend_from_slice(&bytes[at + 16..at + 24]);
    salt.extend_from_slice(&(at as u64).to_le_bytes());
    let end = at + len - DIGEST;
    let digest = xxh3_128_with_seed(&bytes[at..end], xxh3_64(&salt)).to_le_bytes();
    bytes[end..at + len].copy_from_slice(&digest);
    digest
}

fn put_crc(header: &mut [u8]) {
    let crc = crc32fast::hash(&header[..124]);
    header[124..].copy_from_slice(&crc.to_le_bytes());
}

/// What a whole header without a mark gets once the next file was begun.
fn mark_of(born: &[u8]) -> [u8; 12] {
    let mut bytes = born.to_vec();
    bytes[112..124].copy_from_slice(b"next follows");
    fixed(&xxh3_128(&bytes).to_le_bytes()[..12])
}

fn patch(bytes: &mut [u8]) {
    if bytes.len() < FILE_HEADER {
        return;
    }
    // A mark outside the checksum is a damaged mark of a whole header.
    let mut born = bytes[..FILE_HEADER].to_vec();
    born[112..124].fill(0);
    put_crc(&mut born);
    let is_marked = bytes[8..12] != [0; 4] && bytes[112..124] == mark_of(&born);
    match is_marked {
        true => put_crc(&mut bytes[..FILE_HEADER]),
        false => bytes[124..128].copy_from_slice(&born[124..]),
    }
    // The chain knows no format either.
    born[8..12].fill(0);
    put_crc(&mut born);
    let mut chain = xxh3_128(&born).to_le_bytes();
    let mut at = FILE_HEADER;
    while let Some(len) = frame_len(bytes, at) {
        chain = seal_frame(bytes, at, len, chain);
        at += len;
    }
}

/// The file's header, then each frame's header and body.
fn take_apart(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut parts = vec![bytes.get(..124)?.to_vec()];
    let mut at = FILE_HEADER;
    while let Some(len) = frame_len(bytes, at) {
        let body = usize::try_from(number(bytes, at + 8, 4)?).ok()?;
        parts.push(bytes[at..at + 60].to_vec());
        parts.push(bytes[at + FRAME_HEADER..at + FRAME_HEADER + body].to_vec());
        at += len;
    }
    Some(parts)
}

fn put_together(parts: &[Vec<u8>]) -> Vec<u8> {
    let part = |at: usize| parts.get(at).map_or(&[][..], Vec::as_slice);
    let mut bytes = fixed::<FILE_HEADER>(part(0)).to_vec();
    for at in (1..parts.len()).step_by(2) {
        let body = part(at + 1);
        let mut header: [u8; FRAME_HEADER] = fixed(part(at));
        header[..4].copy_from_slice(b"CHFR");
        header[8..12].copy_from_slice(&u32::try_from(body.len()).expect("small").to_le_bytes());
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(body);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes.extend_from_slice(&[0; DIGEST]);
    }
    patch(&mut bytes);
    bytes
}
