package ai

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	entsql "entgo.io/ent/dialect/sql"
	"github.com/riverqueue/river"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aimemory"
	"github.com/palisade/palisade/ent/deployment"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/ent/token"
	"github.com/palisade/palisade/ent/user"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/ai/memory"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
)

const (
	// suggestInterval is how often suggestions are computed.
	suggestInterval = time.Hour
	// suggestThreshold is how many findings of a rule and project must have been ignored as false positives with notes.
	suggestThreshold = 3
	// suggestSources is the number of notes in a suggestion, suggestBatch the number of suggestions per deployment and
	// run.
	suggestSources, suggestBatch = 10, 50
	// noteRunes and nameRunes limit notes and names in a suggestion, so that its text is no longer than the limit for
	// people's own memories.
	noteRunes, nameRunes = 400, 300
)

// MemoriesBackground returns the background work of memories.
func MemoriesBackground(st *store.Store) jobs.Work {
	return jobs.Work{
		Register: func(workers *river.Workers) { jobs.AddWorker(workers, &suggestWorker{memories: NewMemories(st)}) },
		Periodic: []*river.PeriodicJob{jobs.Every(suggestInterval, suggestMemories{})},
	}
}

// suggestMemories is the periodic job that suggests memories from triage notes.
type suggestMemories struct{}

// Kind is the name in the queue.
func (suggestMemories) Kind() string { return "ai_suggest_memories" }

// InsertOpts keeps jobs from piling up while no node works.
func (suggestMemories) InsertOpts() river.InsertOpts { return jobs.OnceWaiting() }

type suggestWorker struct {
	river.WorkerDefaults[suggestMemories]
	memories *Memories
}

// Work suggests memories in all deployments.
func (w *suggestWorker) Work(ctx context.Context, _ *river.Job[suggestMemories]) error {
	deployments, err := w.memories.store.Reader.Deployment.Query().Order(ent.Asc(deployment.FieldID)).IDs(tenant.System(ctx))
	for _, id := range deployments {
		if err := w.memories.suggest(tenant.NewContext(ctx, id)); err != nil {
			return fmt.Errorf("suggest memories in deployment %d: %w", id, err)
		}
	}
	return err
}

// pattern is a rule that people ignore in a project.
type pattern struct {
	ProjectID int64 `sql:"project_id"`
	RuleID    int64 `sql:"rule_id"`
}

// suggest creates the suggestions of the context's deployment, each in its own transaction.
func (s *Memories) suggest(ctx context.Context) error {
	var patterns []pattern
	err := s.store.Reader.Finding.Query().Where(notedFalsePositive...).Where(withoutMemory).Modify(func(sel *entsql.Selector) {
		sel.Select(sel.C(finding.FieldProjectID), sel.C(finding.FieldRuleID)).GroupBy(sel.C(finding.FieldProjectID), sel.C(finding.FieldRuleID)).
			Having(entsql.P(func(b *entsql.Builder) {
				b.WriteString("COUNT(DISTINCT " + sel.C(finding.FieldFingerprint) + ") >= ").Arg(suggestThreshold)
			})).OrderBy(sel.C(finding.FieldProjectID), sel.C(finding.FieldRuleID)).Limit(suggestBatch)
	}).Scan(ctx, &patterns)
	if err != nil {
		return err
	}
	for _, p := range patterns {
		if err := s.store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error { return s.suggestOne(ctx, tx, p) }); err != nil {
			return err
		}
	}
	return nil
}

// notedFalsePositive selects findings ignored as false positives with a note.
var notedFalsePositive = []predicate.Finding{
	finding.TriageState(lifecycle.Ignored), finding.TriageReason("false_positive"), finding.TriageCommentNotNil(), finding.TriageCommentNEQ(""),
}

// withoutMemory excludes findings of rules with a memory for the project, deleted ones included: a rejected memory is
// not suggested again.
func withoutMemory(s *entsql.Selector) {
	m := entsql.Table(aimemory.Table).As("known")
	s.Where(entsql.NotExists(entsql.Dialect(s.Dialect()).Select(m.C(aimemory.FieldID)).From(m).Where(entsql.And(
		entsql.ColumnsEQ(m.C(aimemory.FieldDeploymentID), s.C(finding.FieldDeploymentID)),
		entsql.ColumnsEQ(m.C(aimemory.FieldProjectID), s.C(finding.FieldProjectID)),
		entsql.ColumnsEQ(m.C(aimemory.FieldRuleID), s.C(finding.FieldRuleID)),
	))))
}

