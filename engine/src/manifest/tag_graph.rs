//! Which tags stand under which? The payload of the tag-graph side file.
//!
//! An edge is two names, parent then child, each a u16 length and that many bytes of UTF-8.
//! Edges ascend by (parent, child) and are unique. That they form no cycle is the concern of
//! whoever inserts them and of whoever walks them, not of these bytes.

use std::path::Path;

use chronolith_vfs::Vfs;

use super::error::SideFileError;
use super::format::At;
use super::model::{SideFile, StoreId};
use super::side_file::{HEADER_BYTES, SideFileKind, read_side_file, write_side_file};

/// Most edges of a tag graph.
pub const TAG_EDGES_MAX: usize = 1 << 20;
/// Longest tag name, bytes: the limit that a record's tag has.
pub const TAG_BYTES_MAX: usize = 1024;

/// One edge of the tag graph. Orders by (parent, child).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TagEdge {
    /// The wider tag.
    pub parent: String,
    /// The tag under it.
    pub child: String,
}

/// Writes the tag graph. See [`write_side_file`].
///
/// # Errors
/// `Refused` where edges do not ascend, a name is empty or too long, or there are too many;
/// else as [`write_side_file`].
pub fn write_tag_graph(
    vfs: &dyn Vfs,
    store: &Path,
    file_number: u64,
    store_id: &StoreId,
    edges: &[TagEdge],
) -> Result<SideFile, SideFileError> {
    let payload = encode(edges)?;
    write_side_file(
        vfs,
        store,
        file_number,
        SideFileKind::TagGraph,
        store_id,
        edges.len() as u64,
        &payload,
    )
}

/// Reads the tag graph.
///
/// # Errors
/// As [`read_side_file`]; `Damaged` also for an edge that breaks a rule.
pub fn read_tag_graph(
    vfs: &dyn Vfs,
    store: &Path,
    store_id: &StoreId,
    reference: &SideFile,
) -> Result<Vec<TagEdge>, SideFileError> {
    let payload = read_side_file(vfs, store, SideFileKind::TagGraph, store_id, reference)?;
    let file = SideFileKind::TagGraph.name(reference.file_number).shown();
    decode(At { file: &file }, &payload, reference.entries)
}

pub(super) fn encode(edges: &[TagEdge]) -> Result<Vec<u8>, SideFileError> {
    let refuse = |message: String| SideFileError::Refused { message };
    if edges.len() > TAG_EDGES_MAX {
        return Err(refuse(format!(
            "{} tag edges, at most {TAG_EDGES_MAX}",
            edges.len()
        )));
    }
    if !edges.is_sorted_by(|a, b| a < b) {
        return Err(refuse("tag edges must ascend and be unique".to_owned()));
    }
    let mut payload = Vec::new();
    for name in edges.iter().flat_map(|edge| [&edge.parent, &edge.child]) {
        let length = u16::try_from(name.len())
            .ok()
            .filter(|_| (1..=TAG_BYTES_MAX).contains(&name.len()));
        let length = length.ok_or_else(|| {
            refuse(format!(
                "a tag name of {} bytes, allowed 1 to {TAG_BYTES_MAX}",
                name.len()
            ))
        })?;
        payload.extend_from_slice(&length.to_le_bytes());
        payload.extend_from_slice(name.as_bytes());
    }
    Ok(payload)
}

fn decode(at: At<'_>, payload: &[u8], entries: u64) -> Result<Vec<TagEdge>, SideFileError> {
    let mut rest = payload;
    let damaged = |rest: &[u8], message: &str| {
        let offset = (HEADER_BYTES + payload.len() - rest.len()) as u64;
        SideFileError::Damaged(at.finding("tag graph", offset, message))
    };
    if entries > TAG_EDGES_MAX as u64 {
        return Err(damaged(
            rest,
            &format!("{entries} edges, at most {TAG_EDGES_MAX}"),
        ));
    }
    let mut edges: Vec<TagEdge> = Vec::new();
    for _ in 0..entries {
        let edge_at = rest;
        let parent =
            take_name(&mut rest).ok_or_else(|| damaged(edge_at, "no valid parent name"))?;
        let child = take_name(&mut rest).ok_or_else(|| damaged(edge_at, "no valid child name"))?;
        let edge = TagEdge { parent, child };
        if edges.last().is_some_and(|last| *last >= edge) {
            return Err(damaged(edge_at, "edges do not ascend"));
        }
        edges.push(edge);
    }
    if !rest.is_empty() {
        return Err(damaged(
            rest,
            &format!("{} bytes after the last edge", rest.len()),
        ));
    }
    Ok(edges)
}

/// Takes one name off `rest`; `None` where it is cut, empty, too long or not UTF-8.
fn take_name(rest: &mut &[u8]) -> Option<String> {
    let (length, tail) = rest.split_first_chunk::<2>()?;
    let length = usize::from(u16::from_le_bytes(*length));
    let (name, tail) = tail.split_at_checked(length)?;
    let name = std::str::from_utf8(name).ok()?;
    if name.is_empty() || length > TAG_BYTES_MAX {
        return None;
    }
    *rest = tail;
    Some(name.to_owned())
}
