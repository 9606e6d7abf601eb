//! How does a row get in? Everything of it is written, then the row count publishes it.

use std::mem::size_of;

use super::list::{self, HEADER_WORDS, View};
use super::sync::{OnceLock, Ordering};
use super::words::split;
use super::{
    Body, COMMIT_SEQ, COMMIT_TIME, EVENT_TIME, IMPORTANCE, LENGTH, Memtable, NO_ROW, OLDER_ROW,
    ROW_WORDS, SCOPE, SCOPE_ENTRY_WORDS, SCOPE_LENGTH_SUM, SCOPE_TIME_MAX, SCOPE_TIME_MIN,
    SOURCE_CLASS, SUMMARY_TOKENS, ScopeInfo, TEXT_TOKENS, Tag, Writer,
};
use crate::limits::ROWS_MAX;
use crate::memtable::sync::AtomicU32;
use crate::prepared::Prepared;
use crate::record::SourceClass;
use crate::space::SpaceNumber;

/// Terms of a row that are looked up side by side.
const LANES: usize = 16;

/// What a heap allocation of so many bytes takes: with its header, in steps of 16, 32 at least.
const fn allocated(bytes: usize) -> usize {
    let taken = (bytes + 8).next_multiple_of(16);
    if taken < 32 { 32 } else { taken }
}

impl Memtable {
    /// Appends a row and returns its number. Rows get ascending numbers; commit seqs must
    /// not go back. The row is visible to readers of its seq when this returns.
    ///
    /// One writer at a time: the engine's apply lock sees to it.
    ///
    /// # Panics
    /// If two threads insert at once, after a seal, or beyond [`ROWS_MAX`] rows: mistakes of
    /// the caller that would corrupt what readers see.
    pub fn insert(&self, prepared: &Prepared, commit_seq: u64, commit_time_us: i64) -> u32 {
        let mut writer = self
            .writer
            .try_lock()
            .expect("one insert at a time, under the apply lock");
        assert!(!self.is_sealed(), "a sealed memtable takes no inserts");
        let row = self.rows.load(Ordering::Relaxed);
        assert!(
            row < ROWS_MAX,
            "a memtable is sealed long before {ROWS_MAX} rows"
        );
        debug_assert!(row == 0 || self.column_u64(row - 1, COMMIT_SEQ) <= commit_seq);
        let record = &prepared.record;
        let scope = self.intern_scope(record.scope.key());
        self.write_columns(row, scope, prepared, commit_seq, commit_time_us);
        self.write_vectors(&mut writer, row, prepared);
        self.write_body(&mut writer, row, prepared);
        self.link_id(row, scope, &record.id);
        self.index_terms(&mut writer, row, scope, prepared);
        self.index_scope(row, scope, record.event_time_us, prepared.analyzed.length());
        let class = SourceClass::to_column(record.source_class);
        let extremes = &self.extremes;
        extremes
            .event_time_us_min
            .fetch_min(record.event_time_us, Ordering::Relaxed);
        extremes
            .event_time_us_max
            .fetch_max(record.event_time_us, Ordering::Relaxed);
        extremes
            .source_class_max
            .fetch_max(class, Ordering::Relaxed);
        self.rows.store(row + 1, Ordering::Release);
        row
    }

    fn write_columns(
        &self,
        row: u32,
        scope: u32,
        prepared: &Prepared,
        commit_seq: u64,
        commit_time_us: i64,
    ) {
        let record = &prepared.record;
        let base = u64::from(row) * ROW_WORDS;
        let columns = &self.columns;
        columns.reserve(base + ROW_WORDS);
        columns.set_u64(base + EVENT_TIME, record.event_time_us.cast_unsigned());
        columns.set_u64(base + COMMIT_SEQ, commit_seq);
        let known_us = prepared.known_since_us.unwrap_or(commit_time_us);
        columns.set_u64(base + COMMIT_TIME, known_us.cast_unsigned());
        columns.set(base + SCOPE, scope);
        columns.set(base + OLDER_ROW, NO_ROW);
        columns.set(base + LENGTH, prepared.analyzed.length());
        columns.set(base + TEXT_TOKENS, prepared.text_tokens);
        columns.set(base + SUMMARY_TOKENS, prepared.summary_tokens);
        columns.set(
            base + IMPORTANCE,
            record.importance.unwrap_or(f32::NAN).to_bits(),
        );
        let class = SourceClass::to_column(record.source_class);
        columns.set(base + SOURCE_CLASS, u32::from(class));
    }

