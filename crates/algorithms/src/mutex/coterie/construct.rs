//! Ways to build quorums. All speak of places in node order; ids come later.

use super::field::{Field, prime_of};

/// The quorum of each place.
pub(super) type Sets = Vec<Vec<usize>>;

/// Own row and own column of a grid that is filled row by row, the last row maybe in part.
///
/// Two quorums meet also in a ragged grid: of the two crossings (our row, your column) and (your
/// row, our column) one may be a missing cell, but then one of us is in the last row, and the
/// column of that one has no missing cell.
pub(super) fn grid(n: usize) -> Sets {
    let columns = (1..).find(|k| k * k >= n).unwrap_or(1);
    let cross = |i: usize| {
        let (row, column) = (i - i % columns, i % columns);
        let own_row = row..n.min(row + columns);
        own_row.chain((column..n).step_by(columns).filter(|&j| j != i)).collect()
    };
    (0..n).map(cross).collect()
}

/// The lines of a projective plane, each given to a node on it; where there is none of n points,
/// the next larger one folded down.
pub(super) fn plane(n: usize) -> Sets {
    let order = (1..).find(|&m| m * (m + 1) >= n - 1 && (m == 1 || prime_of(m).is_some()));
    let lines = plane_of(order.unwrap_or(1));
    // Surplus points fall onto real nodes: lines that met in one of them meet there.
    let folded = |line: &Vec<usize>| line.iter().map(|point| point % n).collect();
    lines.iter().take(n).map(folded).collect()
}

/// The plane of this order, which is 1 or a prime power: m(m + 1) + 1 points, m + 1 on each line.
fn plane_of(order: usize) -> Sets {
    let n = order * (order + 1) + 1;
    if let Some(set) = DIFFERENCE_SETS.iter().find(|set| set.len() == order + 1) {
        return (0..n).map(|i| set.iter().map(|d| (i + d) % n).collect()).collect();
    }
    let field = Field::new(order).expect("the order is a power of a prime");
    (0..n).map(|point| line_through(point, &field)).collect()
}

/// Singer's difference sets: each difference but 0 occurs once, so any two translates meet once.
/// Order 1 is the triangle; the lists for 2, 3, 4, 5, 7, 8, 9 are those of the sources.
const DIFFERENCE_SETS: &[&[usize]] = &[
    &[0, 1],
    &[0, 1, 3],
    &[0, 1, 3, 9],
    &[0, 1, 4, 14, 16],
    &[0, 1, 3, 8, 12, 18],
    &[0, 1, 3, 13, 32, 36, 43, 52],
    &[0, 1, 3, 7, 15, 31, 36, 54, 63],
    &[0, 1, 3, 9, 27, 49, 56, 61, 77, 81],
];

/// The line that is given to `point` of the plane over `field`: it lies on it, and no two points
/// are given the same line.
///
/// The plane is that of the points (x, y), numbered x·m + y, with its lines y = s·x + t and x = c;
/// besides there is a point at infinity for each slope s, number m² + s, and one for the upright
/// lines, number m² + m; the line at infinity joins them. That is GF(m)³ up to factors. A perfect
/// matching of points and lines can be written down: (x, y) is given the line of slope x, unless
/// y = x²; then the upright one. So the lines of slope s through (s, s²) are left for the points
/// at infinity, and the line at infinity for the upright one.
fn line_through(point: usize, field: &Field) -> Vec<usize> {
    let m = field.order();
    let at = |x: usize, y: usize| x * m + y;
    let sloped = |slope: usize, x: usize, y: usize| {
        let rise = |to: usize| field.add(y, field.mul(slope, field.sub(to, x)));
        (0..m).map(|to| at(to, rise(to))).chain([m * m + slope]).collect()
    };
    if point == m * m + m {
        return (m * m..=m * m + m).collect();
    }
    if point >= m * m {
        let slope = point - m * m;
        return sloped(slope, slope, field.mul(slope, slope));
    }
    let (x, y) = (point / m, point % m);
    if y == field.mul(x, x) {
        return (0..m).map(|y| at(x, y)).chain([m * m + m]).collect();
    }
    sloped(x, x, y)
}

/// The example of the sources: a plane of 13 points.
pub(super) fn thirteen() -> Sets {
    const SETS: [[usize; 4]; 13] = [
        [1, 2, 3, 4],
        [2, 5, 8, 11],
        [3, 6, 8, 13],
        [4, 6, 10, 11],
        [1, 5, 6, 7],
        [2, 6, 9, 12],
        [2, 7, 10, 13],
        [1, 8, 9, 10],
        [3, 7, 9, 11],
        [3, 5, 10, 12],
        [1, 11, 12, 13],
        [4, 7, 8, 12],
        [4, 5, 9, 13],
    ];
    SETS.iter().map(|set| set.iter().map(|p| p - 1).collect()).collect()
}

/// For each place the next places from it on, round the group, until they have more than half of
/// all votes. Who is down is passed over where the others suffice.
pub(super) fn weighted(votes: &[u64], down: &[bool]) -> Sets {
    let n = votes.len();
    let total: u64 = votes.iter().sum();
    let up: u64 = (0..n).filter(|&i| !down[i]).map(|i| votes[i]).sum();
    let counts = |i: usize| votes[i] > 0 && (!down[i] || 2 * up <= total);
    let from = |start: usize| {
        let mut sum = 0;
        let round = (0..n).map(|k| (start + k) % n).filter(|&i| counts(i));
        round
            .take_while(|&i| {
                let needed = 2 * sum <= total;
                sum += votes[i];
                needed
            })
            .collect()
    };
    (0..n).map(from).collect()
}

