// Package schedule decides how a run continues: which tasks follow when one has ended, which forks open, and when a
// join has all its branches. It is pure: the run's state is in its arguments, and the decision is a value that the
// engine writes in the transaction that ends the task.
//
// A run is tokens on a graph. A task is a step at a path. A path lists the branches that lead there, such as
// units[3]/checks.sqli: branch 3 of the foreach "units", then the branch of the split "checks" that begins with "sqli".
// Tasks on one path run one after the other. A fork counts the branches that have reached its join, so completing a
// task reads at most one fork.
package schedule
