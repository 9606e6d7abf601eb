//! Nothing of one scope shows in another: no row, no statistic, no bit of a score.

use std::collections::BTreeMap;

use chronolith::{Maintenance, Store};
use chronolith_tests::data::{Set, write_all};

use super::layouts::{NOW_US, bytes_of, options, requests, sample, setup};

#[test]
fn adding_all_other_scopes_changes_no_byte_of_an_answer() {
    let Some(set) = Set::load("locomo") else {
        return;
    };
    let root = tempfile::tempdir().expect("a directory");
    let setup = setup(&set);
    let open = |name: &str| {
        let options = options(&setup, Maintenance::Manual);
        Store::open(root.path().join(name), options).expect("opens")
    };
    let all = open("all");
    // Half in segments, half in memory.
    let (early, late) = set.records.split_at(set.records.len() / 2);
    write_all(&all, early);
    all.flush().expect("flushed");
    write_all(&all, late);
    let mut alone = BTreeMap::new();
    for (at, scope) in set.scopes().into_iter().enumerate() {
        let store = open(&format!("alone-{at}"));
        write_all(
            &store,
            set.records
                .iter()
                .filter(|record| record.scope.path() == scope),
        );
        alone.insert(scope, store);
    }
    let mut answers = 0;
    for query in sample(&set) {
        for request in &requests(query) {
            let together = all.retrieve(request).expect("answers");
            let apart = alone[&query.scope].retrieve(request).expect("answers");
            assert!(
                together
                    .hits
                    .iter()
                    .all(|hit| hit.scope.path() == query.scope)
            );
            assert_eq!(bytes_of(&together), bytes_of(&apart), "{}", query.id);
            assert_eq!(
                together.plan.statistics, apart.plan.statistics,
                "{}",
                query.id
            );
            assert_eq!(together.plan.lists, apart.plan.lists, "{}", query.id);
            assert_eq!(together.text_tokens, apart.text_tokens, "{}", query.id);
            answers += 1;
        }
    }
    println!(
        "{answers} answers, the same bytes alone and among {} scopes",
        alone.len()
    );
}

#[test]
fn no_query_returns_a_row_outside_its_scope() {
    let Some(set) = Set::load("locomo") else {
        return;
    };
    let root = tempfile::tempdir().expect("a directory");
    let options = options(&setup(&set), Maintenance::Manual);
    let store = Store::open(root.path().join("store"), options).expect("opens");
    write_all(&store, &set.records);
    store.flush().expect("flushed");
    let mut hits = 0;
    for query in &set.queries {
        let request = query.request().now_us(NOW_US).k(100).ids_only();
        let response = store.retrieve(&request).expect("answers");
        for hit in &response.hits {
            assert_eq!(hit.scope.path(), query.scope, "{}", query.id);
            assert!(
                hit.id.starts_with(&query.scope),
                "{} for {}",
                hit.id,
                query.id
            );
        }
        hits += response.hits.len();
    }
    println!(
        "{} queries, {hits} hits, none outside its scope",
        set.queries.len()
    );
}
