//! Which tags stand under which? The payload of the tag-graph side file.
//!
//! An edge is three strings of bytes, scope key, parent, child, each a u16 length and that many
//! bytes; parent and child are UTF-8. Edges ascend by (scope key, parent, child) and are
//! unique. What a scope key may be is the scope's concern; that edges form no cycle is the
//! concern of whoever inserts them and of whoever walks them. Neither is checked here.

use std::path::Path;

use chronolith_vfs::Vfs;

use super::error::SideFileError;
use super::format::At;
use super::model::{SideFile, StoreId};
use super::side_file::{
    HEADER_BYTES, SideFileKind, read_side_file, read_unreferenced, write_side_file,
};

/// Most edges of a tag graph.
pub const TAG_EDGES_MAX: usize = 1 << 20;
/// Longest scope key or tag name, bytes: the limit that a record's scope and tags have.
pub const NAME_BYTES_MAX: usize = 1024;

/// One edge of the tag graph as it is stored. Orders by (scope key, parent, child).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredEdge {
    /// Key of the scope that the edge belongs to.
    pub scope_key: Vec<u8>,
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
    edges: &[StoredEdge],
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
) -> Result<Vec<StoredEdge>, SideFileError> {
    let payload = read_side_file(vfs, store, SideFileKind::TagGraph, store_id, reference)?;
    let file = SideFileKind::TagGraph.name(reference.file_number).shown();
    decode(At { file: &file }, &payload, reference.entries)
}

/// Reads tag graph `file_number`, to which nothing refers. For `repair`.
///
/// # Errors
/// As [`read_tag_graph`].
pub fn read_unreferenced_tag_graph(
    vfs: &dyn Vfs,
    store: &Path,
    store_id: &StoreId,
    file_number: u64,
) -> Result<Vec<StoredEdge>, SideFileError> {
    let kind = SideFileKind::TagGraph;
    let (entries, payload) = read_unreferenced(vfs, store, kind, store_id, file_number)?;
    let file = kind.name(file_number).shown();
    decode(At { file: &file }, &payload, entries)
}

pub(super) fn encode(edges: &[StoredEdge]) -> Result<Vec<u8>, SideFileError> {
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
    for name in edges.iter().flat_map(parts) {
        let length = u16::try_from(name.len())
            .ok()
            .filter(|_| (1..=NAME_BYTES_MAX).contains(&name.len()));
        let length = length.ok_or_else(|| {
            refuse(format!(
                "a tag name of {} bytes, allowed 1 to {NAME_BYTES_MAX}",
                name.len()
            ))
        })?;
        payload.extend_from_slice(&length.to_le_bytes());
        payload.extend_from_slice(name);
    }
    Ok(payload)
}

fn decode(at: At<'_>, payload: &[u8], entries: u64) -> Result<Vec<StoredEdge>, SideFileError> {
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
    let mut edges: Vec<StoredEdge> = Vec::new();
    for _ in 0..entries {
        let edge_at = rest;
        let edge = take_edge(&mut rest).ok_or_else(|| damaged(edge_at, "not three valid names"))?;
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

/// The parts of an edge in the order they are written.
fn parts(edge: &StoredEdge) -> [&[u8]; 3] {
    [
        &edge.scope_key,
        edge.parent.as_bytes(),
        edge.child.as_bytes(),
    ]
}

fn take_edge(rest: &mut &[u8]) -> Option<StoredEdge> {
    let [scope_key, parent, child] = [take_name(rest)?, take_name(rest)?, take_name(rest)?];
    let text = |name: &[u8]| std::str::from_utf8(name).ok().map(str::to_owned);
    Some(StoredEdge {
        scope_key: scope_key.to_vec(),
        parent: text(parent)?,
        child: text(child)?,
    })
}

/// Takes one name off `rest`; `None` where it is cut, empty or too long.
fn take_name<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, tail) = rest.split_first_chunk::<2>()?;
    let length = usize::from(u16::from_le_bytes(*length));
    let (name, tail) = tail.split_at_checked(length)?;
    *rest = tail;
    (1..=NAME_BYTES_MAX).contains(&length).then_some(name)
}