    fn write_body(&self, writer: &mut Writer, row: u32, prepared: &Prepared) {
        let record = &prepared.record;
        let vector = |number| self.own_vector(prepared, number).map(Box::from);
        let others = self.spaces.iter().map(|own| own.number());
        let others = others.filter(|number| !number.is_main());
        let tags = record.tags.iter().map(|name| self.intern_tag(writer, name));
        let body = Body {
            tags: tags.collect(),
            id: record.id.as_str().into(),
            text: record.text.as_str().into(),
            summary: record.summary.as_deref().map(Box::from),
            speaker: record.speaker.as_deref().map(Box::from),
            source: record.source.as_deref().map(Box::from),
            source_id: record.source_id.as_deref().map(Box::from),
            attributes: record.attributes.as_str().into(),
            impacts: record.impacts.as_slice().into(),
            vector: vector(SpaceNumber::MAIN),
            vectors: others
                .filter_map(|number| Some((number, vector(number)?)))
                .collect(),
        };
        if body.tags.is_empty() {
            list::push(&self.arena, self.untagged, [row]);
        }
        for tag in &body.tags {
            list::push(&self.arena, self.tag(*tag).rows, [row]);
        }
        self.account(body.heap_bytes());
        self.bodies.fill(row, Box::new(body));
    }

    fn link_id(&self, row: u32, scope: u32, id: &str) {
        let words = &self.arena.words;
        let entry = self.find_id(scope, id);
        if let Some(entry) = entry {
            let newest = u64::from(entry) + 1;
            self.columns
                .set(u64::from(row) * ROW_WORDS + OLDER_ROW, words.get(newest));
            words.publish(newest, row);
        } else {
            let entry = self.arena.alloc(2);
            words.set(u64::from(entry), scope);
            words.set(u64::from(entry) + 1, row);
            self.id_table.insert(self.hash(&(scope, id)), entry);
        }
    }

    /// Step by step for several terms at once: each step waits for memory, and the waits of
    /// several terms run side by side.
    fn index_terms(&self, writer: &mut Writer, row: u32, scope: u32, prepared: &Prepared) {
        let mut terms = prepared.analyzed.terms();
        let mut lane = [(&[][..], 0); LANES];
        while terms.len() > 0 {
            let lanes = terms.len().min(LANES);
            lane.iter_mut()
                .zip(&mut terms)
                .for_each(|(to, term)| *to = term);
            let lane = &lane[..lanes];
            let ordinals = self.intern_terms(writer, lane);
            let lists = self.find_or_add_pairs(scope, &ordinals[..lanes]);
            for (list, (_, freq)) in lists.into_iter().zip(lane) {
                list::push(&self.arena, list, [row, *freq]);
            }
        }
    }

    /// Ordinals of the terms.
    fn intern_terms(&self, writer: &mut Writer, terms: &[(&[u8], u32)]) -> [u32; LANES] {
        let (mut hashes, mut guesses) = ([0; LANES], [0; LANES]);
        for ((hash, guess), (term, _)) in hashes.iter_mut().zip(&mut guesses).zip(terms) {
            *hash = self.hash(*term);
            *guess = self.term_table.guess(*hash);
        }
        let guessed = guesses.map(|guess| self.terms.get(guess.checked_sub(1)?));
        let mut ordinals = [0; LANES];
        for (at, (term, _)) in terms.iter().enumerate() {
            ordinals[at] = match guessed[at] {
                Some(guessed) if **guessed == **term => guesses[at] - 1,
                _ => self.intern_term(writer, term, hashes[at]),
            };
        }
        ordinals
    }

    /// Addresses of the lists of terms in a scope.
    fn find_or_add_pairs(&self, scope: u32, terms: &[u32]) -> [u32; LANES] {
        let (mut hashes, mut guesses) = ([0; LANES], [0; LANES]);
        for ((hash, guess), term) in hashes.iter_mut().zip(&mut guesses).zip(terms) {
            *hash = self.hash(&(scope, *term));
            *guess = self.pair_table.guess(*hash);
        }
        // The words at address 0 belong to nobody.
        let guessed = guesses.map(|entry| {
            let words = &self.arena.words;
            (words.get(u64::from(entry)), words.get(u64::from(entry) + 1))
        });
        let mut lists = [0; LANES];
        for (at, term) in terms.iter().enumerate() {
            lists[at] = match guessed[at] == (scope, *term) && guesses[at] != 0 {
                true => guesses[at] + 2,
                false => self
                    .find_pair(scope, *term)
                    .unwrap_or_else(|| self.add_pair(scope, *term, hashes[at])),
            };
        }
        lists
    }

