package findings_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/findingmatch"
	"github.com/palisade/palisade/ent/policyact"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

var (
	password = hit{"app/db.py", `password = "hunter2secret"`, 12}
	apiKey   = hit{"app/run.py", `key = "k3y-of-nobody"`, 30}
)

// as uploads a report with a product.
func (m mover) as(product, ref string, hits ...hit) {
	m.t.Helper()
	m.Upload(m.t, "acme/web", ref, reportOf(m.t, hits...), "product", product)
}

func (m mover) productBody(from, to, more string) string {
	return fmt.Sprintf(`{"project":"acme/web","tool":"opengrep","fromProduct":%q,"toProduct":%q%s}`, from, to, more)
}

func (m mover) moveProduct(from, to, more string) (got moving) {
	m.t.Helper()
	answer := m.post(m.Token, m.productBody(from, to, more))
	if answer.Status != http.StatusOK {
		m.t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	if err := json.Unmarshal([]byte(answer.Body), &got); err != nil {
		m.t.Fatal(err)
	}
	return got
}

// wantProducts compares id, ref, file, product, status, reason and note of all findings.
func (m mover) wantProducts(what string, want ...string) {
	m.t.Helper()
	var list []string
	for _, f := range m.rows() {
		decision := ""
		if f.TriageReason != nil {
			decision = " " + *f.TriageReason + " " + text(f.TriageComment)
		}
		list = append(list, fmt.Sprintf("%d %s %s %s %s%s", f.ID, strings.TrimPrefix(f.Ref, "refs/heads/"), *f.FilePath, f.IssueType, f.Status, decision))
	}
	if got := strings.Join(list, "\n"); got != strings.Join(want, "\n") {
		m.t.Errorf("%s: got\n%s\nwant\n%s", what, got, strings.Join(want, "\n"))
	}
}

// wantHidden requires that nothing stored about the findings of a product has a text.
func (m mover) wantHidden(product, secret string) {
	m.t.Helper()
	for _, f := range m.Store.Reader.Finding.Query().Where(finding.IssueType(product)).AllX(m.System(m.t)) {
		content, err := blob.Decode(f.Content)
		if err != nil {
			m.t.Fatal(err)
		}
		if strings.Contains(content.String(), secret) || strings.Contains(string(content.GetContext()), secret) || !strings.HasPrefix(content.GetSnippet(), "[redacted ") {
			m.t.Errorf("finding %d has %s", f.ID, content)
		}
	}
	for _, match := range m.Store.Reader.FindingMatch.Query().AllX(m.System(m.t)) {
		if strings.Contains(string(match.Content), secret) {
			m.t.Errorf("match %d of finding %d has the secret", match.ID, match.FindingID)
		}
	}
}

// facts are what the scans say about a finding, without its ids.
func (m mover) facts(id int64) string {
	m.t.Helper()
	f := rowOf(m.t, m.Server, id)
	content, err := blob.Decode(f.Content)
	if err != nil {
		m.t.Fatal(err)
	}
	return fmt.Sprintf("%s %s %s %s %s %s %s %s %x %s", f.IssueType, text(f.ValidationState), text(f.Historical), text(f.Exposure), text(f.Transitivity),
		text(f.Package), text(f.Advisory), text(f.EpssProbability), *f.Evidence, content.GetSnippet()+content.GetMessage())
}

// TestMoveProductBeforeTheFirstUpload: secrets were uploaded as code. After the move the next upload finds them, with
// their decisions, and they are stored as if they had been secrets from the start.
func TestMoveProductBeforeTheFirstUpload(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		m := mover{t, s}
		m.as("sast", "main", password, apiKey)
		m.as("sast", "dev", password)
		m.as("sast", "main", password, hit{apiKey.file, `key = "k3y-of-nobody" # ours`, 30}) // a match that keeps the former content
		m.ignore(m.rows()[0].ID)
		before := m.rows()[0]
		was := []string{"1 main app/db.py sast ignored false_positive a test", "2 main app/run.py sast open", "3 dev app/db.py sast ignored false_positive a test"}
		shown := m.moveProduct("sast", "secrets", `,"validateOnly":true,"note":"the job was wrong"`)
		if shown.MovedCount != 3 || shown.DecidedCount != 2 || shown.ReplacedCount != 0 || shown.Change != nil || shown.PreviewToken == "" {
			t.Fatalf("preview: %+v", shown)
		}
		m.wantProducts("a preview", was...)
		done := m.moveProduct("sast", "secrets", `,"previewToken":"`+shown.PreviewToken+`","note":"the job was wrong"`)
		if done.MovedCount != 3 || done.Change == nil || done.Change.Kind != "IDENTITY_CHANGE_KIND_MOVE" || done.Change.Note != `opengrep: "sast" to "secrets". the job was wrong` {
			t.Fatalf("move: %+v", done)
		}
		moved := []string{"1 main app/db.py secrets ignored false_positive a test", "2 main app/run.py secrets open", "3 dev app/db.py secrets ignored false_positive a test"}
		m.wantProducts("the move", moved...)
		m.wantHidden("secrets", "hunter2secret")
		m.wantHidden("secrets", "k3y-of-nobody")
		if !s.Store.Reader.FindingMatch.Query().Where(findingmatch.RungNEQ("")).ExistX(s.System(t)) {
			t.Error("no match keeps a former content")
		}
		recast := m.facts(1)
		m.as("secrets", "main", password, hit{apiKey.file, `key = "k3y-of-nobody" # ours`, 30})
		m.wantProducts("the next upload", moved...)
		if now := m.facts(1); now != recast {
			t.Errorf("an upload of secrets stores\n%s\nand the move\n%s", now, recast)
		}
		if now := m.rows()[0]; now.CreatedAt != before.CreatedAt || now.FirstSeenScanID != before.FirstSeenScanID || *now.TriagedAt != *before.TriagedAt || now.Fingerprint != before.Fingerprint {
			t.Errorf("changed: %+v was %+v", now, before)
		}
		secrets := s.Get(t, fmt.Sprintf("/api/v1/deployments/%d/secrets", s.DeploymentID))
		if !strings.Contains(secrets, "VALIDATION_STATE_NO_VALIDATOR") || strings.Contains(secrets, "hunter2") {
			t.Errorf("the list of secrets: %s", secrets)
		}
		trail := s.Get(t, fmt.Sprintf("/api/audit/v1/deployments/%d/entries?objectKind=identity_change", s.DeploymentID))
		if !strings.Contains(trail, "FindingIdentityService/MoveCategory") || !strings.Contains(trail, "the job was wrong") {
			t.Errorf("the audit trail: %s", trail)
		}
		reason := s.Store.Reader.FindingEvent.Query().Where(findingevent.FindingID(1), findingevent.Kind("matched")).OnlyX(s.System(t)).Reason
		if reason != `product "secrets" instead of "sast"` {
			t.Errorf("the history says %q", reason)
		}
		member := s.AddUser(t, s.Tenant, "max@acme.test", access.RoleMember)
		path := fmt.Sprintf("/api/v1/deployments/%d/identity-changes/%s/undo", s.DeploymentID, done.Change.ID)
		if answer := s.Do(t, member, http.MethodPost, path, "{}"); answer.Status != http.StatusForbidden {
			t.Errorf("a member undoes it: %d %s", answer.Status, answer.Body)
		}
		if answer := m.undo(done.Change.ID); answer.Status != http.StatusOK {
			t.Fatalf("undo: %d %s", answer.Status, answer.Body)
		}
		m.wantProducts("an undo", was...)
		m.wantHidden("sast", "hunter2secret")
		m.as("sast", "main", password, hit{apiKey.file, `key = "k3y-of-nobody" # ours`, 30})
		m.as("sast", "dev", password)
		m.wantProducts("an upload after the undo", was...)
		if answer := m.undo(done.Change.ID); answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, "was undone already") {
			t.Errorf("a second undo: %d %s", answer.Status, answer.Body)
		}
	})
}

