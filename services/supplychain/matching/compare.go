package matching

import (
	"github.com/riverqueue/river"

	"github.com/palisade/palisade/services/internal/jobs"
)

// CompareQueue is used by the jobs of this comparison only: older versions share the other queues and would fail
// unknown jobs.
const CompareQueue = "advisories"

// Compare is the job that compares the stored dependencies of a deployment with new and changed advisories. The domain
// of scans runs it, because vulnerable packages become findings.
type Compare struct {
	DeploymentID int64 `json:"deployment_id"`
}

// Kind is the name in the queue.
func (Compare) Kind() string { return "compare_advisories" }

// InsertOpts lets one run cover all batches of an import that arrive before it.
func (Compare) InsertOpts() river.InsertOpts {
	opts := jobs.OnceWaiting()
	opts.Queue = CompareQueue
	return opts
}
