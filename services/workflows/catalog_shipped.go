package workflows

import (
	"context"
	"fmt"
	"sync"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/workflow"
	"github.com/palisade/palisade/ent/workflowversion"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/workflows/definition"
	"github.com/palisade/palisade/services/workflows/shipped"
	"github.com/palisade/palisade/services/workflows/step"
)

// shippedBy is the publisher's name of workflows that ship with the product.
const shippedBy = "palisade"

// shippedWorkflows adds the workflows that ship with the product to a deployment's catalog when the catalog is first
// read. A server with a thousand deployments does no work for unused catalogs.
type shippedWorkflows struct {
	store *store.Store
	parse func() ([]publication, error)
	// seen holds the deployments that this process has checked.
	seen sync.Map
}

func newShipped(st *store.Store, kinds step.Registry) *shippedWorkflows {
	return &shippedWorkflows{store: st, parse: sync.OnceValues(func() ([]publication, error) { return parseShipped(kinds) })}
}

func parseShipped(kinds step.Registry) ([]publication, error) {
	all, err := shipped.All()
	if err != nil {
		return nil, err
	}
	out := make([]publication, len(all))
	for i, w := range all {
		parsed, problems := definition.Parse(w.Source, kinds)
		if len(problems) > 0 {
			return nil, fmt.Errorf("shipped workflow %s: %s", w.Name, problems[0])
		}
		out[i] = publication{definition: parsed, source: w.Source, by: shippedBy}
	}
	return out, nil
}

// ensure adds the shipped workflows to the context's deployment if they are missing.
func (s *shippedWorkflows) ensure(ctx context.Context) error {
	deploymentID, known := tenant.FromContext(ctx)
	if _, done := s.seen.Load(deploymentID); done || !known {
		return nil
	}
	publications, err := s.parse()
	if err != nil {
		return err
	}
	missing, err := s.missing(ctx, s.store.Reader, publications)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		// A read of the catalog triggers this, but the reader publishes nothing. So the product is the actor in the audit
		// trail.
		ctx := audit.Begin(ctx, audit.Actor{Kind: audit.KindJob, Name: shippedBy}, "workflows.shipped")
		err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			for _, p := range missing {
				if err := s.publish(ctx, tx, p); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	s.seen.Store(deploymentID, true)
	return nil
}

// publish publishes one workflow, unless another node has published it already or an administrator uses the name.
func (s *shippedWorkflows) publish(ctx context.Context, tx *ent.Tx, p publication) error {
	name := p.definition.Entry.GetName()
	if _, err := lockOrCreate(ctx, s.store, tx, name); err != nil {
		return err
	}
	still, err := s.missing(ctx, tx.Client(), []publication{p})
	if err != nil {
		return err
	}
	if len(still) == 0 { // a row without a version was created by this transaction
		_, err := tx.Workflow.Delete().Where(workflow.Name(name), workflow.VersionID(0)).Exec(ctx)
		return err
	}
	_, _, err = publish(ctx, s.store, tx, p)
	return err
}

// missing returns the publications that the deployment lacks: workflows it never had, and new editions of workflows
// that were neither replaced nor deleted. An edition that existed once is not published again. Otherwise, while servers
// of two versions run, the older server would undo the newer one's change.
func (s *shippedWorkflows) missing(ctx context.Context, db *ent.Client, publications []publication) ([]publication, error) {
	names := make([]string, len(publications))
	for i, p := range publications {
		names[i] = p.definition.Entry.GetName()
	}
	query := db.WorkflowVersion.Query().Where(store.OneOf(workflowversion.FieldName, names)).Order(ent.Asc(workflowversion.FieldNumber))
	query.Select(workflowversion.FieldID, workflowversion.FieldName, workflowversion.FieldPublished, workflowversion.FieldPublishedBy, workflowversion.FieldSourceHash)
	rows, err := query.All(ctx)
	if err != nil {
		return nil, err
	}
	had, latest := map[string]bool{}, map[string]*ent.WorkflowVersion{}
	for _, row := range rows {
		had[row.Name+" "+row.SourceHash] = true
		latest[row.Name] = row
	}
	var out []publication
	for _, p := range publications {
		name := p.definition.Entry.GetName()
		last := latest[name]
		if last == nil || last.Published && last.PublishedBy == shippedBy && !had[name+" "+hashOf(p.source)] {
			out = append(out, p)
		}
	}
	return out, nil
}