// leak is a result with the secret in every text.
const leak = `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"opengrep","rules":[{"id":"py.call"}]}},"results":[{
	"ruleId":"py.call","message":{"text":"the value 'hunter2secret' goes to login"},
	"locations":[{"physicalLocation":{"artifactLocation":{"uri":"app/db.py"},"region":{"startLine":12,"snippet":{"text":"login('hunter2secret')"}}},
		"logicalLocations":[{"fullyQualifiedName":"db.login(hunter2secret)"}]}],
	"fingerprints":{"mine/v1":"hunter2secret","other/v1":"1234"},"partialFingerprints":{"call_key":"login('hunter2secret')"},
	"relatedLocations":[{"physicalLocation":{"artifactLocation":{"uri":"app/run.py"},"region":{"startLine":3}},"message":{"text":"set to hunter2secret"}}],
	"codeFlows":[{"message":{"text":"hunter2secret flows"},"threadFlows":[{"locations":[
		{"location":{"physicalLocation":{"artifactLocation":{"uri":"app/run.py"},"region":{"startLine":3,"snippet":{"text":"p = 'hunter2secret'"}}},"message":{"text":"from 'hunter2secret'"}}},
		{"location":{"physicalLocation":{"artifactLocation":{"uri":"app/db.py"},"region":{"startLine":12,"snippet":{"text":"login('hunter2secret')"}}}}}]}]}],
	"fixes":[{"description":{"text":"no hunter2secret"},"artifactChanges":[{"artifactLocation":{"uri":"app/db.py"},
		"replacements":[{"deletedRegion":{"startLine":12},"insertedContent":{"text":"login(env['hunter2secret'])"}}]}]}],
	"suppressions":[{"kind":"external","justification":"hunter2secret is a test","properties":{"author":"hunter2secret"}}]}]}]}`

