package findings_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/storetest"
)

// reportSaying returns a report with two findings, the second one without a location, and a rule with the given text.
func reportSaying(text string) []byte {
	return []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"gosec","version":"2.21","rules":[{"id":"G104","fullDescription":{"text":"` + text + `"}}]}},"results":[
		{"ruleId":"G104","message":{"text":"Errors unhandled"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"cmd/a b.go"},"region":{"startLine":3,"snippet":{"text":"f()"}}}}]},
		{"ruleId":"G104","message":{"text":"Nowhere"}}]}]}`)
}

const commit = "3f2a9c1b7e40d85f6a92c3e1b0d4f7a68c5e2193"

const listPath = "/api/v1/deployments/acme/findings"

// Changes of a finding show in the next list, over HTTP and gRPC, with contents in the current format and in the format
// of earlier versions.
func TestListOfStoredFindings(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		s.Upload(t, "acme/web", "main", reportSaying("old text"), "commit", commit)
		setURL(t, s)
		same := func() string {
			t.Helper()
			body := s.Get(t, listPath)
			response, err := findingsv1.NewFindingsServiceClient(s.Conn).ListFindings(s.Context(t, s.Token), &findingsv1.ListFindingsRequest{DeploymentSlug: "acme"})
			if err != nil {
				t.Fatal(err)
			}
			apitest.Same(t, response, body)
			return body
		}
		body := same()
		for _, want := range []string{`"message":"old text"`, `"file_path":"cmd/a b.go","line":3`, `"triaged_at":null,"triage_comment":null`, `/blob/` + commit + `/cmd/a%20b.go#L3"`} {
			if !strings.Contains(body, want) {
				t.Errorf("the list has no %s: %s", want, body)
			}
		}
		if answer := s.Do(t, s.Token, http.MethodPost, "/api/v1/deployments/acme/triage", `{"issue_type":"sast","new_triage_state":"ignored","new_triage_reason":"no_time","new_note":"a|b||c"}`); answer.Status != http.StatusOK {
			t.Fatalf("triage: %d %s", answer.Status, answer.Body)
		}
		body = same()
		if !strings.Contains(body, `"triage_comment":"a|b||c","triage_reason":"no_time"`) || strings.Contains(body, `"status":"open"`) {
			t.Errorf("the list does not show the decision: %s", body)
		}
		storeAsBefore(t, s)
		if before := same(); before != body {
			t.Errorf("as an earlier version stored it:\n%s\nas this one does:\n%s", before, body)
		}
	})
}

// storeAsBefore rewrites contents in the format of earlier versions: texts are not packed, and columns of the row come
// first. The columns are wrong here, to prove that they are ignored.
func storeAsBefore(t *testing.T, s *apitest.Server) {
	t.Helper()
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		rows, err := tx.Finding.Query().Select(finding.FieldID, finding.FieldContent).All(ctx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			content, err := blob.Decode(row.Content)
			if err != nil {
				return err
			}
			encoded, err := proto.Marshal(content)
			if err != nil {
				return err
			}
			if len(encoded) < len(row.Content) {
				t.Error("the content of an uploaded finding is not packed")
			}
			encoded = append(protowire.AppendBytes(protowire.AppendTag(nil, 33, protowire.BytesType), []byte{1 << 3, 99, 2 << 3, 99}), encoded...)
			if err := tx.Finding.UpdateOneID(row.ID).SetContent(encoded).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// setURL gives a project a URL with a known host, so that findings have links to their lines.
func setURL(t *testing.T, s *apitest.Server) {
	t.Helper()
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Project.Update().Where(project.Name("acme/web")).SetURL("https://git.acme.test/web").Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A node shows changes of a rule and a project that it has cached.
func TestListShowsTextsAtOnce(t *testing.T) {
	apitest.Each(t, func(t *testing.T, s *apitest.Server) { textsAtOnce(t, s, s) })
}

// A node shows changes that another node made.
func TestListShowsTextsOfOtherNodesAtOnce(t *testing.T) {
	database := storetest.Postgres(t)
	one := apitest.Start(t, func(c *config.Config) { c.Database = database })
	textsAtOnce(t, one, apitest.Start(t, func(c *config.Config) { c.Database, c.Data = database, one.Config.Data }))
}

func textsAtOnce(t *testing.T, one, two *apitest.Server) {
	t.Helper()
	one.Upload(t, "acme/web", "main", reportSaying("old text"), "commit", commit)
	for _, node := range []*apitest.Server{one, two} {
		if body := node.Get(t, listPath); !strings.Contains(body, `"message":"old text"`) || !strings.Contains(body, `"line_of_code_url":""`) {
			t.Fatalf("before the change: %s", body)
		}
	}
	two.Upload(t, "acme/web", "main", reportSaying("new text"), "commit", commit)
	setURL(t, two)
	for name, node := range map[string]*apitest.Server{"one": one, "two": two} {
		body := node.Get(t, listPath)
		if strings.Contains(body, "old text") || !strings.Contains(body, `"line_of_code_url":"https://git.acme.test/web/blob/`+commit+`/cmd/a%20b.go#L3"`) {
			t.Errorf("node %s after the change: %s", name, body)
		}
	}
}
