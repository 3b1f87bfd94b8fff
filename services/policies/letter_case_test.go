package policies_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	"github.com/palisade/palisade/services/internal/store"
)

// Policies name a project in any letter case, and have its own name.
func TestLetterCaseOfProjects(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.imported(t, s.Tenant)
		err := s.Store.Write(tenant.NewContext(t.Context(), s.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
			return tx.Project.Create().SetName("Case/Web").SetNameKey("case/web").SetCreatedAt(store.Now()).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		except := func(project, kind string) string {
			return `{"exception_type":"` + kind + `","project":"` + project + `","rule":"acme.eval","rule_type":"rule"}`
		}
		bundle := `{"exceptions":[` + except("cAsE/WEB", "exclude") + `]}`
		put := s.apply(t, "code", bundle, 200, `"project":"Case/Web"`)
		if got := s.Get(t, s.detectionPath("code")); got != put {
			t.Errorf("got %s, want %s", got, put)
		}
		if dry := s.preview(t, "code", bundle); !strings.Contains(dry, `"creates":[],"updates":[],"deletes":[]`) {
			t.Errorf("the same file would change something: %s", dry)
		}
		s.want(t, 200, s.Token, http.MethodPut, s.detectionPath("code"), `{"bundle":`+bundle+`}`, version(t, put))
		twice := `{"exceptions":[` + except("cAsE/WEB", "exclude") + `,` + except("Case/Web", "include") + `]}`
		s.apply(t, "code", twice, 400, `"code":"INVALID_ARGUMENT"`, "exceptions[1]")

		policies := `[{"name":"Web","active":true,"actions":[{"type":"block"}],"filters":{"mode":"all","conditions":[
			{"type":"project","values":["cAsE/WEB","CASE/web","cAsE/WEB"]}]}}]`
		s.put(t, policies, 200, `"values":["Case/Web","Case/Web","Case/Web"]`)
		if dry := s.dry(t, policies); !strings.Contains(dry, `"updates":[]`) {
			t.Errorf("the same policies would change something: %s", dry)
		}
		if report := s.Upload(t, "case/WEB", "main", reportOf("sql error")); !strings.Contains(report, `"block_reason":"policy Web: 1 finding"`) {
			t.Errorf("a report of the project: %s", report)
		}
	})
}
