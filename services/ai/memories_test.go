package ai_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/aimemory"
	"github.com/palisade/palisade/ent/auditentry"
	aiv1 "github.com/palisade/palisade/gen/palisade/ai/v1"
	"github.com/palisade/palisade/services/ai"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

func TestMemoryOperations(t *testing.T) {
	t.Parallel()
	eachRemembering(t, func(t *testing.T, s *remembering) {
		memoryGolden(t, "list_memories_none", s.do(t, http.MethodPost, "memories/list", `{}`, 200))
		body := fmt.Sprintf(`{"memory":{"id":"77","content":" Values of the table roles are constants. ","ruleId":"%d","repositoryId":"%d","projectTagId":%d,
			"context":["GUIDANCE"],"pathPrefixes":["./src/db/","src/db","/app/roles.py"],"vulnerabilityClass":"SQL Injection","stage":"AI_MEMORY_STAGE_LIVE",
			"createdBy":"somebody","ruleName":"other","preanalysisCounts":{"newlyTruePositive":"7"},"suggestionSources":{"sources":[{"note":"x"}]}}}`,
			s.rules["py.sqli"], s.projects["acme/web"], s.tagID)
		made := s.do(t, http.MethodPost, "memories", body, 200)
		memoryGolden(t, "create_memory", made)
		id := memoryIDs(t, made)[0]
		wide := s.create(t, "")
		list := s.do(t, http.MethodPost, "memories/list", `{}`, 200)
		memoryGolden(t, "list_memories", list)
		if legacy := s.do(t, http.MethodGet, "memories", "", 200); legacy != list {
			t.Errorf("the older GET: %s", legacy)
		}
		answer, err := aiv1.NewMemoriesServiceClient(s.Conn).ListMemories(s.Context(t, s.Token), &aiv1.ListMemoriesRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, answer, list)
		// An update replaces all fields: absent ones are cleared.
		memoryGolden(t, "update_memory", s.do(t, http.MethodPut, "memories/"+id, `{"memoryId":"999","memory":{"id":"999","content":"Ask #appsec","ruleId":"","repositoryId":"0"}}`, 200))
		memoryGolden(t, "get_memories_by_ids", s.do(t, http.MethodPost, "memories/ids", `{"memoryIds":["`+id+`","999999"]}`, 200))
		memoryGolden(t, "delete_memory", s.do(t, http.MethodDelete, "memories/"+id, "", 200))
		s.do(t, http.MethodDelete, "memories/"+id, "", 404)
		s.do(t, http.MethodPut, "memories/"+id, `{"memory":{"content":"x"}}`, 404)
		if ids := memoryIDs(t, s.do(t, http.MethodPost, "memories/list", `{}`, 200)); !slices.Equal(ids, []string{wide}) {
			t.Errorf("listed after the deletion: %v", ids)
		}
		if body := s.do(t, http.MethodPost, "memories/ids", `{"memoryIds":["`+id+`"]}`, 200); body != `{"memories":[]}` {
			t.Error(body)
		}
		if stage := s.Store.Reader.AiMemory.Query().Where(aimemory.StageEQ("deleted")).CountX(s.System(t)); stage != 1 {
			t.Errorf("%d deleted memories are kept", stage)
		}
		var changes []string
		for _, entry := range s.Store.Reader.AuditEntry.Query().Order(ent.Asc(auditentry.FieldID)).AllX(s.System(t)) {
			for _, c := range entry.Changes {
				changes = append(changes, fmt.Sprintf("%s %s %v %v", c.Kind, c.ID, len(c.Before) > 0, len(c.After) > 0))
			}
		}
		want := []string{"memory " + id + " false true", "memory " + wide + " false true", "memory " + id + " true true", "memory " + id + " true false"}
		if !slices.Equal(changes, want) {
			t.Errorf("changes %v, want %v", changes, want)
		}
	})
}

