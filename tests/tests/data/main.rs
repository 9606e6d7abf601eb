//! Does an answer depend on anything but what was written? And is it a good one? On real text.

mod isolation;
mod layouts;
mod quality;
mod segment_count;
