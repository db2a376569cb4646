//! Prefetching of memory.

use prefetch_index::prefetch_index;

/// The bytes of a cache line.
const LINE: usize = 64;

/// Prefetches the cache lines of `list` that a search reads first: all of a short list; the beginning, the
/// middle and the end of a long one. It changes nothing and costs almost no time; in a large group it saves
/// the wait for memory later.
#[inline]
pub fn prefetch<T>(list: &[T]) {
    let (start, size) = (list.as_ptr().addr(), size_of_val(list));
    prefetch_address(start);
    if size <= 4 * LINE {
        (1..size.div_ceil(LINE)).for_each(|line| prefetch_address(start + line * LINE));
    } else {
        prefetch_address(start + size / 2);
    }
    if size > 16 {
        prefetch_address(start + size - 1);
    }
}

/// At most this many cache lines of a value are prefetched.
const MOST_LINES: usize = 8;

/// Prefetches `value`, or the beginning of a large one, without reading it.
#[inline]
pub fn prefetch_whole<T>(value: &T) {
    let (start, size) = (std::ptr::from_ref(value).addr(), size_of::<T>().min(LINE * MOST_LINES));
    for offset in (0..size).step_by(LINE) {
        prefetch_address(start + offset);
    }
    // A value that does not begin at a line boundary may extend into one more line.
    if size > 16 && align_of::<T>() < LINE {
        prefetch_address(start + size - 1);
    }
}

/// An address is as far from any list of bytes as it is.
#[inline]
fn prefetch_address(address: usize) {
    static ANYWHERE: [u8; 1] = [0];
    prefetch_index(ANYWHERE.as_slice(), address.wrapping_sub(ANYWHERE.as_ptr().addr()));
}