func TestMemoryFilter(t *testing.T) {
	t.Parallel()
	eachRemembering(t, func(t *testing.T, s *remembering) {
		all, web := s.create(t, ""), s.create(t, fmt.Sprintf(`,"repositoryId":"%d"`, s.projects["acme/web"]))
		api, tag := s.create(t, fmt.Sprintf(`,"repositoryId":"%d"`, s.projects["acme/api"])), s.create(t, fmt.Sprintf(`,"projectTagId":%d`, s.tagID))
		suggested := s.create(t, `,"stage":"AI_MEMORY_STAGE_SUGGESTED"`)
		for _, c := range []struct {
			filter string
			want   []string
		}{
			{`{}`, []string{all, web, api, tag}},
			{`{"exactScope":true}`, []string{all, web, api, tag}},
			{fmt.Sprintf(`{"repositoryIds":["%d"]}`, s.projects["acme/web"]), []string{all, web, tag}},
			{fmt.Sprintf(`{"repositoryIds":["%d"]}`, s.projects["acme/api"]), []string{all, api}},
			{fmt.Sprintf(`{"repositoryIds":[%d],"exactScope":true}`, s.projects["acme/web"]), []string{web}},
			{fmt.Sprintf(`{"repositoryIds":[%d,%d],"exactScope":true}`, s.projects["acme/web"], s.projects["acme/api"]), []string{web, api}},
			{`{"repositoryIds":[999999],"exactScope":true}`, []string{}},
		} {
			if got := memoryIDs(t, s.do(t, http.MethodPost, "memories/list", `{"filter":`+c.filter+`}`, 200)); !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", c.filter, got, c.want)
			}
		}
		if got := memoryIDs(t, s.do(t, http.MethodGet, "memories/suggested", "", 200)); !slices.Equal(got, []string{suggested}) {
			t.Errorf("suggested: %v", got)
		}
		s.do(t, http.MethodPut, "memories/"+suggested, `{"memory":{"content":"accepted","stage":"AI_MEMORY_STAGE_LIVE"}}`, 200)
		s.do(t, http.MethodPut, "memories/"+all, `{"memory":{"content":"dismissed","stage":"AI_MEMORY_STAGE_DELETED"}}`, 200)
		if got := memoryIDs(t, s.do(t, http.MethodPost, "memories/list", `{}`, 200)); !slices.Equal(got, []string{web, api, tag, suggested}) {
			t.Errorf("after one was accepted and one dismissed: %v", got)
		}
	})
}

