//! Measures without their types.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;

use super::{AnyData, AnyProcess, FOREIGN, Recordable};
use crate::{Meter, ProcessId, Window};

/// The measures of any problem.
pub struct AnyMeter(Box<dyn Object>);

trait Object: Send {
    fn as_any(&self) -> &dyn Any;
    fn on_request(&mut self, now: u64, at: ProcessId, request: &AnyData);
    fn on_indication(&mut self, now: u64, at: ProcessId, indication: &AnyData);
    fn on_arrival(&mut self, arrived: u64, at: ProcessId);
    fn window(&self) -> Window;
    fn on_crash(&mut self, now: u64, at: ProcessId);
    fn on_restart(&mut self, at: ProcessId);
}

/// Measures of processes of type `P`.
struct Typed<P, T>(T, PhantomData<fn(P)>);

impl<P: Recordable, T: Meter<P> + Send + 'static> Object for Typed<P, T> {
    fn as_any(&self) -> &dyn Any {
        &self.0
    }
    fn on_request(&mut self, now: u64, at: ProcessId, request: &AnyData) {
        self.0.on_request(now, at, request.get());
    }
    fn on_indication(&mut self, now: u64, at: ProcessId, indication: &AnyData) {
        self.0.on_indication(now, at, indication.get());
    }
    fn on_arrival(&mut self, arrived: u64, at: ProcessId) {
        self.0.on_arrival(arrived, at);
    }
    fn window(&self) -> Window {
        self.0.window()
    }
    fn on_crash(&mut self, now: u64, at: ProcessId) {
        self.0.on_crash(now, at);
    }
    fn on_restart(&mut self, at: ProcessId) {
        self.0.on_restart(at);
    }
}

impl AnyMeter {
    /// `meter`, the measures of processes of type `P`, without its type.
    pub fn new<P: Recordable>(meter: impl Meter<P> + Send + 'static) -> Self {
        Self(Box::new(Typed::<P, _>(meter, PhantomData)))
    }

    /// The measures, of which the caller knows the type.
    pub fn get<T: 'static>(&self) -> &T {
        self.0.as_any().downcast_ref().expect(FOREIGN)
    }
}

impl Meter<AnyProcess> for AnyMeter {
    fn on_request(&mut self, now: u64, at: ProcessId, request: &AnyData) {
        self.0.on_request(now, at, request);
    }
    fn on_indication(&mut self, now: u64, at: ProcessId, indication: &AnyData) {
        self.0.on_indication(now, at, indication);
    }
    fn on_arrival(&mut self, arrived: u64, at: ProcessId) {
        self.0.on_arrival(arrived, at);
    }
    fn window(&self) -> Window {
        self.0.window()
    }
    fn on_crash(&mut self, now: u64, at: ProcessId) {
        self.0.on_crash(now, at);
    }
    fn on_restart(&mut self, at: ProcessId) {
        self.0.on_restart(at);
    }
}

impl fmt::Debug for AnyMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyMeter")
    }
}
