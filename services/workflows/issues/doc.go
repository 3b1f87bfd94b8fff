// Package issues keeps the issues that agentic workflows find: one for each project, file, class of weakness and
// evidence, in whatever run they are found.
//
// [Upsert] stores what a step of a run found, [RunEnded] says of the others that they were not detected any more, and
// [Report] sums a run up. All three act in a transaction of the caller. What several runs write about one project takes
// turns.
package issues
