package automations

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/predicate"
	v1 "github.com/palisade/palisade/gen/palisade/notifications/v1"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/notifications/payload"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/ticketing/filing"
)

// maxSentPerHour is the maximum number of messages and workflow runs of one automation or policy in an hour. A workflow
// whose results trigger the automation again stops there.
const maxSentPerHour = 100

// actor runs the actions of one candidate about one event.
type actor struct {
	*engine
	tx        *ent.Tx
	event     *event
	candidate *candidate
	workflows map[string]workflow

	outcomes []outcome
	// sent counts messages and workflow runs.
	sent int64
}

// outcome is what an action did, or why it did not act.
type outcome struct {
	acted  bool
	detail string
}

func (a *actor) run(ctx context.Context) error {
	if a.candidate.policy != nil {
		if err := a.renew(ctx); err != nil || a.candidate.matched == 0 {
			return err
		}
	}
	earlier, err := a.candidate.log.sentSince(ctx, a.tx, store.Micros(time.Now().Add(-time.Hour)))
	if err != nil {
		return err
	}
	for _, p := range a.candidate.parts {
		done, err := a.do(ctx, p, earlier)
		if err != nil {
			return err
		}
		a.outcomes = append(a.outcomes, done)
		if done.acted && p.kind != actTriage {
			a.sent++
		}
	}
	return nil
}

// do runs an action. earlier is what the candidate has sent within an hour.
func (a *actor) do(ctx context.Context, p *part, earlier int64) (done outcome, err error) {
	switch {
	case len(p.ids) == 0:
		return outcome{detail: "nothing to do: it has done so before, or somebody has triaged the findings"}, nil
	case p.kind == actTriage && len(p.ids) > triagedAtOnce:
		p.later = true
		return outcome{true, fmt.Sprintf("triages %d findings as %s, %d at a time", len(p.ids), p.config[configState], triagedAtOnce)}, nil
	case p.kind == actTriage:
		done, err = a.triage(ctx, p)
	case earlier+a.sent >= maxSentPerHour:
		a.engine.log.WarnContext(ctx, "the limit of messages in an hour is reached", "deployment_id", a.event.DeploymentID, a.candidate.actor, a.candidate.id)
		return outcome{detail: fmt.Sprintf("not done: %s within an hour", a.candidate.limit())}, nil
	case p.kind == actWorkflow:
		done, err = a.startWorkflow(ctx, p)
	case p.kind == actTicket:
		done, err = a.fileTickets(ctx, p)
	default:
		done, err = a.send(ctx, p)
	}
	if err == nil && done.acted && a.candidate.policy != nil {
		err = a.remember(ctx, p)
	}
	return done, err
}

// limit says what the limit of an hour is.
func (c *candidate) limit() string {
	if c.policy != nil {
		return fmt.Sprintf("the policy has sent %d messages", maxSentPerHour)
	}
	return fmt.Sprintf("the automation has sent %d messages and workflow runs", maxSentPerHour)
}

// triage decides about the findings that nobody has decided about, on any ref.
func (a *actor) triage(ctx context.Context, p *part) (outcome, error) {
	chosen := p.ids
	if a.candidate.policy == nil {
		var err error
		if chosen, err = a.undecided(ctx, p.ids); err != nil {
			return outcome{}, err
		}
	}
	if len(chosen) == 0 {
		return outcome{detail: "all findings are triaged already"}, nil
	}
	decision := triage.New(a.event.DeploymentID, triage.KindAutomation, p.config[configState], p.config[configReason], p.config[configNote])
	decision.ActorKind, decision.ActorID, decision.ActorName = a.candidate.actor, a.candidate.id, a.candidate.name
	change, _, err := decision.Apply(ctx, a.store, a.tx, chosen)
	if err != nil || change.ID == 0 {
		return outcome{detail: "all findings are triaged already"}, err
	}
	a.auditTriage(ctx, p)
	return outcome{true, fmt.Sprintf("%s as %s: triage change %d", counted(change.Changed), p.config[configState], change.ID)}, nil
}

// auditTriage records what was triaged in the audit trail.
func (a *actor) auditTriage(ctx context.Context, p *part) {
	if a.candidate.policy != nil {
		audit.Change(ctx, auditPolicyTriage, a.candidate.policy.Slug(), nil, &policiesv1.RemediationPolicyAction{Type: p.word, Config: p.config})
		return
	}
	audit.Change(ctx, auditTriage, a.candidate.id, nil, &v1.AutomationAction{Type: v1.ActionType_ACTION_TYPE_TRIAGE, Config: p.config})
}

// counted says how many findings were triaged.
func counted(n int64) string {
	if n == 1 {
		return "triaged 1 finding"
	}
	return fmt.Sprintf("triaged %d findings", n)
}

