//! What did a child acknowledge, and is that what is there?

use std::collections::BTreeMap;

use chronolith::Durability;

use super::{Lane, Records, Said, Script};

/// What died, and so what is owed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owed {
    /// The process: everything acknowledged.
    AfterKill,
    /// The file system: what was acknowledged as synced, and whatever came before it.
    AfterPowerCut,
}

/// Everything children of one store said.
#[derive(Debug)]
pub struct Account {
    script: Script,
    lanes: Vec<Lane>,
    /// Last batch of each lane that is owed from earlier cycles or was there at an open.
    base: Vec<Option<u64>>,
    /// (last seq) to (lane, number) of every acknowledgement since.
    acked: BTreeMap<u64, (usize, u64)>,
    /// Last seq of which the child said or knows that it is durable.
    durable_upto: u64,
}

impl Account {
    /// Of a store that is empty.
    pub fn new(script: Script, seed: u64) -> Self {
        let lanes = script.lanes(seed);
        Self {
            script,
            base: vec![None; lanes.len()],
            lanes,
            acked: BTreeMap::new(),
            durable_upto: 0,
        }
    }

    /// The lanes of the store.
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// Acknowledgements since the last check.
    pub fn acks(&self) -> usize {
        self.acked.len()
    }

    /// Takes in one line of a child.
    ///
    /// # Panics
    /// If a lane acknowledged out of order, or an open lost something.
    pub fn note(&mut self, said: &Said) {
        match said {
            Said::Open { seq, heads } => {
                for (lane, head) in heads.iter().enumerate() {
                    assert_eq!(
                        *head,
                        self.last(lane),
                        "lane {lane} changed over a reopen: {said:?}"
                    );
                    self.base[lane] = *head;
                }
                self.acked.clear();
                self.durable_upto = *seq;
            }
            Said::Acked {
                lane,
                number,
                last_seq,
            } => {
                let next = self.last(*lane).map_or(0, |last| last + 1);
                assert_eq!(*number, next, "lane {lane} acknowledged out of order");
                self.acked.insert(*last_seq, (*lane, *number));
                if self.script.durability(*number) == Durability::Synced {
                    self.durable_upto = self.durable_upto.max(*last_seq);
                }
            }
            Said::Durable { seq } => self.durable_upto = self.durable_upto.max(*seq),
            Said::Closed => {}
        }
    }

    /// Last acknowledged batch of a lane.
    fn last(&self, lane: usize) -> Option<u64> {
        self.last_upto(lane, u64::MAX)
    }

    fn last_upto(&self, lane: usize, seq: u64) -> Option<u64> {
        let mut acked = self.acked.range(..=seq).rev();
        let last = acked.find(|(_, (of, _))| *of == lane);
        last.map(|(_, (_, number))| *number).or(self.base[lane])
    }

    /// Compares what a reopen shows with what was said; what is there is owed from now on.
    ///
    /// # Errors
    /// The first thing that is lost, there in part, a ghost, or a hole.
    pub fn settle(&mut self, records: &Records, owed: Owed) -> Result<(), String> {
        let mut there = Vec::new();
        for (at, lane) in self.lanes.iter().enumerate() {
            let part = lane.part(records);
            let last = lane.last_batch(&part);
            let owed_upto = match owed {
                Owed::AfterKill => u64::MAX,
                Owed::AfterPowerCut => self.durable_upto,
            };
            let (owed, acked) = (self.last_upto(at, owed_upto), self.last(at));
            if last < owed {
                return Err(format!(
                    "lane {at}: {owed:?} is owed, {last:?} is the last there"
                ));
            }
            // One batch may be under way when its process dies.
            if last > Some(acked.map_or(0, |acked| acked + 1)) {
                return Err(format!(
                    "lane {at}: {acked:?} was the last said, {last:?} is there"
                ));
            }
            let expected = lane.expected(last);
            if part != expected {
                return Err(format!(
                    "lane {at}: {last:?} is the last there, but {}",
                    difference(&part, &expected)
                ));
            }
            there.push(last);
        }
        self.check_prefix(&there)?;
        self.base = there;
        self.acked.clear();
        self.durable_upto = 0;
        Ok(())
    }

