//! The way out of the inner loop: a project's image, its deployment to a cluster, the operator as a process
//! of a cluster.

