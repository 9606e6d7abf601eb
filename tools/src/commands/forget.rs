//! `forget`: how does a record leave every answer?

use std::io::Write;

use chronolith::{Options, Scope};

use super::open_to_write;
use crate::cli::Forget;
use crate::failure::Failure;
use crate::output;

pub(crate) fn run(args: &Forget) -> Result<(), Failure> {
    let scope = Scope::parse(&args.scope)
        .map_err(|refused| Failure::Usage(format!("--scope {:?}: {refused}", args.scope)))?;
    let store = open_to_write(&args.store, Options::default())?;
    let was_there = store.forget(scope.clone(), args.id.as_str())?;
    store.close()?;
    if !was_there {
        return Err(Failure::Failed(format!(
            "no record {} in scope {scope}: nothing was forgotten",
            args.id
        )));
    }
    let mut out = output::for_people();
    writeln!(
        out,
        "forgot {} of {}",
        output::clean(&args.id),
        output::clean(&scope.path())
    )?;
    Ok(out.flush()?)
}
