package automations

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/automation"
	"github.com/palisade/palisade/ent/automationrun"
	v1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/notifications/payload"
	"github.com/palisade/palisade/services/policies/remediation"
)

// candidate is an automation or a remediation policy with what it matched.
type candidate struct {
	id    int64
	name  string
	actor string // outbox.ActorAutomation or outbox.ActorPolicy
	// policy is nil for automations.
	policy  *remediation.Policy
	applies func(*subject) bool
	parts   []*part
	// matched is the number of findings that any part has.
	matched int64
	log     runLog
}

// runLog is what is stored about the runs of a candidate.
type runLog interface {
	// done reports whether it has run on the event.
	done(ctx context.Context, tx *ent.Tx, e *event) (bool, error)
	// current locks the candidate, and reports whether it is still the one that was evaluated. One that was changed in
	// between is not run on the event.
	current(ctx context.Context, st *store.Store, tx *ent.Tx) (bool, error)
	// sentSince counts its messages and workflow runs since a time.
	sentSince(ctx context.Context, tx *ent.Tx, since int64) (int64, error)
	// write writes its run.
	write(ctx context.Context, tx *ent.Tx, a *actor) error
}

// actKind is what an action does.
type actKind int

const (
	actMessage actKind = iota
	actTriage
	actWorkflow
	actTicket
)

// part is an action with its findings.
type part struct {
	kind   actKind
	config map[string]string
	// word is the type of the action of a policy.
	word string
	// later says that the findings are triaged after the other actions; see triageInParts.
	later bool
	*selection
}

// selection has the findings of an action.
type selection struct {
	// ids are the ids of the findings, listed the worst ones, projectID their project or 0 for several.
	ids       []int64
	listed    []payload.AutomationFinding
	projectID int64
	// identities has the identities of a policy's findings, which it acts about once.
	identities map[identity]bool
	// rows are the findings of a policy, as the transaction of its acts reads them.
	rows []*ent.Finding
}

func (l *selection) add(s *subject) {
	switch {
	case len(l.ids) == 0:
		l.projectID = s.ProjectID
	case l.projectID != s.ProjectID:
		l.projectID = 0
	}
	l.ids = append(l.ids, s.ID)
	l.list(s)
}

// list keeps the worst findings, the worst first: people read only these.
func (l *selection) list(s *subject) {
	rank := func(severity string) int { return slices.Index(payload.Severities, severity) }
	at := len(l.listed)
	for at > 0 && rank(l.listed[at-1].Severity) > rank(s.Severity) {
		at--
	}
	if at < payload.MaxListed {
		l.listed = slices.Insert(l.listed, at, s.describe())
		l.listed = l.listed[:min(len(l.listed), payload.MaxListed)]
	}
}

// consider adds a finding to the actions that act about it.
func (c *candidate) consider(s *subject, told memory) {
	if !c.applies(s) {
		return
	}
	if c.policy == nil {
		c.matched++
		c.parts[0].add(s) // all parts have the same selection
		return
	}
	added := false
	for _, p := range c.parts {
		of := identityOf(s.Finding)
		if p.identities[of] || told.has(c.policy, p.word, s.Finding) || p.kind == actTriage && s.TriageState != lifecycle.Untriaged {
			continue
		}
		p.identities[of] = true
		p.add(s)
		added = true
	}
	if added {
		c.matched++
	}
}

// ofAutomations leaves out automations that name a policy which is not among the active ones: "not of this policy"
// would mean every finding.
func ofAutomations(rows []*ent.Automation, active []remediation.Policy) (list []*candidate, err error) {
	for _, row := range rows {
		content, err := stored(row)
		if err != nil {
			return nil, err
		}
		if !namesOnly(content.GetFilters(), active) {
			continue
		}
		filter, err := compile(content.GetFilters())
		if err != nil {
			return nil, fmt.Errorf("automation %d: %w", row.ID, err)
		}
		c := &candidate{
			id: row.ID, name: row.Name, actor: outbox.ActorAutomation, log: &automationLog{row, content},
			applies: func(s *subject) bool { return filter.Matches(&s.facts) },
		}
		all := &selection{}
		for _, action := range content.GetActions() {
			c.parts = append(c.parts, &part{kind: kindOf(action.GetType()), config: action.GetConfig(), selection: all})
		}
		list = append(list, c)
	}
	return list, nil
}

