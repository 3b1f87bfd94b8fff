package ingest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/rulealias"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/internal/store"
)

// UpgradeBatch is the number of findings that one transaction upgrades.
const UpgradeBatch = 500

// upgradeRows is the number of findings that one statement upgrades. For more, PostgreSQL reads all findings of a table
// that it has no statistics of.
const upgradeRows = 100

// upgradeIdentities upgrades the remaining findings of the scan's project in the transaction of the scan. One index
// lookup tells whether there are any.
func (s *session) upgradeIdentities(ctx context.Context) error {
	without, err := s.tx.Project.Query().Where(project.ID(s.project.ID), hasFindingsWithoutEvidence).Exist(ctx)
	if err != nil {
		return err
	}
	if !without {
		return nil
	}
	return upgradeProject(ctx, s.store, s.tx, s.deploymentID, s.project.ID)
}

// hasFindingsWithoutEvidence selects projects. On SQLite it names the index. Otherwise, if one project has most of the
// findings, SQLite scans the table for every other project while the transaction holds the only writer.
func hasFindingsWithoutEvidence(s *entsql.Selector) {
	s.Where(entsql.P(func(b *entsql.Builder) {
		b.WriteString("EXISTS (SELECT 1 FROM findings AS entry")
		if b.Dialect() == dialect.SQLite {
			b.WriteString(" INDEXED BY findings_by_evidence")
		}
		b.WriteString(" WHERE entry.deployment_id = " + s.C(project.FieldDeploymentID) + " AND entry.project_id = " + s.C(project.FieldID) +
			" AND entry.match_key IS NULL AND entry.merged_into IS NULL)")
	}))
}

// upgradeProject upgrades all findings of a project that the transaction has locked.
func upgradeProject(ctx context.Context, st *store.Store, tx *ent.Tx, deploymentID, projectID int64) error {
	for {
		ids, err := tx.Finding.Query().Where(finding.DeploymentID(deploymentID), finding.ProjectID(projectID), Outdated).
			Order(ent.Asc(finding.FieldID)).Limit(UpgradeBatch).IDs(ctx)
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := UpgradeFindings(ctx, st, tx, deploymentID, ids); err != nil {
			return err
		}
	}
}

// Outdated selects findings without evidence, or with evidence of another version.
func Outdated(s *entsql.Selector) {
	column := s.C(finding.FieldEvidence)
	s.Where(entsql.Or(entsql.IsNull(column), entsql.P(func(b *entsql.Builder) {
		b.WriteString("SUBSTR(").WriteString(column).WriteString(", 1, 1) <> ").Arg([]byte{identity.Version})
	})))
}

// UpgradeFindings recomputes the evidence of findings of one deployment. The transaction has to hold the locks of their
// projects.
func UpgradeFindings(ctx context.Context, st *store.Store, tx *ent.Tx, deploymentID int64, ids []int64) error {
	rows, err := tx.Finding.Query().Where(finding.DeploymentID(deploymentID)).Modify(store.FoundByIDs(ids)).
		Select(finding.FieldID, finding.FieldTool, finding.FieldRuleID, finding.FieldContent).All(ctx)
	if err != nil || len(rows) == 0 {
		return err
	}
	var rules []int64
	for _, row := range rows {
		rules = append(rules, row.RuleID)
	}
	slices.Sort(rules)
	names, err := ruleNamesOf(ctx, tx, slices.Compact(rules))
	if err != nil {
		return err
	}
	present, err := presentNames(ctx, tx, deploymentID, rows, names)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(rows, upgradeRows) {
		values := make([]string, 0, len(part))
		var args []any
		for n, row := range part {
			content, err := blob.Decode(row.Content)
			if err != nil {
				return fmt.Errorf("content of finding %d: %w", row.ID, err)
			}
			name := names[row.RuleID]
			if now, renamed := present[ruleKey{row.Tool, name}]; renamed {
				name = now
			}
			evidence := identity.EvidenceOf(identityText(name, content))
			value := "(?, ?, ?)"
			if n == 0 && st.Postgres() {
				value = "(CAST(? AS bigint), CAST(? AS bytea), CAST(? AS bigint))"
			}
			values, args = append(values, value), append(args, row.ID, evidence.Encode(), evidence.Key())
		}
		err := st.Exec(ctx, tx, "UPDATE findings SET evidence = fresh.column2, match_key = fresh.column3 FROM (VALUES "+
			strings.Join(values, ", ")+") AS fresh WHERE findings.id = fresh.column1 AND +findings.deployment_id = ?", append(args, deploymentID)...)
		if err != nil {
			return err
		}
	}
	return nil
}

// presentNames reads the current names of the findings' rules that were renamed.
func presentNames(ctx context.Context, tx *ent.Tx, deploymentID int64, rows []*ent.Finding, names map[int64]string) (map[ruleKey]string, error) {
	tools := map[string]bool{}
	for _, row := range rows {
		tools[row.Tool] = true
	}
	aliases, err := tx.RuleAlias.Query().Where(rulealias.DeploymentID(deploymentID),
		store.OneOf(rulealias.FieldTool, slices.Collect(maps.Keys(tools))),
		store.OneOf(rulealias.FieldName, slices.Collect(maps.Values(names)))).
		Select(rulealias.FieldTool, rulealias.FieldName, rulealias.FieldCanonical).All(ctx)
	if err != nil {
		return nil, err
	}
	present := make(map[ruleKey]string, len(aliases))
	for _, alias := range aliases {
		present[ruleKey{alias.Tool, alias.Name}] = alias.Canonical
	}
	return present, nil
}
