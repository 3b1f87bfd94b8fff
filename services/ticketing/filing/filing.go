// Package filing asks for tickets: policies and automations name findings, and the domain of ticketing creates their
// tickets in the background.
package filing

import (
	"context"
	"fmt"
	"strconv"

	"github.com/riverqueue/river"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/ticketinginstance"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/policies/remediation"
)

const (
	// Queue is the queue of jobs that call trackers.
	Queue = "tickets"
	// attempts apply to failures that may be temporary. They span two to three hours.
	attempts = 9
)

// File is the job that creates the tickets of findings.
type File struct {
	DeploymentID int64   `json:"deployment_id"`
	InstanceID   int64   `json:"instance_id"`
	Project      string  `json:"project,omitempty"`
	FindingIDs   []int64 `json:"finding_ids"`
}

// Kind is the name in the queue.
func (File) Kind() string { return "file_tickets" }

// InsertOpts chooses the queue.
func (File) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: Queue, MaxAttempts: attempts}
}

// Ask asks for the tickets of findings, with the settings of an action. Without a project, they go to the one that the
// instance maps to the finding's project. It returns false if the instance is gone.
func Ask(ctx context.Context, tx *ent.Tx, queue *jobs.Jobs, deploymentID int64, config map[string]string, findings []int64) (bool, error) {
	id, err := strconv.ParseInt(config[remediation.ConfigInstance], 10, 64)
	if err != nil {
		return false, fmt.Errorf("it has the ticketing instance %q", config[remediation.ConfigInstance])
	}
	exists, err := tx.TicketingInstance.Query().Where(ticketinginstance.ID(id)).Exist(ctx)
	if err != nil || !exists {
		return false, err
	}
	return true, queue.Enqueue(ctx, File{DeploymentID: deploymentID, InstanceID: id, Project: config[remediation.ConfigProject], FindingIDs: findings}, nil)
}