    fn index_scope(&self, row: u32, scope: u32, event_time_us: i64, length: u32) {
        let info = self.scope(scope);
        let rows = View::<SCOPE_ENTRY_WORDS>::new(&self.arena, info.rows);
        let (mut length_sum, mut min, mut max) = (u64::from(length), event_time_us, event_time_us);
        if let Some(last) = rows.count().checked_sub(1) {
            length_sum += rows.get_u64(last, SCOPE_LENGTH_SUM);
            min = min.min(rows.get_u64(last, SCOPE_TIME_MIN).cast_signed());
            max = max.max(rows.get_u64(last, SCOPE_TIME_MAX).cast_signed());
            if event_time_us < max && info.disordered_at.load(Ordering::Relaxed) == u32::MAX {
                // Before the list's count: who sees the row sees that it is out of order.
                info.disordered_at.store(rows.count(), Ordering::Relaxed);
            }
        }
        let [sum_low, sum_high] = split(length_sum);
        let [min_low, min_high] = split(min.cast_unsigned());
        let [max_low, max_high] = split(max.cast_unsigned());
        let entry = [row, sum_low, sum_high, min_low, min_high, max_low, max_high];
        list::push::<SCOPE_ENTRY_WORDS>(&self.arena, info.rows, entry);
    }

    fn intern_scope(&self, key: &[u8]) -> u32 {
        if let Some(ordinal) = self.find_scope(key) {
            return ordinal;
        }
        let ordinal = self.scope_count.load(Ordering::Relaxed);
        let rows = self.arena.alloc(HEADER_WORDS);
        let disordered_at = AtomicU32::new(u32::MAX);
        self.scopes.fill(
            ordinal,
            ScopeInfo {
                key: key.into(),
                rows,
                disordered_at,
            },
        );
        self.account(size_of::<ScopeInfo>() + allocated(key.len()));
        self.scope_table.insert(self.hash(key), ordinal + 1);
        self.scope_order
            .insert(&self.arena, ordinal, |n| &self.scope(n).key);
        self.scope_count.store(ordinal + 1, Ordering::Relaxed);
        ordinal
    }

    fn intern_term(&self, writer: &mut Writer, term: &[u8], hash: u32) -> u32 {
        self.find_term(term).unwrap_or_else(|| {
            let ordinal = writer.terms;
            writer.terms += 1;
            self.terms.fill(ordinal, term.into());
            self.account(size_of::<Box<[u8]>>() + 8 + allocated(term.len()));
            self.term_table.insert(hash, ordinal + 1);
            ordinal
        })
    }

    fn intern_tag(&self, writer: &mut Writer, name: &str) -> u32 {
        self.find_tag(name).unwrap_or_else(|| {
            let ordinal = writer.tags;
            writer.tags += 1;
            let rows = self.arena.alloc(HEADER_WORDS);
            self.tags.fill(
                ordinal,
                Tag {
                    name: name.into(),
                    rows,
                },
            );
            self.account(size_of::<Tag>() + 8 + allocated(name.len()));
            self.tag_table.insert(self.hash(name), ordinal + 1);
            ordinal
        })
    }

    /// Adds the empty list of a term in a scope and returns its address.
    fn add_pair(&self, scope: u32, term: u32, hash: u32) -> u32 {
        let entry = self.arena.alloc(2 + HEADER_WORDS);
        self.arena.words.set(u64::from(entry), scope);
        self.arena.words.set(u64::from(entry) + 1, term);
        self.pair_table.insert(hash, entry);
        entry + 2
    }

    pub(super) fn account(&self, bytes: usize) {
        self.heap_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Body {
    /// Bytes on the heap, its cell and its own box included.
    fn heap_bytes(&self) -> usize {
        let optional = [&self.summary, &self.speaker, &self.source, &self.source_id];
        let lengths = [
            self.id.len(),
            self.text.len(),
            self.attributes.len(),
            self.tags.len() * 4,
        ]
        .into_iter()
        .chain(optional.into_iter().flatten().map(|text| text.len()))
        .chain(self.vector.as_ref().map(|vector| vector.len()))
        .chain([size_of_val(&*self.vectors)])
        .chain(self.vectors.iter().map(|(_, vector)| vector.len()))
        .chain([size_of_val(&*self.impacts)])
        .chain(self.impacts.iter().map(|(token, _)| token.len()));
        let boxes: usize = lengths.filter(|length| *length > 0).map(allocated).sum();
        // Cells double, so up to two for each row.
        boxes + allocated(size_of::<Self>()) + 2 * size_of::<OnceLock<Box<Self>>>()
    }
}
