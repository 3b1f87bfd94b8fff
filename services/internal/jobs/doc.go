// Package jobs runs background work on the database that everything else is in: River's queue, on SQLite and
// PostgreSQL.
//
// A job is enqueued in the transaction that causes it (see Jobs.Enqueue), so that neither exists without the other, and
// it is kept until it is done: after an error it is tried again, later each time, and a job whose process was killed is
// taken up again by River after an hour. It may therefore run more than once: work is written so that a second run does
// no harm. On PostgreSQL all nodes share the queue, and one of them, elected by River, adds the periodic jobs.
//
// A worker gets a context without a deployment, in which every row of every tenant is out of reach. It takes the
// deployment from its arguments (tenant.NewContext), or works for the server itself (tenant.System).
//
// Deployments take turns in a queue, and in each of them its runs do (see turns): the arguments of a job that is done
// for a deployment carry its deployment_id, and the run_id if there is one.
//
// Workers and periodic jobs belong to the domains, each of which hands over its Work.
package jobs