func namesOnly(filters *v1.AutomationFilters, active []remediation.Policy) bool {
	for _, slug := range namedPolicies(filters) {
		if !slices.ContainsFunc(active, func(p remediation.Policy) bool { return p.Slug() == slug }) {
			return false
		}
	}
	return true
}

// namedPolicies are the slugs of the policies that conditions name.
func namedPolicies(filters *v1.AutomationFilters) (slugs []string) {
	for _, c := range filters.GetConditions() {
		if c.GetType() == v1.ConditionType_CONDITION_TYPE_POLICY {
			slugs = append(slugs, c.GetValues()...)
		}
	}
	return slugs
}

func kindOf(action v1.ActionType) actKind {
	switch action {
	case v1.ActionType_ACTION_TYPE_TRIAGE:
		return actTriage
	case v1.ActionType_ACTION_TYPE_TRIGGER_WORKFLOW:
		return actWorkflow
	case v1.ActionType_ACTION_TYPE_JIRA:
		return actTicket
	}
	return actMessage
}

// automationLog is the run log of an automation.
type automationLog struct {
	row     *ent.Automation
	content *v1.Automation
}

func (l *automationLog) done(ctx context.Context, tx *ent.Tx, e *event) (bool, error) {
	return tx.AutomationRun.Query().
		Where(automationrun.AutomationID(l.row.ID), automationrun.Cause(e.Cause), automationrun.CauseID(e.ID)).Exist(ctx)
}

func (l *automationLog) current(ctx context.Context, st *store.Store, tx *ent.Tx) (bool, error) {
	query := tx.Automation.Query().Where(automation.ID(l.row.ID), automation.UpdatedAt(l.row.UpdatedAt))
	if st.Postgres() {
		query.ForUpdate()
	}
	rows, err := query.Select(automation.FieldID).All(ctx)
	return len(rows) == 1, err
}

func (l *automationLog) sentSince(ctx context.Context, tx *ent.Tx, since int64) (int64, error) {
	return sentOf(ctx, tx.AutomationRun.Query().Where(automationrun.AutomationID(l.row.ID), automationrun.AtGT(since)).
		Aggregate(ent.As(ent.Sum(automationrun.FieldSent), "sent")))
}

// sentOf reads a sum.
func sentOf(ctx context.Context, query interface {
	Scan(ctx context.Context, into any) error
},
) (int64, error) {
	var sums []struct {
		Sent *int64 `json:"sent"`
	}
	if err := query.Scan(ctx, &sums); err != nil || len(sums) == 0 || sums[0].Sent == nil {
		return 0, err
	}
	return *sums[0].Sent, nil
}

func (l *automationLog) write(ctx context.Context, tx *ent.Tx, a *actor) error {
	run := &v1.AutomationRun{}
	for i, action := range l.content.GetActions() {
		run.Outcomes = append(run.Outcomes, &v1.AutomationOutcome{Type: action.GetType(), Acted: a.outcomes[i].acted, Detail: a.outcomes[i].detail})
	}
	content, err := proto.Marshal(run)
	if err != nil {
		return err
	}
	return tx.AutomationRun.Create().SetDeploymentID(a.event.DeploymentID).SetAutomationID(l.row.ID).SetCause(a.event.Cause).SetCauseID(a.event.ID).
		SetEvaluated(a.event.evaluated).SetMatched(a.candidate.matched).SetContent(content).SetSent(a.sent).SetAt(store.Now()).Exec(ctx)
}
