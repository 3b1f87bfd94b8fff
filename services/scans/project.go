package scans

import (
	"context"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/projects/projectname"
)

// openProject finds or creates a project by its name, notes that a ref of it was scanned, and holds it until the end of
// the transaction: scans of one project take turns.
func openProject(ctx context.Context, st *store.Store, tx *ent.Tx, deploymentID int64, name, ref string) (*ent.Project, error) {
	now := store.Now()
	p, err := lockProject(ctx, st, tx, project.Name(name))
	if ent.IsNotFound(err) {
		if name, err = newName(name); err != nil {
			return nil, err
		}
		err = tx.Project.Create().SetDeploymentID(deploymentID).SetName(name).SetNameKey(strings.ToLower(name)).SetCreatedAt(now).SetNillableCreatorID(creator(ctx)).
			OnConflictColumns(project.FieldDeploymentID, project.FieldName).Ignore().Exec(ctx)
		if err != nil {
			return nil, err
		}
		p, err = lockProject(ctx, st, tx, project.Name(name))
	}
	if err != nil {
		return nil, err
	}
	if err := checkUpload(ctx, tx.Client(), p); err != nil {
		return nil, err
	}
	update := p.Update().SetLatestScanAt(now).ClearArchivedAt()
	if gitref.IsBranch(ref) && betterDefault(p.DefaultBranch, ref) {
		update.SetDefaultBranch(ref)
	}
	return update.Save(ctx)
}

// newName is what a project is called that is not there under a name as it was sent: its normal form, if that may be a
// name.
func newName(name string) (string, error) {
	normal := projectname.Normal(name)
	if rule := projectname.Check(normal); rule != "" {
		return "", apierr.InvalidArgument("project", "the name of a project %s; got %s", rule, apierr.Quote(name))
	}
	return normal, nil
}

// checkRef refuses a full ref that git would refuse. given is how the field has it.
func checkRef(field, given, full string) error {
	if rule := gitref.Check(full); rule != "" {
		return apierr.InvalidArgument(field, "a ref %s; got %s %s", rule, field, apierr.Quote(given))
	}
	return nil
}

// holdProject reads a project and holds it until the end of the transaction. A project that is not there is ent's
// not-found error.
func holdProject(ctx context.Context, st *store.Store, tx *ent.Tx, id int64) (*ent.Project, error) {
	return lockProject(ctx, st, tx, project.ID(id))
}

// lockProject locks the row. SQLite has one writer anyway.
func lockProject(ctx context.Context, st *store.Store, tx *ent.Tx, which predicate.Project) (*ent.Project, error) {
	query := tx.Project.Query().Where(which)
	if st.Postgres() {
		query.ForUpdate()
	}
	return query.Only(ctx)
}

// betterDefault guesses the default branch of a project that no source-code host describes: the first branch that was
// scanned, or main or master as soon as one is.
func betterDefault(known, scanned string) bool {
	usual := func(ref string) bool { return ref == "refs/heads/main" || ref == "refs/heads/master" }
	return known == "" || usual(scanned) && !usual(known)
}
