//! Looking ahead.

use prefetch_index::prefetch_index;

/// Bytes that memory gives at once.
const LINE: usize = 64;

/// Asks the processor to bring the lines of `list` near that a search in it looks at first: all of a
/// short one, of a long one its begin, its middle and its end. It changes nothing, and takes no time
/// to speak of; in a large group it spares the wait when their turn comes.
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

/// Of what is larger, so many lines.
const MOST_LINES: usize = 8;

/// Prefetches all of `value`, which is not read: of a large one, its beginning.
#[inline]
pub fn prefetch_whole<T>(value: &T) {
    let (start, size) = (std::ptr::from_ref(value).addr(), size_of::<T>().min(LINE * MOST_LINES));
    for offset in (0..size).step_by(LINE) {
        prefetch_address(start + offset);
    }
    // What begins anywhere in a line may end in one more.
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
