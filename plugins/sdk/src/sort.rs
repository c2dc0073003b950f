//! Sorting of short lists in little code. The standard library's sorts are the fastest for long lists,
//! and take some 10 KB for each kind of element: several times a small policy's own code, which is
//! compiled at each load.

/// Longest list that is sorted by insertion.
const INSERTION_MAX: usize = 24;

/// Sorts a list in which no two elements are equal. A sorted list costs one comparison per element.
pub fn sort_distinct<T>(list: &mut [T], less: impl Fn(&T, &T) -> bool) {
    if list.len() <= INSERTION_MAX {
        return sort_short(list, less);
    }
    if list.windows(2).all(|pair| !less(&pair[1], &pair[0])) {
        return;
    }
    // The second half of the steps takes the largest element out of the heap that the first half makes.
    let count = list.len();
    for step in (0..count + count / 2).rev() {
        let (mut at, end) = match step.checked_sub(count) {
            Some(at) => (at, count),
            None => {
                list.swap(0, step);
                (0, step)
            }
        };
        loop {
            let mut child = 2 * at + 1;
            if child >= end {
                break;
            }
            if child + 1 < end && less(&list[child], &list[child + 1]) {
                child += 1;
            }
            if !less(&list[at], &list[child]) {
                break;
            }
            list.swap(at, child);
            at = child;
        }
    }
}

/// Sorts a short or nearly sorted list. Equal elements keep their order.
pub fn sort_short<T>(list: &mut [T], less: impl Fn(&T, &T) -> bool) {
    for end in 1..list.len() {
        let mut at = end;
        while at > 0 && less(&list[at], &list[at - 1]) {
            list.swap(at, at - 1);
            at -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lists_are_sorted(mut list: Vec<u16>) {
            let mut expected = list.clone();
            expected.sort_unstable();
            sort_distinct(&mut list, |a, b| a < b);
            prop_assert_eq!(list, expected);
        }

        #[test]
        fn equal_elements_keep_their_order(list: Vec<u8>) {
            let mut list: Vec<_> = list.into_iter().map(|key| key % 4).enumerate().collect();
            let mut expected = list.clone();
            expected.sort_by_key(|(_, key)| *key);
            sort_short(&mut list, |a, b| a.1 < b.1);
            prop_assert_eq!(list, expected);
        }
    }
}
