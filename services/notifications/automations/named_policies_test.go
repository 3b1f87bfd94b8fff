package automations_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent/finding"
)

// TestAutomationOfAPolicyThatEnds: "not of this policy" does not become "every finding" when the policy ends.
func TestAutomationOfAPolicyThatEnds(t *testing.T) {
	each(t, func(t *testing.T, s caller) {
		s.apply(t, policy("must-fix", high, `{"type":"block"}`), policy("other", high, `{"type":"block"}`))
		id := s.create(t, `{"name":"the rest","filters":{"conditions":[{"type":"CONDITION_TYPE_POLICY","mode":"MODE_NONE","values":["must-fix"]}]},
			"actions":[{"type":"ACTION_TYPE_TRIAGE","config":{"state":"ignored","reason":"no_time"}}]}`)
		renamed := `{"bundle":{"policies":[` + policy("must-fix-now", high, `{"type":"block"}`) + `]}}`
		warned := s.Body(t, s.Token, http.MethodPost, s.policies(":dryRun"), renamed, 200)
		if want := fmt.Sprintf(`"code":"NAMED_BY_AUTOMATION","message":"automation %s (\"the rest\") names policy \"must-fix\"`, id); strings.Count(warned, "NAMED_BY_AUTOMATION") != 1 || !strings.Contains(warned, want) {
			t.Errorf("want %s once in %s", want, warned)
		}
		s.apply(t, policy("must-fix-now", high, `{"type":"block"}`))
		s.Upload(t, "acme/web", "main", report("warning:app/db.go"))
		s.idle(t)
		row := s.Store.Reader.Finding.Query().Where(finding.Ref("refs/heads/main")).OnlyX(s.System(t))
		if row.TriageState != "untriaged" {
			t.Errorf("the finding is %s", row.TriageState)
		}
	})
}
