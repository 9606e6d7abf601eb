//! Goal: the bytes on disk are the documented ones, and stay so.
//!
//! `golden/*.txt` are annotated hexdumps; `CHRONOLITH_BLESS=1` rewrites them.

use std::fmt::Write as _;

use chronolith_wal::{FORMAT_NEWEST, Log, LogOptions, log_name};

use crate::bed::{Bed, DIR, small};

const FILE_HEADER: &[(usize, &str)] = &[
    (8, "magic"),
    (4, "format"),
    (4, "epoch"),
    (16, "store id"),
    (8, "file number"),
    (8, "first_seq: epoch << 40 | counter"),
    (8, "base_seq: last seq before this file"),
    (8, "durable_upto"),
    (16, "digest of the frame before"),
    (8, "cut: file"),
    (8, "cut: offset"),
    (16, "cut: digest"),
    (12, "mark: zeros, or that the next file was begun"),
    (4, "crc32, the mark taken as zeros"),
];

const FRAME_HEADER: &[(usize, &str)] = &[
    (4, "frame magic"),
    (1, "kind: 1 data, 2 seal, 3 epoch"),
    (3, "zero"),
    (4, "body_len"),
    (4, "ops"),
    (8, "first_seq"),
    (8, "durable_upto"),
    (4, "epoch"),
    (4, "zero"),
    (16, "digest of the frame (or file header) before"),
    (4, "zero"),
    (4, "crc32 of the header, salted"),
];

const STATUS: &[(usize, &str)] = &[
    (8, "magic"),
    (4, "epoch"),
    (4, "zero"),
    (8, "acked_upto"),
    (8, "durable_upto"),
    (4, "zero"),
    (4, "crc32, salted with the store id"),
];

struct Dump<'a> {
    bytes: &'a [u8],
    at: usize,
    out: String,
}

impl Dump<'_> {
    fn field(&mut self, len: usize, meaning: &str) {
        let hex: Vec<_> = self.bytes[self.at..self.at + len]
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        writeln!(self.out, "{:04x}: {} # {meaning}", self.at, hex.join(" ")).expect("a string");
        self.at += len;
    }

    fn fields(&mut self, fields: &[(usize, &str)]) {
        fields
            .iter()
            .for_each(|&(len, meaning)| self.field(len, meaning));
    }

    fn log_file(&mut self) {
        self.fields(FILE_HEADER);
        while self.bytes.len() - self.at >= 64 && self.bytes[self.at] != 0 {
            let length = self.at + 8;
            self.fields(FRAME_HEADER);
            let body = usize::from(self.bytes[length]);
            if body > 0 {
                self.field(body, "body");
            }
            if !body.is_multiple_of(8) {
                self.field(8 - body % 8, "padding");
            }
            self.field(16, "xxh3-128 of the frame, salted with its place");
        }
        let rest = &self.bytes[self.at..];
        assert!(rest.iter().all(|&b| b == 0), "zeros end the file");
        writeln!(
            self.out,
            "{:04x}: {} zeros # preallocated",
            self.at,
            rest.len()
        )
        .expect("a string");
    }
}

fn compare(name: &str, dump: &str) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("CHRONOLITH_BLESS").is_some() {
        #[expect(clippy::disallowed_methods, reason = "goldens lie in the source tree")]
        std::fs::write(&path, dump).expect("bless");
    }
    let golden = std::fs::read_to_string(&path).expect("CHRONOLITH_BLESS=1 writes it");
    assert_eq!(dump, golden, "{path}");
}

#[test]
fn the_bytes_are_the_golden_ones() {
    let bed = Bed::new(0);
    let opts = LogOptions {
        preallocate_bytes: 64,
        ..small()
    };
    let log = Log::create(&bed.env, DIR.as_ref(), &opts, 1).expect("create");
    let first = log.append(b"one batch", 2).expect("append");
    log.sync_upto(first.last_seq).expect("sync");
    log.append(b"12345678", 1).expect("append");
    drop(log);
    // A second life: the unsynced batch is copied behind a cut, then sealed.
    let mut recovered = Log::recover(&bed.env, DIR.as_ref(), &opts).expect("recover");
    let log = recovered.start(2).expect("start");
    log.append(b"x", 1).expect("append");
    log.seal().expect("seal");
    log.write_status(log.last_seq()).expect("status");
    drop(log);
    // A third life in the same file.
    let mut recovered = Log::recover(&bed.env, DIR.as_ref(), &opts).expect("recover");
    let log = recovered.take_over(3).expect("takes over");
    log.append(b"y", 1).expect("append");
    for (number, name) in [(1, "first"), (2, "second")] {
        let bytes = bed.read(&log_name(number));
        let mut dump = Dump {
            bytes: &bytes,
            at: 0,
            out: String::new(),
        };
        dump.log_file();
        compare(&format!("format-{FORMAT_NEWEST}-{name}.txt"), &dump.out);
    }
    let bytes = bed.read("STATUS");
    let mut dump = Dump {
        bytes: &bytes,
        at: 0,
        out: String::new(),
    };
    dump.fields(STATUS);
    assert_eq!(dump.at, bytes.len());
    compare(&format!("format-{FORMAT_NEWEST}-status.txt"), &dump.out);
}

/// A newer format is refused by name and not touched; a flipped bit there is damage.
#[test]
fn a_newer_format_is_refused_untouched() {
    let bed = Bed::new(0);
    drop(Log::create(&bed.env, DIR.as_ref(), &small(), 1).expect("create"));
    let recover = || Log::recover(&bed.env, DIR.as_ref(), &small());
    bed.edit(&log_name(1), |bytes| bytes[8] = 9);
    let damaged = recover().expect_err("flipped").to_string();
    assert!(!damaged.contains("format 9"), "{damaged}");
    bed.edit(&log_name(1), |bytes| {
        let crc = crc32fast::hash(&bytes[..124]);
        bytes[124..128].copy_from_slice(&crc.to_le_bytes());
    });
    let before = bed.read(&log_name(1));
    let refused = recover().expect_err("newer").to_string();
    assert!(refused.contains("format 9"), "{refused}");
    assert_eq!(bed.read(&log_name(1)), before);
}

/// A limit beyond what the format can hold is refused by name before anything is written.
#[test]
fn limits_beyond_the_format_are_refused_by_name() {
    let bed = Bed::new(0);
    let beyond = [
        (
            "body_bytes_max",
            LogOptions {
                body_bytes_max: usize::MAX,
                ..small()
            },
        ),
        (
            "file_bytes_max",
            LogOptions {
                file_bytes_max: u64::MAX,
                ..small()
            },
        ),
        (
            "preallocate_bytes",
            LogOptions {
                preallocate_bytes: u64::MAX,
                ..small()
            },
        ),
    ];
    for (name, options) in beyond {
        let refused = Log::create(&bed.env, DIR.as_ref(), &options, 1);
        let refused = refused.expect_err(name).to_string();
        assert!(refused.contains(name), "{refused}");
    }
    Log::create(&bed.env, DIR.as_ref(), &small(), 1).expect("nothing was written before");
}
