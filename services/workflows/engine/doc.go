// Package engine runs workflows durably, on any number of nodes that share one database.
//
// Each attempt of a task is a job, enqueued in the transaction that makes it due. A worker takes the attempt with a
// compare-and-set (pending → running) under a lease, runs the step outside of any transaction, and ends the attempt in
// a second transaction that also creates the follow-up tasks (package schedule). That transaction takes effect only if
// the attempt is still running under the worker's name. A late result, from a worker with an expired lease or for a run
// that has ended, is dropped. So no attempt runs twice, and its effects on the run happen once.
//
// Transactions on one run are serialized: on PostgreSQL they lock its row first; SQLite has a single writer.
package engine