// TestMoveProductRedacts: a finding that becomes a secret has the contents of an uploaded secret, except our own ids.
func TestMoveProductRedacts(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		m := mover{t, s}
		s.Upload(t, "acme/web", "main", []byte(leak), "product", "sast")
		s.Upload(t, "acme/api", "main", []byte(leak), "product", "secrets")
		if !strings.Contains(m.contentOf(1), "hunter2") {
			t.Fatalf("nothing to redact: %s", m.contentOf(1))
		}
		m.moveProduct("sast", "secrets", "")
		if got, want := m.contentOf(1), m.contentOf(2); got != want || strings.Contains(got, "hunter2") {
			t.Errorf("moved:\n%s\nuploaded:\n%s", got, want)
		}
		if got, want := m.facts(1), m.facts(2); got != want {
			t.Errorf("moved:\n%s\nuploaded:\n%s", got, want)
		}
	})
}

// contentOf is the content of a finding as text, without the ids that we compute.
func (m mover) contentOf(id int64) string {
	m.t.Helper()
	content, err := blob.Decode(rowOf(m.t, m.Server, id).Content)
	if err != nil {
		m.t.Fatal(err)
	}
	around := &findingsv1.FindingContext{}
	if err := proto.Unmarshal(content.GetContext(), around); err != nil {
		m.t.Fatal(err)
	}
	content.SyntacticId, content.MatchBasedId, content.IdentityRung, content.Context = "", "", "", nil
	return prototext.Format(content) + prototext.Format(around)
}

// TestMoveProductAfterAnUpload: what an upload with the right product created is replaced, whether or not the findings
// of the wrong product were closed.
func TestMoveProductAfterAnUpload(t *testing.T) {
	t.Parallel()
	for closed, status := range map[bool][2]string{false: {"ignored", "open"}, true: {"fixed", "fixed"}} {
		t.Run(fmt.Sprintf("closed %t", closed), func(t *testing.T) {
			t.Parallel()
			apitest.Each(t, func(t *testing.T, s *apitest.Server) {
				m := mover{t, s}
				m.as("sast", "main", password, apiKey)
				m.ignore(m.rows()[0].ID)
				m.as("secrets", "main", password, apiKey, login)
				if closed {
					m.as("sast", "main")
				}
				was := []string{
					"1 main app/db.py sast " + status[0] + " false_positive a test", "2 main app/run.py sast " + status[1],
					"3 main app/db.py secrets open", "4 main app/run.py secrets open", "5 main app/login.py secrets open",
				}
				m.wantProducts("before", was...)
				facts := m.facts(3)
				done := m.moveProduct("sast", "secrets", "")
				if done.MovedCount != 2 || done.ReplacedCount != 2 {
					t.Fatalf("%+v", done)
				}
				moved := []string{
					"1 main app/db.py secrets ignored false_positive a test", "2 main app/run.py secrets open",
					"3 main app/db.py sast removed", "4 main app/run.py sast removed", "5 main app/login.py secrets open",
				}
				m.wantProducts("the move", moved...)
				if now := m.facts(1); now != facts {
					t.Errorf("the moved finding has\n%s\nwant what was uploaded\n%s", now, facts)
				}
				m.as("secrets", "main", password, apiKey, login)
				m.wantProducts("the next upload", moved...)
				if answer := m.undo(done.Change.ID); answer.Status != http.StatusOK {
					t.Fatalf("undo: %d %s", answer.Status, answer.Body)
				}
				m.wantProducts("an undo", was...)
				if again := m.moveProduct("sast", "secrets", ""); again.ReplacedCount != 2 {
					t.Errorf("again: %+v", again)
				}
				m.wantProducts("a move again", moved...)
			})
		})
	}
}

