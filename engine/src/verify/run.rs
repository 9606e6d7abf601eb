//! The state of one scrub: its report, and how far it has come.

use chronolith_segments::Scrub;

use super::report::{FindingKind, VerifiedFile, VerifyFinding, VerifyProgress, VerifyReport};
use crate::manifest::names::SEGMENTS_DIR;

/// Collects files and findings and calls the progress.
pub(super) struct Run<'a> {
    report: VerifyReport,
    done: VerifyProgress,
    /// Bytes of the file at hand that are done.
    within_bytes: u64,
    progress: &'a mut dyn FnMut(VerifyProgress),
}

impl<'a> Run<'a> {
    pub(super) fn new(progress: &'a mut dyn FnMut(VerifyProgress)) -> Self {
        Self {
            report: VerifyReport::default(),
            done: VerifyProgress::default(),
            within_bytes: 0,
            progress,
        }
    }

    /// Says how much there is to do.
    pub(super) fn expect(&mut self, generation: u64, files: u64, bytes: u64) {
        self.report.generation = generation;
        self.done.files_total = files;
        self.done.bytes_total = bytes;
        self.tell();
    }

    /// `bytes` of the file at hand are done.
    pub(super) fn within_file(&mut self, bytes: u64) {
        self.within_bytes = self.within_bytes.max(bytes);
        self.tell();
    }

    /// A file is done.
    pub(super) fn file(&mut self, file: String, holds: &'static str, bytes: u64, blocks: u64) {
        self.done.files_done += 1;
        self.done.bytes_done += bytes.max(self.within_bytes);
        self.within_bytes = 0;
        self.report.blocks += blocks;
        self.report.files.push(VerifiedFile {
            file,
            holds,
            bytes,
            blocks,
            findings: 0,
        });
        self.tell();
    }

    fn tell(&mut self) {
        let mut now = self.done;
        now.bytes_done += self.within_bytes;
        // A file that was not expected, of the catalog for instance, raises the totals.
        now.files_total = now.files_total.max(now.files_done);
        now.bytes_total = now.bytes_total.max(now.bytes_done);
        (self.progress)(now);
    }

    pub(super) fn find(&mut self, finding: VerifyFinding) {
        // A file that does not open is looked at twice: what both looks say is said once.
        if !self.report.findings.contains(&finding) {
            self.report.findings.push(finding);
        }
    }

    /// Takes in what a scrub of segment `file` found.
    pub(super) fn scrubbed(&mut self, file: &str, scrub: Scrub) {
        for finding in scrub.findings {
            let named = format!("{SEGMENTS_DIR}/{}", finding.file);
            debug_assert_eq!(named, file, "a scrub speaks of its own file");
            let offset = Some(finding.offset);
            self.find(VerifyFinding::new(
                FindingKind::Damage,
                named,
                finding.section,
                offset,
                finding.message,
            ));
        }
    }

    pub(super) fn rows(&mut self, rows: u64) {
        self.report.rows += rows;
    }

    pub(super) fn log_frames(&mut self, frames: u64) {
        self.report.log_frames += frames;
    }

    pub(super) fn replayed(&mut self) {
        self.report.replayed += 1;
    }

    pub(super) fn leftover(&mut self, name: String) {
        self.report.leftovers.push(name);
    }

    /// The report, its files with the counts of their findings.
    pub(super) fn finish(mut self) -> VerifyReport {
        for file in &mut self.report.files {
            let own = self.report.findings.iter().filter(|f| f.file == file.file);
            file.findings = own.count() as u64;
        }
        self.tell();
        self.report
    }
}
