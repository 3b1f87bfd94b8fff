package issue

import (
	"cmp"
	"context"
	"slices"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aianalysis"
	"github.com/palisade/palisade/ent/aifix"
	"github.com/palisade/palisade/ent/aitaskgroup"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/store"
)

// The number of entries in a history: of an issue that is shown alone, and of each issue in a list.
const (
	wholeHistory  = 200
	listedHistory = 20
)

// historyEntry is an entry of a history before the name of its actor is known.
type historyEntry struct {
	at    int64
	by    actor
	shown *findingsv1.IssueActivityHistoryEvent
}

// histories collects the entries of findings.
type histories struct {
	*relatedRows
	entries map[int64][]historyEntry
	limit   int
}

// readHistory reads the newest entries of each row's history, newest first. It sends a fixed number of queries.
func (a *relatedRows) readHistory(ctx context.Context, db *ent.Client, limit int) error {
	h := &histories{a, map[int64][]historyEntry{}, limit}
	a.attempts = map[int64][]*findingsv1.TicketAttempt{}
	h.addRatings()
	for _, part := range []func(context.Context, *ent.Client) error{h.readEvents, h.readAnalyses, h.readFixes} {
		if err := part(ctx, db); err != nil {
			return err
		}
	}
	var actors []actor
	for id, entries := range h.entries {
		slices.SortStableFunc(entries, func(a, b historyEntry) int { return cmp.Compare(b.at, a.at) })
		entries = entries[:min(len(entries), limit)]
		h.entries[id] = entries
		for _, entry := range entries {
			actors = append(actors, entry.by)
		}
	}
	names, err := actorNames(ctx, db, actors)
	if err != nil {
		return err
	}
	a.history = map[int64][]*findingsv1.IssueActivityHistoryEvent{}
	for id, entries := range h.entries {
		for _, entry := range entries {
			entry.shown.Date, entry.shown.Actor = timestamp(entry.at), names[entry.by]
			a.history[id] = append(a.history[id], entry.shown)
		}
	}
	return nil
}

func (h *histories) add(findingID, at int64, by actor, shown *findingsv1.IssueActivityHistoryEvent) {
	h.entries[findingID] = append(h.entries[findingID], historyEntry{at, by, shown})
}

// newest selects the newest rows of a table for each of the findings.
func (h *histories) newest(ctx context.Context, table string) func(*entsql.Selector) {
	deploymentID, _ := tenant.FromContext(ctx)
	return func(s *entsql.Selector) {
		if len(h.ids) == 1 {
			s.Where(entsql.EQ(s.C("finding_id"), h.ids[0])).OrderBy(entsql.Desc(s.C("id"))).Limit(h.limit)
			return
		}
		t := entsql.Table(table).As("numbered")
		numbered := entsql.Dialect(s.Dialect()).Select(t.C("id")).From(t).
			Where(entsql.And(entsql.EQ(t.C("deployment_id"), deploymentID), store.InIDs(t.C("finding_id"), h.ids)))
		numbered.AppendSelectExprAs(entsql.Expr("ROW_NUMBER() OVER (PARTITION BY numbered.finding_id ORDER BY numbered.id DESC)"), "position")
		newest := numbered.As("newest")
		top := entsql.Dialect(s.Dialect()).Select(newest.C("id")).From(newest).Where(entsql.LTE(newest.C("position"), h.limit))
		s.Where(entsql.In(s.C("id"), top))
	}
}

func (h *histories) readEvents(ctx context.Context, db *ent.Client) error {
	events, err := db.FindingEvent.Query().Where(h.newest(ctx, findingevent.Table)).All(ctx)
	for _, e := range events {
		h.add(e.FindingID, e.At, actor{e.ActorKind, e.ActorID, e.ActorName}, h.describe(e))
		if e.Kind == ticketAttempted {
			h.attempts[e.FindingID] = append(h.attempts[e.FindingID], &findingsv1.TicketAttempt{AttemptedAt: timestamp(e.At), ResponseMessage: e.Note})
		}
	}
	return err
}

