// Package definition parses workflow definitions: YAML or JSON that declares inputs, steps and their order. Parse is
// the linter: it reports all problems in one pass, each with its line and step. A definition without problems can be
// run. docs/workflows.md describes the format.
//
// A graph is structured: each split, foreach and parallel has its own join, where all its branches end, and a switch
// takes exactly one branch. So each step has one stack of enclosing branches, whichever path a run takes, and the next
// step follows from a step and its innermost fork alone.
package definition
