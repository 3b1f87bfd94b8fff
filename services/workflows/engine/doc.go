// Package engine runs workflows: durably, and on any number of nodes over one database.
//
// Every attempt at a task is a job of the queue, enqueued in the transaction that makes it due. Whoever works the job
// takes the attempt with a compare-and-set (pending → running) under a lease, does the step outside of any transaction,
// and ends the attempt in a second transaction, which also makes what follows (package schedule). That one counts only
// while the attempt is still running under the same worker's name: whatever comes late, from a worker that was thought
// dead or for a run that has ended, is dropped. So no attempt runs twice, and none of its effects on the run happen
// twice.
//
// Transactions about one run come one after the other: on PostgreSQL they lock its row first, on SQLite there is one
// writer.
package engine
