package ingest

import (
	"bytes"
	"context"
	"fmt"

	"github.com/palisade/palisade/ent"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/exploit"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/policies/pathignore"
)

// writer is the step that writes new and changed findings.
type writer struct {
	*session
	*Summary
	newProject bool
	batch      []*Result
	// statements caches the text of statements.
	statements map[statementKey]string
	// recognised has the events of created findings that equal findings of other refs inexactly. They are written after
	// the "created" events.
	recognised []recognised
	// accepted and released are findings whose decision in the tool begins or ends.
	accepted []accepted
	released []int64
	// superseded are created findings that a newer scan no longer has, by its decision.
	superseded map[overtaking][]int64
	// equal has the results with equal code, for groups in which some come in another order.
	equal map[*group]*equalResults
	// exploits has what is known about the vulnerabilities of the batch.
	exploits exploit.Known
}

func (s *session) write(ctx context.Context, read *Reading, m *matched) (*Summary, error) {
	w := &writer{session: s, Summary: &Summary{Counts: map[Outcome]int{}}, newProject: m.newProject, superseded: map[overtaking][]int64{}, equal: map[*group]*equalResults{}}
	if err := w.writeFindings(ctx, read, m); err != nil {
		return nil, fmt.Errorf("write findings: %w", err)
	}
	if err := w.recordCreated(ctx); err != nil {
		return nil, fmt.Errorf("record created findings: %w", err)
	}
	if err := w.recordDecisions(ctx); err != nil {
		return nil, fmt.Errorf("record decisions of tools: %w", err)
	}
	if err := w.closeSuperseded(ctx); err != nil {
		return nil, fmt.Errorf("close findings that a newer scan no longer has: %w", err)
	}
	return w.Summary, nil
}

func (w *writer) writeFindings(ctx context.Context, read *Reading, m *matched) error {
	open, of := false, map[*group]*matches{}
	for _, g := range m.groups {
		of[g.group] = g
		for product, n := range g.unchanged.of {
			if n > 0 {
				w.Counts[Outcome{Product: products[product], What: "unchanged"}] += n
			}
		}
		open = open || g.unchanged.total() < g.traces.size
	}
	if !open {
		return nil
	}
	if err := w.announce(ctx, m.unknown()); err != nil {
		return err
	}
	next := map[*group]int{}
	err := read.journal.each(func(g *group) (int, bool) {
		result := next[g]
		next[g]++
		return result, !of[g].unchanged.has(result)
	}, func(i *Result) error {
		i.matches, i.evidence = of[i.of], i.of.traces.at(i.result).Evidence
		if i.ignored {
			i.pattern, _ = w.ignores.Match(i.Product, i.path)
		}
		if w.batch = append(w.batch, i); len(w.batch) < batchSize {
			return nil
		}
		return w.flush(ctx)
	})
	if err != nil {
		return err
	}
	if err := w.flush(ctx); err != nil {
		return err
	}
	return read.spillError()
}

// flush compares the batch with the stored findings, and writes what is new or changed.
func (w *writer) flush(ctx context.Context) error {
	if len(w.batch) == 0 {
		return nil
	}
	w.work.Yield(ctx)
	if err := w.space.Continue(); err != nil {
		return err
	}
	batch := w.batch
	w.batch = w.batch[:0:0]
	if err := w.assignFingerprints(ctx, batch); err != nil {
		return err
	}
	stored, err := w.storedFindings(ctx, batch)
	if err != nil {
		return err
	}
	advisories := make([]string, len(batch))
	for n, i := range batch {
		advisories[n] = i.Advisory
	}
	if w.exploits, err = exploit.Read(ctx, w.tx.Client(), advisories); err != nil {
		return err
	}
	compared, fresh := split(batch, stored)
	for _, i := range fresh {
		if err := w.noteFresh(i); err != nil {
			return err
		}
	}
	changed, before, err := w.sift(ctx, compared)
	if err != nil {
		return err
	}
	if err := w.writeChanged(ctx, changed, before); err != nil {
		return err
	}
	return w.writeFresh(ctx, fresh)
}

