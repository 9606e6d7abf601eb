//! How does the ledger become a new store? In seq order, then closed and looked at.

use chronolith_segments::{
    Op, OpRef, PutMode, Record, Scope, SpaceSet, StoredVectors, decode_batch, encode_batch,
};
use chronolith_wal::{FrameReader, LogSalvage};

use super::RepairOptions;
use super::gather::Gathered;
use super::identity::Origin;
use super::ledger::{Entry, Key, Place};
use super::report::{LostId, Missing, RepairReport};
use super::site::Site;
use super::sources::SourceSegment;
use crate::error::Error;
use crate::manifest::{self, Manifest};
use crate::options::{Maintenance, Options};
use crate::spaces::set_of;
use crate::store::Store;
use crate::write::{ReadyBatch, decode};

/// Records read and written at a time.
const CHUNK_RECORDS: usize = 256;
/// A batch is closed over this many bytes: far below a frame's limit with any one record more.
const BATCH_BYTES: usize = 2 << 20;

/// A record with its vectors as stored.
type Content = (Record, StoredVectors);

impl Site {
    /// Builds the store; returns the records of the ledger whose content is damaged.
    pub(super) fn build(
        &self,
        origin: &Origin,
        gathered: &Gathered,
        contents: &mut Contents<'_>,
        options: &RepairOptions,
        report: &mut RepairReport,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<LostId>, Error> {
        let mut store_id = [0; 16];
        options.env.entropy.fill(&mut store_id);
        report.store_id = hex(&store_id);
        let first = Manifest::first(store_id, origin.created_us, origin.settings.clone());
        manifest::create(&*options.env.vfs, self.store(), &first)?;
        let store = Store::open(
            self.store(),
            Options {
                maintenance: Maintenance::Manual,
                memtable_bytes_max: options.memtable_bytes_max,
                env: options.env.clone(),
                ..Options::default()
            },
        )?;
        let mut writer = Writer::new(&store);
        for edge in gathered.graph.edges() {
            writer.push(&Op::LinkTag {
                scope: edge.scope.clone(),
                parent: edge.parent.clone(),
                child: edge.child.clone(),
            })?;
            report.tag_edges += 1;
        }
        let lost = write_records(gathered, contents, &mut writer, report, progress)?;
        writer.flush()?;
        store.close()?;
        self.check(options, report)?;
        Ok(lost)
    }

    /// Opens what was built as any reader would, and counts.
    fn check(&self, options: &RepairOptions, report: &RepairReport) -> Result<(), Error> {
        let options = Options {
            maintenance: Maintenance::Manual,
            env: options.env.clone(),
            ..Options::default()
        };
        let stats = crate::reader::ReadOnlyStore::open(self.store(), options)?.stats()?;
        if stats.records == report.records {
            return Ok(());
        }
        Err(Error::Internal(format!(
            "the repaired store holds {} records, {} were written",
            stats.records, report.records
        )))
    }
}

/// Writes the current records, oldest seq first.
fn write_records(
    gathered: &Gathered,
    contents: &mut Contents<'_>,
    writer: &mut Writer<'_>,
    report: &mut RepairReport,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<LostId>, Error> {
    let entries = gathered.ledger.entries.iter();
    let mut current: Vec<(&Key, &Entry)> = entries.filter(|(_, e)| e.is_current()).collect();
    current.sort_by_key(|(_, entry)| entry.put);
    let total = current.len() as u64;
    let mut lost = Vec::new();
    let mut lost_seqs: Option<(u64, u64)> = None;
    for (done, chunk) in (0_u64..).zip(current.chunks(CHUNK_RECORDS)) {
        progress(done * CHUNK_RECORDS as u64, total);
        for ((key, entry), content) in chunk.iter().zip(contents.read_all(chunk)) {
            let Some((record, vectors)) = content else {
                lost_seqs = Some(match lost_seqs {
                    Some((first, last)) => (first.min(entry.put), last.max(entry.put)),
                    None => (entry.put, entry.put),
                });
                lost.push(LostId {
                    scope: Scope::from_key(&key.0).map(|scope| scope.path()),
                    id: key.1.to_string(),
                    seq: Some(entry.put),
                });
                continue;
            };
            writer.push(&Op::Put {
                mode: PutMode::Upsert,
                record: Box::new(record),
                vectors,
                known_since_us: None,
            })?;
            report.records += 1;
            report.records_refilled += u64::from(entry.refills.is_some());
        }
    }
    if let Some((first, last)) = lost_seqs {
        report.missing.push(Missing {
            file: None,
            first_seq: Some(first),
            last_seq: Some(last),
            records: Some(lost.len() as u64),
            why: "content of these records is damaged; their ids are known".into(),
        });
    }
    Ok(lost)
}

/// Collects operations into batches of the new store.
struct Writer<'a> {
    store: &'a Store,
    ops: Vec<Op>,
    bytes: usize,
}

impl<'a> Writer<'a> {
    fn new(store: &'a Store) -> Self {
        Self {
            store,
            ops: Vec::new(),
            bytes: 0,
        }
    }

