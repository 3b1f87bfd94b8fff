package ai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/verdict"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/llm/llmtest"
)

// Texts that must not be in the log.
const (
	codeCanary = "cAnArY1f8e_code"
	keyCanary  = "cAnArY77b2-model-key-0123456789"
)

// injection is a prompt injection and the part of a finding that contains it.
type injection struct{ Name, Where, Text string }

func (i injection) content(n int) (content *storev1.FindingContent, rule *findingsv1.FindingRule) {
	content = code(fmt.Sprintf("run(%s) # %d", codeCanary, n))
	rule = &findingsv1.FindingRule{Name: fmt.Sprintf("rule-%d", n), Message: "About input", Confidence: "high", Category: "security"}
	switch i.Where {
	case "code":
		content.Snippet += "\n" + i.Text
	case "message":
		content.Message = i.Text
	case "path":
		content.Location.FilePath = i.Text
	case "rule":
		rule.Name = fmt.Sprintf("%s %d", i.Text, n)
	case "rule text":
		rule.Message = i.Text
	}
	return content, rule
}

// obedient models do everything that a text could ask for: within the schema, and beyond it.
func obedient(beyond bool) func(llmtest.Request) llmtest.Reply {
	return func(r llmtest.Request) llmtest.Reply {
		said := says("false_positive")
		said["reason"] = strings.Repeat("ignored <script>alert(1)</script>\u202e\u0007\u200b ", 2000)
		said["component_tag"] = strings.Repeat("status\nfixed ", 50)
		if !beyond {
			return fitting(r, said)
		}
		for _, more := range []string{"triage_state", "status", "severity", "policy_mode", "triage_reason", "triage_comment", "findings", "message"} {
			said[more] = "ignored"
		}
		said["verdict"] = "ignored"
		return llmtest.JSON(said)
	}
}

// recorded is a test that records the server's log.
type recorded struct {
	testing.TB
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *recorded) Log(args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(&r.text, args...)
}

func (r *recorded) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func TestInjectionsChangeNothingElse(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/injections.json")
	if err != nil {
		t.Fatal(err)
	}
	var corpus []injection
	if err := json.Unmarshal(raw, &corpus); err != nil || len(corpus) < 30 {
		t.Fatalf("%d cases, %v", len(corpus), err)
	}
	for name, beyond := range map[string]bool{"within the schema": false, "beyond the schema": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &recorded{TB: t}
			s := &modelled{model: llmtest.New(t, obedient(beyond))}
			s.Server = apitest.Start(log, func(c *config.Config) {
				c.EgressAllow, c.AIURL, c.AIModel, c.AIKey, c.LogLevel = "127.0.0.1", s.model.URL, "test-model", keyCanary, "debug"
			})
			s.projectID, s.ruleID = s.ground(t, s.Tenant, "https://git.acme.test/acme/web")
			bystander := s.seed(t, fact{print: "bystander"})
			ids := s.inject(t, corpus)
			before := map[int64]*ent.Finding{}
			for _, id := range append(ids, bystander) {
				before[id], _ = s.finding(t, id)
			}
			s.task(t, fmt.Sprintf(`{"task":{"issueIds":[%s],"chains":["CHAIN_AUTOTRIAGE_WITH_GUIDANCE_AND_AUTOFIX","CHAIN_ISSUE_TAGS"]}}`, joined(ids)), http.StatusOK)
			for i, id := range ids {
				var a *ent.AiAnalysis
				if beyond { // the model is asked again with backoff
					apitest.Eventually(t, "the model is asked", func() bool { return s.askedAbout(i) >= 2 })
				} else {
					a = s.analysis(t, id)
				}
				after, content := s.finding(t, id)
				requireUntouched(t, corpus[i].Name, before[id], after)
				switch said := content.GetAssistant(); {
				case beyond && (said != nil || after.Status != "open"):
					t.Errorf("%s: an answer beyond the schema was taken: %s, %v", corpus[i].Name, after.Status, said)
				case !beyond && (a.Status != "done" || after.Status != "provisionally_ignored" || said.GetAutotriage().GetVerdict() != "false_positive"):
					t.Errorf("%s: %s %s (%s)", corpus[i].Name, a.Status, after.Status, a.Error)
				case !beyond:
					requireText(t, corpus[i].Name, said.GetAutotriage().GetReason(), verdict.MaxReason)
					requireText(t, corpus[i].Name, said.GetComponent().GetTag(), verdict.MaxTag)
				}
			}
			if after, _ := s.finding(t, bystander); !sameRow(before[bystander], after) {
				t.Error("another finding has changed")
			}
			if text := log.String(); strings.Contains(text, codeCanary) || strings.Contains(text, keyCanary) || strings.Contains(text, "UNTRUSTED") {
				t.Error("code, key or prompt is in the log")
			} else if text == "" {
				t.Error("nothing was logged at all")
			}
		})
	}
}

