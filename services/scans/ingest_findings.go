package scans

import (
	"bytes"
	"context"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/findings/lifecycle"
)

// flush compares the batch with what is stored, and writes what is new or changed.
func (in *ingest) flush(ctx context.Context) error {
	if len(in.batch) == 0 {
		return nil
	}
	in.work.Yield(ctx)
	batch := in.batch
	in.batch = in.batch[:0:0]
	if err := in.nameNew(ctx, batch); err != nil {
		return err
	}
	stored, err := in.storedFindings(ctx, batch)
	if err != nil {
		return err
	}
	var fresh []*incoming
	var changed []change
	for _, i := range batch {
		old := stored[i.knownID()]
		if old == nil {
			if i.foreignID() != 0 || len(i.of.considered[i.result]) > 0 {
				if err := i.load(); err != nil {
					return err
				}
			}
			fresh = append(fresh, i)
			in.counts[outcome{i.product, "created"}]++
			continue
		}
		c := i.compare(old)
		in.counts[outcome{i.product, c.what}]++
		if c.written() {
			if err := i.load(); err != nil {
				return err
			}
			changed = append(changed, c)
		}
	}
	if err := in.writeChanged(ctx, changed); err != nil {
		return err
	}
	return in.writeFresh(ctx, fresh)
}

// knownID is the id of the finding of this ref that the result was joined to; 0: it is a new one.
func (i *incoming) knownID() int64 { return i.of.joined[i.result] }

// rung is the evidence by which the result was recognised, here or on another ref, where it is not exact; else empty.
func (i *incoming) rung() string {
	if foreign := i.of.named[i.result]; foreign != nil && !identity.Exact(foreign.rung) {
		return foreign.rung
	}
	return i.of.rungs[i.result]
}

// change is a stored finding about which a scan brings news.
type change struct {
	*incoming
	old *ent.Finding
	// what is the outcome; event is the kind of the event, empty for none.
	what, event string
	// state is true if the event is one of its state.
	state bool
	// silent: something is stored that is no news.
	silent bool
}

func (c change) written() bool { return c.what != "unchanged" || c.silent }

// compare says what a scan means for a stored finding.
func (i *incoming) compare(old *ent.Finding) change {
	c := change{incoming: i, old: old, what: "updated"}
	// What was stored before there was a column, or a rule had its name, is written, but no news.
	c.silent = old.FilePath == nil && i.path != "" || old.Evidence == nil || !bytes.Equal(*old.Evidence, i.evidence.Encode())
	state := i.state()
	switch {
	case !lifecycle.Seen(old.State):
		c.what, c.event, c.state = "reopened", "reopened", true
	case old.State != state && state == lifecycle.Muted:
		c.event, c.state = "muted", true
	case old.State != state:
		c.event, c.state = "unmuted", true
	case i.rung() != "": // its own event says so
	case old.ContentHash != i.contentHash:
		c.event = "updated"
	default:
		c.what = "unchanged"
	}
	return c
}

// event makes the event of a change.
func (in *ingest) event(c change, kind, to, reason string) *ent.FindingEventCreate {
	return in.tx.FindingEvent.Create().SetDeploymentID(in.deploymentID).SetFindingID(c.old.ID).SetKind(kind).
		SetFromStatus(c.old.Status).SetToStatus(to).SetReason(reason).
		SetActorKind("scan").SetActorID(in.scan.ID).SetScanID(in.scan.ID).SetAt(in.now)
}

// writeChanged writes the findings that this scan changes, and what happened to them.
func (in *ingest) writeChanged(ctx context.Context, changed []change) error {
	if len(changed) == 0 {
		return nil
	}
	before, err := in.contents(ctx, idsOf(changed))
	if err != nil {
		return err
	}
	closed, err := in.closings(ctx, changed)
	if err != nil {
		return err
	}
	var rows []*ent.Finding
	var events []*ent.FindingEventCreate
	var matches []*ent.FindingMatchCreate
	for _, c := range changed {
		old := before[c.old.ID]
		if err := c.keep(old); err != nil {
			return err
		}
		rows = append(rows, in.update(c))
		if c.rung() != "" {
			match, reason, err := in.recogniseOld(c, old)
			if err != nil {
				return err
			}
			matches = append(matches, match)
			events = append(events, in.event(c, "matched", c.old.Status, reason))
		}
		if c.event != "" {
			events = append(events, in.event(c, c.event, lifecycle.Status(c.incoming.state(), c.old.TriageState), c.reason(closed)))
		}
	}
	if err := in.insertFindings(ctx, rows, "", updateExisting); err != nil {
		return err
	}
	if len(matches) > 0 {
		if err := in.tx.FindingMatch.CreateBulk(matches...).Exec(ctx); err != nil {
			return err
		}
	}
	for len(events) > 0 {
		part := events[:min(len(events), batchSize)]
		events = events[len(part):]
		if err := in.tx.FindingEvent.CreateBulk(part...).Exec(ctx); err != nil {
			return err
		}
	}
	return nil
}

