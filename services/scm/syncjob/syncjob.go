// Package syncjob is the job that reads repositories from a source-code host.
package syncjob

import (
	"github.com/riverqueue/river"

	"github.com/palisade/palisade/services/internal/jobs"
)

// attempts apply to host failures. Errors that the caller must fix end the job at once.
const attempts = 6

// Args is the job that reads all repositories of a connection, or one of them.
type Args struct {
	DeploymentID int64 `json:"deployment_id"`
	ConfigID     int64 `json:"config_id"`
	Debug        bool  `json:"debug"`
	// Repository is the name of the only repository to read ("acme/web"); empty for all.
	Repository string `json:"repository,omitempty"`
}

// Kind is the name in the queue.
func (Args) Kind() string { return "scm_sync" }

// InsertOpts merges repeated requests into one job.
func (Args) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.MaxAttempts = attempts
	return opts
}