func TestMemoryInvalid(t *testing.T) {
	t.Parallel()
	eachRemembering(t, func(t *testing.T, s *remembering) {
		id := s.create(t, "")
		for _, c := range []struct{ fields, names string }{
			{`"content":""`, "memory.content"},
			{`"content":" \n"`, "memory.content"},
			{`"content":"` + strings.Repeat("ü", 5001) + `"`, "memory.content"},
			{`"content":"a\u0000b"`, "memory.content"},
			{`"content":"x","context":["TRIAGE","OTHER"]`, "memory.context"},
			{`"content":"x","context":["TRIAGE","TRIAGE"]`, "memory.context"},
			{`"content":"x","ruleId":"999999"`, "memory.ruleId"},
			{`"content":"x","ruleId":"py.sqli"`, "memory.ruleId"},
			{`"content":"x","repositoryId":"999999"`, "memory.repositoryId"},
			{`"content":"x","repositoryId":"-1"`, "memory.repositoryId"},
			{`"content":"x","projectTagId":999999`, "memory.projectTagId"},
			{`"content":"x","projectTagId":-1`, "memory.projectTagId"},
			{`"content":"x","pathPrefixes":["/"]`, "memory.pathPrefixes"},
			{`"content":"x","pathPrefixes":["./"]`, "memory.pathPrefixes"},
			{`"content":"x","pathPrefixes":[""]`, "memory.pathPrefixes"},
			{`"content":"x","pathPrefixes":["a","` + strings.Repeat("b", 501) + `"]`, "memory.pathPrefixes"},
			{`"content":"x","pathPrefixes":[` + strings.Repeat(`"a",`, 50) + `"a"]`, "memory.pathPrefixes"},
			{`"content":"x","vulnerabilityClass":"` + strings.Repeat("ü", 51) + `"`, "memory.vulnerabilityClass"},
			{`"content":"x","stage":"AI_MEMORY_STAGE_OTHER"`, "stage"},
			{`"content":"x","stage":9`, "memory.stage"},
		} {
			body := `{"memory":{` + c.fields + `}}`
			for _, answer := range []string{s.do(t, http.MethodPost, "memories", body, 400), s.do(t, http.MethodPut, "memories/"+id, body, 400)} {
				if !strings.Contains(answer, c.names) {
					t.Errorf("%.80s: %s does not name %s", body, answer, c.names)
				}
			}
		}
		s.do(t, http.MethodPost, "memories", ``, 400)
		s.do(t, http.MethodPost, "memories", `{"memory":{"content":"x","stage":"AI_MEMORY_STAGE_DELETED"}}`, 400)
		s.do(t, http.MethodPost, "memories", `{"memory":{"content":"`+strings.Repeat("ü", 5000)+`"}}`, 200)
		for _, body := range []string{
			`{}`, `{"note":"x"}`, `{"note":"x","filter":{}}`, `{"note":"x","filter":{"ids":["999999"]}}`, `{"note":" ","filter":{"ids":["1"]}}`,
			`{"note":"x","filter":{"repositoryRefIds":["main"]}}`, `{"note":"x","filter":{"memoryIdInScope":"x"}}`,
			`{"note":"x","filter":{"severities":["SEVERITY_HUGE"]}}`, `{"note":"x","filter":{"severities":[99]}}`,
		} {
			s.do(t, http.MethodPost, "memories/triage", body, 400)
		}
		s.do(t, http.MethodPost, "relevant_issues", `{"ruleId":"999999"}`, 400)
		s.do(t, http.MethodPost, "relevant_issues", `{"repositoryId":"999999"}`, 400)
		s.do(t, http.MethodPost, "memories/ids", `{"memoryIds":[`+strings.Repeat("1,", 1000)+`1]}`, 400)
		s.do(t, http.MethodDelete, "memories/999999", "", 404)
		if n := s.Store.Reader.AiMemory.Query().CountX(s.System(t)); n != 2 {
			t.Errorf("%d memories are stored, want 2", n)
		}
	})
}

func TestMemoryWalls(t *testing.T) {
	t.Parallel()
	eachRemembering(t, func(t *testing.T, s *remembering) {
		id := s.create(t, "")
		web, api := s.create(t, fmt.Sprintf(`,"repositoryId":"%d"`, s.projects["acme/web"])), s.create(t, fmt.Sprintf(`,"repositoryId":"%d"`, s.projects["acme/api"]))
		globex := s.AddTenant(t, "globex")
		theirs := func(method, path, body string, want int) string {
			t.Helper()
			answer := s.Do(t, globex.Token, method, fmt.Sprintf("/api/ai/deployments/%d/%s", globex.DeploymentID, path), body)
			if answer.Status != want {
				t.Errorf("%s %s %s: %d %s, want %d", method, path, body, answer.Status, answer.Body, want)
			}
			return answer.Body
		}
		theirs(http.MethodPut, "memories/"+id, `{"memory":{"content":"x"}}`, 404)
		theirs(http.MethodDelete, "memories/"+id, "", 404)
		theirs(http.MethodPost, "memories", fmt.Sprintf(`{"memory":{"content":"x","repositoryId":"%d"}}`, s.projects["acme/web"]), 400)
		theirs(http.MethodPost, "memories", fmt.Sprintf(`{"memory":{"content":"x","ruleId":"%d"}}`, s.rules["py.sqli"]), 400)
		theirs(http.MethodPost, "memories", fmt.Sprintf(`{"memory":{"content":"x","projectTagId":%d}}`, s.tagID), 400)
		for _, list := range []string{theirs(http.MethodPost, "memories/list", `{}`, 200), theirs(http.MethodPost, "memories/ids", `{"memoryIds":["`+id+`"]}`, 200)} {
			if list != `{"memories":[]}` {
				t.Error(list)
			}
		}
		s.as(t, globex.Token, http.MethodPost, "memories/list", `{}`, 404)

		// A member sees memories of their teams' projects and memories for all projects, and can change only the former.
		mia := s.member(t)
		if got := memoryIDs(t, s.as(t, mia, http.MethodPost, "memories/list", `{}`, 200)); !slices.Equal(got, []string{id, web}) {
			t.Errorf("the member lists %v", got)
		}
		s.as(t, mia, http.MethodPut, "memories/"+api, `{"memory":{"content":"x"}}`, 404)
		s.as(t, mia, http.MethodPut, "memories/"+id, `{"memory":{"content":"x"}}`, 403)
		s.as(t, mia, http.MethodDelete, "memories/"+id, "", 403)
		s.as(t, mia, http.MethodPut, "memories/"+web, `{"memory":{"content":"for all"}}`, 403)
		s.as(t, mia, http.MethodPut, "memories/"+web, fmt.Sprintf(`{"memory":{"content":"x","repositoryId":"%d"}}`, s.projects["acme/api"]), 400)
		s.as(t, mia, http.MethodPut, "memories/"+web, fmt.Sprintf(`{"memory":{"content":"x","repositoryId":"%d"}}`, s.projects["acme/web"]), 200)
		s.as(t, mia, http.MethodPost, "memories", `{"memory":{"content":"for all"}}`, 403)
		s.as(t, mia, http.MethodPost, "memories", fmt.Sprintf(`{"memory":{"content":"x","repositoryId":"%d"}}`, s.projects["acme/web"]), 200)
		s.as(t, mia, http.MethodDelete, "memories/"+web, "", 200)
		reader := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleReadOnly})
		s.as(t, reader, http.MethodPost, "memories/list", `{}`, 200)
		s.as(t, reader, http.MethodPost, "memories", `{"memory":{"content":"x"}}`, 403)
	})
}

