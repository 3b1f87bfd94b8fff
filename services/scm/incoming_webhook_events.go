package scm

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/heldclose"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/scmapp"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scm/webhook"
)

// asHost makes the host, or a user there, the audit actor for changes under the context.
func asHost(ctx context.Context, args eventArgs, login string) context.Context {
	name := args.BaseURL
	if u, err := url.Parse(args.BaseURL); err == nil && u.Host != "" {
		name = u.Host
	}
	if login != "" {
		name = login + " at " + name
	}
	return audit.Begin(ctx, audit.Actor{Kind: audit.KindHost, Name: name}, "webhook/"+string(args.Event.Kind))
}

// closed marks findings on the refs of a closed pull request as removed, merged or not: the refs get no more scans, and
// merged findings are reported on the branch (contract facts section 4). Fixed findings stay fixed. A scan of a
// reopened request reopens the findings that it reports, and a close from before that scan has no effect, however late
// its event arrives. If the request was to fix a finding, the finding's fix state is updated.
func (w *eventActions) closed(ctx context.Context, args eventArgs) (step, error) {
	rows, err := w.projects(ctx, w.store.Reader, args)
	if err != nil {
		return nil, err
	}
	reason := "pull request closed"
	if args.Event.Merged {
		reason = "pull request merged"
	}
	end := refsEnd{
		refs: webhook.Refs(args.Host, args.Event.Number), reason: reason,
		kind: "pull_request", name: func(project string) string { return fmt.Sprintf("%s#%d", project, args.Event.Number) },
	}
	return func(ctx context.Context, tx *ent.Tx) error {
		again, err := w.endRefs(ctx, tx, args, rows, end)
		if err != nil {
			return err
		}
		if again && !args.Event.Merged {
			return nil
		}
		return w.endFix(ctx, tx, args)
	}, nil
}

// refsEnd is the end of refs of a repository: why, and the object in the audit trail.
type refsEnd struct {
	refs         []string
	reason, kind string
	name         func(project string) string
}

// endRefs removes the findings on refs of projects, unless a later scan shows that a ref lives again: again is true
// then. Projects that were deleted concurrently have no findings any more.
func (w *eventActions) endRefs(ctx context.Context, tx *ent.Tx, args eventArgs, rows []*ent.Project, end refsEnd) (again bool, err error) {
	if rows, err = w.lockProjects(ctx, tx, rows); err != nil {
		return false, err
	}
	for _, row := range rows {
		scanned, err := scannedSince(ctx, tx, row.ID, end.refs, args.Event.At)
		if err != nil {
			return false, err
		}
		if scanned {
			again = true
			continue
		}
		if err := w.endProjectRefs(ctx, tx, args, row, end); err != nil {
			return false, err
		}
	}
	return again, nil
}

func (w *eventActions) endProjectRefs(ctx context.Context, tx *ent.Tx, args eventArgs, row *ent.Project, end refsEnd) error {
	refs := end.refs
	// Closes that are held on these refs are void: nothing is open there any more.
	_, err := tx.HeldClose.Update().Where(heldclose.ProjectID(row.ID), heldclose.RefIn(refs...), heldclose.Active(true), heldclose.State("pending")).
		SetState("superseded").SetActive(false).SetActorKind("host").SetDecidedAt(store.Now()).Save(ctx)
	if err != nil {
		return err
	}
	return w.removeFindings(ctx, tx, args, row, end)
}

// scannedSince reports whether a scan of one of the refs began after a time, compared in seconds, the precision of
// hosts.
func scannedSince(ctx context.Context, tx *ent.Tx, projectID int64, refs []string, at time.Time) (bool, error) {
	next := store.Micros(at.Truncate(time.Second).Add(time.Second))
	return tx.Scan.Query().Where(scan.ProjectID(projectID), scan.RefIn(refs...), scan.StartedAtGTE(next)).Exist(ctx)
}

func (w *eventActions) removeFindings(ctx context.Context, tx *ent.Tx, args eventArgs, project *ent.Project, end refsEnd) error {
	now, refs := store.Now(), end.refs
	// Select ids first: if statistics say that one project has most findings, SQLite would scan the table instead of using
	// an index.
	ids, err := tx.Finding.Query().Where(finding.ProjectID(project.ID), finding.RefIn(refs...), reportedByLatestScan()).Order(ent.Asc(finding.FieldID)).IDs(ctx)
	if err != nil || len(ids) == 0 {
		return err
	}
	among, list := w.store.InIDs(ids)
	err = w.store.Exec(ctx, tx, `INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, reason, note, actor_kind, actor_id, actor_name, at)
		SELECT deployment_id, id, 'removed', status, ?, ?, '', 'host', 0, '', ? FROM findings WHERE +deployment_id = ? AND id`+among,
		append([]any{lifecycle.Removed, end.reason, now, args.DeploymentID}, list...)...)
	if err != nil {
		return err
	}
	err = tx.Finding.Update().Where(store.OfDeployment[predicate.Finding](args.DeploymentID), store.WithIDs[predicate.Finding](ids)).
		SetState(lifecycle.Removed).SetStatus(lifecycle.Removed).SetStateUpdatedAt(now).ClearIgnoredByPattern().Exec(tenant.ByKey(ctx))
	if err != nil {
		return err
	}
	ended := make([]any, len(refs))
	for i, ref := range refs {
		ended[i] = ref
	}
	about, err := structpb.NewStruct(map[string]any{
		"project": project.Name, "reason": end.reason, "removedFindings": len(ids), "refs": ended,
	})
	if err != nil {
		return err
	}
	audit.Change(ctx, end.kind, end.name(project.Name), nil, about)
	return nil
}

// reportedByLatestScan selects findings that the latest scan reported.
func reportedByLatestScan() predicate.Finding {
	return finding.StateIn(lifecycle.Unresolved, lifecycle.Muted)
}

// ignoreMissing treats not found as success.
func ignoreMissing(err error) error {
	if ent.IsNotFound(err) {
		return nil
	}
	return err
}

// installed stores whether the application is installed in its namespace. Older states, and states of another
// installation that has ended, are ignored.
func (w *eventActions) installed(args eventArgs) step {
	about := args.Event.Installation
	return func(ctx context.Context, tx *ent.Tx) error {
		before, err := w.LockApp(ctx, tx, scmapp.ID(args.AppID))
		if err != nil || isOlder(before, about) {
			return err
		}
		return w.StoreInstallation(ctx, tx, before, about)
	}
}

// isOlder reports whether an installation state is older than the stored one. If two states have the same second,
// the deletion counts.
func isOlder(app *ent.ScmApp, about webhook.Installation) bool {
	if !about.Present && app.InstallationID != "" && app.InstallationID != strconv.FormatInt(about.ID, 10) {
		return true
	}
	if app.InstallationAt == nil || about.UpdatedAt.IsZero() {
		return false
	}
	at := store.Micros(about.UpdatedAt)
	return at < *app.InstallationAt || at == *app.InstallationAt && about.Present && app.InstallationID == ""
}
