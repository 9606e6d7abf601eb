//! Log files, `STATUS`, and the batch that a frame carries.

use std::path::Path;

use chronolith_segments::{OpRef, decode_batch, encode_batch};
use chronolith_vfs::{Env, SimVfs};
use chronolith_wal::{
    EPOCH_MAX, Log, LogOptions, LogReader, Recovered, STATUS_NAME, Status, WalError, WholeLog,
    log_name, peek_store_id, read_status, salvage_log,
};

use super::Forge;
use super::disk::{env, fixed, put};
use super::log_bytes::{FILE_HEADER, files_of, frame_len, number_of};

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
const STATUS_BYTES: usize = 40;
/// The store that a `STATUS` of the corpus belongs to: see `store`.
pub(super) const STORE_ID: [u8; 16] = *b"fuzz store here.";

/// As it is; with the newest file's first frame torn, so that of all behind it the headers alone
/// are evidence, with whatever epochs and promises they have; and the first of two without the
/// other.
pub(super) fn run(bytes: &[u8]) -> bool {
    let mut files = files_of(bytes);
    let is_taken = Bed::of(&files).attack();
    if let [first, _] = files[..] {
        Bed::of(&[first]).attack();
    }
    let newest = files.pop().expect("at least one");
    if let Some(len) = frame_len(newest, FILE_HEADER) {
        let mut torn = newest.to_vec();
        torn[FILE_HEADER + len - 1] ^= 1;
        files.push(&torn);
        Bed::of(&files).attack();
    }
    is_taken
}

/// A log of one file or two, on a disk of its own.
struct Bed {
    env: Env,
    disk: SimVfs,
    number: u64,
    options: LogOptions,
}

impl Bed {
    fn of(files: &[&[u8]]) -> Self {
        let (env, disk) = env();
        let number = number_of(files[0]);
        // The second lies behind the first, whatever number it says it has.
        for (number, file) in (number..=u64::MAX).zip(files) {
            put(&disk, &Path::new(DIR).join(log_name(number)), file);
        }
        let store_id = fixed(files[0].get(16..32).unwrap_or_default());
        let options = LogOptions {
            floor_file: number,
            preallocate_bytes: 0,
            ..LogOptions::new(store_id)
        };
        Self {
            env,
            disk,
            number,
            options,
        }
    }

    fn recover(&self) -> Result<Recovered, WalError> {
        Log::recover(&self.env, DIR.as_ref(), &self.options)
    }

    /// All that anybody does with a log, up to a writer that goes on in it. True: it recovers.
    fn attack(&self) -> bool {
        self.follow();
        self.salvage();
        let Ok(recovered) = self.recover() else {
            return false;
        };
        let bodies = bodies_of(&recovered);
        for body in &bodies {
            let _ = decode_batch(body);
        }
        self.copy(&bodies);
        self.write_behind(recovered, bodies);
        true
    }

    fn follow(&self) {
        for (acked_upto, durable_upto) in [(u64::MAX, 0), (u64::MAX - 1, u64::MAX), (1 << 41, 0)] {
            let status = Status {
                epoch: 1,
                acked_upto,
                durable_upto,
            };
            let (env, store_id) = (&self.env, self.options.store_id);
            if let Ok(mut reader) = LogReader::open(env, DIR.as_ref(), store_id, self.number) {
                while let Ok(Some(_)) = reader.next(&status) {}
                let _ = reader.proven_ahead();
                let _ = reader.check_newest();
            }
        }
    }

    fn salvage(&self) {
        let (env, dir) = (&self.env, Path::new(DIR));
        let store_id = self.options.store_id;
        let _ = peek_store_id(env, dir, self.number);
        let Ok(found) = salvage_log(env, dir, store_id, self.number) else {
            return;
        };
        let mut reader = found.reader();
        for frame in found.frames.iter().chain(&found.in_doubt) {
            reader.read(frame).expect("what was found whole is whole");
        }
        let _ = found.missing(Some(0));
        let _ = found.covers(found.base_seq(), u64::MAX);
    }

    /// A backup of what recovers recovers, to the same.
    fn copy(&self, bodies: &[Vec<u8>]) {
        let (env, store_id) = (&self.env, self.options.store_id);
        let whole = WholeLog::read(env, DIR.as_ref(), store_id, self.number);
        let whole = whole.expect("what recovers can be copied");
        let copied = whole.parts.iter().map(|part| {
            let mut bytes = vec![0; usize::try_from(part.bytes).expect("small")];
            let read = part.file.read_exact_at(&mut bytes, 0);
            read.expect("as long as it says");
            bytes[..FILE_HEADER].copy_from_slice(&part.header);
            bytes
        });
        let copied: Vec<Vec<u8>> = copied.collect();
        let copied: Vec<&[u8]> = copied.iter().map(Vec::as_slice).collect();
        let bed = Self::of(&copied);
        put(&bed.disk, &Path::new(DIR).join(STATUS_NAME), &whole.status);
        let recovered = bed.recover().expect("a copy recovers");
        assert!(recovered.report().dropped.is_none(), "a copy is whole");
        assert_eq!(bodies_of(&recovered), bodies, "a copy holds the same");
    }

    /// A writer begins in a file of its own, the next one goes on in that: what was there stays.
    fn write_behind(&self, mut recovered: Recovered, mut bodies: Vec<Vec<u8>>) {
        for takes_over in [false, true] {
            let epoch = recovered.report().epoch_highest + 1;
            if epoch > EPOCH_MAX {
                return;
            }
            let begun = match takes_over {
                false => recovered.start(epoch),
                true => recovered.take_over(epoch),
            };
            let Ok(log) = begun else { return };
            // A caller may append behind what it recovered.
            if let Ok(at) = log.append(b"behind", 1) {
                bodies.push(b"behind".to_vec());
                log.sync_upto(at.last_seq).expect("nothing fails here");
            }
            log.seal().expect("nothing fails here");
            drop(log);
            recovered = self.recover().expect("what was written recovers");
            assert_eq!(bodies_of(&recovered), bodies, "nothing is lost");
        }
    }
}

fn bodies_of(recovered: &Recovered) -> Vec<Vec<u8>> {
    let frames = recovered.frames();
    let frames = frames.map(|frame| frame.expect("it was validated"));
    let check = |frame: chronolith_wal::Frame| {
        assert!(frame.last_seq() >= frame.first_seq);
        frame.body
    };
    frames.map(check).collect()
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
