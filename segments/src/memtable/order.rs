//! Which scopes lie in a key range? A skip list that only grows.
//!
//! Single writer: a node is filled, then linked from the bottom level up by publishing
//! stores. A reader that meets a half-linked node walks one level lower for a while.
//!
//! Source: Pugh, "Skip lists: a probabilistic alternative to balanced trees" (1990), with
//! p = 1/4. Heights come from the node's number, not from chance.

use super::words::Arena;

const HEIGHT_MAX: u32 = 12;

/// Ordinals of scopes in the order of their keys.
#[derive(Debug)]
pub(super) struct Order {
    /// Node: [ordinal, next at level 0, next at level 1, ...]; the head's ordinal is unused.
    head: u32,
}

impl Order {
    pub(super) fn new(arena: &Arena) -> Self {
        Self {
            head: arena.alloc(1 + HEIGHT_MAX),
        }
    }

    /// Adds `ordinal` with its key. Writer only.
    pub(super) fn insert<'k>(&self, arena: &Arena, ordinal: u32, key_of: impl Fn(u32) -> &'k [u8]) {
        let mut before = [self.head; HEIGHT_MAX as usize];
        self.descend(arena, key_of(ordinal), &key_of, |level, node| {
            before[level as usize] = node
        });
        let height = height(ordinal);
        let node = arena.alloc(1 + height);
        arena.words.set(u64::from(node), ordinal);
        for (level, before) in (0..height).zip(before) {
            let from = link(before, level);
            arena.words.set(link(node, level), arena.words.get(from));
            arena.words.publish(from, node);
        }
    }

    /// Calls `visit` with the ordinals from the first key at or above `from` on, ascending,
    /// until it returns false.
    pub(super) fn walk<'k>(
        &self,
        arena: &Arena,
        from: &[u8],
        key_of: impl Fn(u32) -> &'k [u8],
        mut visit: impl FnMut(u32) -> bool,
    ) {
        let mut node = self.head;
        self.descend(arena, from, &key_of, |_, last| node = last);
        loop {
            node = arena.words.observe(link(node, 0));
            if node == 0 || !visit(arena.words.get(u64::from(node))) {
                return;
            }
        }
    }

    /// Reports the last node with a key below `key` at each level, top level first.
    fn descend<'k>(
        &self,
        arena: &Arena,
        key: &[u8],
        key_of: &impl Fn(u32) -> &'k [u8],
        mut report: impl FnMut(u32, u32),
    ) {
        let mut node = self.head;
        for level in (0..HEIGHT_MAX).rev() {
            loop {
                let next = arena.words.observe(link(node, level));
                if next == 0 || key_of(arena.words.get(u64::from(next))) >= key {
                    break;
                }
                node = next;
            }
            report(level, node);
        }
    }
}

/// Place of a node's link at a level.
fn link(node: u32, level: u32) -> u64 {
    u64::from(node) + 1 + u64::from(level)
}

/// Height of the node of `ordinal`, 1 or more: one in four nodes reaches the next level.
fn height(ordinal: u32) -> u32 {
    // Fibonacci hashing spreads consecutive ordinals.
    let spread = (ordinal + 1).wrapping_mul(0x9E37_79B9);
    (1 + spread.leading_zeros() / 2).min(HEIGHT_MAX)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_walk_is_ascending_from_the_key_asked_for() {
        let keys: Vec<Vec<u8>> = (0..500u32)
            .map(|n| n.wrapping_mul(0x9E37_79B9).to_be_bytes().to_vec())
            .collect();
        let arena = Arena::new();
        let order = Order::new(&arena);
        let mut model = BTreeMap::new();
        for ordinal in 0..500u32 {
            order.insert(&arena, ordinal, |n| keys[n as usize].as_slice());
            model.insert(keys[ordinal as usize].clone(), ordinal);
        }
        for from in [vec![], vec![7, 1], keys[3].clone(), vec![255; 5]] {
            let mut found = Vec::new();
            order.walk(
                &arena,
                &from,
                |n| keys[n as usize].as_slice(),
                |n| {
                    found.push(n);
                    true
                },
            );
            assert_eq!(
                found,
                model
                    .range(from..)
                    .map(|entry| *entry.1)
                    .collect::<Vec<_>>()
            );
        }
    }
}