// readAnalyses adds when analyses started, and the tag that the last one set.
func (h *histories) readAnalyses(ctx context.Context, db *ent.Client) error {
	for id, last := range h.analyses {
		if tag := last.result.GetComponentTag(); tag != "" && last.finishedAt != nil {
			h.add(id, *last.finishedAt, actor{}, &findingsv1.IssueActivityHistoryEvent{
				Title: "Tagged as " + tag, HistoryType: findingsv1.HistoryType_HISTORY_TYPE_AI_TAG,
			})
		}
	}
	started, err := db.AiAnalysis.Query().Where(h.newest(ctx, aianalysis.Table), aianalysis.Trial(false)).
		Select(aianalysis.FieldID, aianalysis.FieldFindingID, aianalysis.FieldGroupID, aianalysis.FieldCreatedAt).All(ctx)
	if err != nil || len(started) == 0 {
		return err
	}
	ids := make([]int64, len(started))
	for i, row := range started {
		ids[i] = row.GroupID
	}
	tasks, err := db.AiTaskGroup.Query().Where(func(s *entsql.Selector) { s.Where(store.InIDs(s.C(aitaskgroup.FieldID), ids)) }).All(ctx)
	if err != nil {
		return err
	}
	of := map[int64]*ent.AiTaskGroup{}
	for _, task := range tasks {
		of[task.ID] = task
	}
	for _, row := range started {
		shown := &findingsv1.IssueActivityHistoryEvent{
			Title: "Analysis started", HistoryType: findingsv1.HistoryType_HISTORY_TYPE_ANALYSIS_STARTED,
		}
		var by actor
		if task := of[row.GroupID]; task != nil {
			by = actor{kind: task.ActorKind, id: task.ActorID}
			if task.Regenerate && slices.Contains(task.Chains, "CHAIN_AUTOTRIAGE_WITH_GUIDANCE_AND_AUTOFIX") {
				shown.Title, shown.HistoryType = "Guidance requested again", findingsv1.HistoryType_HISTORY_TYPE_GUIDANCE_REGENERATION
			}
		}
		h.add(row.FindingID, row.CreatedAt, by, shown)
	}
	return nil
}

// addRatings adds the ratings of the last verdict.
func (h *histories) addRatings() {
	for id, last := range h.analyses {
		for _, rating := range last.feedback {
			word := strings.ToLower(strings.TrimPrefix(rating.Rating, "RATING_"))
			h.add(id, rating.At, actor{kind: "user", id: rating.UserID}, &findingsv1.IssueActivityHistoryEvent{
				Title: "Verdict rated as " + word, Note: rating.Note, HistoryType: findingsv1.HistoryType_HISTORY_TYPE_AUTOTRIAGE_FEEDBACK,
			})
		}
	}
}

// readFixes adds the requests for fixes and their outcomes.
func (h *histories) readFixes(ctx context.Context, db *ent.Client) error {
	fixes, err := db.AiFix.Query().Where(h.newest(ctx, aifix.Table)).All(ctx)
	for _, fix := range fixes {
		h.add(fix.FindingID, fix.RequestedAt, actor{kind: fix.ActorKind, id: fix.ActorID}, &findingsv1.IssueActivityHistoryEvent{
			Title: "Fix requested", HistoryType: findingsv1.HistoryType_HISTORY_TYPE_CLICK_TO_FIX_PR_REQUESTED,
		})
		switch {
		case fix.FinishedAt == nil:
		case fix.Status == "opened":
			h.add(fix.FindingID, *fix.FinishedAt, actor{}, &findingsv1.IssueActivityHistoryEvent{
				Title: "Pull request opened", Note: fix.PrURL, HistoryType: findingsv1.HistoryType_HISTORY_TYPE_CLICK_TO_FIX_PR_OPENED,
			})
		case fix.Status == "failed":
			h.add(fix.FindingID, *fix.FinishedAt, actor{}, &findingsv1.IssueActivityHistoryEvent{
				Title: "Fix failed", Note: fix.Error, HistoryType: findingsv1.HistoryType_HISTORY_TYPE_CLICK_TO_FIX_PR_FAILED,
			})
		}
	}
	return err
}
