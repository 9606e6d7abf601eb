//! Who makes one record durable, and by which call?

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use chronolith::{Batch, Options, Scope, Setup, Store};

use crate::engine::{Failure, Settings, named};
use crate::records::Record;

/// Makes one record durable.
pub type Commit = Box<dyn FnMut(&Record) -> Result<(), Failure>>;

/// A name, what it stands for, and the call; or why there is none.
pub struct Committer {
    /// The row of the table.
    pub name: &'static str,
    /// Settings.
    pub about: &'static str,
    /// The call.
    pub commit: Result<Commit, &'static str>,
}

/// Writes of `bytes` each into a file of zeros that are on disk already, and fdatasync: what
/// the disk itself asks for.
pub fn bare(dir: &Path, bytes: usize, count: usize) -> Result<Committer, Failure> {
    let file = File::create(dir.join("bare"))?;
    let zeros = vec![0; 1 << 20];
    let mut written = 0;
    while written < (count + 1) * bytes {
        file.write_all_at(&zeros, u64::try_from(written)?)?;
        written += zeros.len();
    }
    file.sync_all()?;
    File::open(dir)?.sync_all()?;
    let (frame, mut offset) = (vec![7; bytes], 0);
    let commit = move |_: &Record| -> Result<(), Failure> {
        file.write_all_at(&frame, offset)?;
        offset += u64::try_from(frame.len())?;
        Ok(rustix::fs::fdatasync(&file)?)
    };
    Ok(Committer {
        name: BARE,
        about: "pwrite of the same bytes into preallocated zeros, fdatasync",
        commit: Ok(Box::new(commit)),
    })
}

/// The name of the row that everything is compared with.
pub const BARE: &str = "bare";

/// One upsert as Chronolith's API takes it.
pub fn batch_of(record: &Record) -> Result<Batch, Failure> {
    let mut batch = Batch::new();
    batch.upsert(chronolith::Record::new(
        Scope::parse(&record.scope)?,
        record.id.as_str(),
        record.time_us,
        record.text.as_str(),
    ));
    Ok(batch)
}

/// A new store of ours.
pub fn store(dir: &Path) -> Result<Store, Failure> {
    Ok(Store::open(dir, Options::create(Setup::default()))?)
}

/// This checkout, `Synced`.
pub fn chronolith(store: Store) -> Committer {
    let commit = move |record: &Record| -> Result<(), Failure> {
        store.write(batch_of(record)?)?;
        Ok(())
    };
    Committer {
        name: "chronolith",
        about: "Store::write at Synced, the default; indexed and searchable on return",
        commit: Ok(Box::new(commit)),
    }
}

/// The engine of this name in the conformance trials, used the same way.
pub fn peer(name: &'static str, dir: &Path) -> Result<Committer, Failure> {
    let engine = named(name).ok_or("no such engine")?;
    let about = match name {
        // In the trials its line leans on the one before.
        "sqlite-wal" => "SQLite as bundled, journal mode WAL, synchronous FULL; indexed by FTS5",
        _ => engine.about(),
    };
    let mut handle = engine.open(dir, Settings::default())?;
    let commit = move |record: &Record| handle.put(std::slice::from_ref(record));
    Ok(Committer {
        name,
        about,
        commit: Ok(Box::new(commit)),
    })
}

/// RocksDB, where it is built in.
#[cfg(feature = "rocksdb")]
pub fn rocksdb(dir: &Path) -> Result<Committer, Failure> {
    let mut options = rocksdb::Options::default();
    options.create_if_missing(true);
    let database = rocksdb::DB::open(&options, dir)?;
    let mut sync = rocksdb::WriteOptions::default();
    sync.set_sync(true);
    let commit = move |record: &Record| -> Result<(), Failure> {
        Ok(database.put_opt(&record.id, serde_json::to_vec(record)?, &sync)?)
    };
    Ok(Committer {
        name: ROCKSDB,
        about: "RocksDB as bundled by the crate; put with sync = true, other options as they come",
        commit: Ok(Box::new(commit)),
    })
}

/// Says why RocksDB is not there.
#[cfg(not(feature = "rocksdb"))]
pub fn rocksdb(_dir: &Path) -> Result<Committer, Failure> {
    Ok(Committer {
        name: ROCKSDB,
        about: "RocksDB",
        commit: Err("built without `--features rocksdb`"),
    })
}

/// The row of RocksDB.
pub const ROCKSDB: &str = "rocksdb";
