//! What may be typed? The commands, their flags, and a help that teaches.

mod choices;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::times;
pub(crate) use choices::*;

/// Memory for AI agents, in a directory: write it, ask it, see why it answered.
#[derive(Debug, Parser)]
#[command(
    name = "chronolith",
    version,
    max_term_width = 100,
    after_help = "\
First steps:
  chronolith quickstart                    a bundled log: written, reopened, asked
  chronolith init memory                   a store of your own, embedder included
  chronolith ingest memory records.jsonl   one JSON object a line
  chronolith query memory \"staging port\" --scope user/ana

Every reading command takes --json.
Exit codes: 0 ok, 1 error, 2 usage, 3 damage found."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// One verb.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Quickstart(Quickstart),
    Init(Init),
    Ingest(Ingest),
    Query(Box<Query>),
    Eval(Eval),
    Get(Get),
    Forget(Forget),
    Stats(Stats),
    Spaces(Spaces),
    Inspect(Inspect),
    Verify(Verify),
    Repair(Repair),
    Compact(Compact),
    Export(Export),
    Backup(Backup),
    Restore(Restore),
}

/// Write, reopen and ask a small bundled agent log
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chronolith quickstart
  chronolith quickstart /tmp/demo
  chronolith query /tmp/demo \"who is on call\" --scope user/ana")]
pub(crate) struct Quickstart {
    /// Where the store is made; must be new, empty, or an earlier quickstart's
    #[arg(default_value = "chronolith-quickstart")]
    pub(crate) dir: PathBuf,
    /// Print the answers as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Create a store; what is chosen here holds for its life
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chronolith init memory                                   built-in embedder, hybrid search
  chronolith init memory --embedder none                   words only
  chronolith init memory --dim 384 --model MiniLM          vectors come from you
  chronolith init memory --bucket 1w --language german --index-date")]
pub(crate) struct Init {
    /// A new or empty directory; its parent must exist
    pub(crate) store: PathBuf,
    /// Who makes the vectors [default: builtin]
    #[arg(long, value_enum, conflicts_with = "dim")]
    pub(crate) embedder: Option<EmbedderChoice>,
    /// Vectors come from the caller and have N components
    #[arg(long, value_name = "N")]
    pub(crate) dim: Option<u32>,
    /// Name of the caller's embedder, kept in the store
    #[arg(long, value_name = "NAME", requires = "dim")]
    pub(crate) model: Option<String>,
    /// Precision of stored vectors
    #[arg(long, value_enum, default_value = "f16")]
    pub(crate) vector_format: VectorFormatChoice,
    /// Width of the smallest time bucket: 1m to 366d
    #[arg(long, default_value = "1d", value_parser = times::parse_duration, value_name = "SPAN")]
    pub(crate) bucket: i64,
    /// How text becomes words; plain-en is for comparison with published figures
    #[arg(long, value_enum, default_value = "default")]
    pub(crate) analyzer: AnalyzerChoice,
    /// Whose word stems: a Snowball name or code, such as english, german, fr
    #[arg(long, default_value = "english")]
    pub(crate) language: String,
    /// Make the words of the event date searchable (7 May 2023)
    #[arg(long)]
    pub(crate) index_date: bool,
    /// Make the speaker's name searchable
    #[arg(long)]
    pub(crate) index_speaker: bool,
    /// Make the words of the summary searchable
    #[arg(long)]
    pub(crate) index_summary: bool,
    /// Share of meaning against words in hybrid search, 0 to 1
    #[arg(long, value_name = "W", default_value_t = chronolith::DENSE_WEIGHT_DEFAULT)]
    pub(crate) dense_weight: f64,
}

/// Store records from a file of JSON lines
#[derive(Debug, Args)]
#[command(after_help = "\
Each line is one object. Required: id (string), ts (µs since the epoch, or
RFC 3339), scope, text. Optional: summary, tags, speaker, source, source_class
(user_confirmed, tool_output, project_file, web, model_summary), importance
(0 to 1), source_id, vector, vectors (an object of vector spaces and lists),
impacts (an object of tokens and weights), attributes (an object). Other keys are kept in attributes. Blank lines are skipped.

Bad lines are reported with number, field and reason; good ones are stored all
the same, and stay. A record whose (scope, id) is taken takes the old one's place.

Examples:
  chronolith ingest memory records.jsonl
  chronolith ingest memory records.jsonl --vectors records.f16.npy
  zcat log.jsonl.gz | chronolith ingest memory - --default-scope user/ana")]
pub(crate) struct Ingest {
    /// The store
    pub(crate) store: PathBuf,
    /// The records, or - for stdin
    pub(crate) records: PathBuf,
    /// NumPy matrix (<f2 or <f4); row i belongs to line i
    #[arg(long, value_name = "V.npy")]
    pub(crate) vectors: Option<PathBuf>,
    /// Embedder that made the vectors; must be the store's
    #[arg(long, value_name = "NAME")]
    pub(crate) vector_model: Option<String>,
    /// What a batch waits for: the disk, or the operating system only
    #[arg(long, value_enum, default_value = "sync")]
    pub(crate) durability: DurabilityChoice,
    /// Records a commit
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub(crate) batch: u32,
    /// Scope of lines that name none
    #[arg(long, value_name = "S")]
    pub(crate) default_scope: Option<String>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Ask a store; without TEXT and vector: the latest records
#[derive(Debug, Args)]
#[command(after_help = "\
A scope must be named: S is the scope and all below it, =S the scope alone, S+up
also its ancestors, / every scope of the store. Repeat --scope for a union.

With --syntax signs in the question mean something:
  +word must be there, -word must not, \"two words\" stand side by side, pre* begins
  so, fuzz~ or fuzz~2 is one or two letters away, word^2.5 counts more, and \\x is
  the sign x itself. A question that begins with - goes last, behind --.

Examples:
  chronolith query memory \"staging proxy port\" --scope user/ana
  chronolith query memory \"incident cause\" --scope user/ana --since 2025-04-01
  chronolith query memory \"deploy day\" --scope user/ana/work+up --tag ops --explain
  chronolith query memory --scope user/ana -k 5 --json
  chronolith query memory \"retention\" --scope / --min-source user_confirmed
  chronolith query memory \"what broke\" --scope user/ana --budget-tokens 500
  chronolith query memory '+proxy -old \"port 8443\" stag*' --scope user/ana --syntax
  chronolith query memory \"staging proxy\" --scope user/ana --snippets=120")]