// TestMoveProductToOthers: every product can become every other. What only a report says comes with the next upload.
func TestMoveProductToOthers(t *testing.T) {
	t.Parallel()
	for _, products := range [][]string{{"sast", "secrets", "ai_sast", "sca"}, {"sca", "sast"}, {"secrets", "sast"}, {"sca", "secrets"}} {
		t.Run(strings.Join(products, " "), func(t *testing.T) {
			t.Parallel()
			apitest.Each(t, func(t *testing.T, s *apitest.Server) {
				m, moved := mover{t, s}, map[string]string{}
				m.as(products[0], "main", query, shell)
				m.decide(products[0], 1)
				for n, product := range products[1:] {
					m.moveProduct(products[n], product, "")
					m.as(product, "main", query, shell)
					m.wantProducts(products[n]+" to "+product, "1 main app/db.py "+product+" ignored acceptable_risk known", "2 main app/run.py "+product+" open")
					moved[product] = m.facts(2)
				}
				for product, facts := range moved {
					s.Upload(t, "acme/"+product, "main", reportOf(t, shell), "product", product)
					fresh := s.Store.Reader.Finding.Query().Order(ent.Desc(finding.FieldID)).FirstIDX(s.System(t))
					if want := m.facts(fresh); facts != want {
						t.Errorf("moved and uploaded again:\n%s\nwant as in a new project:\n%s", facts, want)
					}
				}
			})
		})
	}
}

// TestMoveProductOfPolicies: the ignored paths of the new product apply, and policies know what they did already. An
// undo restores what scans said about the former product.
func TestMoveProductOfPolicies(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		m := mover{t, s}
		m.as("secrets", "main", password, apiKey)
		row := m.rows()[0]
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			if err := tx.PathIgnore.Create().SetDeploymentID(s.DeploymentID).SetProduct("sast").SetPatterns([]string{"app/run.py"}).SetUpdatedAt(1).Exec(ctx); err != nil {
				return err
			}
			if err := tx.Finding.Update().Where(finding.ID(1)).SetValidationState("confirmed_valid").Exec(ctx); err != nil {
				return err
			}
			return tx.PolicyAct.Create().SetDeploymentID(s.DeploymentID).SetProjectID(row.ProjectID).SetPolicyID(7).SetAction("notify").
				SetIssueType("secrets").SetFingerprint(row.Fingerprint).SetVersion("v").SetAt(1).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		m.count("secrets", 2)
		done := m.moveProduct("secrets", "sast", "")
		m.count("sast", 2)
		m.count("secrets", 0)
		apitest.Eventually(t, "the ignored paths apply", func() bool { return m.rows()[1].IgnoredByPattern != nil })
		if row := m.rows()[0]; row.ValidationState != nil || row.Status != "open" {
			t.Errorf("%+v", row)
		}
		acts := s.Store.Reader.PolicyAct.Query().Where(policyact.IssueType("sast"), policyact.Fingerprint(row.Fingerprint)).CountX(s.System(t))
		if acts != 1 {
			t.Errorf("%d acts of policies", acts)
		}
		if answer := m.undo(done.Change.ID); answer.Status != http.StatusOK {
			t.Fatalf("undo: %d %s", answer.Status, answer.Body)
		}
		apitest.Eventually(t, "the ignored paths end", func() bool { return m.rows()[1].IgnoredByPattern == nil })
		if row := m.rows()[0]; text(row.ValidationState) != "confirmed_valid" {
			t.Errorf("after an undo: %+v", row)
		}
		m.count("secrets", 2)
	})
}

