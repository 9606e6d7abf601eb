use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::format::{Section, VecSink};
use crate::prepared::{VectorFormat, VectorSpace};

fn space(format: VectorFormat) -> VectorSpace {
    VectorSpace {
        model: "test".into(),
        dim: 3,
        format,
        normalised: false,
    }
}

fn stored(row: usize, format: VectorFormat) -> Vec<u8> {
    // Small integers: exact in both formats.
    let values = [row % 100, row % 7, 1].map(|x| x as f32);
    match format {
        VectorFormat::F16 => values
            .iter()
            .flat_map(|x| half::f16::from_f32(*x).to_le_bytes())
            .collect(),
        VectorFormat::F32 => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
    }
}

fn write(present: &[bool], format: VectorFormat) -> (Vec<u8>, Vec<u8>) {
    let mut writer = VectorsWriter::new(&space(format));
    let mut sink = VecSink::default();
    for (row, has) in present.iter().enumerate() {
        let vector = has.then(|| stored(row, format));
        writer
            .push(&mut sink, vector.as_deref())
            .expect("in memory");
    }
    (sink.bytes, writer.finish())
}

fn open(
    bytes: (Vec<u8>, Vec<u8>),
    format: VectorFormat,
    rows: usize,
) -> Result<Vectors, crate::SegmentError> {
    let vectors = Section::in_memory("vectors", bytes.0);
    let presence = Section::in_memory("vector_rows", bytes.1);
    Vectors::open(
        vectors,
        presence,
        &space(format),
        u32::try_from(rows).expect("few"),
    )
}

fn check(present: &[bool], format: VectorFormat, from: usize, to: usize) {
    let bytes = write(present, format);
    let reader = open(bytes, format, present.len()).expect("intact");
    for (row, has) in present.iter().enumerate() {
        let found = reader.get(row as u32).expect("intact");
        assert_eq!(
            found.as_deref(),
            has.then(|| stored(row, format)).as_deref(),
            "row {row}"
        );
    }
    let rows = from as u32..to as u32;
    let expected: Vec<u32> = rows.clone().filter(|row| present[*row as usize]).collect();
    let mut found = Vec::new();
    reader
        .rows_with_vector(rows.clone(), &mut found)
        .expect("intact");
    assert_eq!(found, expected);
    let bulk: Vec<u8> = expected
        .iter()
        .flat_map(|row| stored(*row as usize, format))
        .collect();
    assert_eq!(&*reader.range(rows.clone()).expect("intact"), &bulk[..]);

    let query = [0.5, -2.0, 3.0];
    let naive: Vec<f32> = expected
        .iter()
        .map(|row| dot(&query, &stored(*row as usize, format), format))
        .collect();
    let (mut hits, mut scores) = (Vec::new(), Vec::new());
    reader
        .score_range(&query, rows.clone(), &mut hits, &mut scores)
        .expect("intact");
    assert_eq!((&hits, &scores), (&expected, &naive));
    let (mut hits, mut scores) = (Vec::new(), Vec::new());
    reader
        .score_rows(&query, &rows.collect::<Vec<_>>(), &mut hits, &mut scores)
        .expect("intact");
    assert_eq!((hits, scores), (expected, naive));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_row_gives_back_its_own_vector(
        present in vec(any::<bool>(), 0..1200),
        a in any::<prop::sample::Index>(),
        b in any::<prop::sample::Index>(),
    ) {
        let (a, b) = (a.index(present.len() + 1), b.index(present.len() + 1));
        check(&present, VectorFormat::F16, a.min(b), a.max(b));
        check(&present, VectorFormat::F32, a.min(b), a.max(b));
    }

    #[test]
    fn damaged_presence_is_an_error_or_bytes_of_one_vector(
        at in any::<prop::sample::Index>(), with in 1_u8..=255,
    ) {
        let present: Vec<bool> = (0..1100).map(|row| row % 3 != 0).collect();
        let mut bytes = write(&present, VectorFormat::F16);
        let at = at.index(bytes.1.len());
        bytes.1[at] ^= with;
        if let Ok(reader) = open(bytes, VectorFormat::F16, present.len()) {
            for row in 0..1100 {
                if let Ok(Some(vector)) = reader.get(row) {
                    prop_assert_eq!(vector.len(), 6);
                }
            }
            let _ = reader.score_range(&[1.0; 3], 0..1100, &mut Vec::new(), &mut Vec::new());
        }
    }
}

#[test]
fn a_bitset_is_kept_only_where_some_row_has_no_vector() {
    let full = write(&[true; 600], VectorFormat::F16);
    assert_eq!((full.0.len(), full.1.len()), (3600, 16));
    check(&[true; 600], VectorFormat::F16, 3, 599);
    let mut present = [true; 600];
    present[511] = false;
    assert_eq!(write(&present, VectorFormat::F16).1.len(), 2 * 68 + 16);
}

#[test]
fn another_space_or_row_count_is_refused() {
    let bytes = write(&[true, false, true], VectorFormat::F16);
    assert!(open(bytes.clone(), VectorFormat::F16, 3).is_ok());
    assert!(open(bytes.clone(), VectorFormat::F32, 3).is_err());
    assert!(open(bytes.clone(), VectorFormat::F16, 4).is_err());
    let reader = open(bytes.clone(), VectorFormat::F16, 3).expect("intact");
    assert!(reader.get(3).is_err());
    assert!(reader.range(2..4).is_err());
    let short = (bytes.0[1..].to_vec(), bytes.1.clone());
    let error = open(short, VectorFormat::F16, 3)
        .expect_err("short")
        .to_string();
    assert!(error.contains("section vectors"), "{error}");
    assert!(open((bytes.0, bytes.1[..15].to_vec()), VectorFormat::F16, 3).is_err());
}
