// Package steps holds what steps of workflows can do: one file for each kind.
//
// A kind checks its parameters twice: when a definition is published, where texts may still hold expressions, and when
// it runs. Errors of a step end up in the run that everybody may read, so that none repeats code, prompts, credentials
// or what another server said.
package steps

import (
	"context"

	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/llm"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/clone"
	"github.com/palisade/palisade/services/workflows/step"
)

// Needs is what steps work with. All of it may be missing where definitions are only checked.
type Needs struct {
	Store  *store.Store
	Egress *egress.Guard
	LLM    *llm.Provider
	// Repository says where the code of a project of the context's deployment is; see scm.Connections.
	Repository func(ctx context.Context, projectID int64) (clone.Source, error)
	// Dir is the server's data directory: fetched code is kept below it while a step reads it.
	Dir string
}

// Registry holds all kinds.
func Registry(n Needs) step.Registry {
	return step.NewRegistry(
		pass(), external(), ask(n.LLM), request(n.Egress),
		query(n.Store), judge(n.Store), fetch(n), upsertIssues(n.Store), notify(n.Store),
	)
}
