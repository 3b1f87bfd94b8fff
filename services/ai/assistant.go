// Package ai analyses and fixes findings with a language model: AI tasks (contract operations 12 and 13), fix jobs,
// autofix, and feedback on verdicts.
//
// A request stores its orders and enqueues one job per finding in one transaction. The jobs ask the model. An answer is
// untrusted data: package prompt parses it, and package findings/verdict decides what it may change.
package ai

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rule"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/internal/llm"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host"
)

// Assistant holds the shared dependencies of this package's services and jobs.
type Assistant struct {
	store   *store.Store
	models  *llm.Provider
	hosts   *connect.Hosts
	monthly int64
}

// NewAssistant uses the provider's model. monthly is a deployment's quota of analyses per calendar month (UTC).
func NewAssistant(st *store.Store, models *llm.Provider, hosts *connect.Hosts, monthly int) *Assistant {
	return &Assistant{store: st, models: models, hosts: hosts, monthly: int64(monthly)}
}

// subject is a finding with all data for the prompt.
type subject struct {
	*ent.Finding
	content *storev1.FindingContent
	rule    *findingsv1.FindingRule
	project *ent.Project
}

// subject reads a finding; it returns ent's not-found error if it was deleted.
func (a *Assistant) subject(ctx context.Context, id int64) (*subject, error) {
	row, err := a.store.Reader.Finding.Query().Where(finding.ID(id)).Only(ctx)
	if err != nil {
		return nil, err
	}
	s := &subject{Finding: row, rule: &findingsv1.FindingRule{}}
	if s.project, err = a.store.Reader.Project.Query().Where(project.ID(row.ProjectID)).Only(ctx); err != nil {
		return nil, err
	}
	about, err := a.store.Reader.Rule.Query().Where(rule.ID(row.RuleID)).Only(ctx)
	if err != nil {
		return nil, err
	}
	if s.content, err = blob.Decode(row.Content); err != nil {
		return nil, fmt.Errorf("content of finding %d: %w", id, err)
	}
	if err := proto.Unmarshal(about.Content, s.rule); err != nil {
		return nil, fmt.Errorf("rule %d: %w", row.RuleID, err)
	}
	return s, nil
}

// isTemporary reports whether a host's error may be temporary.
func isTemporary(err error) bool {
	return host.Is(err, host.RateLimited) || host.Is(err, host.TimedOut) || host.Is(err, host.Unreachable) || host.Is(err, host.Failed)
}

const (
	// queue is the queue of jobs that ask the model.
	queue = "ai"
	// workers is the number of concurrent jobs on one node; at most half are of one deployment. They mostly wait for the
	// model.
	workers = 8
	// hostTimeout applies to reading one file.
	hostTimeout = 20 * time.Second
	// jobTimeout applies to one run of a job. The model's own timeout is a setting.
	jobTimeout = 30 * time.Minute
)
