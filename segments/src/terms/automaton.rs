//! What does a dictionary's automaton hold, read from bytes that nobody may trust?
//!
//! `tantivy_fst` builds the automaton; its own reader indexes without checks of its own, and
//! panics or walks for ever on bytes that are none. This one reads the same bytes (version 2)
//! and gives `None` where they break a rule:
//!
//! * every field of a node lies between the header and the node's address;
//! * a transition leads to a lower address than its node's lowest byte, so every way ends;
//! * a node without transitions is final, so the next key is at most one key's length away;
//! * keys have at most [`KEY_BYTES_MAX`] bytes, and outputs do not overflow.
//!
//! No recursion; memory is bounded by the length of a key.
//!
//! ```text
//! | version u64, type u64 | node | node | ... | root node | keys u64 | address of the root u64 |
//! ```
//!
//! A node is read backwards from its address, its last byte:
//!
//! ```text
//! one way, to the node before   | [input] | 11 + common input, 6 bits |
//! one way                       | output | delta | sizes | [input] | 10 + common input |
//! any                           | [final output] | outputs | deltas | inputs | [index 256]
//!                               | sizes | [count] | 0, final, count 6 bits |
//! ```
//!
//! Outputs, deltas and inputs of a node stand last transition first. A delta is counted from
//! the node's lowest byte; 0 = the final node without transitions, which has no bytes. A count
//! byte of 1 stands for 256. The index is there for more than 32 transitions.

/// Longest key of any dictionary, bytes.
pub(super) const KEY_BYTES_MAX: usize = 1024;

const VERSION: u64 = 2;
/// Version and type come before the first node.
const HEADER_BYTES: usize = 16;
/// Number of keys and address of the root follow the last one.
const TAIL_BYTES: usize = 16;
/// Nodes of more transitions have an index.
const INDEX_ABOVE: usize = 32;
const INDEX_BYTES: usize = 256;
/// Widest packed number, bytes.
const SIZE_MAX: usize = 8;

/// Inputs that have a number of their own, from 1 on: `COMMON_INPUTS_INV` of `tantivy_fst`.
const COMMON: [u8; 63] = *b"te/oasripcnw.hlm-du012g=:bf3y5&_4v9678k%?xCDASFIBEjPTzRNM+LOqHG";

/// The bytes of an automaton whose header, root and count were looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Automaton<'a> {
    /// Header and nodes; no tail.
    nodes: &'a [u8],
    /// Address of the root; 0 = the final node without transitions.
    root: usize,
    keys: u64,
}

/// One state.
#[derive(Debug, Clone, Copy)]
struct Node<'a> {
    is_final: bool,
    final_output: u64,
    /// One a transition, the last one first; so are deltas and outputs.
    inputs: &'a [u8],
    index: Option<&'a [u8]>,
    deltas: Deltas<'a>,
    outputs: Packed<'a>,
    /// Its lowest byte.
    lowest: usize,
}

#[derive(Debug, Clone, Copy)]
enum Deltas<'a> {
    /// To the node that stands right below.
    Below,
    Packed(Packed<'a>),
}

/// Numbers of one size; size 0 = all are 0.
#[derive(Debug, Clone, Copy)]
struct Packed<'a> {
    bytes: &'a [u8],
    size: usize,
}

/// One way out of a node.
#[derive(Debug, Clone, Copy)]
struct Transition {
    input: u8,
    output: u64,
    /// Address of the next node: below the node's own, or 0.
    to: usize,
}

impl<'a> Automaton<'a> {
    /// Looks at header and tail.
    pub(super) fn open(bytes: &'a [u8]) -> Option<Self> {
        let (nodes, tail) = cut(bytes, TAIL_BYTES)?;
        let keys = number(&tail[..8]);
        let root = usize::try_from(number(&tail[8..])).ok()?;
        let version = number(nodes.get(..8)?);
        let sound = version == VERSION
            && match root {
                // Nothing but the empty key, which needs no node.
                0 => nodes.len() == HEADER_BYTES && keys == 1,
                _ => root >= HEADER_BYTES && root.checked_add(1) == Some(nodes.len()),
            };
        sound.then_some(Self { nodes, root, keys })
    }

    /// Number of keys, as the tail says.
    pub(super) fn keys(&self) -> u64 {
        self.keys
    }