// count compares the number of issues of a product, which are counted in memory.
func (m mover) count(product string, want int) {
	m.t.Helper()
	var got struct{ Issues []json.RawMessage }
	body := fmt.Sprintf(`{"issueType":"ISSUE_TYPE_%s"}`, strings.ToUpper(product))
	answer := m.Do(m.t, m.Token, http.MethodPost, issuesPath(m.Tenant, "issues"), body)
	if err := json.Unmarshal([]byte(answer.Body), &got); err != nil || len(got.Issues) != want {
		m.t.Errorf("%d issues of %s, want %d: %d %s", len(got.Issues), product, want, answer.Status, answer.Body)
	}
}

// TestMoveProductOfHeldCloses: an empty report with the wrong product may be held. Nobody can confirm it after the
// move, because reports of the right product say what is there.
func TestMoveProductOfHeldCloses(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		m := mover{t, s}
		var hits []hit
		for n := range 12 {
			hits = append(hits, hit{fmt.Sprintf("app/f%d.py", n), fmt.Sprintf(`password = "hunter%d"`, n), 3})
		}
		m.as("sast", "main", hits...)
		m.as("secrets", "main", hits...)
		if answer := m.Upload(t, "acme/web", "main", reportOf(t), "product", "sast"); !strings.Contains(answer, `"held_closes":12`) {
			t.Fatalf("not held: %s", answer)
		}
		if done := m.moveProduct("sast", "secrets", ""); done.ReplacedCount != 12 {
			t.Errorf("%+v", done)
		}
		if row := s.Store.Reader.HeldClose.Query().OnlyX(s.System(t)); row.Active || row.State != "superseded" || row.Waiting != 0 {
			t.Errorf("held closes: %+v", row)
		}
		m.count("secrets", 12)
	})
}

// TestMoveProductOfLastScans: a moved finding that no scan of the new product reported was last seen by a scan of the
// former one.
func TestMoveProductOfLastScans(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		m := mover{t, s}
		m.as("sast", "main", password, apiKey)
		m.as("secrets", "main", password)
		m.moveProduct("sast", "secrets", "")
		if rows := m.rows(); rows[0].LastSeenScanID != nil || *rows[1].LastSeenScanID != 1 {
			t.Errorf("%v %v", rows[0].LastSeenScanID, rows[1].LastSeenScanID)
		}
		m.as("secrets", "main", password, apiKey)
		if rows := m.rows(); rows[0].LastSeenScanID != nil || rows[1].LastSeenScanID != nil {
			t.Errorf("after a report: %v %v", rows[0].LastSeenScanID, rows[1].LastSeenScanID)
		}
	})
}

// TestMoveProductOfTwoAnalyses: products that both have findings in reports never join.
func TestMoveProductOfTwoAnalyses(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		m := mover{t, s}
		for n, c := range []struct {
			uploads string // ref, product and number of results of each
			status  int
		}{
			{"main sast 1; main secrets 1; main sast 1", http.StatusBadRequest},
			{"main sast 1; main secrets 1; dev sast 1", http.StatusBadRequest},
			{"dev sast 1; main secrets 1; dev sast 2; dev sast 0", http.StatusBadRequest},
			{"main sast 1; dev secrets 1; main sast 0", http.StatusOK},
			{"old sast 1; main sast 1; main secrets 1", http.StatusOK},
			{"main secrets 2; main sast 1", http.StatusBadRequest},
		} {
			project := fmt.Sprintf("acme/web%d", n)
			for upload := range strings.SplitSeq(c.uploads, "; ") {
				words := strings.Fields(upload)
				hits := []hit{password, apiKey}[:words[2][0]-'0']
				s.Upload(t, project, words[0], reportOf(t, hits...), "product", words[1])
			}
			answer := m.post(m.Token, strings.Replace(m.productBody("sast", "secrets", ""), "acme/web", project, 1))
			if answer.Status != c.status || c.status != http.StatusOK && !strings.Contains(answer.Body, "they are two analyses") {
				t.Errorf("%s: %d %s", c.uploads, answer.Status, answer.Body)
			}
		}
		mixed := strings.Replace(string(reportOf(t, query, password)), `"ruleId":`, `"properties":{"product":"secrets"},"ruleId":`, 1)
		s.Upload(t, "acme/mixed", "main", []byte(mixed))
		answer := m.post(m.Token, strings.Replace(m.productBody("sast", "secrets", ""), "acme/web", "acme/mixed", 1))
		if answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, "they are two analyses") {
			t.Errorf("mixed: %d %s", answer.Status, answer.Body)
		}
	})
}