func TestMemoryFromTriage(t *testing.T) {
	t.Parallel()
	eachRemembering(t, func(t *testing.T, s *remembering) {
		one := s.finding(t, "acme/web", "py.sqli", "one", nil)
		twin := s.finding(t, "acme/web", "py.sqli", "one", func(f *ent.FindingCreate) { f.SetRef("refs/heads/dev") })
		two := s.finding(t, "acme/web", "js.xss", "two", nil)
		s.finding(t, "acme/api", "js.xss", "three", func(f *ent.FindingCreate) { f.SetIssueType("ai_sast") })
		memoryGolden(t, "create_memory_from_triage", s.do(t, http.MethodPost, "memories/triage",
			fmt.Sprintf(`{"note":" roles are constants ","filter":{"rules":["py.sqli"]},"identifierFilter":{"ids":["%d"]},"issueType":"ISSUE_TYPE_SAST"}`, one), 200))
		for _, c := range []struct{ body, rule, project string }{
			{`"filter":{"rules":["js.xss"]}`, "js.xss", ""},
			{`"filter":{"rules":["js.xss"]},"issueType":"ISSUE_TYPE_AI_SAST"`, "js.xss", "acme/api"},
			{`"filter":{"repositoryNames":["acme/web"]}`, "", "acme/web"},
			{`"filter":{"severities":["SEVERITY_HIGH"]}`, "", ""},
			{fmt.Sprintf(`"identifierFilter":{"ids":["%d","%d"]}`, one, two), "", "acme/web"},
			{fmt.Sprintf(`"identifierFilter":{"issueParentIds":["%d"]}`, twin), "py.sqli", "acme/web"},
			{fmt.Sprintf(`"identifierFilter":{"ids":["%d"],"ruleIds":["%d"]}`, one, s.rules["js.xss"]), "", ""},
			{fmt.Sprintf(`"filter":{"refs":["dev"]},"identifierFilter":{"issueParentIds":["%d"],"ruleIds":["%d"]}`, one, s.rules["js.xss"]), "py.sqli", "acme/web"},
		} {
			body := s.do(t, http.MethodPost, "memories/triage", `{"note":"x",`+c.body+`}`, 200)
			if !strings.Contains(body, `"ruleName":"`+c.rule+`"`) || !strings.Contains(body, `"repositoryName":"`+c.project+`"`) {
				t.Errorf("%s: %s, want rule %q and project %q", c.body, body, c.rule, c.project)
			}
		}
		s.do(t, http.MethodPost, "memories/triage", fmt.Sprintf(`{"note":"x","filter":{"rules":["js.xss"]},"identifierFilter":{"ids":["%d"]}}`, one), 400)
		mia := s.member(t)
		s.as(t, mia, http.MethodPost, "memories/triage", `{"note":"x","filter":{"rules":["js.xss"]}}`, 200) // sees only one of them
	})
}