    /// The output of `key`; `Some(None)` where it is not held, `None` for damage.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<u64>> {
        if self.keys == 0 {
            return Some(None);
        }
        let mut node = self.node(self.root)?;
        let mut output = 0_u64;
        for byte in key {
            let Some(place) = node.find(*byte)? else {
                return Some(None);
            };
            let next = node.transition(place)?;
            output = output.checked_add(next.output)?;
            node = self.node(next.to)?;
        }
        if !node.is_final {
            return Some(None);
        }
        output.checked_add(node.final_output).map(Some)
    }

    /// Replaces `key` by the one whose output is `output`, where outputs ascend with the keys:
    /// the way to it takes, at each node, the last transition that does not pass it. `None`
    /// where there is no such way.
    pub(super) fn key(&self, output: u64, key: &mut Vec<u8>) -> Option<()> {
        key.clear();
        if self.keys == 0 {
            return None;
        }
        let (mut node, mut left) = (self.node(self.root)?, output);
        while !(node.is_final && node.final_output == left) {
            let mut taken = None;
            for place in 0..node.len() {
                let next = node.transition(place)?;
                if next.output > left {
                    break;
                }
                taken = Some(next);
            }
            let next = taken.filter(|_| key.len() < KEY_BYTES_MAX)?;
            left -= next.output;
            key.push(next.input);
            node = self.node(next.to)?;
        }
        Some(())
    }

    /// A walk along the keys after `after`, or along all.
    pub(super) fn walk(&self, after: Option<&[u8]>) -> Option<Walk<'a>> {
        let mut walk = Walk {
            automaton: *self,
            ways: Vec::new(),
            key: Vec::new(),
            at_start: after.is_none(),
        };
        if self.keys > 0 {
            walk.enter(self.root, 0)?;
            walk.skip_to(after.unwrap_or_default())?;
        }
        Some(walk)
    }

    fn node(&self, address: usize) -> Option<Node<'a>> {
        if address == 0 {
            return Some(Node::LAST);
        }
        let bytes = self.nodes.get(HEADER_BYTES..=address)?;
        let (state, rest) = bytes.split_last()?;
        let node = match state >> 6 {
            0b11 => Node::one(rest, *state, true),
            0b10 => Node::one(rest, *state, false),
            _ => Node::any(rest, *state),
        }?;
        // Only the root of an automaton without keys is a dead end, and it is never read.
        (node.is_final || node.len() > 0).then_some(node)
    }
}

impl<'a> Node<'a> {
    /// The final node without transitions.
    const LAST: Self = Self {
        is_final: true,
        final_output: 0,
        inputs: &[],
        index: None,
        deltas: Deltas::Below,
        outputs: Packed::ZERO,
        lowest: 0,
    };

    /// A node of one transition; `rest` are the bytes from the header's end to its state.
    fn one(rest: &'a [u8], state: u8, to_the_one_below: bool) -> Option<Self> {
        let (rest, inputs) = match usize::from(state & 0x3f).checked_sub(1) {
            Some(common) => (rest, COMMON.get(common..=common)?),
            None => cut(rest, 1)?,
        };
        let mut node = Self {
            is_final: false,
            inputs,
            lowest: HEADER_BYTES + rest.len(),
            ..Self::LAST
        };
        if !to_the_one_below {
            let (sizes, rest) = rest.split_last()?;
            let (rest, deltas) = Packed::cut(rest, sizes >> 4, 1)?;
            let (rest, outputs) = Packed::cut(rest, sizes & 15, 1)?;
            node.deltas = Deltas::Packed(deltas);
            node.outputs = outputs;
            node.lowest = HEADER_BYTES + rest.len();
        }
        Some(node)
    }

    /// A node of any number of transitions; `rest` as above.
    fn any(rest: &'a [u8], state: u8) -> Option<Self> {
        let (rest, count) = match usize::from(state & 0x3f) {
            0 => match rest.split_last()? {
                (1, rest) => (rest, 256),
                (count, rest) => (rest, usize::from(*count)),
            },
            count => (rest, count),
        };
        let is_final = state & 0x40 != 0;
        let (sizes, rest) = rest.split_last()?;
        let (rest, index) = match count {
            0..=INDEX_ABOVE => (rest, None),
            _ => cut(rest, INDEX_BYTES).map(|(rest, index)| (rest, Some(index)))?,
        };
        let (rest, inputs) = cut(rest, count)?;
        let (rest, deltas) = Packed::cut(rest, sizes >> 4, count)?;
        let (rest, outputs) = Packed::cut(rest, sizes & 15, count)?;
        let (rest, final_output) = match is_final {
            true => Packed::cut(rest, sizes & 15, 1)?,
            false => (rest, Packed::ZERO),
        };
        Some(Self {
            is_final,
            final_output: final_output.get(0)?,
            inputs,
            index,
            deltas: Deltas::Packed(deltas),
            outputs,
            lowest: HEADER_BYTES + rest.len(),
        })
    }

    fn len(&self) -> usize {
        self.inputs.len()
    }

    /// The input of a transition; `place` is below [`Node::len`].
    fn input(&self, place: usize) -> u8 {
        self.inputs[self.len() - 1 - place]
    }

