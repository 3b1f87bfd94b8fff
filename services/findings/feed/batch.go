package feed

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/findings/verdict"
	"github.com/palisade/palisade/services/internal/store"
)

// batch has events and what watchers send of them. What is computed once serves all watchers.
type batch struct {
	feed         *Feed
	deploymentID int64
	events       []*ent.FindingEvent
	size         int // memory in bytes, about

	render  sync.Once
	changes []*findingsv1.FindingChange // of events, by index
	failed  error

	mu    sync.Mutex
	views map[string]*view // by what the watcher may see and its filter
}

// view is what watchers with one filter and one visibility get of a batch.
type view struct {
	once    sync.Once
	changes []*findingsv1.FindingChange // of events, by index; nil for the others
	err     error
}

// eventMemory is the memory of an event and its change without their texts, in bytes.
const eventMemory = 1 << 10

func newBatch(f *Feed, deploymentID int64, events []*ent.FindingEvent) *batch {
	b := &batch{feed: f, deploymentID: deploymentID, events: events, views: map[string]*view{}}
	for _, e := range events {
		b.size += sizeOf(e)
	}
	return b
}

func sizeOf(e *ent.FindingEvent) int {
	return eventMemory + len(e.Reason) + len(e.Note) + len(e.ActorName)
}

// scope is what one watcher sees: its context, which may be limited to teams, and its filter.
type scope struct {
	ctx    context.Context
	filter *findingsv1.IssuesFilter
	key    string // equal for equal filters and visibilities
}

func newScope(ctx context.Context, filter *findingsv1.IssuesFilter) (scope, error) {
	s := scope{ctx: ctx, filter: filter, key: tenant.Visibility(ctx)}
	if filter != nil {
		canonical, err := proto.MarshalOptions{Deterministic: true}.Marshal(filter)
		if err != nil {
			return scope{}, err
		}
		s.key += "\x00filter" + string(canonical)
	}
	return s, nil
}

// sendable returns the changes of the batch in a scope, with nil for the others. Changes are shared: do not modify
// them.
func (b *batch) sendable(s scope) ([]*findingsv1.FindingChange, error) {
	b.render.Do(func() { b.changes, b.failed = b.convert() })
	if b.failed != nil || s.key == "" {
		return b.changes, b.failed
	}
	b.mu.Lock()
	v := b.views[s.key]
	if v == nil {
		v = &view{}
		b.views[s.key] = v
	}
	b.mu.Unlock()
	v.once.Do(func() { v.changes, v.err = b.seen(s) })
	if v.err != nil {
		b.mu.Lock()
		delete(b.views, s.key) // the error may be of this watcher alone: its context ended
		b.mu.Unlock()
		return nil, v.err
	}
	return v.changes, nil
}

// seen returns the changes of the findings that match now, and of those that a change took out of the filter.
func (b *batch) seen(s scope) ([]*findingsv1.FindingChange, error) {
	now, err := b.matching(s, s.filter, b.findingIDs())
	if err != nil {
		return nil, err
	}
	left, err := b.left(s, now)
	if err != nil {
		return nil, err
	}
	list := make([]*findingsv1.FindingChange, len(b.changes))
	for i, e := range b.events {
		switch {
		case now[e.FindingID]:
			list[i] = b.changes[i]
		case left[e.ID]:
			list[i] = proto.CloneOf(b.changes[i])
			list[i].Matches = false
		}
	}
	return list, nil
}

// left returns the ids of the events that took findings out of the filter: the findings matched it before the event,
// and still match the part of it that no event changes.
func (b *batch) left(s scope, now map[int64]bool) (map[int64]bool, error) {
	left := map[int64]bool{}
	if s.filter == nil {
		return left, nil
	}
	for _, verdicts := range []bool{false, true} {
		past := issuefilter.PastOf(s.filter, verdicts)
		events, findings := map[int64]int64{}, map[int64]bool{}
		for _, e := range b.events {
			if verdicts == (e.Kind == verdict.EventKind) && !now[e.FindingID] && past.Matched(e.FromStatus) {
				events[e.ID], findings[e.FindingID] = e.FindingID, true
			}
		}
		if len(events) == 0 {
			continue
		}
		others, err := b.matching(s, past.Rest, slices.Sorted(maps.Keys(findings)))
		if err != nil {
			return nil, err
		}
		for id, of := range events {
			left[id] = others[of]
		}
	}
	return left, nil
}

