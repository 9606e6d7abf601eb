//! How do the terms of all inputs become one dictionary with its postings?

use super::order::Merge;
use super::{ROW_DROPPED, Result};
use crate::format::SectionSink;
use crate::format::bytes::index;
use crate::read::TermStream;
use crate::terms::{TermsBytes, TermsWriter};

/// Totals of what was written.
#[derive(Debug, Default)]
pub(super) struct TermCounts {
    pub(super) terms: u64,
    pub(super) postings: u64,
}

/// One input's stream and the term it stands at.
struct Head<'a> {
    stream: Box<dyn TermStream + 'a>,
    term: Vec<u8>,
    input: usize,
}

impl Head<'_> {
    /// Moves on; false at the end.
    fn advance(&mut self) -> Result<bool> {
        let Some(term) = self.stream.next_term()? else {
            return Ok(false);
        };
        assert!(
            self.term.is_empty() || *term > *self.term,
            "terms of an input ascend"
        );
        self.term.clear();
        self.term.extend_from_slice(term);
        Ok(true)
    }
}

/// Writes all terms that a kept row holds; look-ups in them will hash with `seed`.
pub(super) fn write_terms(
    sink: &mut dyn SectionSink,
    merge: &Merge<'_>,
    seed: u64,
) -> Result<(TermsBytes, TermCounts)> {
    let mut heads = Vec::new();
    for (input, source) in merge.inputs().iter().enumerate() {
        let mut head = Head {
            stream: source.partition.terms()?,
            term: Vec::new(),
            input,
        };
        if head.advance()? {
            heads.push(head);
        }
    }
    let (mut writer, mut counts) = (
        TermsWriter::new(seed, &merge.lengths),
        TermCounts::default(),
    );
    let (mut term, mut pairs, mut scratch) = (Vec::new(), Vec::new(), (Vec::new(), Vec::new()));
    // Inputs are few: a look at every head is cheaper than a heap of terms.
    while let Some(least) = heads.iter().map(|head| &head.term).min() {
        term.clone_from(least);
        pairs.clear();
        let mut at = 0;
        while at < heads.len() {
            if heads[at].term != term {
                at += 1;
                continue;
            }
            take_postings(&mut heads[at], merge, &mut scratch, &mut pairs)?;
            if heads[at].advance()? {
                at += 1;
            } else {
                heads.swap_remove(at);
            }
        }
        if pairs.is_empty() {
            continue;
        }
        // Stable sort: it finds the ascending stretches that the inputs are made of.
        pairs.sort();
        let (rows, freqs): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
        assert!(rows.is_sorted_by(|a, b| a < b), "a row holds a term once");
        writer.add(sink, &term, &rows, &freqs)?;
        counts.terms += 1;
        counts.postings += rows.len() as u64;
    }
    Ok((writer.finish(sink)?, counts))
}

fn take_postings(
    head: &mut Head<'_>,
    merge: &Merge<'_>,
    (rows, freqs): &mut (Vec<u32>, Vec<u32>),
    pairs: &mut Vec<(u32, u32)>,
) -> Result<()> {
    head.stream.read_postings(rows, freqs)?;
    assert_eq!(
        rows.len(),
        freqs.len(),
        "a posting is a row and a frequency"
    );
    let remap = merge.remap(head.input);
    for (row, freq) in rows.iter().zip(freqs.iter()) {
        let to = remap[index(*row)];
        if to != ROW_DROPPED {
            pairs.push((to, *freq));
        }
    }
    Ok(())
}
