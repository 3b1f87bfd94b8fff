package scans

import (
	"context"
	"fmt"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/projects/branches"
	"github.com/palisade/palisade/services/projects/byname"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/projects/projectname"
)

// openProject finds or creates a project by name, records that one of its refs was scanned, and locks it until the end
// of the transaction. So scans of one project are stored one after the other.
func openProject(ctx context.Context, st *store.Store, tx *ent.Tx, deploymentID int64, name, ref string) (*ent.Project, error) {
	now := store.Now()
	p, err := lockProject(ctx, st, tx, byname.Is(ctx, name))
	if ent.IsNotFound(err) {
		if name, err = newName(name); err != nil {
			return nil, err
		}
		if err := lockName(ctx, st, tx, deploymentID, name); err != nil {
			return nil, err
		}
		p, err = lockProject(ctx, st, tx, byname.Is(ctx, name)) // another upload may have created it in the meantime
	}
	if ent.IsNotFound(err) {
		err = tx.Project.Create().SetDeploymentID(deploymentID).SetName(name).SetNameKey(strings.ToLower(name)).SetCreatedAt(now).SetNillableCreatorID(creator(ctx)).
			OnConflictColumns(project.FieldDeploymentID, project.FieldName).Ignore().Exec(ctx)
		if err != nil {
			return nil, err
		}
		if err := access.JoinDefaultTeams(ctx, tx, now, name); err != nil {
			return nil, err
		}
		p, err = lockProject(ctx, st, tx, byname.Is(ctx, name))
	}
	if err != nil {
		return nil, err
	}
	if err := checkUpload(ctx, tx.Client(), p); err != nil {
		return nil, err
	}
	return noteScanned(ctx, tx, p, ref)
}

// openKnownProject locks a project that Palisade itself scanned, and records that.
func openKnownProject(ctx context.Context, st *store.Store, tx *ent.Tx, id int64, ref string) (*ent.Project, error) {
	p, err := lockProjectByID(ctx, st, tx, id)
	if err != nil {
		return nil, err
	}
	return noteScanned(ctx, tx, p, ref)
}

// noteScanned records that a ref of a locked project was scanned.
func noteScanned(ctx context.Context, tx *ent.Tx, p *ent.Project, ref string) (*ent.Project, error) {
	update := unarchive(p, p.Update().SetLatestScanAt(store.Now()))
	if betterDefault(p, ref) {
		update.SetDefaultBranch(ref)
	}
	return saveScanned(ctx, tx, p, update)
}

// saveScanned saves a project that was scanned. The scan may have changed its default branch.
func saveScanned(ctx context.Context, tx *ent.Tx, before *ent.Project, update *ent.ProjectUpdateOne) (*ent.Project, error) {
	after, err := update.Save(ctx)
	if err != nil {
		return nil, err
	}
	return after, branches.Record(ctx, tx, before, after)
}

// lockName makes transactions that create a project of one name, in any letter case, run one after the other. SQLite
// has one writer anyway.
func lockName(ctx context.Context, st *store.Store, tx *ent.Tx, deploymentID int64, name string) error {
	if !st.Postgres() {
		return nil
	}
	key := fmt.Sprintf("project %d %s", deploymentID, strings.ToLower(name))
	if err := st.Exec(ctx, tx, "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", key); err != nil {
		return fmt.Errorf("lock the name of a project: %w", err)
	}
	return nil
}

// unarchive brings an archived project back because it is scanned, unless its host archived the repository.
func unarchive(p *ent.Project, update *ent.ProjectUpdateOne) *ent.ProjectUpdateOne {
	byHost := p.RepositoryURL != ""
	if p.HostArchived != nil {
		byHost = *p.HostArchived
	}
	if byHost {
		return update
	}
	return update.ClearArchivedAt()
}

// betterDefault reports whether a scanned ref is a better guess of the default branch. What a source-code host says is
// no guess.
func betterDefault(of *ent.Project, ref string) bool {
	hosted := of.RepositoryURL != "" || of.ScmType != project.DefaultScmType
	return gitref.IsBranch(ref) && gitref.BetterDefault(of.DefaultBranch, ref) && (of.DefaultBranch == "" || !hosted)
}

// newName is the name of a project that does not exist under the name in the request: the normal form, if it is valid.
func newName(name string) (string, error) {
	normal := projectname.Normal(name)
	if rule := projectname.Check(normal); rule != "" {
		return "", apierr.InvalidArgument("project", "the name of a project %s; got %s", rule, apierr.Quote(name))
	}
	return normal, nil
}

// checkRef rejects a full ref that Git would reject. given is the value of the field.
func checkRef(field, given, full string) error {
	if rule := gitref.Check(full); rule != "" {
		return apierr.InvalidArgument(field, "a ref %s; got %s %s", rule, field, apierr.Quote(given))
	}
	return nil
}

// lockProjectByID reads a project and locks it until the end of the transaction. It returns ent's not-found error if
// there is none.
func lockProjectByID(ctx context.Context, st *store.Store, tx *ent.Tx, id int64) (*ent.Project, error) {
	return lockProject(ctx, st, tx, project.ID(id))
}

// lockProject locks the row on PostgreSQL. SQLite has only one writer.
func lockProject(ctx context.Context, st *store.Store, tx *ent.Tx, which predicate.Project) (*ent.Project, error) {
	query := tx.Project.Query().Where(which)
	if st.Postgres() {
		query.ForUpdate()
	}
	return query.Only(ctx)
}
