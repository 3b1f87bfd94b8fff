// Package definition reads definitions of workflows: YAML or JSON that says what a run is given, which steps it takes
// and in which order. Parse is the linter: it finds everything that is wrong in one pass and names the line and the
// step; what it lets through can be run. The form is described in docs/workflows.md.
//
// A graph is structured: every split, foreach and parallel has its own join, in which all of its branches end, and a
// switch takes exactly one of its ways. So each step has one stack of branches that lead to it, whatever way a run
// takes, and the order in which a run goes through the steps can be decided by looking at one step and its fork alone.
package definition
