package deployments_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/palisade/palisade/ent"
	deploymentsv1 "github.com/palisade/palisade/gen/palisade/deployments/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

const oneResult = `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"demo","version":"1.2.3","rules":[{"id":"demo.rule"}]}},
	"results":[{"ruleId":"demo.rule","message":{"text":"A problem"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a.py"},"region":{"startLine":1}}}]}]}]}`

func checklistPath(s caller) string {
	return fmt.Sprintf("/api/onboarding/deployments/%d/checklist", s.DeploymentID)
}

// state returns the state of one step, without TASK_TYPE_ and TASK_STATE_.
func state(t *testing.T, s caller, token, task string) string {
	t.Helper()
	var list struct {
		TaskStatus []struct{ Type, State string }
	}
	if err := json.Unmarshal([]byte(s.want(t, http.StatusOK, token, http.MethodGet, checklistPath(s), "")), &list); err != nil {
		t.Fatal(err)
	}
	for _, one := range list.TaskStatus {
		if one.Type == "TASK_TYPE_"+task {
			return one.State[len("TASK_STATE_"):]
		}
	}
	t.Fatalf("no task %s", task)
	return ""
}

// TestChecklistFollowsTheData does each step in turn and requires that only its state changes.
func TestChecklistFollowsTheData(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		expect := func(task, want string) {
			t.Helper()
			if got := state(t, s, s.Token, task); got != want {
				t.Errorf("%s is %s, want %s", task, got, want)
			}
		}
		now := store.Now()
		start := s.admin(t, http.MethodGet, checklistPath(s), "")
		apitest.Golden(t, "checklist", start)
		same(t, start)(deploymentsv1.NewChecklistServiceClient(s.Conn).GetChecklistStatus(s.Context(t, s.Token),
			&deploymentsv1.GetChecklistStatusRequest{DeploymentId: s.DeploymentID}))

		s.Upload(t, "acme/web", "refs/heads/main", []byte(oneResult))
		expect("SCAN_CODE", "COMPLETE")
		expect("TRIAGE_FIRST_PARTY", "INCOMPLETE")
		expect("SET_UP_RECURRING_SCAN", "INCOMPLETE")
		s.Upload(t, "acme/api", "refs/heads/main", []byte(oneResult))
		expect("SET_UP_RECURRING_SCAN", "INCOMPLETE")
		s.Upload(t, "acme/web", "refs/heads/main", []byte(oneResult))
		expect("SET_UP_RECURRING_SCAN", "COMPLETE")

		s.admin(t, http.MethodPost, "/api/v1/deployments/acme/triage", `{"issue_type":"sast","new_triage_state":"reviewing"}`)
		expect("TRIAGE_FIRST_PARTY", "COMPLETE")
		expect("TRIAGE_DEPENDENCY", "INCOMPLETE")

		expect("ENABLE_INTEGRATION", "INCOMPLETE")
		s.write(t, func(ctx context.Context, tx *ent.Tx) error {
			return tx.NotificationWebhook.Create().SetName("w").SetURL("https://hooks.acme.test").SetCreatedAt(now).SetUpdatedAt(now).Exec(ctx)
		})
		expect("ENABLE_INTEGRATION", "COMPLETE")

		_, chief := s.person(t, "chief@acme.test", access.RoleAdmin)
		expect("ADD_TEAM_MEMBER", "COMPLETE")
		s.want(t, http.StatusOK, chief, http.MethodDelete, s.of(fmt.Sprintf("/users/%d", s.userID(t, access.AdminEmail))), "")
		expect("ADD_TEAM_MEMBER", "INCOMPLETE")
		s.want(t, http.StatusOK, chief, http.MethodPost, fmt.Sprintf("/api/onboarding/deployments/%d/invite_members", s.DeploymentID), `{"emails":["new@acme.test"]}`)
		expect("ADD_TEAM_MEMBER", "COMPLETE")

		s.write(t, func(ctx context.Context, tx *ent.Tx) error {
			return tx.ScmConfig.Create().SetType("SCM_TYPE_GITLAB").SetNamespace("acme").SetBaseURL("https://gitlab.com").
				SetCreatedAt(now).SetUpdatedAt(now).Exec(ctx)
		})
		expect("SETUP_SCM_PROVIDER", "INCOMPLETE")
		s.write(t, func(ctx context.Context, tx *ent.Tx) error { return tx.ScmConfig.Update().SetCheckOk(true).Exec(ctx) })
		expect("SETUP_SCM_PROVIDER", "COMPLETE")

		expect("CUSTOMIZE_RULES", "INCOMPLETE")
		s.write(t, func(ctx context.Context, tx *ent.Tx) error {
			now := store.Now()
			return tx.RemediationPolicy.Create().SetDeploymentID(s.DeploymentID).SetSlug("crit").SetPosition(0).SetActive(true).SetContent([]byte{}).
				SetCreatedAt(now).SetUpdatedAt(now).Exec(ctx)
		})
		expect("CUSTOMIZE_RULES", "COMPLETE")
		s.write(t, func(ctx context.Context, tx *ent.Tx) error {
			_, err := tx.RemediationPolicy.Delete().Exec(ctx)
			return err
		})
		expect("CUSTOMIZE_RULES", "INCOMPLETE")
		s.write(t, func(ctx context.Context, tx *ent.Tx) error {
			return tx.Finding.Update().SetPolicyMode("rule-board-block").Exec(ctx)
		})
		expect("CUSTOMIZE_RULES", "COMPLETE")

		s.admin(t, http.MethodPut, s.of("/products"), `{"ai":{"enabled":true}}`)
		expect("ENABLE_ASSISTANT", "COMPLETE")
		expect("ENABLE_SEMGREP_MULTIMODAL", "COMPLETE")
		apitest.Golden(t, "checklist_followed", s.admin(t, http.MethodGet, checklistPath(s), ""))

		checkUntouched(t, s, start)
	})
}

