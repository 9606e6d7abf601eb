//! What is the vector of a text?

use std::sync::OnceLock;

use crate::error::ModelError;
use crate::npy::{self, F32, I8};
use crate::vocabulary::Vocabulary;
use crate::words::for_each_word;

/// Name of the built-in model and of the rules that go with it. A store keeps it beside its
/// vectors; vectors of different names must not be compared.
pub const ID: &str = "builtin-minilm-256-v1";

/// Numbers in a vector.
pub const DIM: usize = 256;

const TABLE: &[u8] = include_bytes!("../model/table.i8.npy");
const SCALE: &[u8] = include_bytes!("../model/scale.f32.npy");
const VOCABULARY: &[u8] = include_bytes!("../model/vocab.txt");

/// Lanes of the sum of squares: fixed, so that the result does not depend on the width a
/// compiler chooses, and enough of them that it may choose a wide one.
const LANES: usize = 16;
const _: () = assert!(DIM.is_multiple_of(LANES));

/// Pieces of a usual word; longer ones grow the buffer.
const WORD_PIECES_USUAL: usize = 16;

/// A table of word pieces. Immutable and `Sync`: one serves every thread.
#[derive(Debug)]
pub struct Embedder {
    vocabulary: Vocabulary,
    /// `[pieces, DIM]` i8, row-major, row = id. Exactly `vocabulary.len() * DIM` bytes.
    table: &'static [u8],
    /// `[pieces]`: dequantisation scale times frequency weight. All finite.
    scale: Vec<f32>,
}

impl Embedder {
    /// The embedder that ships with the binary. The first call builds the vocabulary's
    /// look-up tables (a few milliseconds), later ones are free.
    ///
    /// # Panics
    /// Never in a build that passed its tests: the bytes are part of it.
    pub fn builtin() -> &'static Self {
        static BUILTIN: OnceLock<Embedder> = OnceLock::new();
        BUILTIN.get_or_init(|| {
            Self::from_bytes(TABLE, SCALE, VOCABULARY)
                .expect("the bundled model is read by this crate's tests")
        })
    }

    /// An embedder from the bytes of three files.
    ///
    /// * `table`: NumPy, i8 `[pieces, DIM]`.
    /// * `scale`: NumPy, f32 `[pieces]`.
    /// * `vocabulary`: UTF-8, one piece a line, line = row.
    ///
    /// # Errors
    /// [`ModelError`] names the file and what does not fit.
    pub fn from_bytes(
        table: &'static [u8],
        scale: &'static [u8],
        vocabulary: &'static [u8],
    ) -> Result<Self, ModelError> {
        let vocabulary = Vocabulary::parse(vocabulary)?;
        let table = npy::parse("table", table, I8)?;
        let scale = npy::parse("scale", scale, F32)?;
        check_shape(
            "table",
            &table.shape,
            &[("number of rows", vocabulary.len()), ("row width", DIM)],
        )?;
        check_shape(
            "scale",
            &scale.shape,
            &[("number of rows", vocabulary.len())],
        )?;
        let (scale, _) = scale.bytes.as_chunks::<{ F32.width }>();
        let scale: Vec<f32> = scale
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect();
        match scale.iter().position(|factor| !factor.is_finite()) {
            Some(row) => Err(ModelError::Scale { row }),
            None => Ok(Self {
                vocabulary,
                table: table.bytes,
                scale,
            }),
        }
    }

    /// Writes the vector of `text`, of unit length, into `out`.
    ///
    /// Returns false if the text has no vector: it has no piece, or none whose row says
    /// anything. `out` is then all zeros and must not be stored. Cost: one pass over the text, one row of the table a
    /// piece, two small buffers.
    ///
    /// # Panics
    /// If `out` is not [`DIM`] long.
    #[must_use]
    pub fn embed(&self, text: &str, out: &mut [f32]) -> bool {
        let out: &mut [f32; DIM] = out
            .try_into()
            .expect("the caller gives room for DIM numbers");
        out.fill(0.0);
        let mut ids = Vec::with_capacity(WORD_PIECES_USUAL);
        for_each_word(text, |word| {
            ids.clear();
            self.vocabulary.piece_word(word, &mut ids);
            ids.iter().for_each(|&id| self.add_row(id, out));
        });
        // The mean over pieces is not taken: it would change the length only.
        make_unit(out)
    }

    /// Ids of the pieces of `text`, in order: what [`Self::embed`] sums over.
    #[must_use]
    pub fn piece_ids(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        for_each_word(text, |word| self.vocabulary.piece_word(word, &mut ids));
        ids
    }

    /// The piece of an id, `##` in front if it goes on inside a word.
    #[must_use]
    pub fn piece(&self, id: u32) -> Option<&'static str> {
        self.vocabulary.piece(id)
    }

    fn add_row(&self, id: u32, sum: &mut [f32; DIM]) {
        let (rows, _) = self.table.as_chunks::<DIM>();
        // An id is a line of the vocabulary, and both arrays were checked to be as long.
        let row = id as usize;
        let factor = self.scale[row];
        for (sum, byte) in sum.iter_mut().zip(&rows[row]) {
            *sum += f32::from(byte.cast_signed()) * factor;
        }
    }
}

