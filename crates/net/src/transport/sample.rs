//! A process for tests that need only its messages.

use konklave_process::{
    AnyProcess, Context, Inspect, NoRecord, NoRequest, NoTimer, Process, ProcessId,
};
use serde::Serialize;

/// A process that sends text.
pub(crate) fn sample() -> AnyProcess {
    AnyProcess::new(Text)
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Text;

impl Process for Text {
    type Message = String;
    type Timer = NoTimer;
    type Request = NoRequest;
    type Indication = ();
    type Record = NoRecord;

    fn on_request(&mut self, request: NoRequest, _: &mut Context<'_, Self>) {
        match request {}
    }
    fn on_message(&mut self, _: ProcessId, _: String, _: &mut Context<'_, Self>) {}
}

impl Inspect for Text {}
