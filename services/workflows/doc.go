// Package workflows serves agentic workflows: the catalog of workflow types, their runs, and the issues that runs find.
// What a definition means is in package definition, what its steps do in package steps, and how runs go on in package
// engine.
package workflows