// suggestOne suggests a memory for a pattern. Concurrent nodes are serialized, and the second one finds the memory.
func (s *Memories) suggestOne(ctx context.Context, tx *ent.Tx, p pattern) error {
	query := tx.Project.Query().Where(project.ID(p.ProjectID))
	if s.store.Postgres() {
		query.ForUpdate()
	}
	owner, err := query.Only(ctx)
	if ent.IsNotFound(err) {
		return nil // deleted concurrently
	}
	if err != nil {
		return err
	}
	rows, err := tx.Finding.Query().Where(notedFalsePositive...).Where(withoutMemory, finding.ProjectID(p.ProjectID), finding.RuleID(p.RuleID)).
		Order(ent.Desc(finding.FieldTriagedAt), ent.Asc(finding.FieldID)).Limit(500).
		Select(finding.FieldID, finding.FieldFingerprint, finding.FieldTriageComment, finding.FieldTriagedAt).All(ctx)
	if err != nil || len(rows) < suggestThreshold {
		return err
	}
	total, err := tx.AiMemory.Query().Where(aimemory.StageNEQ(memory.Deleted)).Count(ctx)
	if err != nil || total >= memoriesLimit {
		return err
	}
	about, err := tx.Rule.Query().Where(rule.ID(p.RuleID)).Select(rule.FieldID, rule.FieldName).Only(ctx)
	if err != nil {
		return err
	}
	details := &storev1.AiMemoryDetails{Sources: notes(rows)}
	if err := addAuthors(ctx, tx, details.GetSources()); err != nil {
		return err
	}
	row, err := storeMemory(ctx, tx, &ent.AiMemory{
		Content: suggestion(about.Name, owner.Name, details.GetSources()), RuleID: &p.RuleID, ProjectID: &p.ProjectID,
		Context: contextOf(nil), PathPrefixes: []string{}, Stage: memory.Suggested,
	}, details, "")
	if err != nil {
		return err
	}
	shown, err := convertMemories(ctx, tx.Client(), row)
	if err != nil {
		return err
	}
	audit.Change(ctx, memoryKind, row.ID, nil, shown[0])
	return nil
}

// notes returns the distinct notes, newest first. Equal notes on several refs or findings count once.
func notes(rows []*ent.Finding) (sources []*storev1.AiMemorySource) {
	seen := map[string]bool{}
	for _, row := range rows {
		note := strings.TrimSpace(*row.TriageComment)
		if note == "" || seen[note] || len(sources) == suggestSources {
			continue
		}
		seen[note] = true
		source := &storev1.AiMemorySource{Note: note, SampleIssueId: strconv.FormatInt(row.ID, 10)}
		if row.TriagedAt != nil {
			source.CreatedAt = timestamppb.New(store.Time(*row.TriagedAt))
		}
		sources = append(sources, source)
	}
	return sources
}

// addAuthors adds the authors of the notes from the history of the findings.
func addAuthors(ctx context.Context, tx *ent.Tx, sources []*storev1.AiMemorySource) error {
	ids := make([]int64, len(sources))
	for i, source := range sources {
		ids[i], _ = strconv.ParseInt(source.GetSampleIssueId(), 10, 64)
	}
	events, err := tx.FindingEvent.Query().Where(store.OneOf(findingevent.FieldFindingID, ids), findingevent.KindHasPrefix("triage")).
		Order(ent.Asc(findingevent.FieldID)).All(ctx)
	if err != nil {
		return err
	}
	last := map[int64]*ent.FindingEvent{}
	for _, e := range events {
		last[e.FindingID] = e
	}
	for i, source := range sources {
		if e := last[ids[i]]; e != nil {
			if source.CreatedBy, err = author(ctx, tx, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// author is the display name of an event's author; empty if the user was deleted.
func author(ctx context.Context, tx *ent.Tx, e *ent.FindingEvent) (name string, err error) {
	switch e.ActorKind {
	case "user":
		name, err = tx.User.Query().Where(user.ID(e.ActorID)).Select(user.FieldEmail).String(tenant.System(ctx))
	case "token":
		name, err = tx.Token.Query().Where(token.ID(e.ActorID)).Select(token.FieldName).String(ctx)
	default:
		return e.ActorName, nil
	}
	if ent.IsNotFound(err) {
		return "", nil
	}
	return name, err
}

// suggestion is the text of a suggested memory.
func suggestion(ruleName, projectName string, sources []*storev1.AiMemorySource) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Findings of the rule %s in %s were ignored as false positives. What was noted:", cutRunes(ruleName, nameRunes), cutRunes(projectName, nameRunes))
	for _, source := range sources {
		b.WriteString("\n- " + cutRunes(strings.Join(strings.Fields(source.GetNote()), " "), noteRunes))
	}
	return b.String()
}

func cutRunes(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}
