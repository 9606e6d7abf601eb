//! What are the bytes of one row's text?
//!
//! detailed: text; speaker and source as length + 1, 0 = none; attributes. Lengths are
//! varints. distilled: nothing without a summary, else a 1 and the summary.

use crate::error::SegmentError;
use crate::format::bytes::{Put, Take};
use crate::limits::{ATTRIBUTES_BYTES_MAX, NAME_BYTES_MAX, TEXT_BYTES_MAX};
use crate::read::Stored;

type Result<T> = std::result::Result<T, SegmentError>;

/// Appends all of `stored` but the summary.
pub(crate) fn encode_detailed(stored: &Stored, out: &mut Vec<u8>) {
    out.put_prefixed(stored.text.as_bytes());
    for name in [&stored.speaker, &stored.source] {
        match name {
            None => out.put_varint(0),
            Some(name) => {
                out.put_varint(name.len() as u64 + 1);
                out.put(name.as_bytes());
            }
        }
    }
    out.put_prefixed(stored.attributes.as_bytes());
}

/// Reads what [`encode_detailed`] wrote; the summary is left out.
///
/// # Errors
/// `Corrupt` where a length is beyond its limit or the bytes.
pub(crate) fn decode_detailed(mut take: Take<'_>) -> Result<Stored> {
    let stored = Stored {
        text: take.text("text", TEXT_BYTES_MAX)?.to_owned(),
        summary: None,
        speaker: take_name(&mut take, "speaker")?,
        source: take_name(&mut take, "source")?,
        attributes: take.text("attributes", ATTRIBUTES_BYTES_MAX)?.to_owned(),
    };
    take.end()?;
    Ok(stored)
}

fn take_name(take: &mut Take<'_>, what: &str) -> Result<Option<String>> {
    let len = take.varint_max(what, NAME_BYTES_MAX as u64 + 1)?;
    let Some(len) = len.checked_sub(1) else {
        return Ok(None);
    };
    let bytes = take.bytes(usize::try_from(len).unwrap_or(usize::MAX))?;
    let name =
        std::str::from_utf8(bytes).map_err(|_| take.corrupt(format!("{what} is not UTF-8")))?;
    Ok(Some(name.to_owned()))
}

/// Appends the summary.
pub(crate) fn encode_distilled(summary: Option<&str>, out: &mut Vec<u8>) {
    if let Some(summary) = summary {
        out.put_u8(1);
        out.put(summary.as_bytes());
    }
}

/// Reads what [`encode_distilled`] wrote.
///
/// # Errors
/// `Corrupt` where the bytes are no summary.
pub(crate) fn decode_distilled(mut take: Take<'_>) -> Result<Option<String>> {
    if take.left() == 0 {
        return Ok(None);
    }
    if take.u8()? != 1 {
        return Err(take.corrupt("not a summary"));
    }
    let bytes = take.bytes(take.left())?;
    let summary = std::str::from_utf8(bytes).map_err(|_| take.corrupt("summary is not UTF-8"))?;
    Ok(Some(summary.to_owned()))
}
