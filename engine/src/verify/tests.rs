//! Checks of rows that no file of the engine's own can break: memtables are put beside
//! segments as no replay would.

use chronolith_segments::{DeathLog, DeleteSet, Memtable, MemtableOptions, Scope};

use super::rows::{Part, compare};
use crate::Record;
use crate::options::{Options, Setup};
use crate::settings::{Shared, settings_of};

fn table(shared: &Shared, rows: &[(&str, u64)]) -> Memtable {
    let table = Memtable::new(MemtableOptions {
        spaces: Vec::new(),
        bytes_max: 1 << 20,
        hash_seed: 0,
        code_seed: None,
    });
    for (id, seq) in rows {
        let scope = Scope::parse("a").expect("a scope");
        let record = Record::new(scope, *id, 0, "text");
        let prepared = shared.with_scratch(|scratch| shared.prepare(record, scratch));
        table.insert(&prepared.expect("fits"), *seq, 0);
    }
    table
}

fn found(settled: &[(&str, u64)], later: &[(&str, u64)]) -> Vec<String> {
    let settings = settings_of(&Setup::default(), 7).expect("fits");
    let dir = std::path::Path::new("store");
    let shared = Shared::new(&Options::default(), dir, [0; 16], &settings).expect("known");
    let (old, new) = (table(&shared, settled), table(&shared, later));
    let none = DeathLog::new(&DeleteSet::default());
    let part = |file: &str, rows, is_settled| Part {
        file: file.to_owned(),
        rows,
        deaths: &none,
        is_settled,
    };
    let parts = [part("old", &old, true), part("new", &new, false)];
    let findings = compare(&parts, 100).expect("memtables can be read");
    findings
        .into_iter()
        .map(|finding| finding.message)
        .collect()
}

#[test]
fn of_one_id_the_newest_row_alone_lives_and_a_seq_is_one_rows() {
    assert_eq!(found(&[("x", 1), ("y", 2)], &[("z", 3)]), [""; 0]);
    let across = found(&[("x", 1)], &[("x", 3)]);
    assert!(
        across.len() == 1 && across[0].contains("lives though"),
        "{across:?}"
    );
    let inside = found(&[("x", 1), ("x", 2)], &[]);
    assert_eq!(
        inside.iter().filter(|m| m.contains("lives though")).count(),
        1,
        "{inside:?}"
    );
    let twice = found(&[("x", 1)], &[("y", 1)]);
    assert!(
        twice.len() == 1 && twice[0].contains("and so has"),
        "{twice:?}"
    );
}
