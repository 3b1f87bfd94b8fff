package ruleset

import (
	"context"
	"slices"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/ruledocument"
	"github.com/palisade/palisade/ent/ruleversion"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/audit"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/rules/document"
)

const (
	// MaxRules is the maximum number of rules of a deployment: each scan reads all of them.
	MaxRules = 20_000

	// AuditKind is the object kind of rules in the audit trail.
	AuditKind = "rule"

	// rowsAtOnce is the number of rows per statement: SQLite allows 32,766 values.
	rowsAtOnce = 1000
)

// BeginChange serializes changes of the deployment's rules and returns the time of this change. It is later than all
// earlier ones, so that a cache can compare states.
func BeginChange(ctx context.Context, st *store.Store, tx *ent.Tx) (now int64, err error) {
	if st.Postgres() {
		if _, err := tx.Deployment.Query().ForUpdate().OnlyID(ctx); err != nil {
			return 0, err
		}
	}
	last, err := stateOf(ctx, tx.Client())
	return max(store.Now(), last.Newest+1), err
}

// PutOptions holds options for storing rules.
type PutOptions struct {
	// Origin is the rules' origin: import, publish or starter. Starter rules do not replace rules of another origin.
	Origin string
	// Mode is the mode of new rules; existing ones keep theirs.
	Mode string
	// Visibility is the visibility of new and existing rules.
	Visibility string
}

// Outcome is the effect on a rule.
type Outcome int

// Effects on a rule.
const (
	Unchanged Outcome = iota
	Created
	Updated
)

// Stored is a rule after it was stored.
type Stored struct {
	Rule    document.Rule
	Outcome Outcome
	// Version and Mode are the rule's current ones.
	Version int32
	Mode    string
	// VersionID is the id of its newest version; 0 in a plan for a new rule.
	VersionID int64

	old       *ent.RuleDocument // nil for a new rule
	isNewText bool              // the document has changed
}

// Plan returns what Put would do.
func Plan(ctx context.Context, db *ent.Client, rules []document.Rule, how PutOptions) ([]*Stored, error) {
	known, digests, err := stored(ctx, db, rules)
	if err != nil {
		return nil, err
	}
	out := make([]*Stored, len(rules))
	for i, rule := range rules {
		s := &Stored{Rule: rule, Outcome: Created, Version: 1, Mode: how.Mode, isNewText: true}
		out[i] = s
		old := known[rule.Name]
		if old == nil {
			continue
		}
		newest := digests[old.ID]
		s.old, s.Outcome, s.Version, s.Mode, s.isNewText = old, Unchanged, old.Version, old.Mode, false
		if newest != nil {
			s.VersionID = newest.ID
		}
		if how.Origin == OriginStarter && old.Origin != OriginStarter {
			continue
		}
		if newest == nil || !slices.Equal(newest.Digest, rule.Digest) {
			s.isNewText, s.VersionID = true, 0
			s.Version++
		}
		if s.isNewText || old.Visibility != how.Visibility {
			s.Outcome = Updated
		}
	}
	return out, nil
}

