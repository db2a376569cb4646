//! Ways around what fails: broken links of a graph.

mod links;
