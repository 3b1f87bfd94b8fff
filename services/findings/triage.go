package findings

import (
	"context"
	"fmt"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/store"
)

// triageLimit is how many findings a call by filter chooses at the most (contract facts 2.5).
const triageLimit = 3000

// Triage is the service group "triage".
type Triage struct {
	findingsv1.UnimplementedTriageServiceServer
	store *store.Store
}

// NewTriage serves triage on the store.
func NewTriage(st *store.Store) *Triage { return &Triage{store: st} }

// BulkTriage chooses findings, adds the same findings on other refs, and changes them all with three statements in one
// transaction: choose, record events, update.
func (s *Triage) BulkTriage(ctx context.Context, r *findingsv1.BulkTriageRequest) (*findingsv1.BulkTriageResponse, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	f := triageFilter(deploymentID, r)
	where, err := f.predicates(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	var triaged []int64
	err = s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
		chosen, err := s.choose(ctx, tx, where, limitOf(r))
		if err != nil || len(chosen) == 0 {
			return err
		}
		all := chosen
		triaged = chosen
		if lifecycle.Spreads(r.GetNewTriageState()) {
			if all, triaged, err = s.twins(ctx, tx, f, chosen); err != nil {
				return err
			}
		}
		return s.decide(ctx, tx, decisionOf(ctx, r), chosen, all)
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(triaged)
	return &findingsv1.BulkTriageResponse{NumTriaged: int32(len(triaged)), TriagedIssues: triaged}, nil
}

// limitOf is how many findings to choose; 0 is no limit, for findings named one by one.
func limitOf(r *findingsv1.BulkTriageRequest) int {
	if r.GetLimit() == 0 && len(r.GetIssueIds()) == 0 {
		return triageLimit
	}
	return int(r.GetLimit())
}

// choose finds what the call names. On PostgreSQL others may decide about the same findings between the question and the
// lock, so it is asked again behind the lock; on SQLite a transaction that writes is alone from its beginning.
func (s *Triage) choose(ctx context.Context, tx *ent.Tx, where []predicate.Finding, limit int) ([]int64, error) {
	query := tx.Finding.Query().Where(where...)
	if limit > 0 {
		query.Order(newestFirst).Limit(limit)
	}
	chosen, err := query.IDs(ctx)
	if err != nil || len(chosen) == 0 || !s.store.Postgres() {
		return chosen, err
	}
	if err := lockProjects(ctx, tx, chosen); err != nil {
		return nil, err
	}
	return tx.Finding.Query().Where(where...).Where(withIDs(chosen)).IDs(ctx)
}

// lockProjects makes triage and imports of the same projects take turns, in one order, so that they cannot deadlock.
func lockProjects(ctx context.Context, tx *ent.Tx, findings []int64) error {
	_, err := tx.Project.Query().Where(func(s *entsql.Selector) {
		owners := entsql.Dialect(s.Dialect()).Select(finding.FieldProjectID).From(entsql.Table(finding.Table))
		owners.Where(store.InIDs(finding.FieldID, findings))
		s.Where(entsql.In(s.C(project.FieldID), owners))
	}).Order(ent.Asc(project.FieldID)).ForUpdate().IDs(ctx)
	return err
}

// decision is what people decided, who did, and when.
type decision struct {
	deploymentID int64
	state        string // empty: only the note changes
	reason       string
	note         string
	actorKind    string
	actorID      int64
	at           int64
}

func decisionOf(ctx context.Context, r *findingsv1.BulkTriageRequest) decision {
	deploymentID, _ := tenant.FromContext(ctx)
	d := decision{
		deploymentID: deploymentID,
		state:        r.GetNewTriageState(),
		reason:       r.GetNewTriageReason(),
		note:         r.GetNewNote(),
		at:           store.Now(),
	}
	if d.state == lifecycle.Ignored && d.reason == "" {
		d.reason = lifecycle.NoTriageReason
	}
	if p, ok := access.FromContext(ctx); ok {
		d.actorKind, d.actorID = string(p.Kind), p.ID
	}
	return d
}

// decide records an event for each finding that the decision changes, and changes it.
func (s *Triage) decide(ctx context.Context, tx *ent.Tx, d decision, chosen, all []int64) error {
	if err := s.record(ctx, tx, d, chosen, all); err != nil {
		return fmt.Errorf("record triage events: %w", err)
	}
	update := tx.Finding.Update().Where(withIDs(all))
	if d.note != "" {
		update.SetTriageComment(d.note)
	}
	if d.state != "" {
		update.SetTriageState(d.state).SetTriagedAt(d.at)
		if d.reason == "" {
			update.ClearTriageReason()
		} else {
			update.SetTriageReason(d.reason)
		}
		update.Modify(func(u *entsql.UpdateBuilder) {
			u.Set(finding.FieldStatus, entsql.ExprFunc(func(b *entsql.Builder) { d.writeStatus(b) }))
		})
	}
	return update.Exec(ctx)
}

// writeStatus writes the SQL twin of lifecycle.Status for the new triage state: a test holds both together.
func (d decision) writeStatus(b *entsql.Builder) {
	b.WriteString("CASE WHEN ").Ident(finding.FieldState).WriteString(" IN ('" + lifecycle.Fixed + "', '" + lifecycle.Removed + "') THEN ").
		Ident(finding.FieldState).WriteString(" ELSE ").Arg(lifecycle.Status(lifecycle.Unresolved, d.state)).WriteString(" END")
}

// changes is the condition under which the decision changes a finding: repeating one is no event.
func (d decision) changes() (condition string, args []any) {
	var parts []string
	if d.state != "" {
		parts = append(parts, "triage_state <> ?", "COALESCE(triage_reason, '') <> ?")
		args = append(args, d.state, d.reason)
	}
	if d.note != "" {
		parts = append(parts, "COALESCE(triage_comment, '') <> ?")
		args = append(args, d.note)
	}
	return "(" + strings.Join(parts, " OR ") + ")", args
}

// record writes the events with one INSERT … SELECT. Findings that were not chosen themselves have a kind of their own.
func (s *Triage) record(ctx context.Context, tx *ent.Tx, d decision, chosen, all []int64) error {
	changed, changedArgs := d.changes()
	kind, to := "noted", "status"
	var toArgs []any
	if d.state != "" {
		kind = "triaged"
		to = "CASE WHEN state IN ('" + lifecycle.Fixed + "', '" + lifecycle.Removed + "') THEN state ELSE ? END"
		toArgs = []any{lifecycle.Status(lifecycle.Unresolved, d.state)}
	}
	inChosen, chosenList := s.store.InIDs(chosen)
	inAll, allList := s.store.InIDs(all)
	columns := []string{findingevent.FieldDeploymentID, findingevent.FieldFindingID, findingevent.FieldKind, findingevent.FieldFromStatus,
		findingevent.FieldToStatus, findingevent.FieldReason, findingevent.FieldNote, findingevent.FieldActorKind, findingevent.FieldActorID, findingevent.FieldAt}
	query := "INSERT INTO " + findingevent.Table + " (" + strings.Join(columns, ", ") + ") " +
		"SELECT deployment_id, id, CASE WHEN id" + inChosen + " THEN ? ELSE 'triage_spread' END, status, " + to + ", ?, ?, ?, ?, ? FROM " + finding.Table +
		" WHERE deployment_id = ? AND id" + inAll + " AND " + changed
	args := append([]any{chosenList, kind}, toArgs...)
	args = append(args, d.reason, d.note, d.actorKind, d.actorID, d.at, d.deploymentID, allList)
	return s.store.Exec(ctx, tx, query, append(args, changedArgs...)...)
}

func triageFilter(deploymentID int64, r *findingsv1.BulkTriageRequest) *filter {
	return &filter{
		deploymentID:      deploymentID,
		issueType:         r.GetIssueType(),
		since:             r.GetSince(),
		ids:               r.GetIssueIds(),
		repos:             r.GetRepos(),
		projectTags:       r.GetProjectTags(),
		visibilities:      r.GetRepositoryVisibility(),
		ref:               r.GetRef(),
		status:            r.GetStatus(),
		triageReasons:     r.GetTriageReasons(),
		severities:        r.GetSeverities(),
		componentTags:     r.GetComponentTags(),
		policies:          slices.Concat(r.GetPolicies(), r.GetPolicyMode()),
		rules:             r.GetRules(),
		categories:        r.GetCategories(),
		confidence:        r.GetConfidence(),
		verdict:           r.GetAutotriageVerdict(),
		exposures:         r.GetExposures(),
		transitivities:    r.GetTransitivities(),
		dependencies:      r.GetDependencies(),
		epss:              r.GetEpssProbability(),
		secretTypes:       r.GetSecretTypes(),
		validationStates:  r.GetValidationState(),
		includeHistorical: r.GetIncludeHistorical() || len(r.GetIssueIds()) > 0,
	}
}
