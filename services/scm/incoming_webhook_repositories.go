package scm

import (
	"context"
	"slices"
	"strings"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scmapp"
	"github.com/palisade/palisade/ent/scmconfig"
	"github.com/palisade/palisade/services/projects/branches"
	"github.com/palisade/palisade/services/projects/gitref"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/host"
	"github.com/palisade/palisade/services/scm/webhook"
)

// changed follows a repository that got another name, owner, default branch or visibility, or was archived. What the
// host says now counts, however late the event arrives. If the host does not show the repository to the connection, the
// event itself counts. Repositories without a project get none, but take their name from the project of another
// repository that had it.
func (w *eventActions) changed(ctx context.Context, args eventArgs) (step, error) {
	current, err := w.current(ctx, args)
	if err != nil || current == nil {
		return nil, err
	}
	s, err := w.syncOf(ctx, args)
	if err != nil || s == nil {
		return nil, err
	}
	return func(ctx context.Context, tx *ent.Tx) error { return s.saveIn(ctx, tx, []host.Repository{*current}) }, nil
}

// current reads the repository of an event. It returns nil if another repository has its name now, or if nothing is
// known about it.
func (w *eventActions) current(ctx context.Context, args eventArgs) (*host.Repository, error) {
	h, err := w.openSender(ctx, args.ConfigID, args.AppID, args.Event.Installation.ID)
	if err == nil && h == nil {
		return nil, nil
	}
	var found host.Repository
	if err == nil {
		found, err = h.Repository(ctx, args.Event.Repository)
	}
	switch {
	case err == nil && found.ID == args.Event.RepositoryID:
		return &found, nil
	case err == nil:
		return nil, nil
	case connect.Temporary(err):
		return nil, err
	case args.Event.State == nil:
		return nil, nil
	}
	return &host.Repository{
		ID: args.Event.RepositoryID, Name: args.Event.Repository, URL: args.repositoryURL(), DefaultBranch: args.Event.State.DefaultBranch,
		Visibility: args.Event.State.Visibility, Archived: args.Event.State.Archived,
	}, nil
}

// syncOf is a synchronisation of the sender's connection; nil if the sender was deleted.
func (w *eventActions) syncOf(ctx context.Context, args eventArgs) (*repositorySync, error) {
	s := &repositorySync{Connections: w.Connections, log: w.log, onlyKnown: true}
	if args.ConfigID != 0 {
		config, err := w.store.Reader.ScmConfig.Query().Where(scmconfig.ID(args.ConfigID)).Only(ctx)
		if err != nil {
			return nil, ignoreMissing(err)
		}
		s.config = config
		return s, nil
	}
	app, err := w.store.Reader.ScmApp.Query().Where(scmapp.ID(args.AppID)).Only(ctx)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	s.config = &ent.ScmConfig{DeploymentID: app.DeploymentID, Type: app.ScmType, BaseURL: app.BaseURL, Namespace: app.Namespace}
	return s, nil
}

// deleted marks the projects of a deleted repository.
func (w *eventActions) deleted(ctx context.Context, args eventArgs) (step, error) {
	rows, err := w.boundProjects(ctx, args)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return func(ctx context.Context, tx *ent.Tx) error { return leave(ctx, tx, rows) }, nil
}

// boundProjects are the projects that are bound to the event's repository.
func (w *eventActions) boundProjects(ctx context.Context, args eventArgs) (bound []*ent.Project, err error) {
	rows, err := w.projects(ctx, w.store.Reader, args)
	for _, row := range rows {
		if row.RepositoryURL != "" || row.RepositoryID != nil {
			bound = append(bound, row)
		}
	}
	return bound, err
}

// branchDeleted ends a ref: its findings leave the lists of open ones. The default branch and the primary branch of a
// project never end. If the deleted branch was the default branch here, the host says which branch is it now.
func (w *eventActions) branchDeleted(ctx context.Context, args eventArgs) (step, error) {
	rows, err := w.projects(ctx, w.store.Reader, args)
	if err != nil {
		return nil, err
	}
	refs := append([]string{args.Event.Ref}, args.Event.MoreRefs...)
	branch := ""
	for _, row := range rows {
		if slices.Contains(refs, row.DefaultBranch) && branch == "" {
			current, err := w.current(ctx, args)
			if err != nil {
				return nil, err
			}
			if current != nil {
				branch = gitref.Full(current.DefaultBranch)
			}
		}
	}
	return func(ctx context.Context, tx *ent.Tx) error {
		for _, ref := range refs {
			ended, err := w.followDefault(ctx, tx, rows, ref, branch)
			if err != nil {
				return err
			}
			end := refsEnd{
				refs: []string{ref}, reason: "branch deleted", kind: "ref",
				name: func(project string) string { return project + " " + strings.TrimPrefix(ref, "refs/heads/") },
			}
			if _, err = w.endRefs(ctx, tx, args, ended, end); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// followDefault stores the new default branch of projects whose default branch is a deleted ref, and returns the
// projects in which the ref may end.
func (w *eventActions) followDefault(ctx context.Context, tx *ent.Tx, rows []*ent.Project, ref, branch string) (ended []*ent.Project, err error) {
	if rows, err = w.lockProjects(ctx, tx, rows); err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row.DefaultBranch == ref && branch != "" && branch != ref {
			former := row
			if row, err = row.Update().SetDefaultBranch(branch).Save(ctx); err != nil {
				return nil, err
			}
			if err := branches.Record(ctx, tx, former, row); err != nil {
				return nil, err
			}
		}
		if row.DefaultBranch == ref || row.PrimaryBranch == ref {
			w.log.InfoContext(ctx, "a deleted branch stays, because it is the primary branch of a project", "project_id", row.ID, "ref", ref)
			continue
		}
		ended = append(ended, row)
	}
	return ended, nil
}

// formerURL is the URL of the event's repository before a rename; empty without one.
func (a eventArgs) formerURL() string {
	if a.Event.Kind != webhook.Changed || a.Event.Former == "" {
		return ""
	}
	return webhook.RepositoryURL(a.Host, a.BaseURL, a.Event.Former)
}
