// Package jobs runs background work. It uses River's queue, in the same database as everything else, on SQLite and
// PostgreSQL.
//
// A job is enqueued in the transaction that causes it (see Jobs.Enqueue), so that both are committed or neither is.
// It is kept until it succeeds: after an error it is retried with backoff, and River rescues a job of a killed
// process after an hour. A job may therefore run more than once, and must be idempotent. On PostgreSQL all nodes
// share the queue, and a leader that River elects adds the periodic jobs.
//
// A worker's context has no deployment, so it can read no tenant's rows. The worker takes the deployment from the
// job's arguments (tenant.NewContext), or works for the server itself (tenant.System).
//
// A queue is scheduled fairly: deployments take turns, and within a deployment its runs do (see turns). The
// arguments of a job for a deployment must have its deployment_id, and the run_id if there is one.
//
// Each domain provides its workers and periodic jobs as a Work.
package jobs
