// Package ai has findings analysed and fixed by a language model: AI tasks (contract operations 12 and 13), fix jobs,
// autofix, and what people think of verdicts.
//
// A call stores what it orders and enqueues one job for each finding, in one transaction; the jobs ask the model. What
// the model answers is data: prompt reads it, and package findings/verdict decides what it may change.
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

// Assistant is what the service groups of this package and their jobs share.
type Assistant struct {
	store   *store.Store
	models  *llm.Provider
	hosts   *connect.Hosts
	monthly int64
}

// NewAssistant asks the provider's model. monthly is how many analyses a deployment may ask for in a calendar month
// (UTC).
func NewAssistant(st *store.Store, models *llm.Provider, hosts *connect.Hosts, monthly int) *Assistant {
	return &Assistant{store: st, models: models, hosts: hosts, monthly: int64(monthly)}
}

// subject is a finding with all that a model is told about it.
type subject struct {
	*ent.Finding
	content *storev1.FindingContent
	rule    *findingsv1.FindingRule
	project *ent.Project
}

// subject reads a finding; ent's not-found error when it is gone.
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

// passing reports whether an error of a host may be gone the next time.
func passing(err error) bool {
	return host.Is(err, host.RateLimited) || host.Is(err, host.TimedOut) || host.Is(err, host.Unreachable) || host.Is(err, host.Failed)
}

const (
	// queue is where jobs that ask the model wait.
	queue = "ai"
	// workers is how many of them run at a time on one node, half of them of one deployment: they wait for the model
	// nearly all the time.
	workers = 8
	// hostTimeout is for reading one file.
	hostTimeout = 20 * time.Second
	// jobTimeout is for one run of a job; the model's own time limit is a setting.
	jobTimeout = 30 * time.Minute
)
