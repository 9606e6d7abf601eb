use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

use super::*;
use crate::scores::LENGTH_CLASSES;

const START: u32 = 1000;
const WINDOW: u32 = 300;

fn table() -> ScoreTable {
    let mut table = ScoreTable::UNKNOWN;
    table.set(1, (0..200).map(|length| 1000 - length));
    table.set(2, (0..).map(|length| 2000 - length));
    table
}

/// Lengths of all rows up to the window's end.
fn lengths() -> Vec<u8> {
    (0..=255).cycle().take((START + WINDOW) as usize).collect()
}

proptest! {
    #[test]
    fn both_forms_add_the_same(
        rows in btree_set(START..START + WINDOW, 0..=ADDED_MAX), freqs in vec(0_u32..9, ADDED_MAX),
    ) {
        let rows: Vec<u32> = rows.into_iter().collect();
        let (freqs, table, lengths) = (&freqs[..rows.len()], table(), lengths());
        let lengths = &lengths[START as usize..];
        let mut expected = vec![7; WINDOW as usize];
        let mut found = expected.clone();
        let mut seen = (0, 0);
        seen.0 |= scalar::add((&rows, freqs), START, &table, lengths, &mut expected);
        seen.1 |= add((&rows, freqs), START, &table, lengths, &mut found);
        seen.0 |= scalar::add_once(&rows, START, table.once(), lengths, &mut expected);
        seen.1 |= add_once(&rows, START, table.once(), lengths, &mut found);
        prop_assert_eq!(seen.0, seen.1);
        prop_assert_eq!(expected, found);
    }

    #[test]
    fn both_forms_take_the_same_rows(
        sums in vec(prop_oneof![Just(0), 1..9_i32, Just(i32::MAX)], 0..200),
        by_class in prop::array::uniform8(-2..9_i32), least in prop_oneof![-3..9_i32, Just(i32::MIN)],
        touched in vec(any::<prop::sample::Index>(), 0..200), is_known in any::<bool>(),
    ) {
        let lengths = if is_known { lengths() } else { Vec::new() };
        let needs = Needs::new(by_class, &lengths);
        let (mut expected, mut left) = ((vec![3], vec![4]), sums.clone());
        scalar::take_all(START, &mut left, least, &needs, (&mut expected.0, &mut expected.1));
        let (mut found, mut left) = ((vec![3], vec![4]), sums.clone());
        take_all(START, &mut left, least, &needs, (&mut found.0, &mut found.1));
        prop_assert_eq!(&expected, &found);
        prop_assert!(left.iter().all(|sum| *sum == 0));
        if sums.is_empty() {
            return Ok(());
        }
        let row = |at: prop::sample::Index| (START..).nth(at.index(sums.len())).expect("few");
        let touched: Vec<u32> = touched.into_iter().map(row).collect();
        let (mut expected, mut left) = ((vec![3], vec![4]), sums.clone());
        let needed = (least.max(1), &needs);
        scalar::take_touched(&touched, START, &mut left, needed, (&mut expected.0, &mut expected.1));
        let (mut found, mut others) = ((vec![3], vec![4]), sums.clone());
        take_touched(&touched, START, &mut others, needed, (&mut found.0, &mut found.1));
        prop_assert_eq!(expected, found);
        prop_assert_eq!(left, others);
    }
}

#[test]
fn classes_are_as_many_as_the_test_makes() {
    assert_eq!(LENGTH_CLASSES, 8);
}

#[test]
fn a_row_outside_the_window_is_a_panic_and_touches_nothing_outside() {
    for row in [START - 1, START + WINDOW, u32::MAX, 0] {
        let attempt = || {
            let (mut sums, lengths) = (vec![0; WINDOW as usize], vec![9; WINDOW as usize]);
            add_once(&[row], START, table().once(), &lengths, &mut sums)
        };
        assert!(std::panic::catch_unwind(attempt).is_err(), "add_once {row}");
        let attempt = || {
            let (mut sums, lengths) = (vec![0; WINDOW as usize], vec![9; WINDOW as usize]);
            add((&[row], &[1]), START, &table(), &lengths, &mut sums)
        };
        assert!(std::panic::catch_unwind(attempt).is_err(), "add {row}");
        let attempt = || {
            let (mut sums, needs) = (
                vec![0; WINDOW as usize],
                Needs::new([1; LENGTH_CLASSES], &[]),
            );
            let found = (&mut Vec::new(), &mut Vec::new());
            take_touched(&[row], START, &mut sums, (1, &needs), found);
        };
        assert!(
            std::panic::catch_unwind(attempt).is_err(),
            "take_touched {row}"
        );
    }
}
