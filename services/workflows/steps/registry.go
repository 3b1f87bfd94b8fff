// Package steps holds the kinds of steps, one file for each.
//
// A kind validates its parameters twice: when a definition is published, where texts may still contain expressions, and
// when the step runs. Errors of a step end up in the run, which all its readers see, so they must not contain code,
// prompts, credentials or responses of other servers.
package steps

import (
	"context"

	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/llm"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/clone"
	"github.com/palisade/palisade/services/workflows/step"
)

// Needs holds the dependencies of steps. All may be nil if definitions are only checked.
type Needs struct {
	Store  *store.Store
	Egress *egress.Guard
	LLM    *llm.Provider
	// Repository returns the source of a project's code in the context's deployment; see scm.Connections.
	Repository func(ctx context.Context, projectID int64) (clone.Source, error)
	// Dir is the server's data directory. Fetched code is stored below it while a step reads it.
	Dir string
}

// Registry returns all kinds.
func Registry(n Needs) step.Registry {
	return step.NewRegistry(
		pass(), external(), ask(n.LLM), request(n.Egress),
		query(n.Store), storeVerdict(n.Store), fetch(n), upsertIssues(n.Store), notify(n.Store),
	)
}
