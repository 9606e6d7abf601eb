//! Reads and repairs a segment file from its documented layout, without the reader's code.

use chronolith_segments::format::SectionKind;

pub const BLOCK: usize = 16 << 10;
const TRAILER: usize = 48;

#[derive(Debug, Clone)]
pub struct Part {
    pub kind: u16,
    pub name: &'static str,
    pub start: usize,
    pub end: usize,
}

#[derive(Debug, Clone)]
pub struct Layout {
    pub sections: Vec<Part>,
    pub table: usize,
    pub footer: usize,
    pub trailer: usize,
}

fn number(bytes: &[u8], at: usize, width: usize) -> usize {
    let mut word = [0; 8];
    word[..width].copy_from_slice(&bytes[at..at + width]);
    usize::try_from(u64::from_le_bytes(word)).expect("a small file")
}

impl Layout {
    /// True for the zeros between sections.
    pub fn is_padding(&self, at: usize) -> bool {
        (64..self.table).contains(&at)
            && !self
                .sections
                .iter()
                .any(|part| (part.start..part.end).contains(&at))
    }
}

/// The layout of an intact file.
pub fn layout(bytes: &[u8]) -> Layout {
    let trailer = bytes.len() - TRAILER;
    let table = number(bytes, trailer, 8);
    let footer = table + number(bytes, trailer + 8, 4);
    let sections = (0..number(bytes, footer, 4))
        .map(|section| {
            let at = footer + 4 + section * 24;
            let kind = u16::try_from(number(bytes, at, 2)).expect("two bytes");
            let start = number(bytes, at + 8, 8);
            let name = SectionKind::from_number(kind).expect("known").name();
            Part {
                kind,
                name,
                start,
                end: start + number(bytes, at + 16, 8),
            }
        })
        .collect();
    Layout {
        sections,
        table,
        footer,
        trailer,
    }
}

/// Makes every checksum match the bytes again, as if they had been written so.
pub fn repair(bytes: &mut [u8], layout: &Layout) {
    let mut crcs = Vec::new();
    for part in &layout.sections {
        for (block, content) in bytes[part.start..part.end].chunks(BLOCK).enumerate() {
            let mut hasher = crc32fast::Hasher::new();
            hasher.update(&bytes[12..28]);
            hasher.update(&bytes[28..36]);
            hasher.update(&part.kind.to_le_bytes());
            hasher.update(&(block as u64).to_le_bytes());
            hasher.update(content);
            crcs.extend_from_slice(&hasher.finalize().to_le_bytes());
        }
    }
    bytes[layout.table..layout.footer].copy_from_slice(&crcs);
    let crc = crc32fast::hash(&bytes[..60]);
    bytes[60..64].copy_from_slice(&crc.to_le_bytes());
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    hasher.update(&bytes[..64]);
    hasher.update(&bytes[layout.table..layout.trailer]);
    let trailer = layout.trailer;
    bytes[trailer + 16..trailer + 32].copy_from_slice(&hasher.digest128().to_le_bytes());
    let crc = crc32fast::hash(&bytes[trailer..trailer + 36]);
    bytes[trailer + 36..trailer + 40].copy_from_slice(&crc.to_le_bytes());
}
