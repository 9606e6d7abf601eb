//! How does a list grow while it is read? Slices that double, linked forwards in the arena.
//!
//! ```text
//!   header  [count][first slice][last slice]        the last is the writer's alone
//!   slice k [next slice][2^k entries of W words]    entries 2^k - 1 .. 2^(k+1) - 1
//! ```
//!
//! The writer fills the entry (and links its slice), then publishes the count; a reader takes
//! the count first and never looks beyond it. A list of n entries has log2(n) slices, so a
//! reader keeps all their addresses and reaches any entry at once.

use super::sync::Ordering;
use super::words::Arena;

/// Words of a list's header.
pub(super) const HEADER_WORDS: u32 = 3;
/// Enough for 2^31 - 1 entries.
const SLICES: usize = 31;

/// Slice and offset of entry `index`.
#[inline]
fn slice_of(index: u32) -> (u32, u32) {
    let slice = 31 - (index + 1).leading_zeros();
    (slice, index + 1 - (1 << slice))
}

/// Appends an entry to the list at `header`. Writer only.
pub(super) fn push<const W: usize>(arena: &Arena, header: u32, entry: [u32; W]) {
    let words = &arena.words;
    let header = u64::from(header);
    let count = words.get(header);
    let (slice, offset) = slice_of(count);
    if offset == 0 {
        let address = arena.alloc(1 + (width::<W>() << slice));
        let link = if count == 0 {
            header + 1
        } else {
            u64::from(words.get(header + 2))
        };
        words.set(link, address);
        words.set(header + 2, address);
    }
    let at = u64::from(words.get(header + 2)) + 1 + u64::from(offset) * W as u64;
    match words.together(at, W) {
        Some(words) => {
            for (word, value) in words.iter().zip(entry) {
                word.store(value, Ordering::Relaxed);
            }
        }
        None => {
            for (word, value) in (at..).zip(entry) {
                words.set(word, value);
            }
        }
    }
    words.publish(header, count + 1);
}

const fn width<const W: usize>() -> u32 {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "entries have a handful of words"
    )]
    {
        W as u32
    }
}

/// Calls `visit` with all entries of the list at `header`, in order.
pub(super) fn for_each<const W: usize>(
    arena: &Arena,
    header: u32,
    mut visit: impl FnMut([u32; W]),
) {
    let words = &arena.words;
    let mut left = words.observe(u64::from(header));
    let (mut link, mut len) = (u64::from(header) + 1, 1);
    while left > 0 {
        let slice = u64::from(words.get(link));
        let entries = left.min(len);
        if let Some(words) = words.together(slice + 1, entries as usize * W) {
            let (entries, _) = words.as_chunks::<W>();
            for entry in entries {
                visit(std::array::from_fn(|word| {
                    entry[word].load(Ordering::Relaxed)
                }));
            }
        } else {
            for entry in 0..u64::from(entries) {
                let at = slice + 1 + entry * W as u64;
                visit(std::array::from_fn(|word| words.get(at + word as u64)));
            }
        }
        left -= entries;
        len = len.saturating_mul(2);
        link = slice;
    }
}

/// The list as it was when the view was taken.
#[derive(Debug, Clone)]
pub(super) struct View<'a, const W: usize> {
    arena: &'a Arena,
    slices: [u32; SLICES],
    count: u32,
}

impl<'a, const W: usize> View<'a, W> {
    /// Takes a view of the list at `header`.
    pub(super) fn new(arena: &'a Arena, header: u32) -> Self {
        let header = u64::from(header);
        let count = arena.words.observe(header);
        let mut slices = [0; SLICES];
        if count > 0 {
            let mut link = header + 1;
            for slice in slices.iter_mut().take(slice_of(count - 1).0 as usize + 1) {
                *slice = arena.words.get(link);
                link = u64::from(*slice);
            }
        }
        Self {
            arena,
            slices,
            count,
        }
    }

    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// Word `word` of entry `index`, which is below the count.
    #[inline]
    pub(super) fn get(&self, index: u32, word: usize) -> u32 {
        debug_assert!(index < self.count && word < W);
        let (slice, offset) = slice_of(index);
        let at = u64::from(self.slices[slice as usize]) + 1 + u64::from(offset) * W as u64;
        self.arena.words.get(at + word as u64)
    }

    /// The word pair at `word` of entry `index`, as one value.
    pub(super) fn get_u64(&self, index: u32, word: usize) -> u64 {
        super::words::join(self.get(index, word), self.get(index, word + 1))
    }

    /// First index in `from..to` for which `before` is false; `before` is true on a prefix.
    pub(super) fn partition(&self, from: u32, to: u32, before: impl Fn(u32) -> bool) -> u32 {
        let (mut low, mut high) = (from, to);
        while low < high {
            let middle = low + (high - low) / 2;
            if before(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// First index from `from` on whose first word is at least `value`; first words ascend.
    /// Gallops, so a step costs the logarithm of its length.
    pub(super) fn seek(&self, from: u32, value: u32) -> u32 {
        let mut low = from;
        let mut step = 1;
        while low < self.count && self.get(low, 0) < value {
            let ahead = low.saturating_add(step);
            if ahead >= self.count || self.get(ahead, 0) >= value {
                return self.partition(low + 1, ahead.min(self.count), |i| self.get(i, 0) < value);
            }
            low = ahead;
            step = step.saturating_mul(2);
        }
        low
    }

    /// Number of entries whose first word is below `value`. Looks at the end first, where a
    /// reader of a recent seq finds its answer.
    pub(super) fn count_below(&self, value: u32) -> u32 {
        match self.count.checked_sub(1) {
            Some(last) if self.get(last, 0) >= value => {
                self.partition(0, last, |index| self.get(index, 0) < value)
            }
            _ => self.count,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_list_returns_what_was_pushed_and_finds_it() {
        let arena = Arena::new();
        let lists: Vec<u32> = (0..7).map(|_| arena.alloc(HEADER_WORDS)).collect();
        let mut model: Vec<Vec<(u32, u32)>> = vec![Vec::new(); lists.len()];
        for row in 0..5000u32 {
            let which = (row * row % 31 % 7) as usize;
            push(&arena, lists[which], [row, row ^ 5]);
            model[which].push((row, row ^ 5));
        }
        for (list, expected) in lists.iter().zip(&model) {
            let view = View::<2>::new(&arena, *list);
            let found: Vec<_> = (0..view.count())
                .map(|i| (view.get(i, 0), view.get(i, 1)))
                .collect();
            assert_eq!(&found, expected);
            let mut visited = Vec::new();
            for_each::<2>(&arena, *list, |[row, other]| visited.push((row, other)));
            assert_eq!(&visited, expected);
            for value in (0..5002).step_by(13) {
                let below = expected
                    .iter()
                    .map(|entry| u32::from(entry.0 < value))
                    .sum();
                assert_eq!(view.count_below(value), below);
                assert_eq!(view.seek(below / 2, value), below);
                assert_eq!(view.seek(view.count(), value), view.count());
            }
        }
    }
}
