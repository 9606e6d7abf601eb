//! `query`: how does a question from the command line become a request?

use std::path::Path;

use chronolith::manifest::{Settings, VectorSpace};
use chronolith::{
    Clause, Mode, PackPolicy, Request, Response, ScopeSelector, SourceClass, TextQuery, TokenBudget,
};
use serde_json::Value;

use super::open_to_read;
use crate::cli::{PackChoice, Query};
use crate::failure::Failure;
use crate::npy::Matrix;
use crate::{files, hits, output, times};

pub(crate) fn run(args: &Query) -> Result<(), Failure> {
    refuse_what_is_not_there(args)?;
    let settings = files::settings(&args.store)?;
    let mut request = within(&args.scope)?
        .k(args.k)
        .mode(args.ranking.mode())
        .recency(args.recency);
    let meant = match &args.text {
        Some(text) if args.syntax => {
            let query = parse(text)?;
            let meant = meant(&query);
            for clause in query.into_clauses() {
                request = request.clause(clause);
            }
            meant
        }
        Some(text) => {
            request = request.text(text.as_str());
            Some(text.clone())
        }
        None => None,
    };
    request = add_vector(request, args, meant.as_deref(), &settings)?;
    request = add_filters(request, args)?;
    if let Some(fusion) = args.ranking.fusion() {
        request = request.fusion(fusion);
    }
    if let Some(now_us) = args.now {
        request = request.now_us(now_us);
    }
    if let Some((before, after)) = args.context {
        request = request.context(before, after);
    }
    if let Some(tokens) = args.budget_tokens {
        let policy = match args.pack {
            PackChoice::RankPrefix => PackPolicy::RankPrefix,
            PackChoice::RankSkip => PackPolicy::RankSkip,
            PackChoice::Density => PackPolicy::Density,
        };
        request = request.budget(TokenBudget {
            tokens,
            overhead_tokens: args.overhead,
            policy,
        });
    }
    request = request.distinct(args.distinct).threads(args.threads);
    if let Some(milliseconds) = args.budget_ms {
        request = request.budget_us(milliseconds.saturating_mul(1000));
    }
    if args.exhaustive {
        request = request.exhaustive();
    }
    if let Some(candidates) = args.candidates {
        request = request.candidates(candidates);
    }
    if args.ids_only {
        request = request.ids_only();
    }
    if let Some(chars) = args.snippets {
        request = request.snippets(chars);
    }
    if args.explain {
        request = request.explain();
    }
    if args.partial {
        request = request.partial();
    }
    let response = open_to_read(&args.store)?.retrieve(&request)?;
    match args.json {
        true => output::print_json(&to_json(&response)),
        false => hits::print(&response, args.explain),
    }
}

/// Flags that later releases answer: a clear word instead of a wrong answer.
fn refuse_what_is_not_there(args: &Query) -> Result<(), Failure> {
    let not_yet = |flag: &str, why: &str| {
        Err(Failure::Failed(format!(
            "{flag} is not available yet: {why}"
        )))
    };
    let past = "records carry validity once governance lands; --until bounds the event time";
    match args {
        Query { as_of: Some(_), .. } => not_yet("--as-of", past),
        Query {
            valid_at: Some(_), ..
        } => not_yet("--valid-at", past),
        Query {
            known_at: Some(_), ..
        } => not_yet("--known-at", past),
        _ => Ok(()),
    }
}

/// A question with signs.
fn parse(text: &str) -> Result<TextQuery, Failure> {
    TextQuery::parse(text).map_err(|error| {
        let rest: String = text.chars().skip(error.column - 1).take(20).collect();
        Failure::Usage(format!(
            "the question is not understood at `{rest}`, {error}; without --syntax every sign is text"
        ))
    })
}