// TestMoveProductRefused: nothing changes.
func TestMoveProductRefused(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		m := mover{t, s}
		m.as("sast", "main", password)
		m.Upload(t, "acme/web", "main", reportOf(t, login), "product", "sast", "category", "api")
		other := s.AddTenant(t, "other")
		max := s.AddUser(t, s.Tenant, "max@acme.test", access.RoleMember)
		shown := m.moveProduct("sast", "secrets", `,"validateOnly":true`)
		if shown.MovedCount != 1 {
			t.Errorf("findings of another category would move: %+v", shown)
		}
		for what, c := range map[string]struct {
			token, body string
			status      int
			text        string
		}{
			"an unknown product":       {s.Token, m.productBody("sast", "secret", ""), http.StatusBadRequest, `toProduct must be one of sast, sca, secrets, ai_sast, got \"secret\"`},
			"no product":               {s.Token, m.productBody("", "secrets", ""), http.StatusBadRequest, "fromProduct must be one of"},
			"the same product":         {s.Token, m.productBody("sast", "sast", ""), http.StatusBadRequest, "another product"},
			"two changes":              {s.Token, m.productBody("sast", "secrets", `,"toCategory":"api"`), http.StatusBadRequest, "one after the other"},
			"no findings":              {s.Token, m.productBody("sca", "secrets", ""), http.StatusNotFound, `with the product \"sca\"`},
			"a preview of other words": {s.Token, m.productBody("sast", "sca", `,"previewToken":"`+shown.PreviewToken+`"`), http.StatusBadRequest, "previewToken is not valid"},
			"a member":                 {max, m.productBody("sast", "secrets", ""), http.StatusForbidden, ""},
			"another deployment":       {other.Token, m.productBody("sast", "secrets", ""), http.StatusNotFound, ""},
			"no project":               {s.Token, strings.Replace(m.productBody("sast", "secrets", ""), "acme/web", "acme/none", 1), http.StatusNotFound, "not found"},
		} {
			if answer := m.post(c.token, c.body); answer.Status != c.status || !strings.Contains(answer.Body, c.text) {
				t.Errorf("%s: %d %s", what, answer.Status, answer.Body)
			}
		}
		m.wantProducts("refused", "1 main app/db.py sast open", "2 main app/login.py sast open")
		m.as("secrets", "main", password)
		m.decide("secrets", 3)
		if answer := m.post(s.Token, m.productBody("sast", "secrets", "")); answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, "different decisions") {
			t.Errorf("different decisions: %d %s", answer.Status, answer.Body)
		}
		m.wantProducts("refused", "1 main app/db.py sast open", "2 main app/login.py sast open", "3 main app/db.py secrets ignored acceptable_risk known")
	})
}

func (m mover) decide(product string, id int64) {
	m.t.Helper()
	body := fmt.Sprintf(`{"issue_type":%q,"issue_ids":[%d],"new_triage_state":"ignored","new_triage_reason":"acceptable_risk","new_note":"known"}`, product, id)
	if answer := m.Do(m.t, m.Token, http.MethodPost, "/api/v1/deployments/"+m.Slug+"/triage", body); answer.Status != http.StatusOK {
		m.t.Fatalf("triage: %d %s", answer.Status, answer.Body)
	}
}
