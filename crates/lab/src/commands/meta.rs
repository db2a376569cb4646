//! `completions` and `man`: from the same source as the options themselves.

use std::io::Write;

use konklave_catalog::{Error, did_you_mean, program};

use crate::Done;
use crate::args::{CompletionsArgs, ManArgs, command_line, lacking};
use crate::output::stdout;

pub(crate) fn completions(args: &CompletionsArgs) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command_line(), program(), &mut script);
    let mut out = stdout();
    out.write_all(&script)?;
    out.flush()?;
    Ok(0)
}

pub(crate) fn man(args: &ManArgs) -> Done {
    let mut command = command_line();
    command.build();
    if let Some(name) = &args.command {
        let Some(found) = command.find_subcommand(name) else {
            if let Some(hint) = lacking(name, &command) {
                return Err(Error::Usage(hint).into());
            }
            let names = command.get_subcommands().map(clap::Command::get_name);
            let hint = did_you_mean(name, names);
            return Err(Error::Usage(format!("there is no command `{name}`{hint}")).into());
        };
        let title = format!("{}-{name}", program());
        command = found.clone().display_name(&title).bin_name(title);
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    let mut out = stdout();
    out.write_all(&page)?;
    out.flush()?;
    Ok(0)
}