pub(crate) struct Query {
    /// The store
    pub(crate) store: PathBuf,
    /// The question, in words
    pub(crate) text: Option<String>,
    /// Read +must -not "a phrase" pre* fuzz~ word^2 in the question
    #[arg(long)]
    pub(crate) syntax: bool,
    /// Scope to search (repeat for a union); / is every scope
    #[arg(long, value_name = "S")]
    pub(crate) scope: Vec<String>,
    /// Only records at or after this time: RFC 3339, a date, or µs
    #[arg(long, value_name = "T", value_parser = times::parse, allow_hyphen_values = true)]
    pub(crate) since: Option<i64>,
    /// Only records before this time
    #[arg(long, value_name = "T", value_parser = times::parse, allow_hyphen_values = true)]
    pub(crate) until: Option<i64>,
    #[arg(long, hide = true, allow_hyphen_values = true)]
    pub(crate) as_of: Option<String>,
    #[arg(long, hide = true, allow_hyphen_values = true)]
    pub(crate) valid_at: Option<String>,
    #[arg(long, hide = true, allow_hyphen_values = true)]
    pub(crate) known_at: Option<String>,
    /// Only records with this tag or one below it; all of several, a|b is any of them
    #[arg(long, value_name = "T")]
    pub(crate) tag: Vec<String>,
    /// Only records of this source class or a stronger one
    #[arg(long, value_name = "C")]
    pub(crate) min_source: Option<String>,
    /// NumPy file with the query's vector
    #[arg(long, value_name = "V.npy", requires = "row")]
    pub(crate) vector: Option<PathBuf>,
    /// Its row, from 0
    #[arg(long, value_name = "I", requires = "vector")]
    pub(crate) row: Option<u64>,
    /// Compare vectors of this space instead of the default one
    #[arg(long, value_name = "NAME")]
    pub(crate) space: Option<String>,
    /// How many hits
    #[arg(short, long, value_name = "N", default_value_t = 10)]
    pub(crate) k: usize,
    #[command(flatten)]
    pub(crate) ranking: Ranking,
    /// How age counts: off, decay:30d, boost:0.2 or boost:0.2:30d
    #[arg(long, value_name = "HOW", default_value = "off", value_parser = parse_recency)]
    pub(crate) recency: chronolith::Recency,
    /// Also show B records before and A after each hit
    #[arg(long, value_name = "B,A", value_parser = parse_context)]
    pub(crate) context: Option<(usize, usize)>,
    /// The instant ages are counted from [default: the clock]
    #[arg(long, value_name = "T", value_parser = times::parse, allow_hyphen_values = true)]
    pub(crate) now: Option<i64>,
    /// Carry at most N tokens of text
    #[arg(long, value_name = "N")]
    pub(crate) budget_tokens: Option<u64>,
    /// Tokens of the budget that you spend yourself
    #[arg(
        long,
        value_name = "N",
        default_value_t = 0,
        requires = "budget_tokens"
    )]
    pub(crate) overhead: u64,
    /// Which hits get the tokens
    #[arg(
        long,
        value_enum,
        default_value = "rank-prefix",
        requires = "budget_tokens"
    )]
    pub(crate) pack: PackChoice,
    /// Search by words for at most N milliseconds, and say what may have been missed
    #[arg(long, value_name = "N")]
    pub(crate) budget_ms: Option<u64>,
    /// Threads that search by words; the answer is the same with any number
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) threads: usize,
    /// Score everything instead of what can matter: by words the answer is the same, by vector it
    /// is exact
    #[arg(long)]
    pub(crate) exhaustive: bool,
    /// Rows whose vectors are compared after the codes of all that pass the filters; more find
    /// more of the best ones (default: as many as find 99.5 %)
    #[arg(long, value_name = "N", conflicts_with = "exhaustive")]
    pub(crate) candidates: Option<usize>,
    /// At most one hit a source_id
    #[arg(long)]
    pub(crate) distinct: bool,
    /// Show the best stretch of each text, of about 200 characters or as many as given
    #[arg(
        long,
        value_name = "CHARS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "200"
    )]
    pub(crate) snippets: Option<usize>,
    /// Leave the texts out
    #[arg(long)]
    pub(crate) ids_only: bool,
    /// Answer from what is whole where a segment is damaged, and say what was left out
    #[arg(long)]
    pub(crate) partial: bool,
    /// Show each score term by term, and the plan
    #[arg(long)]
    pub(crate) explain: bool,
    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How an answer is ranked.