func idsOf(changed []change) []int64 {
	ids := make([]int64, len(changed))
	for n, c := range changed {
		ids[n] = c.old.ID
	}
	return ids
}

// writeFresh makes the findings that are new on this ref. Decisions that people took about the same ones on other refs come with
// them, unless the scan only compares with a base.
func (in *ingest) writeFresh(ctx context.Context, fresh []*incoming) error {
	if len(fresh) == 0 {
		return nil
	}
	decisions, err := in.decisionsFor(ctx, fresh)
	if err != nil {
		return err
	}
	elsewhere, err := in.foreignContents(ctx, fresh)
	if err != nil {
		return err
	}
	rows := make([]*ent.Finding, len(fresh))
	for n, i := range fresh {
		if content := elsewhere[i.foreignID()]; content != nil {
			if err := i.keepID(content); err != nil {
				return err
			}
		}
		rows[n] = in.create(i, decisions[i.fingerprint])
	}
	var before, behind string
	if in.store.Postgres() {
		before, behind = recordsCreated, createdRecords
	}
	if err := in.insertFindings(ctx, rows, before, behind); err != nil {
		return err
	}
	return in.recogniseFresh(ctx, fresh, elsewhere)
}

// create makes a finding.
func (in *ingest) create(i *incoming, decided *ent.Finding) *ent.Finding {
	row := in.row(i, i.fingerprint, in.scan.ID, in.now)
	row.State, row.RelevantSince, row.StateUpdatedAt = i.state(), in.now, in.now
	if decided != nil {
		row.TriageState, row.TriagedAt = decided.TriageState, decided.TriagedAt
		row.TriageReason, row.TriageComment = decided.TriageReason, decided.TriageComment
	}
	row.Status = lifecycle.Status(row.State, row.TriageState)
	return row
}

// update makes the row of a stored finding as this scan leaves it. It is written as an upsert: one statement for many.
func (in *ingest) update(c change) *ent.Finding {
	old := c.old
	row := in.row(c.incoming, old.Fingerprint, old.FirstSeenScanID, old.CreatedAt)
	row.State, row.RelevantSince, row.StateUpdatedAt = c.incoming.state(), old.RelevantSince, old.StateUpdatedAt
	row.Status = lifecycle.Status(row.State, old.TriageState)
	if old.State != row.State {
		row.StateUpdatedAt = in.now
	}
	if c.what == "reopened" {
		row.RelevantSince = in.now
	}
	return row
}

// row sets what a scan knows about a finding that a scan, this one or an earlier one, saw first. The result has to stay as it is.
func (in *ingest) row(i *incoming, fingerprint string, firstSeenScanID, createdAt int64) *ent.Finding {
	evidence, key := i.evidence.Encode(), i.evidence.Key()
	row := &ent.Finding{
		DeploymentID: in.deploymentID, ProjectID: in.project.ID, RuleID: i.ruleID, FirstSeenScanID: firstSeenScanID, Ref: in.scan.Ref,
		Tool: i.group.tool, AnalysisCategory: i.group.category, Fingerprint: fingerprint, Evidence: &evidence, MatchKey: &key,
		IssueType: i.product, Severity: i.severity, TriageState: lifecycle.Untriaged, CreatedAt: createdAt,
		ContentHash: i.contentHash, Content: blob.Pack(i.encoded), FilePath: orNone(&i.path),
		Exposure: orNone(&i.exposure), Transitivity: orNone(&i.transitivity), EpssProbability: orNone(&i.epssProbability),
		Package: orNone(&i.packageName), Advisory: orNone(&i.advisory), ValidationState: orNone(&i.validationState),
		PolicyMode: orNone(&i.policyMode),
	}
	if i.historical {
		row.Historical = &i.historical
	}
	if i.malicious {
		row.Malicious = &i.malicious
	}
	return row
}