// noteFresh counts a new finding.
func (w *writer) noteFresh(i *Result) error {
	if i.foreignID() != 0 || len(i.matches.considered[i.result]) > 0 {
		if err := i.load(); err != nil {
			return err
		}
	}
	what := "created"
	if newer, _ := i.overtaken(); newer != nil {
		what = superseded
	}
	w.Counts[Outcome{Product: i.Product, What: what}]++
	return w.noteDecision(i, nil, "")
}

// knownID is the id of the finding of this ref that the result was joined to; 0 means a new finding.
func (i *Result) knownID() int64 { return i.matches.joined[i.result] }

// rung is the evidence of an inexact join, on this ref or another one; empty for exact joins.
func (i *Result) rung() string {
	if foreign := i.matches.foreign[i.result]; foreign != nil && !identity.Exact(foreign.rung) {
		return foreign.rung
	}
	return i.matches.rungs[i.result]
}

// change is a result together with its stored finding.
type change struct {
	*Result
	old *ent.Finding
	// what is the outcome. event is the kind of the event; empty means no event.
	what, event string
	// silent says that the row changes, but without an event.
	silent bool
	// renumbered says that the report has the same equal results in another order: see [writer.isRenumbered].
	renumbered bool
}

func (c change) written() bool { return c.what != "unchanged" && c.what != superseded || c.silent }

// compare decides what a result changes about its stored finding.
func (i *Result) compare(old *ent.Finding) change {
	if what := i.olderOutcome(old); what != "" {
		return change{Result: i, old: old, what: what}
	}
	c := change{Result: i, old: old, what: "updated"}
	// Rows from before a column existed, or from before a rule was renamed, are rewritten without an event.
	c.silent = old.FilePath == nil && i.path != "" || old.Evidence == nil || !bytes.Equal(*old.Evidence, i.evidence.Encode())
	state, was := i.state(), derefOrEmpty(old.IgnoredByPattern)
	switch {
	case !lifecycle.Seen(old.State):
		c.what, c.event = "reopened", "reopened"
	case i.ignored && (was != i.pattern || old.State != state):
		c.event = pathignore.EventIgnored
	case !i.ignored && was != "" && !i.Suppressed:
		c.event = pathignore.EventReturned
	case (old.State != state || was != "") && i.Suppressed:
		c.event = "muted"
	case old.State != state:
		c.event = "unmuted"
	case i.rung() != "": // recorded by its own event
	case old.ContentHash != i.contentHash:
		c.event = "updated"
	default:
		c.what = "unchanged"
	}
	return c
}

// event builds the event of a change.
func (w *writer) event(c change, kind, to, reason string) *ent.FindingEventCreate {
	return w.tx.FindingEvent.Create().SetDeploymentID(w.deploymentID).SetFindingID(c.old.ID).SetKind(kind).
		SetFromStatus(c.old.Status).SetToStatus(to).SetReason(reason).
		SetActorKind("scan").SetActorID(w.scan.ID).SetScanID(w.scan.ID).SetAt(w.now)
}

// writeChanged writes the findings that this scan changes, and their events. before has their stored contents.
func (w *writer) writeChanged(ctx context.Context, changed []change, before map[int64]*storev1.FindingContent) error {
	if len(changed) == 0 {
		return nil
	}
	closed, err := w.closings(ctx, changed)
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
		rows = append(rows, w.update(c))
		if c.rung() != "" {
			match, reason, err := w.recogniseOld(c, old)
			if err != nil {
				return err
			}
			matches = append(matches, match)
			events = append(events, w.event(c, "matched", c.old.Status, reason))
		}
		if c.event != "" {
			events = append(events, w.event(c, c.event, lifecycle.Status(c.Result.state(), c.old.TriageState), c.reason(closed)))
		}
	}
	if err := w.insertFindings(ctx, rows, "", updateExisting); err != nil {
		return err
	}
	if len(matches) > 0 {
		if err := w.tx.FindingMatch.CreateBulk(matches...).Exec(ctx); err != nil {
			return err
		}
	}
	return w.createEvents(ctx, events)
}

func idsOf(changed []change) []int64 {
	ids := make([]int64, len(changed))
	for n, c := range changed {
		ids[n] = c.old.ID
	}
	return ids
}