    /// Place of the transition with this input; `Some(None)` where there is none.
    fn find(&self, input: u8) -> Option<Option<usize>> {
        let Some(index) = self.index else {
            let from_last = self.inputs.iter().position(|one| *one == input);
            return Some(from_last.map(|at| self.len() - 1 - at));
        };
        let place = usize::from(*index.get(usize::from(input))?);
        if place >= self.len() {
            return Some(None);
        }
        if self.input(place) == input {
            return Some(Some(place));
        }
        // 255 is the index's word for "none", and a place where there are 256.
        (place == 255).then_some(None)
    }

    /// The transition at a place below [`Node::len`].
    fn transition(&self, place: usize) -> Option<Transition> {
        let from_last = self.len().checked_sub(place + 1)?;
        let to = match self.deltas {
            Deltas::Below => self.lowest.checked_sub(1)?,
            Deltas::Packed(deltas) => match usize::try_from(deltas.get(from_last)?).ok()? {
                0 => 0,
                delta => self.lowest.checked_sub(delta)?,
            },
        };
        // 0 is the last node; every other address lies behind the header.
        (to == 0 || to >= HEADER_BYTES).then_some(())?;
        Some(Transition {
            input: self.input(place),
            output: self.outputs.get(from_last)?,
            to,
        })
    }
}

impl<'a> Packed<'a> {
    const ZERO: Self = Self {
        bytes: &[],
        size: 0,
    };

    /// Cuts `count` numbers of `size` bytes off the end; gives what is before them first.
    fn cut(bytes: &'a [u8], size: u8, count: usize) -> Option<(&'a [u8], Self)> {
        let size = usize::from(size);
        if size > SIZE_MAX {
            return None;
        }
        let (rest, bytes) = cut(bytes, size * count)?;
        Some((rest, Self { bytes, size }))
    }

    fn get(&self, at: usize) -> Option<u64> {
        let start = at.checked_mul(self.size)?;
        self.bytes
            .get(start..start.checked_add(self.size)?)
            .map(number)
    }
}

/// A walk along keys, ascending, without recursion.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    automaton: Automaton<'a>,
    /// The nodes from the root to the current key: one more than its bytes.
    ways: Vec<Way<'a>>,
    key: Vec<u8>,
    /// The empty key was not looked at yet.
    at_start: bool,
}

#[derive(Debug)]
struct Way<'a> {
    node: Node<'a>,
    /// Place of the next transition to take.
    next: usize,
    /// Sum of the outputs up to the node.
    output: u64,
}

impl Walk<'_> {
    /// The next key and its output; `Some(None)` at the end, `None` for damage.
    pub(super) fn next_key(&mut self) -> Option<Option<(&[u8], u64)>> {
        if std::mem::take(&mut self.at_start)
            && let Some(way) = self.ways.first()
            && way.node.is_final
        {
            return Some(Some((&[], way.node.final_output)));
        }
        // Ends: a step down leads to a lower address and passes at most `KEY_BYTES_MAX` nodes
        // until one is final; a step up leaves a node whose transitions were all taken.
        while let Some(way) = self.ways.last_mut() {
            if way.next == way.node.len() {
                self.ways.pop();
                self.key.pop();
                continue;
            }
            let transition = way.node.transition(way.next)?;
            way.next += 1;
            let output = way.output.checked_add(transition.output)?;
            self.key.push(transition.input);
            if self.enter(transition.to, output)? {
                let node = &self.ways.last()?.node;
                let output = output.checked_add(node.final_output)?;
                return Some(Some((&self.key, output)));
            }
        }
        Some(None)
    }

    /// Steps into a node; true where it is final.
    fn enter(&mut self, address: usize, output: u64) -> Option<bool> {
        if self.key.len() > KEY_BYTES_MAX {
            return None;
        }
        let node = self.automaton.node(address)?;
        self.ways.push(Way {
            node,
            next: 0,
            output,
        });
        Some(node.is_final)
    }

    /// Goes down along `key` as far as it leads, past all that is not above it.
    fn skip_to(&mut self, key: &[u8]) -> Option<()> {
        for byte in key {
            let way = self.ways.last_mut()?;
            way.next = (0..way.node.len())
                .find(|place| way.node.input(*place) >= *byte)
                .unwrap_or(way.node.len());
            if way.next == way.node.len() || way.node.input(way.next) != *byte {
                return Some(());
            }
            let transition = way.node.transition(way.next)?;
            way.next += 1;
            let output = way.output.checked_add(transition.output)?;
            self.key.push(*byte);
            self.enter(transition.to, output)?;
        }
        Some(())
    }
}

/// The last `len` bytes, after what is before them.
fn cut(bytes: &[u8], len: usize) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(bytes.len().checked_sub(len)?)
}

