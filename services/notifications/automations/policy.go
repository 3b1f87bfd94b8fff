package automations

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/policyrun"
	"github.com/palisade/palisade/ent/remediationpolicy"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/policies/remediation"
)

var actsOfPolicies = map[string]actKind{
	remediation.ActionNotify: actMessage, remediation.ActionTicket: actTicket, remediation.ActionSetState: actTriage,
}

// ofPolicies are the candidates of the policies that have actions for jobs.
func ofPolicies(policies []remediation.Policy) (list []*candidate) {
	for i := range policies {
		of := &policies[i]
		if len(of.Acts()) == 0 {
			continue
		}
		c := &candidate{
			id: of.ID(), name: of.Name(), actor: outbox.ActorPolicy, policy: of, log: &policyLog{of},
			applies: func(s *subject) bool { return s.under(of) },
		}
		for _, act := range of.Acts() {
			c.parts = append(c.parts, &part{kind: actsOfPolicies[act.Type], config: act.Config, word: act.Type, selection: &selection{identities: map[identity]bool{}}})
		}
		list = append(list, c)
	}
	return list
}

// policyLog is the run log of a policy.
type policyLog struct{ policy *remediation.Policy }

func (l *policyLog) done(ctx context.Context, tx *ent.Tx, e *event) (bool, error) {
	return tx.PolicyRun.Query().Where(policyrun.PolicyID(l.policy.ID()), policyrun.Cause(e.Cause), policyrun.CauseID(e.ID)).Exist(ctx)
}

func (l *policyLog) current(ctx context.Context, st *store.Store, tx *ent.Tx) (bool, error) {
	query := tx.RemediationPolicy.Query().
		Where(remediationpolicy.ID(l.policy.ID()), remediationpolicy.UpdatedAt(l.policy.UpdatedAt()), remediationpolicy.Active(true))
	if st.Postgres() {
		query.ForUpdate()
	}
	rows, err := query.Select(remediationpolicy.FieldID).All(ctx)
	return len(rows) == 1, err
}

func (l *policyLog) sentSince(ctx context.Context, tx *ent.Tx, since int64) (int64, error) {
	return sentOf(ctx, tx.PolicyRun.Query().Where(policyrun.PolicyID(l.policy.ID()), policyrun.AtGT(since)).
		Aggregate(ent.As(ent.Sum(policyrun.FieldSent), "sent")))
}

func (l *policyLog) write(ctx context.Context, tx *ent.Tx, a *actor) error {
	run := &policiesv1.RemediationPolicyRun{}
	for i, act := range l.policy.Acts() {
		run.Outcomes = append(run.Outcomes, &policiesv1.RemediationPolicyOutcome{Type: act.Type, Acted: a.outcomes[i].acted, Detail: a.outcomes[i].detail})
	}
	content, err := proto.Marshal(run)
	if err != nil {
		return err
	}
	return tx.PolicyRun.Create().SetDeploymentID(a.event.DeploymentID).SetPolicyID(l.policy.ID()).SetCause(a.event.Cause).SetCauseID(a.event.ID).
		SetEvaluated(a.event.evaluated).SetMatched(a.candidate.matched).SetContent(content).SetSent(a.sent).SetAt(store.Now()).Exec(ctx)
}
