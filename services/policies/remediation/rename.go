package remediation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/policyact"
	"github.com/palisade/palisade/ent/remediationpolicy"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/findings/storedfilters"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
)

// AuditKind is the object kind of remediation policies in the audit trail.
const AuditKind = "remediation_policy"

// Renaming is a new name of a project, a tag or a rule. Policies name these by their names, so a policy that is not
// changed with the name would silently stop blocking.
type Renaming struct {
	Of       Reference
	From, To string
	// Taken says that another object has the old name now. Conditions that include the old name then include both: a new
	// name never lets a finding pass that was blocked before.
	Taken bool
	// Shared says that other objects may have the old name, too: rules of other tools. All conditions then have both.
	Shared bool
}

// Apply changes the policies and the stored filters that have the old name. It does not change their time: jobs that
// evaluate them go on. What they have done counts for the changed policies, too.
func (r Renaming) Apply(ctx context.Context, st *store.Store, tx *ent.Tx) error {
	query := tx.RemediationPolicy.Query().Order(ent.Asc(remediationpolicy.FieldID))
	if st.Postgres() {
		query.ForUpdate()
	}
	rows, err := query.All(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		before, err := Stored(row)
		if err != nil {
			return fmt.Errorf("remediation policy %s: %w", row.Slug, err)
		}
		after := proto.CloneOf(before)
		if !r.change(after) {
			continue
		}
		if err := replaceStored(ctx, tx, row, before, after); err != nil {
			return fmt.Errorf("remediation policy %s: %w", row.Slug, err)
		}
		audit.Change(ctx, AuditKind, row.Slug, before, after)
	}
	kind := map[Reference]storedfilters.Kind{RefProject: storedfilters.Project, RefTag: storedfilters.Tag, RefRule: storedfilters.Rule}[r.Of]
	return storedfilters.Renaming{Of: kind, From: r.From, To: r.To, Both: r.Taken || r.Shared}.Apply(ctx, tx)
}

// change puts the new name into the conditions that have the old one. It returns false if there are none.
func (r Renaming) change(policy *policiesv1.RemediationPolicy) (changed bool) {
	for _, condition := range policy.GetFilters().GetConditions() {
		if kind, _ := ConditionTypeOf(condition.GetType()); kind.Reference != r.Of {
			continue
		}
		at := slices.IndexFunc(condition.GetValues(), func(value string) bool { return strings.TrimSpace(value) == r.From })
		if at < 0 {
			continue
		}
		if r.Shared || r.Taken && canonicalCondition(condition).GetMode() != ModeExclude {
			if !slices.Contains(condition.GetValues(), r.To) {
				condition.Values, changed = slices.Insert(condition.GetValues(), at+1, r.To), true
			}
			continue
		}
		changed = true
		for i, value := range condition.GetValues() {
			if strings.TrimSpace(value) == r.From {
				condition.Values[i] = r.To
			}
		}
	}
	return changed
}

// replaceStored stores a policy in the place of another one, with what that one has done.
func replaceStored(ctx context.Context, tx *ent.Tx, row *ent.RemediationPolicy, before, after *policiesv1.RemediationPolicy) error {
	update := row.Update()
	given, err := Store(update.Mutation(), after)
	if err != nil {
		return err
	}
	if !given {
		update.ClearGiven()
	}
	if err := update.Exec(ctx); err != nil {
		return err
	}
	return tx.PolicyAct.Update().Where(policyact.PolicyID(row.ID), policyact.Version(versionOf(Canonical(before)))).
		SetVersion(versionOf(Canonical(after))).Exec(ctx)
}