/// A little-endian number of at most eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use tantivy_fst::raw::{Builder, Fst};
    use tantivy_fst::{IntoStreamer, Streamer};

    use super::*;

    fn build(keys: &BTreeSet<Vec<u8>>) -> Vec<u8> {
        let mut builder = Builder::memory();
        for (ordinal, key) in (0..).zip(keys) {
            builder.insert(key, ordinal).expect("keys ascend");
        }
        builder.into_inner().expect("memory")
    }

    /// All of a walk, or what came before damage.
    fn walked(automaton: &Automaton<'_>, after: Option<&[u8]>) -> (Vec<(Vec<u8>, u64)>, bool) {
        let mut found = Vec::new();
        let Some(mut walk) = automaton.walk(after) else {
            return (found, false);
        };
        loop {
            match walk.next_key() {
                Some(Some((key, output))) => found.push((key.to_vec(), output)),
                Some(None) => return (found, true),
                None => return (found, false),
            }
            if found.len() > 10_000 {
                return (found, true);
            }
        }
    }

    fn keys() -> impl Strategy<Value = BTreeSet<Vec<u8>>> {
        let byte = prop_oneof![Just(b'a'), Just(b'b'), any::<u8>()];
        prop_oneof![
            prop::collection::btree_set(prop::collection::vec(byte, 0..6), 0..60),
            prop::collection::btree_set(prop::collection::vec(any::<u8>(), 1..3), 200..700),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn the_builders_own_reader_says_the_same(keys in keys(), asked in keys()) {
            let bytes = build(&keys);
            let oracle = Fst::new(&bytes[..]).expect("intact");
            let automaton = Automaton::open(&bytes).expect("intact");
            prop_assert_eq!(automaton.keys(), keys.len() as u64);
            for key in keys.iter().chain(&asked) {
                let expected = oracle.get(key).map(|output| output.value());
                prop_assert_eq!(automaton.get(key), Some(expected));
            }
            for after in asked.iter().take(20).map(|key| Some(&key[..])).chain([None]) {
                let mut stream = match after {
                    Some(key) => oracle.range().gt(key).into_stream(),
                    None => oracle.range().into_stream(),
                };
                let mut expected = Vec::new();
                while let Some((key, output)) = stream.next() {
                    expected.push((key.to_vec(), output.value()));
                }
                prop_assert_eq!(walked(&automaton, after), (expected, true));
            }
            let mut found = Vec::new();
            for (ordinal, key) in (0..).zip(&keys) {
                prop_assert_eq!(automaton.key(ordinal, &mut found), Some(()));
                prop_assert_eq!(&found, key);
            }
            prop_assert_eq!(automaton.key(keys.len() as u64, &mut found), None);
        }

        #[test]
        fn changed_bytes_never_panic_and_every_walk_ends(
            keys in keys(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        ) {
            let mut bytes = build(&keys);
            for (at, with) in changes {
                let at = at.index(bytes.len());
                bytes[at] = with;
            }
            if let Some(automaton) = Automaton::open(&bytes) {
                for key in keys.iter().take(50) {
                    let _ = automaton.get(key);
                    walked(&automaton, Some(key));
                }
                walked(&automaton, None);
                for ordinal in 0..keys.len() as u64 {
                    let _ = automaton.key(ordinal, &mut Vec::new());
                }
            }
        }
    }

    #[test]
    fn every_input_byte_has_its_form() {
        let keys: BTreeSet<Vec<u8>> = (0..=255_u8).map(|byte| vec![byte, byte, 7]).collect();
        let bytes = build(&keys);
        let automaton = Automaton::open(&bytes).expect("intact");
        for (ordinal, key) in (0..).zip(&keys) {
            assert_eq!(automaton.get(key), Some(Some(ordinal)));
        }
        assert_eq!(walked(&automaton, None).0.len(), 256);
    }

    /// Each node has two ways to the next one and none is final: 2^n ways without a key.
    #[test]
    fn a_maze_without_a_key_is_left_at_its_first_dead_end() {
        let mut bytes = [2_u64.to_le_bytes(), [0; 8]].concat();
        // Not final, no transitions.
        bytes.extend_from_slice(&[0, 0x10, 0, 0]);
        let mut below = bytes.len() - 1;
        for _ in 0..200 {
            let delta = u8::try_from(bytes.len() - below).expect("small");
            below = bytes.len() + 5;
            bytes.extend_from_slice(&[delta, delta, b'b', b'a', 0x10, 2]);
        }
        bytes.extend_from_slice(&1_u64.to_le_bytes());
        bytes.extend_from_slice(&(below as u64).to_le_bytes());
        let automaton = Automaton::open(&bytes).expect("header and tail are right");
        assert_eq!(walked(&automaton, None), (Vec::new(), false));
        assert_eq!(automaton.key(0, &mut Vec::new()), None);
    }
}
