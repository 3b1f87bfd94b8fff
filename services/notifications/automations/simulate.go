package automations

import (
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/findingevent"
	v1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/policies/remediation"
)

const (
	// simulatedEvents is the number of events of a simulation.
	simulatedEvents = 100
	// searchedEvents bounds the events that are searched for them.
	searchedEvents = 5_000
)

// triageKinds are the events that trigger automations of TRIGGER_SOURCE_ISSUE_TRIAGED.
var triageKinds = []string{"triaged", "triage_spread", "noted", "triage_undone"}

// SimulateAutomation answers what an automation would have done about the last events.
func (s *Automations) SimulateAutomation(ctx context.Context, r *v1.SimulateAutomationRequest) (*v1.SimulateAutomationResponse, error) {
	if r.GetAutomation() == nil {
		return nil, apierr.InvalidArgument("automation", "automation is required")
	}
	if err := s.checkWorkflows(ctx, r.GetAutomation()); err != nil {
		return nil, err
	}
	wanted, err := checker{s.store.Reader}.check(ctx, r.GetAutomation())
	if err != nil {
		return nil, err
	}
	filter, err := compile(wanted.GetFilters())
	if err != nil {
		return nil, err
	}
	events, err := s.lastEvents(ctx, wanted.GetTriggerSource())
	if err != nil {
		return nil, err
	}
	policies, err := remediation.Load(ctx, s.store.Reader)
	if err != nil {
		return nil, err
	}
	load := &loader{db: s.store.Reader, policies: policies}
	if wanted.GetTriggerSource() == v1.TriggerSource_TRIGGER_SOURCE_SCAN { // all scans are taken for full ones with new findings
		load.fullScan, load.isNew = "true", true
	}
	ids := make([]int64, len(events))
	for i, e := range events {
		ids[i] = e.FindingID
	}
	subjects, err := load.load(ctx, ids)
	if err != nil {
		return nil, err
	}
	byID := map[int64]*subject{}
	for _, one := range subjects {
		byID[one.ID] = one
	}
	response := &v1.SimulateAutomationResponse{}
	for _, e := range events {
		about := byID[e.FindingID]
		if about == nil {
			continue // merged or deleted since
		}
		out := &v1.SimulatedEvent{
			FindingId: e.FindingID, At: store.Timestamp(&e.At), Kind: e.Kind, Project: about.project.Name, Rule: about.rule.Name, Matched: filter.Matches(&about.facts),
		}
		if out.GetMatched() {
			response.Matched++
			out.Actions = would(wanted, about)
		}
		response.Events = append(response.Events, out)
	}
	return response, nil
}

// lastEvents returns the last events that trigger an automation. It searches a bounded number of events.
func (s *Automations) lastEvents(ctx context.Context, trigger v1.TriggerSource) ([]*ent.FindingEvent, error) {
	kinds := scanKinds
	if trigger == v1.TriggerSource_TRIGGER_SOURCE_ISSUE_TRIAGED {
		kinds = triageKinds
	}
	rows, err := s.store.Reader.FindingEvent.Query().Order(ent.Desc(findingevent.FieldAt)).Limit(searchedEvents).
		Select(findingevent.FieldFindingID, findingevent.FieldKind, findingevent.FieldActorKind, findingevent.FieldAt).All(ctx)
	rows = slices.DeleteFunc(rows, func(e *ent.FindingEvent) bool {
		return !slices.Contains(kinds, e.Kind) || e.ActorKind == outbox.ActorAutomation || e.ActorKind == outbox.ActorPolicy
	})
	return rows[:min(len(rows), simulatedEvents)], err
}

// would says what each action would do about a finding.
func would(wanted *v1.Automation, about *subject) (list []string) {
	for _, action := range wanted.GetActions() {
		config := action.GetConfig()
		switch action.GetType() {
		case v1.ActionType_ACTION_TYPE_TRIAGE:
			if about.TriageState != lifecycle.Untriaged {
				list = append(list, "nothing: it is triaged already")
				continue
			}
			list = append(list, "triage it as "+config[configState])
		case v1.ActionType_ACTION_TYPE_TRIGGER_WORKFLOW:
			list = append(list, "start the workflow "+config[configWorkflow])
		default:
			list = append(list, "send a message with notification rule "+config[configRule])
		}
	}
	return list
}
