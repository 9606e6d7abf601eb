//! What is needed to stop a store anywhere and to know what it may hold afterwards.
//!
//! * [`Script`], [`Step`], [`scripts`]: what is interrupted.
//! * [`Bed`]: one life of a store on a simulated disk.
//! * [`Oracle`]: the model after each commit, and how much of it must be there.
//! * [`Layer`]: runs something in the middle of a flush, or lies about syncs.
//! * [`stops`]: a crash at an operation, its images, and crashes inside the recovery.
//! * [`faults`]: an error at an operation, once or for ever.

pub mod faults;
mod layer;
mod life;
mod oracle;
pub mod scripts;
pub mod stops;

pub use layer::Layer;
pub use life::{Bed, DIR, the_setup, write};
pub use oracle::{End, Oracle, Shared};
pub use scripts::{Script, Step};