// stored reads the existing rules by name, and their newest versions without documents by rule.
func stored(ctx context.Context, db *ent.Client, rules []document.Rule) (map[string]*ent.RuleDocument, map[int64]*ent.RuleVersion, error) {
	known, versions := map[string]*ent.RuleDocument{}, map[int64]*ent.RuleVersion{}
	for part := range slices.Chunk(rules, rowsAtOnce) {
		names := make([]string, len(part))
		for i, rule := range part {
			names[i] = rule.Name
		}
		rows, err := db.RuleDocument.Query().Where(ruledocument.NameIn(names...)).All(ctx)
		if err != nil {
			return nil, nil, err
		}
		ids := make([]int64, len(rows))
		for i, row := range rows {
			known[row.Name], ids[i] = row, row.ID
		}
		query := db.RuleVersion.Query().Where(newestVersions, ruleversion.RuleDocumentIDIn(ids...))
		query.Select(ruleversion.FieldID, ruleversion.FieldRuleDocumentID, ruleversion.FieldDigest)
		newest, err := query.All(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, version := range newest {
			versions[version.RuleDocumentID] = version
		}
	}
	return known, versions, nil
}

// Put stores rules with distinct names and writes an audit entry for each change. Call it inside store.Write. It
// returns FAILED_PRECONDITION if the deployment would have more than MaxRules.
func Put(ctx context.Context, st *store.Store, tx *ent.Tx, rules []document.Rule, how PutOptions) ([]*Stored, error) {
	now, err := BeginChange(ctx, st, tx)
	if err != nil {
		return nil, err
	}
	plan, err := Plan(ctx, tx.Client(), rules, how)
	if err != nil {
		return nil, err
	}
	var fresh, rewritten []*Stored
	for _, s := range plan {
		switch {
		case s.Outcome == Created:
			fresh = append(fresh, s)
		case s.Outcome == Updated:
			if err := s.update(ctx, now, how); err != nil {
				return nil, err
			}
			if s.isNewText {
				rewritten = append(rewritten, s)
			}
		}
	}
	if len(fresh) > 0 {
		count, err := tx.RuleDocument.Query().Count(ctx)
		if err != nil {
			return nil, err
		}
		if count+len(fresh) > MaxRules {
			return nil, apierr.FailedPrecondition("the deployment has %d rules and would have %d, at most %d are allowed: delete some first",
				count, count+len(fresh), MaxRules)
		}
	}
	if err := create(ctx, tx, fresh, now, how); err != nil {
		return nil, err
	}
	return plan, addVersions(ctx, tx, append(fresh, rewritten...), now)
}

func (s *Stored) update(ctx context.Context, now int64, how PutOptions) error {
	update := s.old.Update().SetVisibility(how.Visibility).SetUpdatedAt(now)
	if s.isNewText {
		update.SetOrigin(how.Origin).SetProduct(s.Rule.Product).SetSeverity(s.Rule.Severity).SetLanguages(s.Rule.Languages).SetVersion(s.Version)
	}
	row, err := update.Save(ctx)
	if err != nil {
		return err
	}
	audit.Change(ctx, AuditKind, row.ID, Convert(s.old), Convert(row))
	s.old = row
	return nil
}

func create(ctx context.Context, tx *ent.Tx, fresh []*Stored, now int64, how PutOptions) error {
	deploymentID, _ := tenant.FromContext(ctx)
	for part := range slices.Chunk(fresh, rowsAtOnce) {
		creates := make([]*ent.RuleDocumentCreate, len(part))
		for i, s := range part {
			creates[i] = tx.RuleDocument.Create().SetDeploymentID(deploymentID).SetName(s.Rule.Name).SetOrigin(how.Origin).
				SetProduct(s.Rule.Product).SetSeverity(s.Rule.Severity).SetLanguages(s.Rule.Languages).SetMode(how.Mode).
				SetVisibility(how.Visibility).SetVersion(1).SetCreatedAt(now).SetUpdatedAt(now)
		}
		rows, err := tx.RuleDocument.CreateBulk(creates...).Save(ctx)
		if err != nil {
			return err
		}
		for i, row := range rows {
			part[i].old = row
			audit.Change(ctx, AuditKind, row.ID, nil, Convert(row))
		}
	}
	return nil
}

func addVersions(ctx context.Context, tx *ent.Tx, of []*Stored, now int64) error {
	deploymentID, _ := tenant.FromContext(ctx)
	kind, id := audit.KindJob, int64(0) // the product itself
	if p, ok := access.FromContext(ctx); ok && !isStarter(ctx) {
		kind, id = string(p.Kind), p.ID
	}
	for part := range slices.Chunk(of, rowsAtOnce) {
		creates := make([]*ent.RuleVersionCreate, len(part))
		for i, s := range part {
			creates[i] = tx.RuleVersion.Create().SetDeploymentID(deploymentID).SetRuleDocumentID(s.old.ID).SetVersion(s.Version).
				SetDigest(s.Rule.Digest).SetDocument(s.Rule.Document).SetActorKind(kind).SetActorID(id).SetCreatedAt(now)
		}
		rows, err := tx.RuleVersion.CreateBulk(creates...).Save(ctx)
		if err != nil {
			return err
		}
		for i, row := range rows {
			part[i].VersionID = row.ID
		}
	}
	return nil
}
