//! A simulated disk with a log directory, and small helpers.

use std::path::Path;

use chronolith_vfs::Env;
use chronolith_wal::{Log, LogOptions, Recovered};

use crate::disk::{Disk, Image};

pub(crate) const DIR: &str = "wal";
pub(crate) const STORE: [u8; 16] = [0xc5; 16];

pub(crate) struct Bed {
    pub(crate) env: Env,
    pub(crate) disk: Disk,
    salt: u64,
}

/// Limits small enough that a few batches cross each of them.
pub(crate) fn small() -> LogOptions {
    LogOptions {
        preallocate_bytes: 2048,
        file_bytes_max: 4096,
        ..LogOptions::new(STORE)
    }
}

/// The `n`th body: its bytes tell it apart from all others.
pub(crate) fn body(n: u64, len: usize) -> Vec<u8> {
    let mut bytes = n.to_le_bytes().to_vec();
    bytes.extend((0..len.saturating_sub(8)).map(|i| (n as usize * 31 + i) as u8));
    bytes
}

pub(crate) fn commit(log: &Log, body: &[u8]) {
    let seqs = log.append(body, 1).expect("append");
    log.sync_upto(seqs.last_seq).expect("sync");
    log.write_status(seqs.last_seq).expect("status");
}

pub(crate) fn recovered_bodies(recovered: &Recovered) -> Vec<Vec<u8>> {
    recovered.frames().map(|f| f.expect("read").body).collect()
}

/// Makes a log file one that never got a successor.
pub(crate) fn unmark(bytes: &mut [u8]) {
    bytes[112..124].fill(0);
    let crc = crc32fast::hash(&bytes[..124]);
    bytes[124..128].copy_from_slice(&crc.to_le_bytes());
}

impl Bed {
    pub(crate) fn new(salt: u64) -> Self {
        let disk = Disk::default();
        Self {
            env: disk.env(),
            disk,
            salt,
        }
    }

    pub(crate) fn crash_at(&self, n: u64) {
        self.disk.crash_at(n);
    }

    pub(crate) fn crash(&self, image: Image) {
        self.disk.crash(image, self.salt);
    }

    pub(crate) fn operations(&self) -> u64 {
        self.disk.operations()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = self.env.vfs.list(Path::new(DIR)).expect("list");
        entries.into_iter().map(|e| e.name).collect()
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        let file = self
            .env
            .vfs
            .open_read(&Path::new(DIR).join(name))
            .expect("open");
        let mut bytes = vec![0; file.len().expect("len") as usize];
        file.read_exact_at(&mut bytes, 0).expect("read");
        bytes
    }

    /// Replaces a file's bytes, durably.
    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        let path = Path::new(DIR).join(name);
        let file = self
            .env
            .vfs
            .open_write(&path)
            .or_else(|_| self.env.vfs.create_new(&path));
        let file = file.expect("open");
        file.set_len(bytes.len() as u64).expect("cut");
        file.write_all_at(bytes, 0).expect("write");
        file.sync_all().expect("sync");
        self.env.vfs.sync_dir(Path::new(DIR)).expect("sync");
    }

    pub(crate) fn edit(&self, name: &str, edit: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = self.read(name);
        edit(&mut bytes);
        self.put(name, &bytes);
    }

    pub(crate) fn remove(&self, name: &str) {
        self.env
            .vfs
            .remove_file(&Path::new(DIR).join(name))
            .expect("remove");
    }
}