// writeFresh creates the findings that are new on this ref. They inherit the decisions that people made about the same
// finding on other refs, unless this is a diff scan.
func (w *writer) writeFresh(ctx context.Context, fresh []*Result) error {
	if len(fresh) == 0 {
		return nil
	}
	decisions, err := w.decisionsFor(ctx, fresh)
	if err != nil {
		return err
	}
	elsewhere, err := w.foreignContents(ctx, fresh)
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
		rows[n] = w.create(i, decisions[i.fingerprint])
	}
	var before, behind string
	if w.store.Postgres() {
		before, behind = recordsCreated, createdRecords
	}
	if err := w.insertFindings(ctx, rows, before, behind); err != nil {
		return err
	}
	if err := w.noteSuperseded(ctx, fresh); err != nil {
		return err
	}
	return w.recogniseFresh(ctx, fresh, elsewhere)
}

// create builds the row of a new finding.
func (w *writer) create(i *Result, decided *ent.Finding) *ent.Finding {
	row := w.row(i, i.fingerprint, w.scan.ID, w.now)
	if i.matches.newer != nil {
		row.LastSeenScanID = &w.scan.ID
	}
	row.State, row.RelevantSince, row.StateUpdatedAt = i.state(), w.now, w.now
	if decided != nil {
		row.TriageState, row.TriagedAt = decided.TriageState, decided.TriagedAt
		row.TriageReason, row.TriageComment = decided.TriageReason, decided.TriageComment
	}
	row.Status = lifecycle.Status(row.State, row.TriageState)
	return row
}

// update builds the row of a changed finding. It is written as an upsert, so that one statement updates many rows.
func (w *writer) update(c change) *ent.Finding {
	old := c.old
	row := w.row(c.Result, old.Fingerprint, old.FirstSeenScanID, old.CreatedAt)
	row.State, row.RelevantSince, row.StateUpdatedAt = c.Result.state(), old.RelevantSince, old.StateUpdatedAt
	row.Status = lifecycle.Status(row.State, old.TriageState)
	if reportedState(old) != c.reportedState() { // policies leave the time alone, so that all is as before without them
		row.StateUpdatedAt = w.now
	}
	if c.what == "reopened" {
		row.RelevantSince = w.now
	}
	return row
}

// reportedState is the state that scans have set, without the policy that ignores the path.
func reportedState(f *ent.Finding) string {
	if f.IgnoredByPattern != nil {
		return lifecycle.Unresolved
	}
	return f.State
}

// row sets the columns that a scan determines. The row refers to the result, which must not change before it is
// written.
func (w *writer) row(i *Result, fingerprint string, firstSeenScanID, createdAt int64) *ent.Finding {
	evidence, key := i.evidence.Encode(), i.evidence.Key()
	row := &ent.Finding{
		DeploymentID: w.deploymentID, ProjectID: w.project.ID, RuleID: i.ruleID, FirstSeenScanID: firstSeenScanID, Ref: w.scan.Ref,
		Tool: i.Group.Tool, AnalysisCategory: i.Group.Category, Fingerprint: fingerprint, Evidence: &evidence, MatchKey: &key,
		IssueType: i.Product, Severity: i.Severity, TriageState: lifecycle.Untriaged, CreatedAt: createdAt,
		ContentHash: i.contentHash, Content: blob.Pack(i.encoded), FilePath: nilIfEmpty(&i.path),
		Exposure: nilIfEmpty(&i.Exposure), Transitivity: nilIfEmpty(&i.Transitivity),
		Package: nilIfEmpty(&i.Package), Advisory: nilIfEmpty(&i.Advisory), ValidationState: nilIfEmpty(&i.ValidationState),
		PolicyMode: nilIfEmpty(&i.PolicyMode), IgnoredByPattern: nilIfEmpty(&i.pattern),
	}
	if i.Product == vocabulary.SCA {
		probability := w.exploits.Probability(i.Advisory)
		row.EpssProbability = &probability
	}
	if i.Historical {
		row.Historical = &i.Historical
	}
	if i.Malicious {
		row.Malicious = &i.Malicious
	}
	return row
}
