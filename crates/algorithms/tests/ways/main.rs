//! Ways around what fails: broken links of a graph, crashed arbiters of a tree.

mod links;
mod trees;
