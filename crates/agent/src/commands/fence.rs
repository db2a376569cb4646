//! `fence`: replaces a file, unless a holder with a higher token has written it.

use std::io::{self, Read};

use konklave::fence::FencedFile;

use crate::args::FenceArgs;
use crate::failure::{Failure, LOST};

pub(crate) fn fence(args: &FenceArgs) -> Result<u8, Failure> {
    let mut content = Vec::new();
    io::stdin().lock().read_to_end(&mut content).map_err(Failure::system("cannot read stdin"))?;
    let written = FencedFile::new(&args.file).write(args.token, &content);
    let failed = |why: io::Error| match why.kind() {
        io::ErrorKind::InvalidData => Failure::Data(why.to_string()),
        _ => Failure::unwritable(&args.file)(why),
    };
    match written.map_err(failed)? {
        Ok(()) => Ok(0),
        Err(stale) => {
            eprintln!("konklave: {} was not changed: {stale}", args.file.display());
            Ok(LOST)
        }
    }
}
