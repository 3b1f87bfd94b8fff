package scm

import (
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scan"
	"github.com/palisade/palisade/ent/scmconfig"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/scans/managed"
	"github.com/palisade/palisade/services/scm/connect"
	"github.com/palisade/palisade/services/scm/webhook"
)

// pushed requests managed scans of a pull request, in the projects of its repository that have them. A head that was
// scanned already is not scanned again: Azure DevOps also sends changes without commits.
func (w *eventActions) pushed(ctx context.Context, args eventArgs) (step, error) {
	rows, err := w.projects(ctx, w.store.Reader, args)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(p *ent.Project) bool { return !p.ManagedDiffScan || p.ArchivedAt != nil })
	if len(rows) == 0 {
		return nil, nil
	}
	configs, err := w.store.Reader.ScmConfig.Query().Order(ent.Asc(scmconfig.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx *ent.Tx) error {
		for _, row := range rows {
			if err := w.scanRequest(ctx, tx, args, row, configs); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func (w *eventActions) scanRequest(ctx context.Context, tx *ent.Tx, args eventArgs, row *ent.Project, configs []*ent.ScmConfig) error {
	config, _, _ := connect.Reached(configs, row)
	if config == nil || connect.Callable(config) != nil {
		return nil
	}
	ref := pullRequestRef(args)
	if args.Event.Commit != "" {
		scanned, err := tx.Scan.Query().Where(scan.ProjectID(row.ID), scan.Ref(ref), scan.Commit(args.Event.Commit)).Exist(ctx)
		if err != nil || scanned {
			return err
		}
	}
	_, err := managed.Add(ctx, w.store, tx, jobs.FromContext(ctx), managed.Request{
		Project: row, ConfigID: config.ID, Ref: ref, Commit: args.Event.Commit,
		Cause: scansv1.ManagedScanCause_MANAGED_SCAN_CAUSE_PULL_REQUEST,
	})
	return err
}

// pullRequestRef is the ref that the host serves for a pull request. Azure DevOps serves only the merge.
func pullRequestRef(args eventArgs) string {
	refs := webhook.Refs(args.Host, args.Event.Number)
	if args.Host == webhook.AzureDevOps {
		return refs[1]
	}
	return refs[0]
}