// matching selects the findings that the scope sees and that match a filter now.
func (b *batch) matching(s scope, filter *findingsv1.IssuesFilter, ids []int64) (map[int64]bool, error) {
	query := b.feed.source.store.Reader.Finding.Query().Where(store.WithIDs[predicate.Finding](ids))
	if filter != nil {
		where, err := issuefilter.WhereOfAll(s.ctx, filter, time.Now())
		if err != nil {
			return nil, err
		}
		query.Where(where...)
	}
	found, err := query.IDs(s.ctx)
	matching := make(map[int64]bool, len(found))
	for _, id := range found {
		matching[id] = true
	}
	return matching, err
}

func (b *batch) findingIDs() []int64 {
	ids := map[int64]bool{}
	for _, e := range b.events {
		ids[e.FindingID] = true
	}
	return slices.Sorted(maps.Keys(ids))
}

// convert renders the events of the batch, with findings, projects and rules. It runs for all watchers, so it does not
// end with one of them.
func (b *batch) convert() ([]*findingsv1.FindingChange, error) {
	ctx, cancel := context.WithTimeout(tenant.NewContext(context.Background(), b.deploymentID), readTimeout)
	defer cancel()
	findings, err := b.findings(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the findings of changes: %w", err)
	}
	list := make([]*findingsv1.FindingChange, len(b.events))
	for i, e := range b.events {
		list[i] = &findingsv1.FindingChange{
			Id: e.ID, Kind: e.Kind, At: timestamppb.New(store.Time(e.At)), FromStatus: e.FromStatus, ToStatus: e.ToStatus,
			Reason: e.Reason, Note: e.Note, ActorKind: e.ActorKind, ActorId: e.ActorID, ActorName: e.ActorName, ScanId: e.ScanID,
			Finding: findings[e.FindingID], Matches: true,
		}
		if list[i].Finding == nil { // deleted with its project
			list[i].Finding, list[i].Matches = &findingsv1.ChangedFinding{Id: e.FindingID}, false
		}
	}
	return list, nil
}

func (b *batch) findings(ctx context.Context) (map[int64]*findingsv1.ChangedFinding, error) {
	db := b.feed.source.store.Reader
	rows, err := db.Finding.Query().Where(store.WithIDs[predicate.Finding](b.findingIDs())).
		Select(finding.FieldID, finding.FieldIssueType, finding.FieldStatus, finding.FieldProjectID, finding.FieldRef, finding.FieldRuleID, finding.FieldSeverity, finding.FieldContent).All(ctx)
	if err != nil {
		return nil, err
	}
	projects, rules := map[int64]string{}, map[int64]string{}
	for _, row := range rows {
		projects[row.ProjectID], rules[row.RuleID] = "", ""
	}
	named, err := db.Project.Query().Where(store.WithIDs[predicate.Project](slices.Collect(maps.Keys(projects)))).Select(project.FieldID, project.FieldName).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range named {
		projects[p.ID] = p.Name
	}
	checks, err := db.Rule.Query().Where(store.WithIDs[predicate.Rule](slices.Collect(maps.Keys(rules)))).Select(rule.FieldID, rule.FieldName).All(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range checks {
		rules[r.ID] = r.Name
	}
	out := make(map[int64]*findingsv1.ChangedFinding, len(rows))
	for _, row := range rows {
		content, err := blob.Decode(row.Content)
		if err != nil {
			return nil, err
		}
		out[row.ID] = &findingsv1.ChangedFinding{
			Id: row.ID, IssueType: row.IssueType, Status: row.Status, ProjectId: row.ProjectID, Project: projects[row.ProjectID], Ref: row.Ref,
			RuleName: rules[row.RuleID], Severity: row.Severity, Path: content.GetLocation().GetFilePath(), Line: content.GetLocation().GetLine(),
		}
	}
	return out, nil
}
