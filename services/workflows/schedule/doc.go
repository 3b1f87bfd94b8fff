// Package schedule decides how a run of a workflow goes on: which tasks follow when one has ended, which forks open,
// when a join has all its branches. It is pure: what it needs of a run is in its arguments, and what it decides is a
// value that the engine writes in the transaction that ends the task.
//
// A run is tokens on a graph. A task is a step at a place; a place is the path of branches that lead there, as
// units[3]/checks.sqli: branch 3 of the foreach "units", in it the branch of the split "checks" that begins with
// "sqli". Within a place the tasks follow each other. A fork counts how many of its branches have reached its join, so
// that no completion ever looks at more than one fork.
package schedule