func TestMemoryStatsAndRelevantIssues(t *testing.T) {
	t.Parallel()
	eachRemembering(t, func(t *testing.T, s *remembering) {
		apitest.Golden(t, "memories_stats_none", s.do(t, http.MethodGet, "memories/stats", "", 200))
		id := s.create(t, "")
		tp, fp := "true_positive", "false_positive"
		one := s.finding(t, "acme/web", "py.sqli", "one", func(f *ent.FindingCreate) { f.SetAutotriageVerdict(fp).SetRef("refs/pull/7/merge") })
		two := s.finding(t, "acme/web", "js.xss", "two", func(f *ent.FindingCreate) { f.SetAutotriageVerdict(fp).SetRelevantSince(5) })
		three := s.finding(t, "acme/api", "js.xss", "three", func(f *ent.FindingCreate) { f.SetAutotriageVerdict(tp).SetRelevantSince(9) })
		four := s.finding(t, "acme/api", "js.xss", "four", func(f *ent.FindingCreate) { f.SetState("fixed").SetStatus("fixed") })
		s.write(t, func(ctx context.Context, tx *ent.Tx) error {
			for _, a := range []struct {
				finding       int64
				verdict       string
				with, applied bool
			}{
				{one, tp, false, false}, {one, fp, true, true}, {two, fp, false, false}, {two, fp, true, true},
				{three, tp, true, false}, {three, fp, false, false}, {three, tp, true, false}, {four, fp, false, true},
			} {
				row, err := tx.AiAnalysis.Create().SetDeploymentID(s.DeploymentID).SetFindingID(a.finding).SetStatus("done").SetVerdict(a.verdict).
					SetApplied(a.applied).SetCreatedAt(1).Save(ctx)
				if err != nil {
					return err
				}
				if a.with {
					var memory int64
					_, _ = fmt.Sscan(id, &memory)
					if err := tx.AiMemoryUse.Create().SetDeploymentID(s.DeploymentID).SetMemoryID(memory).SetAnalysisID(row.ID).
						SetFindingID(a.finding).SetReferenced(true).Exec(ctx); err != nil {
						return err
					}
				}
			}
			return nil
		})
		apitest.Golden(t, "memories_stats", s.do(t, http.MethodGet, "memories/stats", "", 200))
		memoryGolden(t, "list_memories_analysed", s.do(t, http.MethodPost, "memories/list", `{}`, 200))
		for _, c := range []struct {
			body string
			want []int64
		}{
			{`{}`, []int64{one, three, two}},
			{`{"ruleId":"","repositoryId":"0"}`, []int64{one, three, two}},
			{fmt.Sprintf(`{"ruleId":"%d"}`, s.rules["js.xss"]), []int64{three, two}},
			{fmt.Sprintf(`{"ruleId":"%d","repositoryId":"%d"}`, s.rules["js.xss"], s.projects["acme/web"]), []int64{two}},
			{fmt.Sprintf(`{"ruleId":"%d","repositoryId":"%d"}`, s.rules["py.sqli"], s.projects["acme/api"]), nil},
		} {
			quoted := make([]string, len(c.want))
			for i, id := range c.want {
				quoted[i] = fmt.Sprintf("%q", fmt.Sprint(id))
			}
			if got, want := s.do(t, http.MethodPost, "relevant_issues", c.body, 200), `{"issueIds":[`+strings.Join(quoted, ",")+`]}`; got != want {
				t.Errorf("%s: %s, want %s", c.body, got, want)
			}
		}
	})
}

