package scans_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

// TestAzureStory: three findings block a pull request of Azure DevOps. One is ignored by a reply, the others are fixed.
func TestAzureStory(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) { on(c); c.EgressAllow = "127.0.0.1" })
		h := hosttest.NewAzure(t)
		h.Repositories, h.Writers = []hosttest.Repository{{ID: 1, Name: "acme/tools/web", DefaultBranch: "main"}}, []string{"grace"}
		h.PullRequests = map[int64]hosttest.Request{17: {State: "open", Commit: commitB, Files: reviewedFiles}}
		r := &reviewed{Server: s}
		r.connect(t, "acme/tools/web", "SCM_TYPE_AZURE_DEVOPS", "acme/tools", &h.Server, "/acme/tools/_git/web")
		r.settings(t, `{"settings":{"line_comments":5}}`, http.StatusOK)
		s.Body(t, s.Token, http.MethodPut, fmt.Sprintf("/api/scm/deployments/%d/subscriptions/%d", s.DeploymentID, s.Store.Reader.ScmConfig.Query().OnlyIDX(s.System(t))), "", http.StatusOK)
		newScanner(s).change(t, "UPDATE deployments SET triage_via_comment = TRUE")

		r.request(t, 17, commitB, "a.go", "b.go", "c.go", "f.go")
		threads := r.threads(t, "b.go:3", "c.go:3", "f.go:3")
		r.statuses(t, commitB, "Palisade failure 3 new findings; blocked by No new", "Palisade: No new failure blocks: 3 findings")
		r.note(t, "this pull request is blocked", "**Blocked** by `No new`: 3 findings")

		r.reply(t, h.Hooks()[0], threads[0].ID, "/fp a constant")
		r.threads(t, "b.go:3 resolved", "c.go:3", "f.go:3")
		r.statuses(t, commitB, "Palisade failure 2 new findings; blocked by No new", "Palisade: No new failure blocks: 2 findings")
		r.note(t, "**Blocked** by `No new`: 2 findings", "Ignored by people: 1")
		r.reply(t, h.Hooks()[0], threads[1].ID, "/ar accepted until June")
		r.reply(t, h.Hooks()[0], threads[2].ID, "/fp a test")
		r.statuses(t, commitB, "Palisade success no new findings", "Palisade: No new success blocks nothing")
		r.reply(t, h.Hooks()[0], threads[1].ID, "/open")
		r.statuses(t, commitB, "Palisade failure 1 new finding; blocked by No new", "Palisade: No new failure blocks: 1 finding")

		h.SetRequest(h.PullRequests, 17, hosttest.Request{State: "open", Commit: commitC, Files: reviewedFiles})
		r.request(t, 17, commitC, "a.go")
		r.statuses(t, commitC, "Palisade success no new findings", "Palisade: No new success blocks nothing")
		r.threads(t, "b.go:3 resolved", "c.go:3 resolved", "f.go:3 resolved")
		if n := len(r.host.Notes()); n != 1 {
			t.Errorf("%d comments, want one that was edited", n)
		}
		for _, row := range s.Store.Reader.Finding.Query().Where(finding.RefHasPrefix("refs/pull/")).Order(ent.Asc(finding.FieldID)).AllX(s.System(t)) {
			if row.FilePath != nil && *row.FilePath != "a.go" && row.State != "fixed" {
				t.Errorf("%s is %s", *row.FilePath, row.State)
			}
		}
	})
}

// reply sends the event of a reply of grace in a thread.
func (r *reviewed) reply(t *testing.T, hook hosttest.Hook, thread, text string) {
	t.Helper()
	raw, err := os.ReadFile("../scm/webhook/testdata/azure_comment.json")
	if err != nil {
		t.Fatal(err)
	}
	body := strings.NewReplacer("@AT@", time.Now().UTC().Format(time.RFC3339), "/threads/100", "/threads/"+thread, "/fp the input is a constant", text,
		`"uniqueName": "octavia"`, `"uniqueName": "grace"`, `"id": 2,`, fmt.Sprintf(`"id": %d,`, 2+len(text))).Replace(string(raw))
	answer := r.Send(t, "", http.MethodPost, strings.TrimPrefix(hook.URL, r.Config.PublicURL), strings.NewReader(body),
		"Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("palisade:"+hook.Secret)))
	if answer.Status != http.StatusOK || !strings.Contains(answer.Body, "accepted") {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
}