// checkUntouched requires that a new deployment has no steps done, regardless of the first.
func checkUntouched(t *testing.T, s caller, start string) {
	t.Helper()
	other := s.AddTenant(t, "umbrella")
	theirs := fmt.Sprintf("/api/onboarding/deployments/%d/checklist", other.DeploymentID)
	if got := s.want(t, http.StatusOK, other.Token, http.MethodGet, theirs, ""); got != start {
		t.Errorf("the other deployment stands at %s, want %s", got, start)
	}
}

// TestManagedScansRecur: managed scans count as recurring before the second scan.
func TestManagedScansRecur(t *testing.T) {
	s := caller{apitest.Start(t, nil)}
	s.Upload(t, "acme/web", "refs/heads/main", []byte(oneResult))
	s.admin(t, http.MethodPatch, "/api/v1/deployments/acme/projects/acme/web/managed-scan", `{"full_scan":{"enabled":true}}`)
	if got := state(t, s, s.Token, "SET_UP_RECURRING_SCAN"); got != "COMPLETE" {
		t.Errorf("got %s", got)
	}
}

// patch is the body that changes one task.
func patch(kind, state, level string) string {
	return fmt.Sprintf(`{"taskStatus":[{"type":"TASK_TYPE_%s","state":"TASK_STATE_%s","level":%q}]}`, kind, state, level)
}

