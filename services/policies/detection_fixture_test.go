package policies_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/projecttag"
	"github.com/palisade/palisade/ent/rule"
	"github.com/palisade/palisade/ent/tag"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/rules/ruleset"
)

// documents are two rules of each product.
const documents = `{"rules":[
{"id":"acme.eval","languages":["python"],"severity":"ERROR","message":"No.","pattern":"eval($X)",
 "metadata":{"category":"security","confidence":"HIGH","cwe":["CWE-95: Eval"],"owasp":"A03:2021","technology":["flask"],"vulnerability_class":["Code Injection"]}},
{"id":"acme.exec","languages":["python"],"severity":"WARNING","message":"No.","pattern":"exec($X)"},
{"id":"acme.token","languages":["regex"],"severity":"CRITICAL","message":"A token.","pattern-regex":"acme_[0-9a-f]{32}",
 "metadata":{"product":"secrets","secret_type":"Acme","dev.semgrep.validation_state.actions":{"NO_VALIDATOR":"block"}}},
{"id":"acme.key","languages":["regex"],"severity":"HIGH","message":"A key.","pattern-regex":"key_[0-9a-f]{32}","metadata":{"product":"secrets"}},
{"id":"acme.lodash","languages":["js"],"severity":"HIGH","message":"Upgrade.","pattern":"lodash",
 "r2c-internal-project-depends-on":{"namespace":"npm","package":"lodash","version":"< 4.17.21"}}]}`

// imported adds the rules to a deployment, and a second project with the tag.
func (s caller) imported(t testing.TB, of apitest.Tenant) {
	t.Helper()
	source, err := json.Marshal(documents)
	if err != nil {
		t.Fatal(err)
	}
	s.want(t, 200, of.Token, http.MethodPost, fmt.Sprintf("/api/rules/v1/deployments/%d/rules", of.DeploymentID),
		`{"files":[{"name":"a.json","text":`+string(source)+`}]}`, "")
	err = s.Store.Write(tenant.NewContext(t.Context(), of.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		name := of.Slug + "/api"
		row, err := tx.Project.Create().SetName(name).SetNameKey(name).SetCreatedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		id, err := tx.Tag.Query().Where(tag.Name(of.Slug + "-pci")).OnlyID(ctx)
		if err != nil {
			return err
		}
		return tx.ProjectTag.Create().SetProjectID(row.ID).SetTagID(id).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// found stores open findings of a rule in a project of the first deployment.
func (s caller) found(t testing.TB, projectName, ruleName string, count int) {
	t.Helper()
	err := s.Store.Write(tenant.NewContext(t.Context(), s.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		projectID, err := tx.Project.Query().Where(project.Name(projectName)).OnlyID(ctx)
		if err != nil {
			return err
		}
		ruleID, err := tx.Rule.Query().Where(rule.Tool(ruleset.Tool), rule.Name(ruleName)).OnlyID(ctx)
		if ent.IsNotFound(err) {
			var row *ent.Rule
			row, err = tx.Rule.Create().SetTool(ruleset.Tool).SetName(ruleName).SetCategory("security").SetConfidence("high").SetContent([]byte{}).Save(ctx)
			if err == nil {
				ruleID = row.ID
			}
		}
		if err != nil {
			return err
		}
		for i := range count {
			err := tx.Finding.Create().SetProjectID(projectID).SetRuleID(ruleID).SetFirstSeenScanID(1).SetRef("refs/heads/main").SetTool(ruleset.Tool).
				SetAnalysisCategory("").SetFingerprint(fmt.Sprint(ruleName, i)).SetIssueType("sast").SetSeverity("high").SetState(lifecycle.Unresolved).
				SetStatus(lifecycle.Open).SetCreatedAt(store.Now()).SetRelevantSince(store.Now()).SetStateUpdatedAt(store.Now()).
				SetContentHash(1).SetContent([]byte{}).Exec(ctx)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// untag removes all tags of a project.
func (s caller) untag(t testing.TB, projectName string) {
	t.Helper()
	err := s.Store.Write(tenant.NewContext(t.Context(), s.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		id, err := tx.Project.Query().Where(project.Name(projectName)).OnlyID(ctx)
		if err == nil {
			_, err = tx.ProjectTag.Delete().Where(projecttag.ProjectID(id)).Exec(ctx)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sent returns the rules of a project's scan as "name=actions", sorted.
func (s caller) sent(t testing.TB, projectName string) string {
	t.Helper()
	document, err := ruleset.Select(tenant.NewContext(t.Context(), s.DeploymentID), s.Store.Reader, ruleset.Selection{Project: projectName})
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Rules []struct {
			ID       string
			Metadata map[string]any
		}
	}
	if err := json.Unmarshal(document.JSON, &rules); err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, r := range rules.Rules {
		list = append(list, strings.TrimPrefix(r.ID, "acme.")+fmt.Sprint(r.Metadata["dev.semgrep.actions"]))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func (s caller) detectionPath(product string) string {
	return path(s.Tenant, "detection-policy/"+product)
}

// apply applies a detection bundle to the current state.
func (s caller) apply(t testing.TB, product, bundle string, status int, holds ...string) string {
	t.Helper()
	return s.want(t, status, s.Token, http.MethodPut, s.detectionPath(product), `{"bundle":`+bundle+`}`,
		version(t, s.Get(t, s.detectionPath(product))), holds...)
}

func (s caller) preview(t testing.TB, product, bundle string) string {
	t.Helper()
	return s.want(t, 200, s.Token, http.MethodPost, s.detectionPath(product)+":dryRun", `{"bundle":`+bundle+`}`, "")
}
