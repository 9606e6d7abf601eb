//! Where do the numbers of a NumPy file lie?
//!
//! We read one kind, the one `numpy.save` writes for a C-ordered array:
//!
//! | offset | width | field | rule |
//! | --- | --- | --- | --- |
//! | 0 | 6 | magic | `\x93NUMPY` |
//! | 6 | 2 | version | 1, 0 |
//! | 8 | 2 | header length, u16 little-endian | ends inside the file |
//! | 10 | header length | ASCII dictionary, spaces, newline | keys in the order below |
//! | then | product of shape x element width | elements | exactly to the end of the file |

use crate::error::ModelError;

const PREFIX: &[u8] = b"\x93NUMPY\x01\x00";
const HEADER_START: usize = PREFIX.len() + 2;
/// No table of ours has more dimensions.
const DIMENSIONS_MAX: usize = 2;

/// A NumPy file's shape and the bytes of its elements.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Array {
    /// One or two sizes, outermost first.
    pub(crate) shape: Vec<usize>,
    /// As long as the product of `shape` times the element width.
    pub(crate) bytes: &'static [u8],
}

/// An element type by NumPy's name, with its width in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Element {
    pub(crate) name: &'static str,
    pub(crate) width: usize,
}

pub(crate) const I8: Element = Element {
    name: "|i1",
    width: 1,
};
pub(crate) const F32: Element = Element {
    name: "<f4",
    width: 4,
};

/// Checks the header and the length, and says where the elements are.
///
/// # Errors
/// [`ModelError::Npy`] with the offset of the first thing that does not fit.
pub(crate) fn parse(
    file: &'static str,
    bytes: &'static [u8],
    element: Element,
) -> Result<Array, ModelError> {
    let wrong = |problem, offset| ModelError::Npy {
        file,
        wanted: element.name,
        problem,
        offset,
    };
    let rest = bytes
        .strip_prefix(PREFIX)
        .ok_or(wrong("unknown magic or version", 0))?;
    let (length, rest) = rest
        .split_first_chunk::<2>()
        .ok_or(wrong("cut short", PREFIX.len()))?;
    let length = usize::from(u16::from_le_bytes(*length));
    let (header, elements) = rest
        .split_at_checked(length)
        .ok_or(wrong("header longer than the file", HEADER_START))?;
    let header =
        std::str::from_utf8(header).map_err(|_| wrong("header is not text", HEADER_START))?;
    let shape = parse_shape(header, element).map_err(|problem| wrong(problem, HEADER_START))?;
    let wanted = shape
        .iter()
        .try_fold(element.width, |size, &n| size.checked_mul(n));
    if wanted != Some(elements.len()) {
        return Err(wrong(
            "elements do not fill the shape exactly",
            HEADER_START + length,
        ));
    }
    Ok(Array {
        shape,
        bytes: elements,
    })
}

fn parse_shape(header: &str, element: Element) -> Result<Vec<usize>, &'static str> {
    let rest = header
        .strip_prefix("{'descr': '")
        .ok_or("header does not start with 'descr'")?;
    let rest = rest
        .strip_prefix(element.name)
        .ok_or("other element type")?;
    let rest = rest
        .strip_prefix("', 'fortran_order': False, 'shape': (")
        .ok_or("not in C order")?;
    let (sizes, end) = rest.split_once(')').ok_or("shape without an end")?;
    if end.trim_end() != ", }" {
        return Err("unknown keys after the shape");
    }
    let sizes = sizes.strip_suffix(',').unwrap_or(sizes);
    let shape: Result<Vec<usize>, _> = sizes
        .split(", ")
        .take(DIMENSIONS_MAX + 1)
        .map(str::parse)
        .collect();
    shape
        .ok()
        .filter(|shape| shape.len() <= DIMENSIONS_MAX)
        .ok_or("shape is not one or two whole numbers")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What `numpy.save` writes.
    pub(crate) fn file(descr: &str, shape: &str, elements: &[u8]) -> Vec<u8> {
        let mut header =
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
        while !(HEADER_START + header.len() + 1).is_multiple_of(64) {
            header.push(' ');
        }
        header.push('\n');
        let length = u16::try_from(header.len()).expect("a short header");
        [PREFIX, &length.to_le_bytes(), header.as_bytes(), elements].concat()
    }

    fn problem(bytes: Vec<u8>) -> (&'static str, usize) {
        match parse("table", bytes.leak(), I8) {
            Err(ModelError::Npy {
                problem, offset, ..
            }) => (problem, offset),
            other => panic!("expected a refusal, got {other:?}"),
        }
    }

    #[test]
    fn one_and_two_sizes_are_read() {
        let array = parse("table", file("|i1", "2, 3", b"abcdef").leak(), I8).expect("two sizes");
        assert_eq!(
            (array.shape, array.bytes),
            (vec![2, 3], b"abcdef".as_slice())
        );
        let array = parse("scale", file("<f4", "1,", b"abcd").leak(), F32).expect("one size");
        assert_eq!((array.shape, array.bytes), (vec![1], b"abcd".as_slice()));
    }

    #[test]
    fn each_kind_of_damage_is_named() {
        assert_eq!(
            problem(b"\x93NUMPY\x02\x00".to_vec()),
            ("unknown magic or version", 0)
        );
        assert_eq!(
            problem(file("|i1", "1,", b"a")[..9].to_vec()),
            ("cut short", 8)
        );
        assert_eq!(
            problem(file("|i1", "1,", b"a")[..40].to_vec()),
            ("header longer than the file", 10)
        );
        assert_eq!(
            problem(file("<f4", "1,", b"abcd")),
            ("other element type", 10)
        );
        assert_eq!(
            problem(file("|i1", "2, 3", b"abcde")).0,
            "elements do not fill the shape exactly"
        );
        assert_eq!(
            problem(file("|i1", "9999999999999, 9999999999999", b"a")).0,
            "elements do not fill the shape exactly"
        );
        assert_eq!(
            problem(file("|i1", "1, 1, 1", b"a")),
            ("shape is not one or two whole numbers", 10)
        );
        assert_eq!(
            problem(file("|i1", "-1,", b"a")),
            ("shape is not one or two whole numbers", 10)
        );
    }

    #[test]
    fn no_cut_or_flipped_byte_panics_and_no_cut_passes() {
        let whole = file("|i1", "2, 3", b"abcdef");
        for end in 0..whole.len() {
            assert!(
                parse("table", whole[..end].to_vec().leak(), I8).is_err(),
                "cut at {end}"
            );
        }
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x41;
            if let Ok(array) = parse("table", flipped.leak(), I8) {
                assert_eq!(array.shape.iter().product::<usize>(), array.bytes.len());
            }
        }
    }
}
