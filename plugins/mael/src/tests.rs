//! Windows worked out by hand from the paper's definitions, and the search against brute force.
