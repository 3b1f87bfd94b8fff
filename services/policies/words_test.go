package policies_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/policies/remediation"
)

// published is a policy in the words of clients of the published API, with blanks, cases and duplicates of their own.
const published = `{"slug":"block-leaks","name":"Block leaks","description":"First line.\n","active":true,
	"filters":{"mode":"all","conditions":[
		{"type":"severity","values":["HIGH","critical","High"]},
		{"type":"repository_tag","values":["acme-pci"],"mode":"any"},
		{"type":"repository","values":["acme/web"],"mode":"none"},
		{"type":"ai_verdict","values":["false_positive"],"mode":"none"},
		{"type":"product","values":["sast","sca"],"mode":"include"}]},
	"actions":[{"type":"block"},{"type":"pr_comment"}]}`

// TestWordsOfClients: policies keep the words they were given, in every answer, and mean the same as with ours.
func TestWordsOfClients(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		none := s.current(t)
		apitest.Golden(t, "words_dry_run", s.dry(t, "["+published+"]"))
		put := s.put(t, "["+published+"]", 200)
		apitest.Golden(t, "words_put", put)
		if body := s.Get(t, s.remediation()); body != put {
			t.Errorf("put answered %s, get %s", put, body)
		}

		// A deploy of the same is no change, over either wire.
		unchanged := `{"creates":[],"updates":[],"deletes":[],"state_version":"` + version(t, put) + `","validation_errors":[]}`
		for _, again := range []string{"[" + published + "]", policiesOf(t, put)} {
			if got := s.dry(t, again); got != unchanged {
				t.Errorf("got %s", got)
			}
		}
		bundle := &policiesv1.RemediationPoliciesBundle{}
		if err := protojson.Unmarshal([]byte(`{"policies":[`+published+`]}`), bundle); err != nil {
			t.Fatal(err)
		}
		read, err := s.client.GetRemediationPolicies(s.context(t, ""), &policiesv1.GetRemediationPoliciesRequest{DeploymentId: s.DeploymentID})
		if err != nil || !proto.Equal(read.GetBundle().GetPolicies()[0], bundle.GetPolicies()[0]) {
			t.Errorf("gRPC reads %v, %v", read, err)
		}
		applied, err := s.client.ApplyRemediationPolicies(s.context(t, version(t, put)), &policiesv1.ApplyRemediationPoliciesRequest{DeploymentId: s.DeploymentID, Bundle: bundle})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, applied, put)

		// The same in our words is an update, which answers in them; what is evaluated stays.
		before := s.compiled(t)
		ours := strings.NewReplacer("repository_tag", "project_tag", `"repository"`, `"project"`, "ai_verdict", "autotriage_verdict",
			`"any"`, `"include"`, `"none"`, `"exclude"`, "pr_comment", "comment", `["sast","sca"]`, `["code","supply_chain"]`).Replace(published)
		if got := s.dry(t, "["+ours+"]"); !strings.Contains(got, `"updates":[{`) || strings.Contains(got, `"creates":[{`) {
			t.Errorf("got %s", got)
		}
		if got := s.put(t, "["+ours+"]", 200); strings.Contains(got, "repository") || strings.Contains(got, "pr_comment") || got != s.Get(t, s.remediation()) {
			t.Errorf("got %s", got)
		}
		if got := s.compiled(t); got != before {
			t.Errorf("the words of clients mean %s, ours %s", before, got)
		}
		if s.put(t, "[]", 200); s.current(t) != none {
			t.Error("the policy is not deleted")
		}
	})
}

// compiled returns the stored policy in the vocabulary's words, and requires that scans can evaluate it.
func (s caller) compiled(t testing.TB) string {
	t.Helper()
	ctx := tenant.NewContext(t.Context(), s.DeploymentID)
	if _, err := remediation.Load(ctx, s.Store.Reader); err != nil {
		t.Fatal(err)
	}
	policy := &policiesv1.RemediationPolicy{}
	if err := proto.Unmarshal(s.Store.Reader.RemediationPolicy.Query().OnlyX(ctx).Content, policy); err != nil {
		t.Fatal(err)
	}
	return policy.String()
}

// TestWordsOfAnEarlierPolicy: a node of an earlier version changes a policy and leaves its words, which then do not
// count.
func TestWordsOfAnEarlierPolicy(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s caller) {
		s.put(t, "["+published+"]", 200)
		other := s.put(t, "["+strings.Replace(published, "Block leaks", "Other", 1)+"]", 200)
		ctx := tenant.NewContext(t.Context(), s.DeploymentID)
		err := s.Store.Write(ctx, func(ctx context.Context, tx *ent.Tx) error {
			row := tx.RemediationPolicy.Query().OnlyX(ctx)
			policy := &policiesv1.RemediationPolicy{}
			if err := proto.Unmarshal(row.Content, policy); err != nil {
				return err
			}
			policy.Name = "Of an earlier node"
			content, err := proto.Marshal(policy)
			if err != nil {
				return err
			}
			return row.Update().SetContent(content).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		got := s.Get(t, s.remediation())
		if !strings.Contains(got, "Of an earlier node") || !strings.Contains(got, "project_tag") || version(t, got) == version(t, other) {
			t.Errorf("got %s", got)
		}
	})
}