/// The words that a question with signs is about, for an embedder; `None` where it only says
/// what must not be there or how words are spelt.
fn meant(query: &TextQuery) -> Option<String> {
    let words = query.clauses().iter().filter_map(|clause| match clause {
        Clause::Words { words, .. }
        | Clause::Require { words, .. }
        | Clause::Phrase { words, .. } => Some(words.as_str()),
        _ => None,
    });
    let words: Vec<&str> = words.collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// A request over the union of scopes; without one a usage error that explains.
fn within(scopes: &[String]) -> Result<Request, Failure> {
    let mut request: Option<Request> = None;
    for text in scopes {
        let selector = ScopeSelector::parse(text)
            .map_err(|refused| Failure::Usage(format!("--scope {text:?}: {refused}")))?;
        request = Some(match request {
            Some(request) => request.and_within(selector),
            None => Request::within(selector),
        });
    }
    request.ok_or_else(|| {
        Failure::Usage(
            "name whose memory to search with --scope S (S and all below it; =S alone; S+up also its ancestors), or --scope / for every scope of the store"
                .into(),
        )
    })
}

fn add_filters(mut request: Request, args: &Query) -> Result<Request, Failure> {
    if let Some(since_us) = args.since {
        request = request.since_us(since_us);
    }
    if let Some(until_us) = args.until {
        request = request.until_us(until_us);
    }
    for tag in &args.tag {
        request = match tag.contains('|') {
            true => request.any_of(tag.split('|')),
            false => request.tag(tag.as_str()),
        };
    }
    if let Some(name) = &args.min_source {
        request = request.min_source(source_class(name)?);
    }
    Ok(request)
}

/// A source class by its name.
pub(crate) fn source_class(name: &str) -> Result<SourceClass, Failure> {
    SourceClass::parse(name).ok_or_else(|| {
        let names = SourceClass::ALL.map(SourceClass::name).join(", ");
        Failure::Usage(format!(
            "--min-source {name:?} is unknown; there are {names}"
        ))
    })
}

fn add_vector(
    request: Request,
    args: &Query,
    meant: Option<&str>,
    settings: &Settings,
) -> Result<Request, Failure> {
    if let (Some(path), Some(row)) = (&args.vector, args.row) {
        let vector = query_row(path, row, space_of(args, settings)?)?;
        return Ok(in_space(request, args, vector));
    }
    let has_builtin = match &args.space {
        Some(_) => space_of(args, settings)?.is_some_and(files::is_builtin),
        None => files::has_builtin(settings),
    };
    let wants = args.ranking.mode();
    let text = meant.filter(|_| wants != Mode::Sparse && has_builtin);
    Ok(match text.and_then(files::embed) {
        Some(vector) => in_space(request, args, vector).vector_model(chronolith_embed::ID),
        None => request,
    })
}

fn in_space(request: Request, args: &Query, vector: Vec<f32>) -> Request {
    match &args.space {
        Some(name) => request.vector_in(name.as_str(), vector),
        None => request.vector(vector),
    }
}

/// The space that is meant; none in a store without vectors.
fn space_of<'s>(args: &Query, settings: &'s Settings) -> Result<Option<&'s VectorSpace>, Failure> {
    let Some(name) = &args.space else {
        return Ok(settings.default_space());
    };
    match settings.space_named(name) {
        Some(space) => Ok(Some(space)),
        None => Err(Failure::Failed(format!(
            "the store has no vector space {name}; `chronolith spaces` lists them"
        ))),
    }
}

fn query_row(path: &Path, row: u64, space: Option<&VectorSpace>) -> Result<Vec<f32>, Failure> {
    let Some(space) = space else {
        return Err(Failure::Failed(
            "the store keeps no vectors; ask in words".into(),
        ));
    };
    let matrix = Matrix::open(path)?;
    matrix.check_dim(space.dim)?;
    matrix.row(row)
}

/// The response with every time as RFC 3339 beside its µs.
pub(crate) fn to_json(response: &Response) -> Value {
    let mut value = serde_json::to_value(response).unwrap_or_default();
    add_times(&mut value);
    value
}

fn add_times(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(add_times),
        Value::Object(fields) => {
            for (us_key, key) in [("ts_us", "ts"), ("now_us", "now")] {
                if let Some(us) = fields.get(us_key).and_then(Value::as_i64) {
                    fields.insert(key.to_owned(), times::show(us).into());
                }
            }
            for (key, inner) in fields.iter_mut() {
                if matches!(key.as_str(), "hits" | "before" | "after") {
                    add_times(inner);
                }
            }
        }
        _ => {}
    }
}
