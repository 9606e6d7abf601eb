//! Which values may a flag take, and how is one read?

use clap::ValueEnum;

use crate::times;

/// Who makes the vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EmbedderChoice {
    /// The small static model in this binary
    Builtin,
    /// Nobody: words only
    None,
}

/// Precision of stored vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VectorFormatChoice {
    F16,
    F32,
}

/// How text becomes words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnalyzerChoice {
    Default,
    PlainEn,
}

/// What a batch waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurabilityChoice {
    /// Every batch is on disk before the next one
    Sync,
    /// The operating system has it; the end of the run syncs
    Buffered,
}

/// Which channels answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeChoice {
    Auto,
    Sparse,
    Dense,
    Hybrid,
}

/// How two rankings become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FusionChoice {
    /// Weighted sum of scaled scores
    Convex,
    /// Sum of 1 / (60 + rank)
    Rrf,
}

/// What a query's time range does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeChoice {
    Ignore,
    Filter,
    #[value(hide = true)]
    Boost,
}

/// Which hits get the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PackChoice {
    RankPrefix,
    RankSkip,
    Density,
}

pub(crate) fn parse_context(text: &str) -> Result<(usize, usize), String> {
    let wrong = || "must be two numbers, such as 2,1".to_owned();
    let (before, after) = text.split_once(',').ok_or_else(wrong)?;
    Ok((
        before.trim().parse().map_err(|_| wrong())?,
        after.trim().parse().map_err(|_| wrong())?,
    ))
}

/// Reads `off`, `decay:30d`, `boost:0.2` or `boost:0.2:30d`.
pub(crate) fn parse_recency(text: &str) -> Result<chronolith::Recency, String> {
    use chronolith::Recency;
    let parts: Vec<&str> = text.split(':').collect();
    let beta = |text: &str| {
        text.parse::<f64>()
            .map_err(|_| format!("has no number in {text:?}"))
    };
    match parts.as_slice() {
        ["off"] => Ok(Recency::Off),
        ["decay", tau] => Ok(Recency::Decay {
            tau_us: times::parse_duration(tau)?,
        }),
        ["boost", b] => Ok(Recency::Boost {
            beta: beta(b)?,
            tau_us: chronolith::TAU_DEFAULT_US,
        }),
        ["boost", b, tau] => Ok(Recency::Boost {
            beta: beta(b)?,
            tau_us: times::parse_duration(tau)?,
        }),
        _ => Err("must be off, decay:30d, boost:0.2 or boost:0.2:30d".into()),
    }
}
