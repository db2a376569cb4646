//! Searching in lists that no near cache holds.

use konklave_process::prefetch;

/// Into so many parts each round divides what is left to search.
const PARTS: usize = 8;

/// Where the first one of a sorted `list` stands that is not `before` what is looked for. Each round
/// looks at seven places, which memory brings together; those of a binary search it would bring one
/// after the other.
pub(in crate::mutex) fn first_not<T>(list: &[T], before: impl Fn(&T) -> bool) -> usize {
    let mut rest = list;
    let mut passed = 0;
    while rest.len() >= 2 * PARTS {
        let step = rest.len() / PARTS;
        let parts = (1..PARTS).filter(|part| before(&rest[part * step])).count();
        let end = if parts + 1 < PARTS { (parts + 1) * step } else { rest.len() };
        rest = &rest[parts * step..end];
        passed += parts * step;
    }
    passed + rest.iter().filter(|item| before(item)).count()
}

/// Prefetches what the first round of a search in `list` looks at, and both ends.
pub(in crate::mutex) fn prefetch_search<T>(list: &[T]) {
    prefetch(list);
    let step = list.len() / PARTS;
    if step >= 2 {
        (1..PARTS).for_each(|part| prefetch(&list[part * step..=part * step]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_what_a_binary_search_finds() {
        for len in (0..300).chain([1000, 4097]) {
            let list: Vec<u32> = (0..len).map(|i| 2 * i + 1).collect();
            for wanted in (0..2 * len + 3).step_by(1 + len as usize / 40) {
                let found = first_not(&list, |item| *item < wanted);
                assert_eq!(found, list.partition_point(|item| *item < wanted), "{wanted} of {len}");
            }
        }
    }
}
