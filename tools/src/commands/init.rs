//! `init`: how does a new store come to be?

use std::io::Write;

use chronolith::manifest::{ManifestError, read_current};
use chronolith::{
    AnalyzerKind, AnalyzerOptions, Language, Options, Setup, Store, VectorFormat, VectorSpace,
};

use crate::cli::{AnalyzerChoice, EmbedderChoice, Init, VectorFormatChoice};
use crate::failure::Failure;
use crate::{files, output};

/// Name of the caller's embedder where none is given.
const MODEL_UNNAMED: &str = "custom";

pub(crate) fn run(args: &Init) -> Result<(), Failure> {
    let setup = setup(args)?;
    match read_current(&files::vfs(), &args.store) {
        Ok(_) => {
            return Err(Failure::Failed(format!(
                "{} is a store already; ingest into it, or name another directory",
                args.store.display()
            )));
        }
        Err(
            ManifestError::Missing { .. }
            | ManifestError::EmptyDirectory { .. }
            | ManifestError::CreationUnfinished { .. },
        ) => {}
        Err(error) => return Err(chronolith::Error::from(error).into()),
    }
    let vectors = match &setup.vectors {
        Some(space) => format!("vectors of {} ({} components)", space.model, space.dim),
        None => "no vectors".to_owned(),
    };
    Store::open(&args.store, Options::create(setup))?.close()?;
    let mut out = output::for_people();
    writeln!(out, "created {} with {vectors}", args.store.display())?;
    Ok(out.flush()?)
}

fn setup(args: &Init) -> Result<Setup, Failure> {
    let format = match args.vector_format {
        VectorFormatChoice::F16 => VectorFormat::F16,
        VectorFormatChoice::F32 => VectorFormat::F32,
    };
    let language = Language::parse(&args.language).map_err(|_| {
        let names: Vec<&str> = Language::all().map(Language::name).collect();
        Failure::Usage(format!(
            "--language {} is unknown; there are {}",
            args.language,
            names.join(", ")
        ))
    })?;
    let analyzer = match args.analyzer {
        AnalyzerChoice::Default => AnalyzerKind::Default,
        AnalyzerChoice::PlainEn => AnalyzerKind::PlainEn,
    };
    let vectors = match (args.dim, args.embedder) {
        (Some(dim), _) => {
            let model = args
                .model
                .clone()
                .unwrap_or_else(|| MODEL_UNNAMED.to_owned());
            if model == chronolith_embed::ID {
                return Err(Failure::Usage(
                    "--model names the built-in embedder; use --embedder builtin".into(),
                ));
            }
            Some(VectorSpace {
                model,
                dim,
                format,
                normalised: true,
            })
        }
        (None, Some(EmbedderChoice::None)) => None,
        (None, _) => Some(builtin_space(format)),
    };
    Ok(Setup {
        analyzer,
        language,
        index: AnalyzerOptions {
            summary: args.index_summary,
            speaker: args.index_speaker,
            event_date: args.index_date,
        },
        vectors,
        bucket_us: args.bucket,
        dense_weight: args.dense_weight,
        ..Setup::default()
    })
}

/// The space of the embedder in this binary.
pub(crate) fn builtin_space(format: VectorFormat) -> VectorSpace {
    VectorSpace {
        model: chronolith_embed::ID.to_owned(),
        dim: u32::try_from(chronolith_embed::DIM).expect("the model's dimension is 256"),
        format,
        normalised: true,
    }
}
