//! How is a key found while the table grows? Open addressing; a bigger table replaces a full one.
//!
//! A slot holds (hash, value) in one atomic word, so a reader sees it whole or not at all.
//! Slots are filled once and never emptied; a full table is copied into one four times as
//! large, which is then published as the current level. A reader that still probes the old
//! one finds all that was in it when it took it, which covers every row it may see; the old
//! levels stay (a third of the newest) until the memtable goes.
//!
//! Keys are the caller's: it hashes them and says whether a value is the one it means.

use super::sync::{AtomicU32, AtomicU64, OnceLock, Ordering};
use super::words::{join, split};

/// log2 of the slots at level 0; a level has four times the slots of the one before.
const BASE_BITS: usize = if cfg!(all(loom, test)) { 1 } else { 4 };
/// Levels up to 2^32 slots.
const LEVELS: usize = if cfg!(all(loom, test)) { 3 } else { 15 };

/// Slots from which on a next level is worth a look ahead.
const LARGE_SLOTS: usize = 1 << 12;

type Slots = Box<[AtomicU64]>;

/// A map from hashes to values above 0.
#[derive(Debug)]
pub(super) struct Table {
    levels: [OnceLock<Slots>; LEVELS],
    /// The level that readers probe.
    current: AtomicU32,
    count: AtomicU32,
}

impl Table {
    pub(super) fn new() -> Self {
        Self {
            levels: std::array::from_fn(|_| OnceLock::new()),
            current: AtomicU32::new(0),
            count: AtomicU32::new(0),
        }
    }

    /// The value with this hash that `is_it` accepts.
    pub(super) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let slots = self.slots()?;
        for at in probes(hash, slots.len()) {
            let [value, slot_hash] = split(slots[at].load(Ordering::Acquire));
            if value == 0 {
                return None;
            }
            if slot_hash == hash && is_it(value) {
                return Some(value);
            }
        }
        None
    }

    /// The value in the first place of this hash, where it has the hash; 0 otherwise. As good
    /// as always the one that [`Table::find`] gives, but asks for no key.
    #[inline]
    pub(super) fn guess(&self, hash: u32) -> u32 {
        let Some(slots) = self.slots() else {
            return 0;
        };
        let slot = slots[hash as usize & (slots.len() - 1)].load(Ordering::Acquire);
        let [value, slot_hash] = split(slot);
        if slot_hash == hash { value } else { 0 }
    }

    /// Adds a value that is not in the table. Writer only.
    pub(super) fn insert(&self, hash: u32, value: u32) {
        debug_assert_ne!(value, 0, "0 marks a free slot");
        let count = self.count.load(Ordering::Relaxed) as usize;
        let slots = match self.slots() {
            // At most 7 in 10 slots are taken, so that probes stay short and end.
            Some(slots) if (count + 1) * 10 <= slots.len() * 7 => slots,
            _ => self.grow(),
        };
        put(slots, hash, value);
        self.count
            .store(self.count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// All values, in hash order: the caller sorts.
    pub(super) fn values(&self) -> impl Iterator<Item = u32> {
        let slots = self.slots().map_or(&[][..], |slots| slots);
        slots
            .iter()
            .map(|slot| split(slot.load(Ordering::Acquire))[0])
            .filter(|value| *value != 0)
    }

    /// Bytes of all levels.
    pub(super) fn bytes(&self) -> u64 {
        let levels = self.levels.iter().map_while(OnceLock::get);
        levels.map(|slots| slots.len() as u64 * 8).sum()
    }

    /// Bytes of the next level where it is near: those of a large table outweigh all that made
    /// it grow, so whoever has a budget must look ahead.
    pub(super) fn bytes_ahead(&self) -> u64 {
        let slots = self.slots().map_or(0, |slots| slots.len());
        let is_near = self.count.load(Ordering::Relaxed) as usize * 10 >= slots * 6;
        match slots >= LARGE_SLOTS && is_near {
            true => slots as u64 * 4 * 8,
            false => 0,
        }
    }

    fn slots(&self) -> Option<&Slots> {
        self.levels[self.current.load(Ordering::Acquire) as usize].get()
    }

    fn grow(&self) -> &Slots {
        let old = self.slots();
        let level = self.current.load(Ordering::Relaxed) as usize + usize::from(old.is_some());
        let bigger: Slots = (0..1usize << (BASE_BITS + 2 * level))
            .map(|_| AtomicU64::new(0))
            .collect();
        for slot in old.into_iter().flatten() {
            let [value, hash] = split(slot.load(Ordering::Relaxed));
            if value != 0 {
                put(&bigger, hash, value);
            }
        }
        let slots = self.levels[level].get_or_init(|| bigger);
        #[expect(clippy::cast_possible_truncation, reason = "below LEVELS")]
        self.current.store(level as u32, Ordering::Release);
        slots
    }
}

/// The slots where a hash may lie, in order.
#[inline]
fn probes(hash: u32, slots: usize) -> impl Iterator<Item = usize> {
    let mask = slots - 1;
    (0..slots).map(move |step| (hash as usize + step) & mask)
}

fn put(slots: &Slots, hash: u32, value: u32) {
    for at in probes(hash, slots.len()) {
        if slots[at].load(Ordering::Relaxed) == 0 {
            // Release: what the value points at was written before.
            slots[at].store(join(value, hash), Ordering::Release);
            return;
        }
    }
    unreachable!("a table grows before it is full");
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_found_at_every_size_even_when_hashes_collide() {
        let table = Table::new();
        let hash = |key: u32| (key % 97).wrapping_mul(0x0400_0001);
        for key in 1..2000 {
            assert_eq!(table.find(hash(key), |value| value == key), None);
            table.insert(hash(key), key);
            for known in [1, key / 2 + 1, key] {
                assert_eq!(table.find(hash(known), |value| value == known), Some(known));
            }
        }
        let mut values: Vec<u32> = table.values().collect();
        values.sort_unstable();
        assert_eq!(values, (1..2000).collect::<Vec<_>>());
    }
}
