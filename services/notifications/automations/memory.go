package automations

import (
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/policyact"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/notifications/payload"
	"github.com/palisade/palisade/services/policies/remediation"
)

// memory has what policies did about findings.
type memory map[memoryKey]*ent.PolicyAct

type memoryKey struct {
	policyID int64
	action   string
	identity
}

// has reports whether the policy has acted about the finding: with the filters and actions that it has now, and since
// the finding came back, if it was fixed once.
func (m memory) has(p *remediation.Policy, action string, f *ent.Finding) bool {
	act := m[memoryKey{p.ID(), action, identityOf(f)}]
	cameBack := f.RelevantSince > f.CreatedAt
	return act != nil && act.Version == p.Version() && (!cameBack || f.RelevantSince <= act.At)
}

// remembered reads what policies did about some findings to which they apply.
func (*engine) remembered(ctx context.Context, db *ent.Client, candidates []*candidate, subjects []*subject) (memory, error) {
	var policies []int64
	var concerned []*ent.Finding
	for _, c := range candidates {
		if c.policy != nil {
			policies = append(policies, c.id)
		}
	}
	for _, s := range subjects {
		if slices.ContainsFunc(candidates, func(c *candidate) bool { return c.policy != nil && c.applies(s) }) {
			concerned = append(concerned, s.Finding)
		}
	}
	return actsAbout(ctx, db, policies, concerned)
}

// actsAbout reads what policies did about at most findingsAtOnce findings.
func actsAbout(ctx context.Context, db *ent.Client, policies []int64, rows []*ent.Finding) (memory, error) {
	if len(policies) == 0 || len(rows) == 0 {
		return nil, nil
	}
	fingerprints := make([]string, len(rows))
	for i, row := range rows {
		fingerprints[i] = row.Fingerprint
	}
	acts, err := db.PolicyAct.Query().Where(
		store.OneOf(policyact.FieldProjectID, idsOf(rows, func(f *ent.Finding) int64 { return f.ProjectID })),
		store.OneOf(policyact.FieldFingerprint, fingerprints), store.OneOf(policyact.FieldPolicyID, policies)).All(ctx)
	m := make(memory, len(acts))
	for _, act := range acts {
		m[memoryKey{act.PolicyID, act.Action, identity{act.ProjectID, act.Fingerprint, act.IssueType}}] = act
	}
	return m, err
}

// renew reads the findings of a policy again after locking their projects, and leaves out what another job was faster
// with, and what nobody needs to act about any more.
func (a *actor) renew(ctx context.Context) error {
	var all []int64
	for _, p := range a.candidate.parts {
		all = append(all, p.ids...)
	}
	slices.Sort(all)
	locked, err := triage.LockProjects(ctx, a.store, a.tx, store.WithIDs[predicate.Finding](slices.Compact(all)))
	if err != nil {
		return err
	}
	left := map[int64]bool{}
	for _, p := range a.candidate.parts {
		if err := a.renewPart(ctx, p, locked); err != nil {
			return err
		}
		for _, id := range p.ids {
			left[id] = true
		}
	}
	a.candidate.matched = int64(len(left))
	return nil
}

func (a *actor) renewPart(ctx context.Context, p *part, locked predicate.Finding) error {
	fresh := &selection{}
	for ids := range slices.Chunk(p.ids, findingsAtOnce) {
		rows, err := a.tx.Finding.Query().Where(locked, finding.MergedIntoIsNil(), store.WithIDs[predicate.Finding](ids)).
			Select(finding.FieldID, finding.FieldProjectID, finding.FieldFingerprint, finding.FieldIssueType, finding.FieldStatus,
				finding.FieldTriageState, finding.FieldCreatedAt, finding.FieldRelevantSince).Order(ent.Asc(finding.FieldID)).All(ctx)
		if err != nil {
			return err
		}
		if rows, err = a.stillOpen(ctx, p, rows); err != nil {
			return err
		}
		fresh.rows = append(fresh.rows, rows...)
	}
	fresh.ids = idsOf(fresh.rows, func(f *ent.Finding) int64 { return f.ID })
	if projects := idsOf(fresh.rows, func(f *ent.Finding) int64 { return f.ProjectID }); len(projects) == 1 {
		fresh.projectID = projects[0]
	}
	fresh.listed = slices.DeleteFunc(p.listed, func(f payload.AutomationFinding) bool {
		_, found := slices.BinarySearch(fresh.ids, f.ID)
		return !found
	})
	p.selection = fresh
	return nil
}

// stillOpen returns the findings about which an action of the policy has not acted yet.
func (a *actor) stillOpen(ctx context.Context, p *part, rows []*ent.Finding) ([]*ent.Finding, error) {
	done, err := actsAbout(ctx, a.tx.Client(), []int64{a.candidate.id}, rows)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(f *ent.Finding) bool {
		return !remediation.NeedsAction(f.Status) || done.has(a.candidate.policy, p.word, f)
	})
	if p.kind != actTriage || len(rows) == 0 {
		return rows, nil
	}
	return a.undecidedAmong(ctx, rows)
}

// remember writes that an action of the policy acted about its findings.
func (a *actor) remember(ctx context.Context, p *part) error {
	for rows := range slices.Chunk(p.rows, store.RowsAtOnce) {
		acts := make([]*ent.PolicyActCreate, len(rows))
		for i, f := range rows {
			acts[i] = a.tx.PolicyAct.Create().SetDeploymentID(a.event.DeploymentID).SetProjectID(f.ProjectID).SetPolicyID(a.candidate.id).
				SetAction(p.word).SetIssueType(f.IssueType).SetFingerprint(f.Fingerprint).
				SetVersion(a.candidate.policy.Version()).SetAt(max(store.Now(), f.RelevantSince))
		}
		err := a.tx.PolicyAct.CreateBulk(acts...).OnConflictColumns(policyact.FieldDeploymentID, policyact.FieldProjectID, policyact.FieldFingerprint,
			policyact.FieldPolicyID, policyact.FieldAction, policyact.FieldIssueType).
			Update(func(u *ent.PolicyActUpsert) { u.UpdateVersion().UpdateAt() }).Exec(ctx)
		if err != nil {
			return err
		}
	}
	return nil
}
