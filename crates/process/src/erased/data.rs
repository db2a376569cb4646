//! Messages, requests, indications, records, timers and tags without their types.

use std::any::Any;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::FOREIGN;

/// A value of an algorithm that worlds may compare, hash, print and serialise without knowing its type.
pub trait Data: Any + fmt::Debug + erased_serde::Serialize + Send + Sync {
    /// Whether `other` has the same type and the same value.
    fn is_same(&self, other: &dyn Data) -> bool;
    /// Feeds the value to `hasher`.
    fn hash_into(&self, hasher: &mut dyn Hasher);
    /// A copy of the value.
    fn to_any(&self) -> AnyData;
    /// The value as `Any`, to get its type back.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// The size of `value` in bytes, encoded as networks encode it (postcard).
pub fn encoded_size(value: &impl Data) -> usize {
    struct Erased<'a>(&'a dyn erased_serde::Serialize);
    impl Serialize for Erased<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            erased_serde::serialize(self.0, serializer)
        }
    }
    // Counting bytes fails only for values without a length, which no network could send.
    postcard::serialize_with_flavor(&Erased(value), postcard::ser_flavors::Size::default())
        .unwrap_or(0)
}

impl<T> Data for T
where
    T: Clone + Eq + Hash + fmt::Debug + Serialize + Send + Sync + 'static,
{
    fn is_same(&self, other: &dyn Data) -> bool {
        (other as &dyn Any).downcast_ref::<T>() == Some(self)
    }
    fn hash_into(&self, mut hasher: &mut dyn Hasher) {
        self.hash(&mut hasher);
    }
    fn to_any(&self) -> AnyData {
        AnyData::new(self.clone())
    }
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// Data that also has an order: names of timers, tags of judges.
pub trait OrderedData: Data {
    /// How the value compares with `other`, which has the same type.
    fn compare(&self, other: &dyn OrderedData) -> Ordering;
}

impl<T: Data + Ord> OrderedData for T {
    fn compare(&self, other: &dyn OrderedData) -> Ordering {
        self.cmp((other as &dyn Any).downcast_ref::<T>().expect(FOREIGN))
    }
}

/// A message, request, indication or record of any algorithm.
#[derive(Clone)]
pub struct AnyData(Arc<dyn Data>);

impl AnyData {
    /// `value` without its type.
    pub fn new(value: impl Data) -> Self {
        Self(Arc::new(value))
    }

    /// Whether this is `value`.
    pub fn is(&self, value: &dyn Data) -> bool {
        self.0.is_same(value)
    }

    /// The value, of which the caller knows the type.
    pub fn get<T: 'static>(&self) -> &T {
        (&*self.0 as &dyn Any).downcast_ref().expect(FOREIGN)
    }

    /// The value itself, or a copy if it is shared.
    pub(super) fn take<T: Clone + Send + Sync + 'static>(self) -> T {
        Arc::unwrap_or_clone(self.0.into_any().downcast().expect(FOREIGN))
    }
}

/// The name of a timer of any algorithm.
#[derive(Clone)]
pub struct AnyTimer(Arc<dyn OrderedData>);

impl AnyTimer {
    /// `timer` without its type.
    pub fn new(timer: impl OrderedData) -> Self {
        Self(Arc::new(timer))
    }

    /// The name, of which the caller knows the type.
    pub fn get<T: 'static>(&self) -> &T {
        (&*self.0 as &dyn Any).downcast_ref().expect(FOREIGN)
    }
}

/// The tag that a judge attaches to a message. Most judges attach none, which takes no memory.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AnyTag(Option<AnyTimer>);

impl AnyTag {
    pub(super) fn new<T: Data + Ord + Default>(tag: T) -> Self {
        // The default value must have one form only, or equal tags would differ.
        Self((tag != T::default()).then(|| AnyTimer::new(tag)))
    }

    pub(super) fn with<T: Default + 'static, R>(&self, see: impl FnOnce(&T) -> R) -> R {
        match &self.0 {
            Some(tag) => see(tag.get()),
            None => see(&T::default()),
        }
    }
}

impl fmt::Debug for AnyTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(tag) => tag.fmt(f),
            None => f.write_str("()"),
        }
    }
}

impl PartialEq for AnyData {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.is_same(&*other.0)
    }
}

impl PartialEq for AnyTimer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.is_same(&*other.0)
    }
}

impl Eq for AnyData {}
impl Eq for AnyTimer {}

impl PartialOrd for AnyTimer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for AnyTimer {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.compare(&*other.0)
    }
}

macro_rules! forward {
    ($($any:ty),*) => {$(
        impl Hash for $any {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.0.hash_into(state);
            }
        }
        impl fmt::Debug for $any {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
        impl Serialize for $any {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                erased_serde::serialize(&*self.0 as &dyn erased_serde::Serialize, serializer)
            }
        }
    )*};
}

forward!(AnyData, AnyTimer);