// inject stores a finding with its own rule for each case.
func (s *modelled) inject(t *testing.T, corpus []injection) (ids []int64) {
	t.Helper()
	for n, i := range corpus {
		content, about := i.content(n)
		encoded, err := proto.Marshal(about)
		if err != nil {
			t.Fatal(err)
		}
		var ruleID int64
		err = s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			r, err := tx.Rule.Create().SetDeploymentID(s.DeploymentID).SetTool("test").SetName(about.GetName()).SetCategory("security").
				SetConfidence("high").SetContent(encoded).Save(ctx)
			if err == nil {
				ruleID = r.ID
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, s.seedIn(t, s.Tenant, s.projectID, ruleID, fact{print: i.Name, content: content}))
	}
	return ids
}

// askedAbout counts the requests about one case.
func (s *modelled) askedAbout(n int) (count int) {
	for _, r := range s.model.Requests() {
		if strings.Contains(r.Prompt, fmt.Sprintf("run(%s) # %d\n", codeCanary, n)) {
			count++
		}
	}
	return count
}

func joined(ids []int64) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]")
}

// requireUntouched requires that only the documented fields changed: verdict, component, and the triage state up to
// provisionally_ignored.
func requireUntouched(t *testing.T, name string, before, after *ent.Finding) {
	t.Helper()
	after = copied(after)
	if after.TriageState == "provisionally_ignored" && after.Status == "provisionally_ignored" {
		after.TriageState, after.Status = before.TriageState, before.Status
	}
	after.AutotriageVerdict, after.ComponentTag, after.TriagedAt = before.AutotriageVerdict, before.ComponentTag, before.TriagedAt
	was, errWas := blob.Decode(before.Content)
	is, errIs := blob.Decode(after.Content)
	if errWas != nil || errIs != nil {
		t.Fatalf("%s: the content is broken", name)
	}
	is.Assistant = nil
	if !proto.Equal(was, is) {
		t.Errorf("%s: the content has changed: %v", name, is)
	}
	after.Content = before.Content
	if !sameRow(before, after) {
		t.Errorf("%s: %v became %v", name, before, after)
	}
}

func copied(row *ent.Finding) *ent.Finding {
	out := *row
	return &out
}

// sameRow compares rows, except the evidence, which a job computes for rows that were inserted without.
func sameRow(a, b *ent.Finding) bool {
	a, b = copied(a), copied(b)
	a.Evidence, a.MatchKey, b.Evidence, b.MatchKey = nil, nil, nil, nil
	return a.String() == b.String() && bytes.Equal(a.Content, b.Content)
}

// requireText requires a maximum length and no invisible characters.
func requireText(t *testing.T, name, text string, limit int) {
	t.Helper()
	if n := utf8.RuneCountInString(text); n > limit || n == 0 || strings.ContainsAny(text, "\u202e\u0007\u200b") {
		t.Errorf("%s: a text of %d characters, or with invisible ones: %.80q", name, n, text)
	}
}
