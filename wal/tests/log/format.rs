//! Goal: the bytes on disk are the documented ones, and stay so.
//!
//! `golden/*.txt` are annotated hexdumps; `CHRONOLITH_BLESS=1` rewrites those of the newest format.

use std::fmt::Write as _;

use chronolith_wal::{FORMAT_NEWEST, Log, LogOptions, WalError, WholeLog, log_name, salvage_log};

use crate::bed::{Bed, DIR, STORE, commit, recovered_bodies, small};
use crate::disk::Image;

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
    (4, "crc32"),
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

/// The bytes that a golden dump shows.
fn golden(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    let dump = std::fs::read_to_string(&path).expect("committed");
    let mut bytes = Vec::new();
    for line in dump.lines() {
        let (_, line) = line.split_once(": ").expect("an offset");
        let (shown, _) = line.split_once(" #").expect("a meaning");
        match shown.strip_suffix(" zeros") {
            Some(n) => bytes.resize(bytes.len() + n.parse::<usize>().expect("a number"), 0),
            None => bytes.extend(
                shown
                    .split(' ')
                    .map(|byte| u8::from_str_radix(byte, 16).expect("hex")),
            ),
        }
    }
    bytes
}

/// The log of format 0: two files, of which the second begins with a copy behind a cut.
pub(crate) fn format_0() -> Bed {
    let bed = Bed::new(3);
    for (name, dump) in [
        (log_name(1), "first"),
        (log_name(2), "second"),
        ("STATUS".to_owned(), "status"),
    ] {
        bed.put(&name, &golden(&format!("format-0-{dump}.txt")));
    }
    bed
}

const OF_FORMAT_0: [&[u8]; 3] = [b"one batch", b"12345678", b"x"];

/// What a build that knows format 0 alone makes of a file: its format where it is whole, `None`
/// where it looks damaged. The checksum is over all bytes before it.
fn seen_by_format_0(bytes: &[u8]) -> Option<u32> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
    (crc32fast::hash(&bytes[..124]) == word(124)).then_some(word(8))
}

#[test]
fn a_log_of_format_0_opens_and_is_left_untouched() {
    let bed = format_0();
    let recovered = Log::recover(&bed.env, DIR.as_ref(), &small()).expect("opens");
    assert_eq!(recovered_bodies(&recovered), OF_FORMAT_0);
    assert_eq!(recovered.report().epoch_highest, 2);
    let salvaged = salvage_log(&bed.env, DIR.as_ref(), STORE, 1).expect("lists");
    assert_eq!((salvaged.frames.len(), salvaged.gaps.len()), (3, 0));
    let whole = WholeLog::read(&bed.env, DIR.as_ref(), STORE, 1).expect("whole");
    assert_eq!(whole.parts.len(), 2);
    assert_eq!(bed.read(&log_name(1)), golden("format-0-first.txt"));
    assert_eq!(bed.read(&log_name(2)), golden("format-0-second.txt"));
}

/// Wherever the first writer of this build is stopped, each file is whole to builds of both
/// formats: to the older one, of a format that it knows or refuses by name.
#[test]
fn a_log_of_format_0_is_gone_on_in_wherever_that_is_stopped() {
    for (image, takes_over) in Image::all()
        .into_iter()
        .flat_map(|i| [(i, false), (i, true)])
    {
        let is_done = (0..).map(|stop| go_on_in_format_0(image, takes_over, stop));
        let stops = is_done.take_while(|is_done| !is_done).count();
        assert!(stops > 5, "{image:?}: {stops} places");
    }
}

/// True where the writer got as far as an acknowledged batch.
fn go_on_in_format_0(image: Image, takes_over: bool, stop: u64) -> bool {
    let bed = format_0();
    let opts = small();
    let what = format!("{image:?} {takes_over} {stop}");
    let mut recovered = Log::recover(&bed.env, DIR.as_ref(), &opts).expect("opens");
    bed.crash_at(stop);
    let begun = match takes_over {
        false => recovered.start(3),
        true => recovered.take_over(3),
    };
    let is_done = begun.is_ok_and(|log| {
        let appended = log.append(b"y", 1);
        appended.is_ok_and(|at| log.sync_upto(at.last_seq).is_ok())
    });
    bed.crash(image);
    let seen = |number| seen_by_format_0(&bed.read(&log_name(number)));
    assert!(seen(1).is_some() && seen(2).is_some(), "{what}");
    let recovered = Log::recover(&bed.env, DIR.as_ref(), &opts);
    let recovered = recovered.unwrap_or_else(|e| panic!("{what}: {e}"));
    let found = recovered_bodies(&recovered);
    assert_eq!(found[..3], OF_FORMAT_0, "{what}");
    if is_done {
        assert_eq!(found[3..], [b"y"], "{what}");
        assert_eq!((seen(1), seen(2)), (Some(1), Some(1)), "{what}");
    }
    is_done
}

/// A file of format 0 says of its successor what every other one says.
#[test]
fn a_file_of_format_0_is_told_of_the_next_one() {
    let bed = format_0();
    let mut recovered = Log::recover(&bed.env, DIR.as_ref(), &small()).expect("opens");
    let log = recovered.start(3).expect("starts");
    commit(&log, b"y");
    drop(log);
    bed.remove(&log_name(3));
    bed.remove("STATUS");
    let refused = Log::recover(&bed.env, DIR.as_ref(), &small()).expect_err("a loss");
    assert!(
        matches!(refused, WalError::SuccessorMissing { .. }),
        "{refused}"
    );
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
