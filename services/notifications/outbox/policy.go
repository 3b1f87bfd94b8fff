package outbox

import (
	"github.com/riverqueue/river"
)

// PolicyDay is the job that runs the remediation policies of a deployment on its open findings, once a day.
type PolicyDay struct {
	DeploymentID int64 `json:"deployment_id"`
	// Day is the number of days since 1970, in UTC.
	Day int64 `json:"day"`
}

// PolicyQueue is separate, because a job reads all open findings of a deployment, and nodes of the version before do
// not know its kind.
const PolicyQueue = "policies"

// Kind is the name in the queue.
func (PolicyDay) Kind() string { return "run_policies_of_day" }

// InsertOpts makes a job of a day unique. The queue keeps completed jobs for a day.
func (PolicyDay) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: PolicyQueue, UniqueOpts: river.UniqueOpts{ByArgs: true}}
}
