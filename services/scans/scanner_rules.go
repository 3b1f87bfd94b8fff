package scans

import (
	"context"
	"encoding/json"
	"fmt"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/predicate"
	"github.com/palisade/palisade/ent/ruledocument"
	"github.com/palisade/palisade/ent/ruleversion"
	"github.com/palisade/palisade/ent/tenant"
)

// ruleMessages reads the messages of the deployment's rules as written, by rule name. An empty product means all
// products.
func ruleMessages(ctx context.Context, db *ent.Client, product string) (map[string]string, error) {
	query := db.RuleDocument.Query()
	if product != "" {
		query.Where(ruledocument.Product(product))
	}
	rules, err := query.Select(ruledocument.FieldID, ruledocument.FieldName, ruledocument.FieldVersion).All(ctx)
	if err != nil || len(rules) == 0 {
		return nil, err
	}
	byID := make(map[int64]*ent.RuleDocument, len(rules))
	for _, row := range rules {
		byID[row.ID] = row
	}
	deploymentID, _ := tenant.FromContext(ctx)
	versions, err := db.RuleVersion.Query().Where(newestVersions(deploymentID, product)).
		Select(ruleversion.FieldRuleDocumentID, ruleversion.FieldVersion, ruleversion.FieldDocument).All(ctx)
	if err != nil {
		return nil, err
	}
	messages := make(map[string]string, len(rules))
	for _, row := range rules {
		messages[row.Name] = ""
	}
	for _, version := range versions {
		row := byID[version.RuleDocumentID]
		if row == nil {
			continue // added after the first query
		}
		var document struct {
			Message string `json:"message"`
		}
		if err := json.Unmarshal(version.Document, &document); err != nil {
			return nil, fmt.Errorf("version %d of rule %s: %w", version.Version, row.Name, err)
		}
		messages[row.Name] = document.Message
	}
	return messages, nil
}

// newestVersions selects the current documents of rules. An empty product means all products.
func newestVersions(deploymentID int64, product string) predicate.RuleVersion {
	return func(v *entsql.Selector) {
		r := entsql.Table(ruledocument.Table).As("newest")
		newest := entsql.Dialect(v.Dialect()).Select(r.C(ruledocument.FieldID)).From(r).Where(entsql.And(
			entsql.EQ(r.C(ruledocument.FieldDeploymentID), deploymentID),
			entsql.ColumnsEQ(r.C(ruledocument.FieldID), v.C(ruleversion.FieldRuleDocumentID)),
			entsql.ColumnsEQ(r.C(ruledocument.FieldVersion), v.C(ruleversion.FieldVersion)),
		))
		if product != "" {
			newest.Where(entsql.EQ(r.C(ruledocument.FieldProduct), product))
		}
		v.Where(entsql.Exists(newest))
	}
}
