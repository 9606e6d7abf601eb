//! Files that are gone together with what would have told of them.

use std::path::Path;

use chronolith::{Batch, Scope};

use crate::bed::{Bed, Builder, STORE, check, history};

/// Two records flushed, one of them forgotten in a flush of its own; the log tells of neither.
fn forgotten() -> Bed {
    let mut builder = Builder::new(22);
    let put = |builder: &mut Builder, id: &str| {
        let mut batch = Batch::new();
        batch.upsert(builder.record("user/ana", id));
        builder.store().write(batch).expect("writes");
        builder.store().flush().expect("flushes");
    };
    put(&mut builder, "kept");
    put(&mut builder, "forgotten");
    let scope = Scope::parse("user/ana").expect("a scope");
    builder.store().forget(scope, "forgotten").expect("forgets");
    builder.store().flush().expect("flushes");
    for id in ["later", "last"] {
        builder.reopen();
        put(&mut builder, id);
    }
    builder.done()
}

fn without_manifests(bed: &Bed) {
    bed.remove(&Path::new(STORE).join("CURRENT"));
    for path in bed.files("/manifest/", "") {
        bed.remove(&path);
    }
}

fn without_newest_manifest(bed: &Bed) {
    let copies = bed.files("/manifest/", "");
    assert!(copies.len() >= 4, "{copies:?}");
    for path in &copies[copies.len() - 2..] {
        bed.remove(path);
    }
}

#[test]
fn a_delete_set_that_is_lost_with_its_manifest_is_a_risk_and_said_so() {
    for lose in [without_manifests, without_newest_manifest] {
        let bed = forgotten();
        lose(&bed);
        for path in bed.files("/segments/", ".del") {
            bed.remove(&path);
        }
        let report = bed.repair().expect("repairs");
        assert_eq!(report.records, 4, "the forgotten one is back");
        assert!(!report.is_complete(), "{report:#?}");
        let risk = report.deletes_at_risk.iter();
        let mut risk = risk.filter(|risk| risk.first_seq.is_some());
        assert!(risk.next().is_some(), "{report:#?}");
    }
}

#[test]
fn a_delete_set_that_an_older_manifest_names_counts_as_lost() {
    let bed = forgotten();
    without_newest_manifest(&bed);
    let set = bed.files("/segments/", ".del").pop().expect("a set");
    bed.remove(&set);
    let report = bed.repair().expect("repairs");
    let is_named = |file: &String| set.ends_with(file);
    let mut risks = report.deletes_at_risk.iter();
    assert!(
        risks.any(|risk| risk.file.as_ref().is_some_and(is_named)),
        "{report:#?}"
    );
}

#[test]
fn a_log_from_the_first_commit_on_proves_every_delete() {
    let mut builder = Builder::new(23);
    // A flush after a forget lets the log's begin go: what is forgotten comes behind it.
    builder.puts(8, 10);
    builder.puts(8, 10);
    builder.store().flush().expect("flushes");
    builder.batch(8, 10);
    let bed = builder.done();
    assert!(!bed.files("/segments/", ".seg").is_empty());
    without_manifests(&bed);
    for path in bed.files("/segments/", ".del") {
        bed.remove(&path);
    }
    let report = bed.repair().expect("repairs");
    check(&bed, &report, "log from the begin");
    assert!(report.is_complete(), "{report:#?}");
    assert_eq!(report.records, bed.model.live() as u64);
}

#[test]
fn a_log_that_is_gone_is_missing_from_the_last_flush_on() {
    let bed = history(24, 30);
    let newest = bed.files("/wal/", ".log").pop().expect("a log");
    let with_status = bed.fork();
    for path in bed.files("/wal/", "") {
        bed.remove(&path);
    }
    with_status.remove(&newest);
    // Everything was flushed: the file must be there all the same.
    let flushed = forgotten();
    for path in flushed.files("/wal/", "") {
        flushed.remove(&path);
    }
    let no_manifest = bed.fork();
    without_manifests(&no_manifest);
    for (name, damaged, open_end) in [
        ("all of it", &bed, true),
        ("one file", &with_status, false),
        ("nothing unflushed", &flushed, true),
        ("no manifest", &no_manifest, true),
    ] {
        let report = damaged.repair().expect("repairs");
        if name != "nothing unflushed" {
            check(damaged, &report, name);
        }
        assert!(!report.is_complete(), "{name}: {report:#?}");
        let missing = report.missing.iter();
        let mut ranges = missing.filter(|range| range.first_seq.is_some_and(|first| first > 1));
        assert!(
            ranges.any(|range| range.last_seq.is_none() == open_end),
            "{name}: {report:#?}"
        );
        assert!(!report.deletes_at_risk.is_empty(), "{name}: {report:#?}");
    }
}
