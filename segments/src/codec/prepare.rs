//! Is a record fit to be stored, and what does it look like once it is?

use super::RowTerms;
use crate::analyze::{Analyzed, Analyzer, Fields};
use crate::error::Refused;
use crate::impacts::settle;
use crate::prepared::{Prepared, TokenCounter, prepare_vector};
use crate::record::Record;
use crate::space::{SpaceSet, StoredVectors};

/// Checks and analyses a caller's record. The only place where a caller's vectors are checked.
///
/// `scratch` is overwritten; a worker keeps one, since its buffers and stem cache stay warm.
///
/// # Errors
/// [`Refused`] naming the first field at fault.
pub fn prepare(
    mut record: Record,
    analyzer: &Analyzer,
    scratch: &mut Analyzed,
    spaces: &SpaceSet,
    counter: TokenCounter,
) -> Result<Prepared, Refused> {
    record.check()?;
    let mut vectors = StoredVectors::default();
    let unnamed = record.vector.take().map(|vector| (None, None, vector));
    let named = std::mem::take(&mut record.vectors).into_iter();
    let named = named.map(|one| (Some(one.space), one.model, one.vector));
    for (name, model, vector) in unnamed.into_iter().chain(named) {
        let meant = spaces.meant(name.as_deref())?;
        meant.check_model(model.as_deref())?;
        if vectors.get(meant.number).is_some() {
            let message = format!("stands twice in space {}", meant.name);
            return Err(Refused::new("vector", message));
        }
        vectors.put(meant.number, prepare_vector(&meant.space, &vector)?);
    }
    Ok(finish(record, vectors, analyzer, scratch, counter))
}

/// Prepares a record that the log gave back, with its vectors as stored. Those of spaces that
/// the store no longer has are left out.
///
/// # Errors
/// [`Refused`] where the record or the size of a vector does not fit this store, or a space was
/// never one of it: the log is damaged or another store's.
pub fn prepare_replayed(
    record: Record,
    mut vectors: StoredVectors,
    analyzer: &Analyzer,
    scratch: &mut Analyzed,
    spaces: &SpaceSet,
    counter: TokenCounter,
) -> Result<Prepared, Refused> {
    record.check()?;
    for (number, vector) in vectors.iter() {
        if number >= spaces.next {
            let message = format!("is of space {}, which never was", number.get());
            return Err(Refused::new("vector", message));
        }
        let expected = spaces.get(number).map(|own| own.space.vector_bytes());
        if expected.is_some_and(|expected| vector.len() != expected) {
            let message = format!(
                "has {} bytes; this store keeps {}",
                vector.len(),
                expected.unwrap_or(0)
            );
            return Err(Refused::new("vector", message));
        }
    }
    vectors.retain(|number| spaces.get(number).is_some());
    Ok(finish(record, vectors, analyzer, scratch, counter))
}

fn finish(
    mut record: Record,
    vectors: StoredVectors,
    analyzer: &Analyzer,
    scratch: &mut Analyzed,
    counter: TokenCounter,
) -> Prepared {
    record.vector = None;
    record.tags.sort_unstable();
    record.tags.dedup();
    settle(&mut record.impacts);
    let fields = Fields {
        text: &record.text,
        summary: record.summary.as_deref(),
        speaker: record.speaker.as_deref(),
        event_time_us: Some(record.event_time_us),
    };
    analyzer.analyze_fields(&fields, scratch);
    let analyzed = RowTerms::new(scratch, &record.impacts);
    let summary_tokens = record
        .summary
        .as_deref()
        .map_or(0, |summary| counter.cost(summary));
    Prepared {
        analyzed,
        vectors,
        known_since_us: None,
        text_tokens: counter.cost(&record.text),
        summary_tokens,
        record,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::{AnalyzerKind, AnalyzerOptions, Language};
    use crate::prepared::{VectorFormat, VectorSpace};
    use crate::scope::Scope;
    use crate::space::SpaceNumber;

    fn record() -> Record {
        let scope = Scope::parse("a").expect("a scope");
        Record::new(scope, "x", 1_683_417_600_000_000, "alpha beta")
    }

    fn prepared(record: Record, options: AnalyzerOptions) -> Prepared {
        let analyzer = Analyzer::new(AnalyzerKind::Default, Language::ENGLISH, options);
        let analyzer = analyzer.expect("English");
        prepare(
            record,
            &analyzer,
            &mut Analyzed::new(),
            &SpaceSet::default(),
            TokenCounter::default(),
        )
        .expect("fits")
    }

    #[test]
    fn only_what_the_store_asks_for_is_indexed_and_counted() {
        let mut full = record();
        full.summary = Some("gamma".into());
        full.speaker = Some("Ana".into());
        full.tags = vec!["b".into(), "a".into(), "b".into()];
        let plain = prepared(full.clone(), AnalyzerOptions::default());
        assert_eq!(plain.analyzed.length(), 2);
        assert_eq!(plain.record.tags, ["a", "b"]);
        assert_eq!((plain.text_tokens, plain.summary_tokens), (3, 2));
        let all = AnalyzerOptions {
            summary: true,
            speaker: true,
            event_date: true,
        };
        let all = prepared(full, all);
        assert_eq!(all.analyzed.length(), 7);
        assert!(
            all.analyzed
                .terms()
                .any(|term| term == (b"2023".as_slice(), 1))
        );
    }

    #[test]
    fn a_vector_needs_a_space_and_is_taken_out() {
        let mut with_vector = record();
        with_vector.vector = Some(vec![0.0, 2.0]);
        let space = VectorSpace {
            model: "m".into(),
            dim: 2,
            format: VectorFormat::F16,
            normalised: true,
        };
        let (analyzer, counter) = (Analyzer::default(), TokenCounter::default());
        let scratch = Analyzed::new;
        let run = |space| {
            let spaces = SpaceSet::main(space);
            prepare(
                with_vector.clone(),
                &analyzer,
                &mut scratch(),
                &spaces,
                counter,
            )
        };
        assert_eq!(run(None).expect_err("no space").field, "vector");
        let prepared = run(Some(space.clone())).expect("fits");
        assert_eq!(prepared.record.vector, None);
        let bytes = prepared.vectors.get(SpaceNumber::MAIN).expect("a vector");
        let bytes = bytes.to_vec();
        let again = |bytes: Vec<u8>, space| {
            prepare_replayed(
                prepared.record.clone(),
                StoredVectors::main(Some(bytes)),
                &analyzer,
                &mut scratch(),
                &SpaceSet::main(space),
                counter,
            )
        };
        let replayed = again(bytes.clone(), Some(space.clone())).expect("fits");
        assert_eq!(replayed.vectors, prepared.vectors);
        let short = again(bytes[1..].to_vec(), Some(space));
        assert_eq!(short.expect_err("short").field, "vector");
        assert_eq!(again(bytes, None).expect_err("no space").field, "vector");
    }
}
