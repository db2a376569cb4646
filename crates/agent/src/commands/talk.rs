//! `send` and `recv`: messages that all receivers of a group get in the same order.

use std::io::{self, BufRead, Write};

use super::{block_on, connect, print_line};
use crate::args::{Format, RecvArgs, SendArgs};
use crate::client::{accept, unexpected};
use crate::failure::Failure;
use crate::protocol::{Answer, Event, Payload, Reply, Request, check_name, legible};

pub(crate) fn send(args: &SendArgs) -> Result<u8, Failure> {
    check_name(&args.group).map_err(Failure::Usage)?;
    block_on(async {
        let mut client = connect(&args.agent).await?;
        let mut post = async |bytes: Vec<u8>| {
            // Checked by the client, because a message far beyond the limit does not fit into a frame.
            if bytes.len() > konklave::MAX_MESSAGE {
                let limit = konklave::MAX_MESSAGE;
                let error = konklave::Error::TooLong { bytes: bytes.len(), limit };
                return Err(Failure::Usage(error.to_string()));
            }
            let request = Request::Send { group: args.group.clone(), payload: Payload::new(bytes) };
            match client.call(request).await? {
                Answer::Done => Ok(()),
                other => Err(unexpected(&other)),
            }
        };
        if !args.words.is_empty() {
            post(args.words.join(" ").into_bytes()).await?;
            return Ok(0);
        }
        // Reading stdin blocks the thread, which has nothing else to do.
        for line in io::stdin().lock().split(b'\n') {
            let line = line.map_err(Failure::system("cannot read stdin"))?;
            post(line).await?;
        }
        Ok(0)
    })
}

pub(crate) fn recv(args: &RecvArgs) -> Result<u8, Failure> {
    check_name(&args.group).map_err(Failure::Usage)?;
    block_on(async {
        let mut client = connect(&args.agent).await?;
        let receiving = client.send(Request::Receive { group: args.group.clone() }).await?;
        let mut left = args.count;
        while left != Some(0) {
            match client.next().await? {
                Reply::Answer { id, answer } if id == receiving => {
                    return match accept(answer)? {
                        Answer::Done => Ok(0),
                        other => Err(unexpected(&other)),
                    };
                }
                Reply::Event(Event::View { .. }) if !args.views => {}
                Reply::Event(event) => {
                    if matches!(event, Event::Gap { .. }) {
                        eprintln!(
                            "konklave: the agent was out of group {} for a while; messages may be missing \
                             here",
                            args.group
                        );
                    }
                    if matches!(event, Event::Message { .. })
                        && let Some(left) = &mut left
                    {
                        *left -= 1;
                    }
                    print(event, args.format)?;
                }
                Reply::Answer { .. } | Reply::Unaddressed(_) => {}
            }
        }
        Ok(0)
    })
}

fn print(event: Event, format: Format) -> Result<(), Failure> {
    if format != Format::Text {
        return print_line(&event);
    }
    let mut out = io::stdout().lock();
    match event {
        Event::Message { from, payload, .. } => {
            let bytes = payload.into_bytes().unwrap_or_default();
            write!(out, "{}: ", legible(&from))?;
            out.write_all(&bytes)?;
            writeln!(out)?;
        }
        Event::View { members, .. } => {
            writeln!(out, "-- members: {}", legible(&members.join(", ")))?;
        }
        Event::Lost { .. } | Event::Leaving | Event::Changed { .. } | Event::Gap { .. } => {}
    }
    out.flush()?;
    Ok(())
}
