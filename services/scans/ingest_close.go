package scans

import (
	"context"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/sarif"
)

// recordCreated writes an event for each finding that this scan made, with one statement.
func (in *ingest) recordCreated(ctx context.Context) error {
	if in.total("created") == 0 {
		return nil
	}
	return in.store.Exec(ctx, in.tx, `INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, reason, note, actor_kind, actor_id, scan_id, at)
		SELECT deployment_id, id, CASE WHEN triage_state = ? THEN 'created' ELSE 'triage_inherited' END, '', status, COALESCE(triage_reason, ''), '', 'scan', first_seen_scan_id, first_seen_scan_id, created_at
		FROM findings WHERE deployment_id = ? AND first_seen_scan_id = ?`, lifecycle.Untriaged, in.deploymentID, in.scan.ID)
}

// closeMissing marks as fixed what earlier scans found and this one did not, by coverage: only of the same ref, tool and
// category, and only when every run of that tool and category came to a good end.
func (in *ingest) closeMissing(ctx context.Context) error {
	for group, runs := range in.groups() {
		if blocker := whyNotComplete(runs); blocker != "" {
			continue
		}
		if err := in.closeGroup(ctx, group, runs[0].Product); err != nil {
			return err
		}
	}
	return nil
}

func (in *ingest) groups() map[analysis][]*sarif.Run {
	groups := map[analysis][]*sarif.Run{}
	for _, run := range in.report.Runs {
		if run.Tool.Slug != "" {
			groups[in.analysis(run)] = append(groups[in.analysis(run)], run)
		}
	}
	return groups
}

// whyNotComplete says why what is missing from the runs need not be gone from the code; "" when it must be.
func whyNotComplete(runs []*sarif.Run) string {
	for _, run := range runs {
		if run.Rejected != "" {
			return fmt.Sprintf("run %d was rejected", run.Index)
		}
		if !run.Succeeded {
			return fmt.Sprintf("run %d did not succeed", run.Index)
		}
	}
	return ""
}

// warningsOf adds what this service has to say about a run to what the reader found.
func (in *ingest) warningsOf(run *sarif.Run) []string {
	blocker := whyNotComplete(in.groups()[in.analysis(run)])
	if blocker == "" || run.Rejected != "" || !run.Succeeded { // the reader has said so already
		return nil
	}
	return []string{"no finding was closed as fixed: " + blocker}
}

func (in *ingest) closeGroup(ctx context.Context, group analysis, product string) error {
	ids, err := in.tx.Finding.Query().Where(
		finding.DeploymentID(in.deploymentID), finding.ProjectID(in.project.ID), finding.Ref(in.ref), finding.Tool(group.tool),
		finding.AnalysisCategory(group.category), finding.StateIn(lifecycle.Unresolved, lifecycle.Muted),
		finding.FirstSeenScanIDNEQ(in.scan.ID)).Order(ent.Asc(finding.FieldID)).IDs(ctx)
	if err != nil {
		return err
	}
	missing := ids[:0]
	for _, id := range ids {
		if _, met := in.seen[id]; !met {
			missing = append(missing, id)
		}
	}
	for len(missing) > 0 {
		part := missing[:min(len(missing), 10*batchSize)]
		missing = missing[len(part):]
		if err := in.closePart(ctx, part); err != nil {
			return err
		}
		in.counts[outcome{product, "fixed"}] += len(part)
	}
	return nil
}

func (in *ingest) closePart(ctx context.Context, ids []int64) error {
	inIDs, list := in.store.InIDs(ids)
	err := in.store.Exec(ctx, in.tx, `INSERT INTO finding_events (deployment_id, finding_id, kind, from_status, to_status, reason, note, actor_kind, actor_id, scan_id, at)
		SELECT deployment_id, id, 'fixed', status, ?, 'gone from the report', '', 'scan', ?, ?, ? FROM findings WHERE deployment_id = ? AND id`+inIDs,
		lifecycle.Fixed, in.scan.ID, in.scan.ID, in.now, in.deploymentID, list)
	if err != nil {
		return err
	}
	return in.tx.Finding.Update().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(finding.FieldID), ids)) }).
		SetState(lifecycle.Fixed).SetStatus(lifecycle.Fixed).SetStateUpdatedAt(in.now).Exec(ctx)
}