fn check_shape(
    file: &'static str,
    shape: &[usize],
    expected: &[(&'static str, usize)],
) -> Result<(), ModelError> {
    if shape.len() != expected.len() {
        let (found, expected) = (shape.len(), expected.len());
        return Err(ModelError::Shape {
            file,
            what: "number of dimensions",
            found,
            expected,
        });
    }
    for (&found, &(what, expected)) in shape.iter().zip(expected) {
        if found != expected {
            return Err(ModelError::Shape {
                file,
                what,
                found,
                expected,
            });
        }
    }
    Ok(())
}

/// Divides by the length. False, and all zeros, if there is no direction to keep: nothing
/// was added, or rows cancelled out.
fn make_unit(vector: &mut [f32; DIM]) -> bool {
    let mut lanes = [0.0_f32; LANES];
    let (chunks, _) = vector.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value * value;
        }
    }
    let length = lanes.iter().sum::<f32>().sqrt();
    let has_direction = length.is_normal();
    for value in vector.iter_mut() {
        *value = if has_direction { *value / length } else { 0.0 };
    }
    has_direction
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::npy::tests::file;
    use crate::words::tests::naive as naive_words;

    /// The examples carry six decimals: half a unit of the last, and f32 rounding on top.
    const TOLERANCE: f64 = 2e-6;

    fn vector(text: &str) -> Option<[f32; DIM]> {
        let mut out = [f32::NAN; DIM];
        Embedder::builtin().embed(text, &mut out).then_some(out)
    }

    fn cosine(a: &str, b: &str) -> f32 {
        let (a, b) = (vector(a).expect("a vector"), vector(b).expect("a vector"));
        a.iter().zip(&b).map(|(x, y)| x * y).sum()
    }

    #[test]
    fn pieces_ids_and_vectors_equal_the_published_examples() {
        let examples: Value =
            serde_json::from_str(include_str!("../model/examples.json")).expect("JSON");
        let examples = examples.as_array().expect("a list");
        assert_eq!(examples.len(), 5);
        let embedder = Embedder::builtin();
        for example in examples {
            let text = example["text"].as_str().expect("a text");
            let ids = embedder.piece_ids(text);
            assert_eq!(serde_json::json!(ids), example["ids"], "{text}");
            let pieces: Vec<_> = ids.iter().map(|&id| embedder.piece(id)).collect();
            assert_eq!(serde_json::json!(pieces), example["pieces"], "{text}");
            let mut found = [f32::NAN; DIM];
            assert_eq!(embedder.embed(text, &mut found), !ids.is_empty(), "{text}");
            let expected = example["vector"].as_array().expect("a vector");
            assert_eq!(expected.len(), DIM);
            for (found, expected) in found.iter().zip(expected) {
                let expected = expected.as_f64().expect("a number");
                assert!(
                    (f64::from(*found) - expected).abs() < TOLERANCE,
                    "{text}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn vectors_have_unit_length_and_meaning() {
        let length: f32 = vector("the build is red")
            .expect("a vector")
            .iter()
            .map(|x| x * x)
            .sum();
        assert!((length - 1.0).abs() < 1e-5);
        assert!(
            cosine("my dog is ill", "a sick puppy") > cosine("my dog is ill", "the build is red")
        );
    }

    #[test]
    fn a_text_without_pieces_has_no_vector() {
        for text in ["", " \n\t", "\u{301}", "\u{200b}"] {
            assert_eq!(vector(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_long_text_stays_finite() {
        let long = vector(&"deploy ".repeat(200_000)).expect("a vector");
        assert!(long.iter().all(|x| x.is_finite()));
        let short = vector("deploy").expect("a vector");
        assert!(long.iter().zip(&short).all(|(a, b)| (a - b).abs() < 1e-3));
    }

    #[test]
    fn the_model_is_under_ten_megabytes() {
        assert!(TABLE.len() + SCALE.len() + VOCABULARY.len() < 10_000_000);
    }

    #[test]
    #[should_panic(expected = "room for DIM numbers")]
    fn a_vector_of_another_width_is_the_callers_mistake() {
        let _ = Embedder::builtin().embed("text", &mut [0.0; 3]);
    }

    #[test]
    fn files_that_do_not_belong_together_are_refused() {
        let table = |shape: &str, bytes: usize| -> &'static [u8] {
            file("|i1", shape, &vec![1; bytes]).leak()
        };
        let scale = |values: &[f32]| -> &'static [u8] {
            let bytes: Vec<u8> = values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect();
            file("<f4", &format!("{},", values.len()), &bytes).leak()
        };
        let shape = |file, what, found, expected| {
            Some(ModelError::Shape {
                file,
                what,
                found,
                expected,
            })
        };
        let refusal = |table, scale| Embedder::from_bytes(table, scale, b"[UNK]\na\n").err();
        assert_eq!(refusal(table("2, 256", 512), scale(&[1.0, 1.0])), None);
        assert_eq!(
            refusal(table("1, 256", 256), scale(&[1.0, 1.0])),
            shape("table", "number of rows", 1, 2)
        );
        assert_eq!(
            refusal(table("2, 128", 256), scale(&[1.0, 1.0])),
            shape("table", "row width", 128, 256)
        );
        assert_eq!(
            refusal(table("512,", 512), scale(&[1.0, 1.0])),
            shape("table", "number of dimensions", 1, 2)
        );
        assert_eq!(
            refusal(table("2, 256", 512), scale(&[1.0])),
            shape("scale", "number of rows", 1, 2)
        );
        assert_eq!(
            refusal(table("2, 256", 512), scale(&[1.0, f32::NAN])),
            Some(ModelError::Scale { row: 1 })
        );
    }

    /// Sums in f64, word by word, over the words of the naive splitter.
    fn naive(text: &str) -> Option<Vec<f64>> {
        let embedder = Embedder::builtin();
        let mut ids = Vec::new();
        naive_words(text)
            .iter()
            .for_each(|word| embedder.vocabulary.piece_word(word.as_deref(), &mut ids));
        let mut sum = vec![0.0_f64; DIM];
        for &id in &ids {
            let row = usize::try_from(id).expect("an index");
            for (at, sum) in sum.iter_mut().enumerate() {
                let code = embedder.table[row * DIM + at].cast_signed();
                *sum += f64::from(code) * f64::from(embedder.scale[row]);
            }
        }
        let length = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
        (length > 0.0).then(|| sum.iter().map(|x| x / length).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn f32_sums_stay_close_to_exact_ones(text in "([a-z]{1,9}[ .,é0-9]{0,2}|\\PC){0,40}") {
            match (vector(&text), naive(&text)) {
                (Some(found), Some(exact)) => {
                    for (found, exact) in found.iter().zip(&exact) {
                        prop_assert!((f64::from(*found) - exact).abs() < 1e-5);
                    }
                }
                (found, exact) => prop_assert!(found.is_none() && exact.is_none()),
            }
        }
    }
}