    fn push(&mut self, op: &Op) -> Result<(), Error> {
        self.bytes += weight(op);
        self.ops.push(op.clone());
        if self.bytes >= BATCH_BYTES || self.ops.len() >= CHUNK_RECORDS {
            self.flush()?;
        }
        Ok(())
    }

    /// Encodes and decodes once: what goes into the memtable is what a replay would make, and
    /// a vector stays bit by bit what it was.
    fn flush(&mut self) -> Result<(), Error> {
        if self.ops.is_empty() {
            return Ok(());
        }
        let mut body = Vec::new();
        let refs: Vec<OpRef<'_>> = self.ops.iter().map(Op::borrowed).collect();
        encode_batch(&refs, 0, &mut body)?;
        let (_, operations) = decode(self.store.shared(), &body)?;
        self.store.write_ready(ReadyBatch {
            operations,
            body,
            new_ids: Vec::new(),
        })?;
        self.ops.clear();
        self.bytes = 0;
        Ok(())
    }
}

/// About how many bytes an operation takes.
fn weight(op: &Op) -> usize {
    match op {
        Op::Put {
            record, vectors, ..
        } => {
            let names = [&record.summary, &record.speaker, &record.source];
            let names: usize = names.into_iter().flatten().map(String::len).sum();
            let tags: usize = record.tags.iter().map(String::len).sum();
            let vector: usize = vectors.iter().map(|(_, vector)| vector.len()).sum();
            let impacts = record.impacts.iter().map(|(token, _)| token.len() + 4);
            let texts = record.text.len() + record.attributes.len();
            texts + names + tags + vector + impacts.sum::<usize>() + 256
        }
        _ => 256,
    }
}

/// Reads the content of puts from where it lies.
pub(super) struct Contents<'a> {
    segments: &'a [SourceSegment],
    log: &'a LogSalvage,
    reader: FrameReader<'a>,
    /// The batch read last: its operations are asked for one after the other.
    batch: Option<(usize, Vec<Op>)>,
    spaces: SpaceSet,
}

impl<'a> Contents<'a> {
    pub(super) fn new(segments: &'a [SourceSegment], log: &'a LogSalvage, origin: &Origin) -> Self {
        Self {
            segments,
            log,
            reader: log.reader(),
            batch: None,
            spaces: set_of(&origin.settings),
        }
    }

    /// Contents in the order of `chunk`, read in the order of their places.
    fn read_all(&mut self, chunk: &[(&Key, &Entry)]) -> Vec<Option<Content>> {
        let mut order: Vec<usize> = (0..chunk.len()).collect();
        order.sort_by_key(|at| chunk[*at].1.places.first().copied());
        let mut read: Vec<Option<Content>> = Vec::new();
        read.resize_with(chunk.len(), || None);
        for at in order {
            let (key, entry) = chunk[at];
            read[at] = entry
                .places
                .iter()
                .find_map(|place| self.read(*place, key, entry.put));
        }
        read
    }

    fn read(&mut self, place: Place, key: &Key, seq: u64) -> Option<Content> {
        let (record, vectors) = match place {
            Place::Row { segment, row } => {
                let rows = self.segments.get(segment)?.rows.as_ref()?;
                let (record, vectors, found_seq) = rows.record(row).ok()?;
                (found_seq == seq).then_some((record, vectors))?
            }
            Place::Operation { frame, index } => self.operation(frame, index)?,
        };
        let is_this = record.scope.key() == &*key.0 && record.id == *key.1;
        let fits = vectors.iter().all(|(number, bytes)| {
            let own = self.spaces.get(number);
            own.is_some_and(|own| own.space.vector_bytes() == bytes.len())
                || own.is_none() && number < self.spaces.next
        });
        (is_this && fits && record.check().is_ok()).then_some((record, vectors))
    }

    fn operation(&mut self, frame: usize, index: usize) -> Option<Content> {
        if self.batch.as_ref().is_none_or(|(at, _)| *at != frame) {
            let read = self.reader.read(self.log.frames.get(frame)?).ok()?;
            self.batch = Some((frame, decode_batch(&read.body).ok()?.ops));
        }
        let (_, ops) = self.batch.as_ref()?;
        match ops.get(index)? {
            Op::Put {
                record, vectors, ..
            } => Some(((**record).clone(), vectors.clone())),
            _ => None,
        }
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