func TestPatchChecklist(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		client := deploymentsv1.NewChecklistServiceClient(s.Conn)
		_, reader := s.person(t, "reader@acme.test", access.RoleReadOnly)
		path := checklistPath(s)
		expect := func(token, kind, want string) {
			t.Helper()
			if got := state(t, s, token, kind); got != want {
				t.Errorf("%s is %s, want %s", kind, got, want)
			}
		}

		// A user's own state does not affect other users.
		patched := s.want(t, http.StatusOK, reader, http.MethodPatch, path, patch("COMPLETE_TOUR", "COMPLETE", ""))
		apitest.Golden(t, "checklist_patched", patched)
		same(t, patched)(client.PatchChecklist(s.Context(t, reader), &deploymentsv1.PatchChecklistRequest{
			DeploymentId: s.DeploymentID, TaskStatus: []*deploymentsv1.OnboardingTask{
				{Type: deploymentsv1.TaskType_TASK_TYPE_COMPLETE_TOUR, State: deploymentsv1.TaskState_TASK_STATE_COMPLETE},
			}}))
		expect(reader, "COMPLETE_TOUR", "COMPLETE")
		expect(s.Token, "COMPLETE_TOUR", "INCOMPLETE")
		s.want(t, http.StatusOK, reader, http.MethodPatch, path, patch("COMPLETE_TOUR", "INCOMPLETE", "TASK_LEVEL_USER"))
		expect(reader, "COMPLETE_TOUR", "INCOMPLETE")

		// Administrators set the state for all.
		s.refuses(t, http.StatusForbidden, reader, http.MethodPatch, path, patch("JOIN_SLACK", "COMPLETE", "TASK_LEVEL_ORG"), "change the state for the deployment")
		s.refuses(t, http.StatusForbidden, reader, http.MethodPatch, path, patch("CONFIGURE_IGNORES", "COMPLETE", ""), "change the state for the deployment")
		s.admin(t, http.MethodPatch, path, patch("JOIN_SLACK", "COMPLETE", "TASK_LEVEL_ORG"))
		expect(reader, "JOIN_SLACK", "COMPLETE")

		// A step can be skipped, and that can be undone; steps that the data shows stay done.
		expect(s.Token, "TRIAGE_DEPENDENCY", "LOCKED")
		s.admin(t, http.MethodPatch, path, patch("TRIAGE_DEPENDENCY", "COMPLETE", ""))
		expect(s.Token, "TRIAGE_DEPENDENCY", "COMPLETE")
		s.admin(t, http.MethodPatch, path, patch("TRIAGE_DEPENDENCY", "INCOMPLETE", ""))
		expect(s.Token, "TRIAGE_DEPENDENCY", "LOCKED")
		expect(s.Token, "ADD_TEAM_MEMBER", "COMPLETE")
		s.admin(t, http.MethodPatch, path, patch("ADD_TEAM_MEMBER", "INCOMPLETE", ""))
		expect(s.Token, "ADD_TEAM_MEMBER", "COMPLETE")
		other := s.AddTenant(t, "umbrella")
		s.refuses(t, http.StatusNotFound, other.Token, http.MethodPatch, path, patch("JOIN_SLACK", "COMPLETE", ""), "deployment not found")
	})
}

func TestPatchChecklistBadInput(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		path := checklistPath(s)
		before := s.admin(t, http.MethodGet, path, "")
		twice := `{"type":"TASK_TYPE_WRITE_CUSTOM_RULE","state":"TASK_STATE_COMPLETE"}`
		for body, text := range map[string]string{
			`{}`:                                     "taskStatus",
			patch("WRITE_CUSTOM_RULE", "LOCKED", ""): "state must be one of",
			`{"taskStatus":[{"type":"TASK_TYPE_WRITE_CUSTOM_RULE"}]}`:  "state is required",
			`{"taskStatus":[{"state":"TASK_STATE_COMPLETE"}]}`:         "type is required",
			patch("PARTY", "COMPLETE", ""):                             "TASK_TYPE_PARTY",
			patch("WRITE_CUSTOM_RULE", "COMPLETE", "TASK_LEVEL_WORLD"): "TASK_LEVEL_WORLD",
			`{"taskStatus":[` + twice + `,` + twice + `]}`:             "taskStatus[1].type: TASK_TYPE_WRITE_CUSTOM_RULE is in the list twice",
		} {
			s.refuses(t, http.StatusBadRequest, s.Token, http.MethodPatch, path, body, text)
		}
		if after := s.admin(t, http.MethodGet, path, ""); after != before {
			t.Errorf("something refused was stored: %s, was %s", after, before)
		}
	})
}
