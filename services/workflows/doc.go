// Package workflows serves agentic workflows: the catalog of workflow types, their runs, and the issues that runs find.
// Package definition parses definitions, package steps has the kinds of steps, and package engine executes runs.
package workflows
