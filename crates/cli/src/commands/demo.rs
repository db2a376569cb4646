//! `demo`: a tour of ten seconds.

use crate::Done;
use crate::args::DemoArgs;

pub(crate) fn demo(_args: &DemoArgs) -> Done {
    Ok(0)
}
