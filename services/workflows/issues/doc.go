// Package issues stores the issues that agentic workflows find. An issue is one project, file, weakness class and
// evidence, across all runs.
//
// [Upsert] stores the results of a step, [RunEnded] marks the other issues as not detected, and [Report] summarizes a
// run. All three use the caller's transaction. Writes of several runs to one project are serialized.
package issues
