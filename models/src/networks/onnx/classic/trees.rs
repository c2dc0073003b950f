//! Decision trees as flat arrays.
//!
//! The nodes of all trees are in one array in which children come after their parents, so a walk
//! always ends. Nodes may share children: converters write a set of categories as a chain of
//! `BRANCH_EQ` with the same true branch.

use candle_core::Result;

/// The comparison of a node. The order is that of `TreeEnsemble`'s `nodes_modes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Leq,
    Lt,
    Gte,
    Gt,
    Eq,
    Neq,
}

/// A node of a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Branch<H> {
    Split {
        feature: u32,
        mode: Mode,
        threshold: H,
        /// Whether NaN takes the true branch.
        missing: bool,
        yes: usize,
        no: usize,
    },
    /// The weights of a leaf, by their positions.
    Leaf { first: u32, count: u32 },
}

/// A node: for f32 it has 16 bytes.
#[derive(Clone, Copy, Debug)]
struct Node<H> {
    threshold: H,
    /// [`LEAF`], or the feature, and below it [`MISSING`] and the mode.
    rule: u32,
    /// The true branch; for a leaf its first weight.
    yes: u32,
    /// The false branch; for a leaf the number of its weights.
    no: u32,
}

const LEAF: u32 = u32::MAX;
const MODE: u32 = 7;
const MISSING: u32 = 8;
const FEATURE_SHIFT: u32 = 4;
/// The last feature that a rule has room for.
pub(super) const MAX_FEATURE: u32 = (LEAF >> FEATURE_SHIFT) - 1;

/// The trees of an ensemble, whose thresholds are `H`.
#[derive(Debug)]
pub(super) struct Trees<H> {
    nodes: Vec<Node<H>>,
    roots: Vec<u32>,
    /// The mode of all nodes, if they have the same.
    mode: Option<Mode>,
    /// Features that a row must have.
    features: usize,
}

impl Mode {
    const ALL: [Self; 6] = [
        Self::Leq,
        Self::Lt,
        Self::Gte,
        Self::Gt,
        Self::Eq,
        Self::Neq,
    ];

    pub(super) fn numbered(number: usize) -> Option<Self> {
        Self::ALL.get(number).copied()
    }

    fn holds<X: PartialOrd>(self, x: X, threshold: X) -> bool {
        match self {
            Self::Leq => x <= threshold,
            Self::Lt => x < threshold,
            Self::Gte => x >= threshold,
            Self::Gt => x > threshold,
            Self::Eq => x == threshold,
            Self::Neq => x != threshold,
        }
    }
}

// === impl Trees ===

impl<H: Copy + Default + PartialEq> Trees<H> {
    /// # Errors
    /// A branch leads to no node, or back to a node before it.
    pub(super) fn new(branches: &[Branch<H>], roots: &[usize]) -> Result<Self> {
        if u32::try_from(branches.len()).is_err() {
            candle_core::bail!("{} tree nodes", branches.len());
        }
        let order = order(branches, roots)?;
        let mut place = vec![u32::MAX; branches.len()];
        for (at, &node) in order.iter().enumerate() {
            place[node] = at as u32;
        }
        let mut trees = Self {
            nodes: Vec::with_capacity(order.len()),
            roots: roots.iter().map(|&root| place[root]).collect(),
            mode: None,
            features: 0,
        };
        let mut modes = Vec::new();
        for &node in &order {
            trees.nodes.push(match branches[node] {
                Branch::Leaf { first, count } => Node {
                    threshold: H::default(),
                    rule: LEAF,
                    yes: first,
                    no: count,
                },
                Branch::Split {
                    feature,
                    mode,
                    threshold,
                    missing,
                    yes,
                    no,
                } => {
                    if feature > MAX_FEATURE {
                        candle_core::bail!("feature {feature} of a tree node");
                    }
                    if !modes.contains(&mode) {
                        modes.push(mode);
                    }
                    trees.features = trees.features.max(feature as usize + 1);
                    let missing = if missing { MISSING } else { 0 };
                    Node {
                        threshold,
                        rule: feature << FEATURE_SHIFT | missing | mode as u32,
                        yes: place[yes],
                        no: place[no],
                    }
                }
            });
        }
        if let [mode] = modes[..] {
            trees.mode = Some(mode);
        }
        Ok(trees)
    }

    pub(super) fn len(&self) -> usize {
        self.roots.len()
    }

    pub(super) fn features(&self) -> usize {
        self.features
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.nodes.as_slice()) + size_of_val(self.roots.as_slice())
    }

    /// Calls `leaf` for the leaf of every tree and every row: with the row, and the positions of
    /// the leaf's weights. `rows` are of `width` features, which must be enough.
    pub(super) fn walk<X: From<H> + Copy + PartialOrd>(
        &self,
        rows: &[X],
        width: usize,
        leaf: impl FnMut(usize, u32, u32),
    ) {
        match self.mode {
            Some(Mode::Leq) => self.walk_by(rows, width, leaf, |_, x, t| x <= t),
            Some(Mode::Lt) => self.walk_by(rows, width, leaf, |_, x, t| x < t),
            _ => self.walk_by(rows, width, leaf, |rule, x, t| {
                Mode::ALL[(rule & MODE) as usize % Mode::ALL.len()].holds(x, t)
            }),
        }
    }

    #[inline]
    fn walk_by<X: From<H> + Copy + PartialOrd>(
        &self,
        rows: &[X],
        width: usize,
        mut leaf: impl FnMut(usize, u32, u32),
        holds: impl Fn(u32, X, X) -> bool,
    ) {
        let nodes = self.nodes.as_slice();
        for &root in &self.roots {
            for (at, row) in rows.chunks_exact(width).enumerate() {
                let mut node = nodes[root as usize];
                while node.rule != LEAF {
                    let x = row[(node.rule >> FEATURE_SHIFT) as usize];
                    let is_nan = x.partial_cmp(&x).is_none();
                    let yes = holds(node.rule, x, X::from(node.threshold))
                        | (is_nan & (node.rule & MISSING != 0));
                    node = nodes[if yes { node.yes } else { node.no } as usize];
                }
                leaf(at, node.yes, node.no);
            }
        }
    }
}