func TestMemorySuggestions(t *testing.T) {
	t.Parallel()
	eachRemembering(t, func(t *testing.T, s *remembering) {
		const main = "refs/heads/main"
		apitest.Eventually(t, "the run of the job that every server begins with", func() bool {
			reader, _ := s.Store.DB()
			var n int
			err := reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM river_job WHERE kind = 'ai_suggest_memories' AND state = 'completed'").Scan(&n)
			return err == nil && n > 0
		})
		first := s.finding(t, "acme/web", "py.sqli", "one", ignored("roles are\n constants", main, 100))
		s.finding(t, "acme/web", "py.sqli", "one", ignored("roles are\n constants", "refs/heads/dev", 100)) // the same finding
		s.finding(t, "acme/web", "py.sqli", "two", ignored("test data", main, 300))
		for _, print := range []string{"five", "six", "seven"} { // no notes
			s.finding(t, "acme/api", "py.sqli", print, ignored("", main, 100))
			s.finding(t, "acme/web", "js.xss", print, func(f *ent.FindingCreate) {
				ignored("not now", main, 100)(f)
				f.SetTriageReason("no_time")
			})
		}
		suggest := func() []string {
			t.Helper()
			if err := ai.SuggestMemories(t.Context(), s.Store); err != nil {
				t.Fatal(err)
			}
			return memoryIDs(t, s.do(t, http.MethodGet, "memories/suggested", "", 200))
		}
		if got := suggest(); len(got) != 0 {
			t.Fatalf("two findings are a pattern: %v", got)
		}
		s.finding(t, "acme/web", "py.sqli", "three", ignored("test data", main, 200))
		s.write(t, func(ctx context.Context, tx *ent.Tx) error {
			return tx.FindingEvent.Create().SetDeploymentID(s.DeploymentID).SetFindingID(first).SetKind("triaged").SetFromStatus("open").
				SetToStatus("ignored").SetActorKind("host").SetActorID(0).SetActorName("mia").SetAt(100).Exec(ctx)
		})
		got := suggest()
		if len(got) != 1 {
			t.Fatalf("suggested %v, want one", got)
		}
		memoryGolden(t, "suggested_memories", s.do(t, http.MethodGet, "memories/suggested", "", 200))
		if again := suggest(); !slices.Equal(again, got) {
			t.Errorf("suggested again: %v", again)
		}
		s.do(t, http.MethodPut, "memories/"+got[0], fmt.Sprintf(`{"memory":{"content":"accepted","ruleId":"%d","repositoryId":"%d","stage":"AI_MEMORY_STAGE_LIVE"}}`, s.rules["py.sqli"], s.projects["acme/web"]), 200)
		s.do(t, http.MethodDelete, "memories/"+got[0], "", 200)
		if again := suggest(); len(again) != 0 {
			t.Errorf("what was deleted is suggested again: %v", again)
		}
	})
}

// The limit counts all memories of a deployment, whichever of them the caller sees.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	eachRemembering(t, func(t *testing.T, s *remembering) {
		gone := s.create(t, "")
		s.do(t, http.MethodDelete, "memories/"+gone, "", 200)
		s.write(t, func(ctx context.Context, tx *ent.Tx) error {
			rows := make([]*ent.AiMemoryCreate, 999)
			for i := range rows {
				rows[i] = tx.AiMemory.Create().SetDeploymentID(s.DeploymentID).SetContent("x").SetContext([]string{}).SetPathPrefixes([]string{}).
					SetStage("live").SetProjectID(s.projects["acme/api"]).SetCreatedAt(1).SetUpdatedAt(1)
			}
			return tx.AiMemory.CreateBulk(rows...).Exec(ctx)
		})
		s.create(t, "")
		mia := s.member(t)
		body := fmt.Sprintf(`{"memory":{"content":"x","repositoryId":"%d"}}`, s.projects["acme/web"])
		for _, token := range []string{s.Token, mia} {
			if answer := s.as(t, token, http.MethodPost, "memories", body, 400); !strings.Contains(answer, "1000") {
				t.Error(answer)
			}
		}
		globex := s.AddTenant(t, "globex")
		if answer := s.Do(t, globex.Token, http.MethodPost, fmt.Sprintf("/api/ai/deployments/%d/memories", globex.DeploymentID), `{"memory":{"content":"x"}}`); answer.Status != 200 {
			t.Errorf("another deployment: %d %s", answer.Status, answer.Body)
		}
	})
}