// undecided locks the projects and returns the findings without a decision. A decision about the same identity on
// another ref counts: triage applies to all refs.
func (a *actor) undecided(ctx context.Context, of []int64) (ids []int64, err error) {
	matched := store.WithIDs[predicate.Finding](of)
	locked, err := triage.LockProjects(ctx, a.store, a.tx, matched)
	if err != nil {
		return nil, err
	}
	rows, err := a.tx.Finding.Query().Where(locked, matched, finding.TriageState(lifecycle.Untriaged), finding.MergedIntoIsNil()).
		Select(finding.FieldID, finding.FieldProjectID, finding.FieldFingerprint, finding.FieldIssueType, finding.FieldTriageState).
		Order(ent.Asc(finding.FieldID)).All(ctx)
	if err != nil {
		return nil, err
	}
	for part := range slices.Chunk(rows, findingsAtOnce) {
		open, err := a.undecidedAmong(ctx, part)
		if err != nil {
			return nil, err
		}
		ids = append(ids, idsOf(open, func(f *ent.Finding) int64 { return f.ID })...)
	}
	return ids, nil
}

// identity names a finding on all refs.
type identity struct {
	projectID              int64
	fingerprint, issueType string
}

func identityOf(f *ent.Finding) identity { return identity{f.ProjectID, f.Fingerprint, f.IssueType} }

// undecidedAmong returns the untriaged ones among findings without a decision on another ref.
func (a *actor) undecidedAmong(ctx context.Context, rows []*ent.Finding) ([]*ent.Finding, error) {
	var fingerprints []string
	for _, row := range rows {
		fingerprints = append(fingerprints, row.Fingerprint)
	}
	decided, err := a.tx.Finding.Query().
		Where(store.OneOf(finding.FieldProjectID, idsOf(rows, func(f *ent.Finding) int64 { return f.ProjectID })), store.OneOf(finding.FieldFingerprint, fingerprints),
			finding.TriageStateNotIn(lifecycle.Untriaged, lifecycle.ProvisionallyIgnored), finding.MergedIntoIsNil()).
		Select(finding.FieldProjectID, finding.FieldFingerprint, finding.FieldIssueType).All(ctx)
	if err != nil {
		return nil, err
	}
	has := map[identity]bool{}
	for _, row := range decided {
		has[identityOf(row)] = true
	}
	return slices.DeleteFunc(slices.Clone(rows), func(row *ent.Finding) bool {
		return row.TriageState != lifecycle.Untriaged || has[identityOf(row)]
	}), nil
}

// send writes a message.
func (a *actor) send(ctx context.Context, p *part) (outcome, error) {
	id, err := strconv.ParseInt(p.config[configRule], 10, 64)
	if err != nil {
		return outcome{}, fmt.Errorf("it has the notification rule %q", p.config[configRule])
	}
	c := a.candidate
	about := payload.Automation{
		DeploymentID: a.event.DeploymentID, Name: c.name, Cause: a.event.Cause, CauseID: a.event.ID,
		ProjectID: p.projectID, Matched: int64(len(p.ids)), Findings: p.listed,
	}
	if c.policy != nil {
		about.PolicySlug = c.policy.Slug()
	} else {
		about.AutomationID = c.id
	}
	sent, err := outbox.Automation(ctx, a.tx, jobs.FromContext(ctx), id, about)
	if err != nil || !sent {
		return outcome{detail: fmt.Sprintf("not sent: notification rule %d is disabled or deleted", id)}, err
	}
	return outcome{true, fmt.Sprintf("sent with notification rule %d", id)}, nil
}

// fileTickets asks for the tickets of the findings.
func (a *actor) fileTickets(ctx context.Context, p *part) (outcome, error) {
	asked, err := filing.Ask(ctx, a.tx, jobs.FromContext(ctx), a.event.DeploymentID, p.config, p.ids)
	if err != nil || !asked {
		return outcome{detail: fmt.Sprintf("no tickets: ticketing instance %s is deleted", p.config[remediation.ConfigInstance])}, err
	}
	return outcome{true, fmt.Sprintf("asked for tickets for %d findings", len(p.ids))}, nil
}

// startWorkflow starts a workflow for the project of the findings.
func (a *actor) startWorkflow(ctx context.Context, p *part) (outcome, error) {
	name := p.config[configWorkflow]
	prepared := a.workflows[name]
	switch {
	case p.projectID == 0:
		return outcome{detail: "not started: the findings are in several projects"}, nil
	case prepared.reason != nil: // it was disabled since
		return outcome{detail: "not started: " + apierr.Plain(prepared.reason).Error()}, nil
	}
	id, err := prepared.start(ctx, a.tx, p.projectID, a.candidate.id)
	switch {
	case isRefusal(err):
		return outcome{detail: "not started: " + apierr.Plain(err).Error()}, nil
	case err != nil:
		return outcome{}, err
	}
	return outcome{true, fmt.Sprintf("started workflow %s: run %d", name, id)}, nil
}