    /// A batch that is there has every earlier one of all lanes beside it.
    fn check_prefix(&self, there: &[Option<u64>]) -> Result<(), String> {
        let is_there = |(lane, number): &(usize, u64)| there[*lane] >= Some(*number);
        let newest = self.acked.iter().rev().find(|(_, batch)| is_there(batch));
        let Some((newest, _)) = newest else {
            return Ok(());
        };
        match self
            .acked
            .range(..newest)
            .find(|(_, batch)| !is_there(batch))
        {
            Some((seq, batch)) => Err(format!(
                "seq {newest} is there and the earlier {seq} (lane, batch {batch:?}) is not"
            )),
            None => Ok(()),
        }
    }
}

/// The first thing in which two sets of records differ.
pub(super) fn difference(found: &Records, expected: &Records) -> String {
    let odd = found
        .iter()
        .find(|(key, text)| expected.get(*key) != Some(*text));
    let missing = expected.keys().find(|key| !found.contains_key(*key));
    match (odd, missing) {
        (Some((key, text)), _) => {
            format!("{key:?} is {text:?}, not {:?}", expected.get(key))
        }
        (None, Some(key)) => format!("{key:?} is missing"),
        (None, None) => "nothing differs".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(script: Script, lines: &[&str]) -> Account {
        let mut account = Account::new(script, 5);
        for line in lines {
            account.note(&Said::parse(line).expect("a line"));
        }
        account
    }

    const LINES: [&str; 4] = ["open 0 -", "ack 0 0 10", "ack 0 1 20", "ack 0 2 30"];

    #[test]
    fn what_was_acknowledged_is_owed_after_a_kill() {
        let lane = Lane::first(5);
        for (last, good) in [(1, false), (2, true), (3, true), (4, false)] {
            let settled =
                account(Script::Write, &LINES).settle(&lane.expected(Some(last)), Owed::AfterKill);
            assert_eq!(settled.is_ok(), good, "batch {last}: {settled:?}");
        }
    }

    #[test]
    fn after_a_power_cut_only_what_was_synced_is_owed() {
        let lane = Lane::first(5);
        // Of a lazy child none of the three was synced, until it says so.
        for (line, first_good) in [(None, None), (Some("durable 20"), Some(1))] {
            for last in [None, Some(0), Some(1), Some(2), Some(3)] {
                let mut account = account(Script::Lazy, &LINES);
                if let Some(line) = line {
                    account.note(&Said::parse(line).expect("a line"));
                }
                let settled = account.settle(&lane.expected(last), Owed::AfterPowerCut);
                assert_eq!(settled.is_ok(), last >= first_good, "{last:?}: {settled:?}");
            }
        }
    }

    #[test]
    fn a_part_of_a_batch_and_a_ghost_are_seen() {
        let lane = Lane::first(5);
        let mut part = lane.expected(Some(2));
        let key = part.keys().next().expect("a record").clone();
        part.remove(&key);
        let settled = account(Script::Write, &LINES).settle(&part, Owed::AfterKill);
        assert!(settled.is_err_and(|why| why.contains("missing")));
        part = lane.expected(Some(2));
        part.insert((lane.scope(0).path(), "ghost".into()), "boo".into());
        let settled = account(Script::Write, &LINES).settle(&part, Owed::AfterKill);
        assert!(settled.is_err_and(|why| why.contains("ghost")));
    }

    #[test]
    fn a_hole_across_lanes_is_seen() {
        let lines = ["open 0 - - -", "ack 0 0 10", "ack 1 0 20", "ack 2 0 30"];
        let shown = |lanes: &[u64]| {
            let lane = |index: &u64| {
                Lane {
                    seed: 5,
                    index: *index,
                }
                .expected(Some(0))
            };
            lanes.iter().flat_map(lane).collect::<Records>()
        };
        let settle = |lanes: &[u64]| {
            account(Script::Lanes, &lines).settle(&shown(lanes), Owed::AfterPowerCut)
        };
        for lanes in [&[][..], &[0], &[0, 1], &[0, 1, 2]] {
            settle(lanes).expect("a prefix");
        }
        for lanes in [&[1][..], &[2], &[0, 2], &[1, 2]] {
            assert!(
                settle(lanes).is_err_and(|why| why.contains("earlier")),
                "{lanes:?}"
            );
        }
    }
}