/// Paths from the root of a binary tree to a leaf, after Agrawal and El Abbadi: node i stands above
/// 2i + 1 and 2i + 2. Paths through both children replace a node that is down. There is no coterie if a leaf on such
/// a path is down.
pub(super) fn tree(n: usize, down: &[bool]) -> Option<Sets> {
    (0..n).map(|i| tree_path(n, i, &|v| down[v])).collect()
}

/// The path of one of them.
pub(super) fn tree_path(n: usize, to: usize, down: &impl Fn(usize) -> bool) -> Option<Vec<usize>> {
    /// Adds a quorum of the tree under `v` that goes by way of `to`.
    fn quorum(
        v: usize,
        (n, to): (usize, usize),
        set: &mut Vec<usize>,
        down: &impl Fn(usize) -> bool,
    ) -> bool {
        let mut children: Vec<usize> = (2 * v + 1..2 * v + 3).filter(|&c| c < n).collect();
        if down(v) {
            return !children.is_empty() && children.iter().all(|&c| quorum(c, (n, to), set, down));
        }
        set.push(v);
        // Towards the one whose quorum this is; below it, to a side that its number decides.
        children.sort_by_key(|&c| (!is_above(c, to), (c ^ to) % 2));
        let before = set.len();
        children.is_empty()
            || children.iter().any(|&c| {
                set.truncate(before);
                quorum(c, (n, to), set, down)
            })
    }
    let mut set = Vec::new();
    quorum(0, (n, to), &mut set, down).then_some(set)
}

/// Whether `v` is `w`, or above it in the tree.
fn is_above(v: usize, mut w: usize) -> bool {
    while w > v {
        w = (w - 1) / 2;
    }
    v == w
}

/// A wall of rows, after Peleg and Wool: own row, and one of each row below.
pub(super) fn wall(widths: &[usize]) -> Sets {
    let mut rows: Vec<Vec<usize>> = Vec::new();
    let mut first = 0;
    for width in widths {
        rows.push((first..first + width).collect());
        first += width;
    }
    let quorum = |(r, i): (usize, usize)| {
        let lower = rows[r + 1..].iter().map(|row| row[i % row.len()]);
        rows[r].iter().copied().chain(lower).collect()
    };
    let places = rows.iter().enumerate().flat_map(|(r, row)| row.iter().map(move |&i| (r, i)));
    places.map(quorum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plane_has_each_pair_of_lines_meet_in_one_point_and_each_point_on_its_line() {
        for m in [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 25, 27] {
            let field = Field::new(m).unwrap();
            let n = m * m + m + 1;
            let lines: Sets = (0..n).map(|point| line_through(point, &field)).collect();
            let mut on = vec![vec![]; n];
            for (i, line) in lines.iter().enumerate() {
                assert!(line.contains(&i), "order {m}: {i} is not on its line");
                assert_eq!(line.len(), m + 1);
                line.iter().for_each(|&point| on[point].push(i));
            }
            assert!(on.iter().all(|lines| lines.len() == m + 1), "order {m}");
            let mut met = vec![false; n * n];
            for lines in &on {
                for (k, &a) in lines.iter().enumerate() {
                    for &b in &lines[k + 1..] {
                        assert!(!std::mem::replace(&mut met[a * n + b], true), "order {m}");
                    }
                }
            }
            let meetings = met.iter().filter(|met| **met).count();
            assert_eq!(meetings, n * (n - 1) / 2, "order {m}: some lines never meet");
        }
    }

    #[test]
    fn difference_sets_have_each_difference_once() {
        for set in DIFFERENCE_SETS {
            let n = set.len() * (set.len() - 1) + 1;
            let mut seen = vec![0; n];
            for a in *set {
                set.iter().for_each(|b| seen[(n + a - b) % n] += 1);
            }
            assert_eq!(seen[0], set.len());
            assert!(seen[1..].iter().all(|&times| times == 1), "n = {n}");
        }
    }

    #[test]
    fn a_crossing_of_the_grid_has_two_cells_or_a_whole_row() {
        for k in 2..7 {
            let sets = grid(k * k);
            for (i, a) in sets.iter().enumerate() {
                assert_eq!(a.len(), 2 * k - 1);
                for (j, b) in sets.iter().enumerate().skip(i + 1) {
                    let common = a.iter().filter(|p| b.contains(p)).count();
                    let in_line = i / k == j / k || i % k == j % k;
                    assert_eq!(common, if in_line { k } else { 2 });
                }
            }
        }
    }

    #[test]
    fn a_tree_has_paths_that_lead_past_those_that_are_down() {
        let up = [false; 7];
        assert_eq!(tree(7, &up).unwrap()[4], [0, 1, 4]);
        assert!(tree(7, &up).unwrap().iter().enumerate().all(|(i, s)| s.contains(&i)));
        let mut root_down = up;
        root_down[0] = true;
        assert_eq!(tree(7, &root_down).unwrap()[3], [1, 3, 2, 5]);
        let mut path_down = up;
        [0, 1, 3].iter().for_each(|&p: &usize| path_down[p] = true);
        assert_eq!(tree(7, &path_down), None);
        assert_eq!(tree(1, &[false]).unwrap(), [[0]]);
    }

    #[test]
    fn votes_are_gathered_until_they_are_more_than_half() {
        assert_eq!(weighted(&[1; 4], &[false; 4])[2], [2, 3, 0]);
        assert_eq!(
            weighted(&[3, 1, 1, 0], &[false; 4]),
            [vec![0], vec![1, 2, 0], vec![2, 0], vec![0]]
        );
        assert_eq!(weighted(&[1; 5], &[false, true, true, false, false])[0], [0, 3, 4]);
        assert_eq!(weighted(&[1; 3], &[false, true, true])[0], [0, 1]);
    }
}
