//! What are the bytes of one row's text?
//!
//! detailed: text; speaker and source as length + 1, 0 = none; attributes; where there are
//! impacts, their number and each token with its frequency, ascending. Lengths are varints.
//! distilled: nothing without a summary, else a 1 and the summary.

use crate::error::SegmentError;
use crate::format::bytes::{Put, Take};
use crate::impacts::{
    IMPACT_FREQ_MAX, IMPACT_TOKEN_BYTES_MAX, IMPACTS_MAX, impact_freq, impact_weight,
};
use crate::limits::{ATTRIBUTES_BYTES_MAX, NAME_BYTES_MAX, TEXT_BYTES_MAX};
use crate::read::Stored;

type Result<T> = std::result::Result<T, SegmentError>;

/// All of a row that is stored but the summary.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Detailed<'a> {
    pub(crate) text: &'a str,
    pub(crate) speaker: Option<&'a str>,
    pub(crate) source: Option<&'a str>,
    pub(crate) attributes: &'a str,
    /// Ascending by token.
    pub(crate) impacts: &'a [(String, f32)],
}

impl<'a> Detailed<'a> {
    pub(crate) fn of(stored: &'a Stored) -> Self {
        Self {
            text: &stored.text,
            speaker: stored.speaker.as_deref(),
            source: stored.source.as_deref(),
            attributes: &stored.attributes,
            impacts: &stored.impacts,
        }
    }
}

/// Appends all of a row but the summary.
pub(crate) fn encode_detailed(row: &Detailed<'_>, out: &mut Vec<u8>) {
    out.put_prefixed(row.text.as_bytes());
    for name in [row.speaker, row.source] {
        match name {
            None => out.put_varint(0),
            Some(name) => {
                out.put_varint(name.len() as u64 + 1);
                out.put(name.as_bytes());
            }
        }
    }
    out.put_prefixed(row.attributes.as_bytes());
    if !row.impacts.is_empty() {
        out.put_varint(row.impacts.len() as u64);
    }
    for (token, weight) in row.impacts {
        out.put_prefixed(token.as_bytes());
        out.put_varint(u64::from(impact_freq(*weight)));
    }
}

/// Reads what [`encode_detailed`] wrote; the summary is left out.
///
/// # Errors
/// `Corrupt` where a length is beyond its limit or the bytes.
pub(crate) fn decode_detailed(mut take: Take<'_>) -> Result<Stored> {
    let stored = Stored {
        text: take.text("text", TEXT_BYTES_MAX)?.to_owned(),
        summary: None,
        speaker: take_name(&mut take, "speaker")?.map(str::to_owned),
        source: take_name(&mut take, "source")?.map(str::to_owned),
        attributes: take.text("attributes", ATTRIBUTES_BYTES_MAX)?.to_owned(),
        impacts: take_impacts(&mut take)?,
    };
    take.end()?;
    Ok(stored)
}

/// Whether [`decode_detailed`] would read the bytes, without a copy of them.
///
/// # Errors
/// As [`decode_detailed`].
pub(crate) fn check_detailed(mut take: Take<'_>) -> Result<()> {
    take.text("text", TEXT_BYTES_MAX)?;
    take_name(&mut take, "speaker")?;
    take_name(&mut take, "source")?;
    take.text("attributes", ATTRIBUTES_BYTES_MAX)?;
    take_impacts(&mut take)?;
    take.end()
}

fn take_impacts(take: &mut Take<'_>) -> Result<Vec<(String, f32)>> {
    if take.left() == 0 {
        return Ok(Vec::new());
    }
    let count = take.varint_max("number of impacts", IMPACTS_MAX as u64)?;
    let mut impacts: Vec<(String, f32)> = Vec::new();
    for _ in 0..count {
        let token = take.text("token", IMPACT_TOKEN_BYTES_MAX)?.to_owned();
        let freq = take.varint_max("impact", u64::from(IMPACT_FREQ_MAX))?;
        let freq = u32::try_from(freq).unwrap_or_default();
        let is_next = impacts.last().is_none_or(|(last, _)| *last < token);
        if freq == 0 || token.is_empty() || !is_next {
            return Err(take.corrupt("an impact of 0, without a token or out of order"));
        }
        impacts.push((token, impact_weight(freq)));
    }
    if impacts.is_empty() {
        return Err(take.corrupt("a list of no impacts"));
    }
    Ok(impacts)
}

fn take_name<'a>(take: &mut Take<'a>, what: &str) -> Result<Option<&'a str>> {
    let len = take.varint_max(what, NAME_BYTES_MAX as u64 + 1)?;
    let Some(len) = len.checked_sub(1) else {
        return Ok(None);
    };
    let bytes = take.bytes(usize::try_from(len).unwrap_or(usize::MAX))?;
    let name =
        std::str::from_utf8(bytes).map_err(|_| take.corrupt(format!("{what} is not UTF-8")))?;
    Ok(Some(name))
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
pub(crate) fn decode_distilled(take: Take<'_>) -> Result<Option<String>> {
    Ok(take_distilled(take)?.map(str::to_owned))
}

/// Whether [`decode_distilled`] would read the bytes, without a copy of them.
///
/// # Errors
/// As [`decode_distilled`].
pub(crate) fn check_distilled(take: Take<'_>) -> Result<()> {
    take_distilled(take).map(|_| ())
}

fn take_distilled(mut take: Take<'_>) -> Result<Option<&str>> {
    if take.left() == 0 {
        return Ok(None);
    }
    if take.u8()? != 1 {
        return Err(take.corrupt("not a summary"));
    }
    let bytes = take.bytes(take.left())?;
    let summary = std::str::from_utf8(bytes).map_err(|_| take.corrupt("summary is not UTF-8"))?;
    Ok(Some(summary))
}