/// The nodes that are reached, each after all of its parents.
fn order<H: Copy>(branches: &[Branch<H>], roots: &[usize]) -> Result<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Never,
        Open,
        Done,
    }
    let mut seen = vec![Seen::Never; branches.len()];
    let mut done = Vec::with_capacity(branches.len());
    // A node and the branches of it that were followed.
    let mut path: Vec<(usize, u8)> = Vec::new();
    for &root in roots.iter().rev() {
        match seen.get(root) {
            Some(Seen::Never) => path.push((root, 0)),
            _ => candle_core::bail!("root {root} is missing or in another tree"),
        }
        seen[root] = Seen::Open;
        while let Some((node, followed)) = path.last_mut() {
            let node = *node;
            let next = match (branches[node], *followed) {
                (Branch::Split { yes, .. }, 0) => yes,
                (Branch::Split { no, .. }, 1) => no,
                _ => {
                    seen[node] = Seen::Done;
                    done.push(node);
                    path.pop();
                    continue;
                }
            };
            *followed += 1;
            match seen.get(next) {
                Some(Seen::Never) => {
                    seen[next] = Seen::Open;
                    path.push((next, 0));
                }
                Some(Seen::Done) => {}
                Some(Seen::Open) => candle_core::bail!("tree node {next} is below itself"),
                None => candle_core::bail!("tree node {next} is missing"),
            }
        }
    }
    done.reverse();
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(feature: u32, mode: Mode, threshold: f32, yes: usize, no: usize) -> Branch<f32> {
        Branch::Split {
            feature,
            mode,
            threshold,
            missing: feature == 1,
            yes,
            no,
        }
    }

    fn leaf(first: u32) -> Branch<f32> {
        Branch::Leaf { first, count: 1 }
    }

    fn leaves(trees: &Trees<f32>, row: &[f32]) -> Vec<u32> {
        let mut leaves = Vec::new();
        trees.walk(row, row.len(), |_, first, _| leaves.push(first));
        leaves
    }

    #[test]
    fn every_mode_compares() {
        let row = [1.0];
        for (mode, below, equal, above) in [
            (Mode::Leq, 0, 1, 1),
            (Mode::Lt, 0, 0, 1),
            (Mode::Gte, 1, 1, 0),
            (Mode::Gt, 1, 0, 0),
            (Mode::Eq, 0, 1, 0),
            (Mode::Neq, 1, 0, 1),
        ] {
            for (threshold, expected) in [(0.5, below), (1.0, equal), (2.0, above)] {
                let branches = [split(0, mode, threshold, 2, 1), leaf(0), leaf(1)];
                let trees = Trees::new(&branches, &[0]).unwrap();
                assert_eq!(leaves(&trees, &row), [expected], "{mode:?} {threshold}");
            }
        }
    }

    #[test]
    fn modes_mix_and_children_are_shared() {
        let branches = [
            split(0, Mode::Eq, 3.0, 2, 1),
            split(0, Mode::Eq, 5.0, 2, 3),
            leaf(7),
            split(1, Mode::Lt, 0.0, 4, 5),
            leaf(8),
            leaf(9),
        ];
        let trees = Trees::new(&branches, &[0]).unwrap();
        assert_eq!(trees.features(), 2);
        assert_eq!(leaves(&trees, &[3.0, 0.0]), [7]);
        assert_eq!(leaves(&trees, &[5.0, 0.0]), [7]);
        assert_eq!(leaves(&trees, &[4.0, 0.0]), [9]);
        assert_eq!(leaves(&trees, &[4.0, -1.0]), [8]);
        // Only the second feature's node sends NaN to the true branch.
        assert_eq!(leaves(&trees, &[f32::NAN, f32::NAN]), [8]);
    }

    #[test]
    fn circles_and_missing_nodes_are_errors() {
        let circle = [
            split(0, Mode::Leq, 0.0, 1, 2),
            split(0, Mode::Leq, 0.0, 0, 2),
            leaf(0),
        ];
        assert!(Trees::new(&circle, &[0]).is_err());
        let itself = [split(0, Mode::Leq, 0.0, 0, 0)];
        assert!(Trees::new(&itself, &[0]).is_err());
        let missing = [split(0, Mode::Leq, 0.0, 1, 2), leaf(0)];
        assert!(Trees::new(&missing, &[0]).is_err());
        assert!(Trees::new(&[leaf(0)], &[1]).is_err());
        let large = [split(u32::MAX, Mode::Leq, 0.0, 1, 1), leaf(0)];
        assert!(Trees::new(&large, &[0]).is_err());
    }

    #[test]
    fn deep_trees_do_not_overflow_the_stack() {
        let depth = 200_000;
        let mut branches: Vec<_> = (0..depth)
            .map(|at| split(0, Mode::Leq, 0.0, at + 1, depth))
            .collect();
        branches.push(leaf(3));
        let trees = Trees::new(&branches, &[0]).unwrap();
        assert_eq!(leaves(&trees, &[-1.0]), [3]);
    }
}