#[derive(Debug, Args)]
pub(crate) struct Ranking {
    /// What answers: words, meaning, or both; auto takes both where there is a vector
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) mode: ModeChoice,
    /// Share of meaning in hybrid mode, 0 to 1 [default: the store's]
    #[arg(long, value_name = "W")]
    pub(crate) dense_weight: Option<f64>,
    /// How the two rankings of hybrid mode become one
    #[arg(long, value_enum, default_value = "convex")]
    pub(crate) fusion: FusionChoice,
}

/// Measure a store against judged queries
#[derive(Debug, Args)]
#[command(after_help = "\
queries.jsonl: id, text, scope, category; optional time_from, time_to (µs).
qrels.tsv: query id, TAB, record id, TAB, grade. Each query searches its own
scope; means are over the queries with judgements.

Examples:
  chronolith eval store --queries q.jsonl --qrels r.tsv --mode sparse
  chronolith eval store --queries q.jsonl --qrels r.tsv --vectors q.npy
  chronolith eval store --queries q.jsonl --qrels r.tsv --time filter")]
pub(crate) struct Eval {
    /// The store
    pub(crate) store: PathBuf,
    /// The queries
    #[arg(long, value_name = "Q.jsonl")]
    pub(crate) queries: PathBuf,
    /// The judgements
    #[arg(long, value_name = "R.tsv")]
    pub(crate) qrels: PathBuf,
    /// NumPy matrix of the queries' vectors; row i belongs to line i
    #[arg(long, value_name = "QV.npy")]
    pub(crate) vectors: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) ranking: Ranking,
    /// What a query's time range does
    #[arg(long, value_enum, default_value = "ignore")]
    pub(crate) time: TimeChoice,
    /// Leave a category out (repeat for more)
    #[arg(long, value_name = "C")]
    pub(crate) skip_category: Vec<String>,
    /// How many hits a query asks for, at least 10
    #[arg(short, long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(10..=10_000))]
    pub(crate) k: u32,
    /// Print the figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show one record
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chronolith get memory fact:who --scope user/ana")]
pub(crate) struct Get {
    /// The store
    pub(crate) store: PathBuf,
    /// The record's id
    pub(crate) id: String,
    /// Its scope, exactly
    #[arg(long, value_name = "S")]
    pub(crate) scope: String,
    /// Print the record as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove one record from every answer
#[derive(Debug, Args)]
#[command(after_help = "\
The record is gone from answers at once, and from disk with the next compaction
of its bucket.

Example:
  chronolith forget memory fact:who --scope user/ana")]
pub(crate) struct Forget {
    /// The store
    pub(crate) store: PathBuf,
    /// The record's id
    pub(crate) id: String,
    /// Its scope, exactly
    #[arg(long, value_name = "S")]
    pub(crate) scope: String,
}

/// Count what is in a store
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  chronolith stats memory --json")]
pub(crate) struct Stats {
    /// The store
    pub(crate) store: PathBuf,
    /// Print the counts as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List, add, fill and drop vector spaces
#[derive(Debug, Args)]
#[command(after_help = "\
A store keeps the vectors of several embedders apart, each in a space of its own.
A record may have a vector in any of them; where none is named the default is
meant (*). To move to another embedder: add a space, fill it, make it the default
once it is full, and drop the old one. The old one serves meanwhile. Filling takes
records that lack a vector alone, so it goes on where it was interrupted.

Several flags are done in this order: add, fill, default, drop.

Examples:
  chronolith spaces memory
  chronolith spaces memory --add next --fill next
  chronolith spaces memory --default next --drop main
  chronolith spaces memory --add minilm --dim 384 --model MiniLM")]
pub(crate) struct Spaces {
    /// The store
    pub(crate) store: PathBuf,
    /// Add a space of the built-in embedder, or of your own with --dim and --model
    #[arg(long, value_name = "NAME")]
    pub(crate) add: Option<String>,
    /// Vectors of the new space come from the caller and have N components
    #[arg(long, value_name = "N", requires = "add", requires = "model")]
    pub(crate) dim: Option<u32>,
    /// Name of the new space's embedder
    #[arg(long, value_name = "MODEL", requires = "dim")]
    pub(crate) model: Option<String>,
    /// Precision of vectors of the new space
    #[arg(long, value_enum, default_value = "f16")]
    pub(crate) vector_format: VectorFormatChoice,
    /// Give records that lack a vector in a space of the built-in embedder one
    #[arg(long, value_name = "NAME")]
    pub(crate) fill: Option<String>,
    /// Make this space the default
    #[arg(long, value_name = "NAME")]
    pub(crate) default: Option<String>,
    /// Drop this space with its vectors
    #[arg(long, value_name = "NAME")]
    pub(crate) drop: Option<String>,
    /// Print the spaces as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Look inside a store or one of its files
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chronolith inspect memory                                 manifest, segments, log
  chronolith inspect memory/segments/0000000000000003.seg   one segment by sections
  chronolith inspect memory/wal/0000000000000002.log        the log, batch by batch
  chronolith inspect memory/manifest/MANIFEST-0000000000000004.a")]
pub(crate) struct Inspect {
    /// A store, or a file of one
    pub(crate) path: PathBuf,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Check every byte of a store that an answer may rely on; changes nothing
#[derive(Debug, Args)]
#[command(after_help = "\
It may be open for writing meanwhile. Parts are compared with each other, too.
Each finding has a kind: damage (an answer may need these bytes), degraded (a
spare copy, the catalog or the log's status), tail (the end that a crash leaves),
extra (a name the engine does not make).

Exit code 3 for damage and degraded. For damage: restore a backup, or repair.

Example:
  chronolith verify memory --json")]
pub(crate) struct Verify {
    /// The store
    pub(crate) store: PathBuf,
    /// Print the findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write a new store from what can be proved of a damaged one; changes nothing in the old
#[derive(Debug, Args)]
#[command(after_help = "\
The old store is only read, and must not be open for writing. A lost manifest is
rebuilt from segment footers and the log. Of each record the newest version
counts; where that one is damaged, no older one takes its place.

Exit code 3 where something is missing: the new store is written all the same,
and the report says what (files, ranges of commit seqs, ids). Then a restored
backup may hold more: keep the old store until you have compared.

Examples:
  chronolith repair memory memory-repaired
  chronolith repair memory memory-repaired --json --ids > report.json")]
pub(crate) struct Repair {
    /// The damaged store
    pub(crate) store: PathBuf,
    /// Where the new store is made; must be new or empty
    pub(crate) new_store: PathBuf,
    /// A store that was made with the same choices, where no file says what they were
    #[arg(long, value_name = "STORE")]
    pub(crate) like: Option<PathBuf>,
    /// Name the records that are known to be lost
    #[arg(long)]
    pub(crate) ids: bool,
    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Merge segments and drop what is forgotten or replaced
#[derive(Debug, Args)]
#[command(after_help = "\
An open store does this by itself in the background; --all goes on until every
bucket is one segment without dead rows.

Example:
  chronolith compact memory --all")]
pub(crate) struct Compact {
    /// The store
    pub(crate) store: PathBuf,
    /// Merge all that can be merged, not only what pays
    #[arg(long)]
    pub(crate) all: bool,
    /// Print what was done as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write records as JSON lines that `ingest` takes back
#[derive(Debug, Args)]
#[command(after_help = "\
Vectors of your own embedder stand in the lines, or with --vectors in a NumPy
file (float32, row i belongs to line i). Those of the built-in embedder are left
out: `ingest` makes the same ones again.

Examples:
  chronolith export memory -o all.jsonl
  chronolith export memory --scope user/ana --vectors ana.npy -o ana.jsonl")]
pub(crate) struct Export {
    /// The store
    pub(crate) store: PathBuf,
    /// Scope to export (repeat for a union) [default: /]
    #[arg(long, value_name = "S")]
    pub(crate) scope: Vec<String>,
    /// Write the vectors into a NumPy file
    #[arg(long, value_name = "V.npy")]
    pub(crate) vectors: Option<PathBuf>,
    /// Write here instead of to stdout
    #[arg(short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// Copy a store elsewhere while it is used; later runs bring only what is new
#[derive(Debug, Args)]
#[command(after_help = "\
DEST is made, or renewed where it holds an earlier backup of the same store. All
that was acknowledged before the call is in it; the earlier backup counts until
the new one was read back and verified. Sealed files are hard-linked where the
file system can: no bytes twice, but a flipped bit is in both. --copy makes
copies; so does a DEST on another disk.

Examples:
  chronolith backup memory /mnt/other/memory-backup
  chronolith backup memory memory-backup --copy --json")]
pub(crate) struct Backup {
    /// The store; it may be open for writing
    pub(crate) store: PathBuf,
    /// The backup's directory: new, empty, or an earlier backup of this store
    pub(crate) dest: PathBuf,
    /// Copy every file, never link
    #[arg(long)]
    pub(crate) copy: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Make a store from a backup
#[derive(Debug, Args)]
#[command(after_help = "\
Every file is compared with the backup's index while it is copied, and the copy
is verified as a store before it gets its name: STORE is whole or not there.

The store keeps its identity. Go on with it or with the one it was taken from,
never with both.

Exit code 3 where the backup is damaged: the message names the file.

Example:
  chronolith restore /mnt/other/memory-backup memory")]
pub(crate) struct Restore {
    /// A directory that `backup` made
    pub(crate) backup: PathBuf,
    /// A new or empty directory; its parent must exist
    pub(crate) store: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl Ranking {
    /// The engine's mode.
    pub(crate) fn mode(&self) -> chronolith::Mode {
        match self.mode {
            ModeChoice::Auto => chronolith::Mode::Auto,
            ModeChoice::Sparse => chronolith::Mode::Sparse,
            ModeChoice::Dense => chronolith::Mode::Dense,
            ModeChoice::Hybrid => chronolith::Mode::Hybrid,
        }
    }

    /// The engine's fusion; `None` leaves it to the store.
    pub(crate) fn fusion(&self) -> Option<chronolith::Fusion> {
        match (self.fusion, self.dense_weight) {
            (FusionChoice::Convex, weight) => {
                weight.map(|dense_weight| chronolith::Fusion::Convex { dense_weight })
            }
            (FusionChoice::Rrf, None) => Some(chronolith::Fusion::Rrf {
                sparse_weight: 1.0,
                dense_weight: 1.0,
            }),
            (FusionChoice::Rrf, Some(weight)) => Some(chronolith::Fusion::Rrf {
                sparse_weight: 1.0 - weight,
                dense_weight: weight,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn recency_reads_its_three_shapes() {
        assert_eq!(parse_recency("off"), Ok(chronolith::Recency::Off));
        let day_us = 86_400_000_000;
        assert_eq!(
            parse_recency("decay:1d"),
            Ok(chronolith::Recency::Decay { tau_us: day_us })
        );
        let boost = chronolith::Recency::Boost {
            beta: 0.2,
            tau_us: day_us,
        };
        assert_eq!(parse_recency("boost:0.2:1d"), Ok(boost));
        for wrong in ["", "decay", "boost:x", "decay:3"] {
            assert!(parse_recency(wrong).is_err(), "{wrong}");
        }
    }
}
