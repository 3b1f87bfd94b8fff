package export_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/palisade/palisade/ent"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/blob"
	"github.com/palisade/palisade/services/findings/identity"
	"github.com/palisade/palisade/services/findings/lifecycle"
	"github.com/palisade/palisade/services/findings/vocabulary"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
)

// drawing draws rows.
type drawing struct {
	*rapid.T
	n int
}

func (d *drawing) label(what string) string {
	d.n++
	return fmt.Sprintf("%s %d", what, d.n)
}

func (d *drawing) one(what string, of ...string) string {
	return rapid.SampledFrom(of).Draw(d.T, d.label(what))
}

// text is a text with characters that formats escape.
func (d *drawing) text(what string) string {
	return rapid.StringOfN(rapid.SampledFrom([]rune("ab \"\\\n\t,=<>&é世\u2028")), 0, 12, -1).Draw(d.T, d.label(what))
}

func (d *drawing) optional(what string) *string {
	if !rapid.Bool().Draw(d.T, d.label(what)) {
		return nil
	}
	text := d.text(what)
	return &text
}

func (d *drawing) word(what string, of ...string) *string {
	if !rapid.Bool().Draw(d.T, d.label(what)) {
		return nil
	}
	word := d.one(what, of...)
	return &word
}

func (d *drawing) yes(what string) *bool {
	if !rapid.Bool().Draw(d.T, d.label(what)) {
		return nil
	}
	yes := true
	return &yes
}

func (d *drawing) time(what string) int64 {
	return rapid.Int64Range(1, 1_700_000_000_000_000).Draw(d.T, d.label(what))
}

// TestAnyRoundTrip: whatever findings are stored, an import of their export is exported with the same bytes.
func TestAnyRoundTrip(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		keepEvidence(t, s)
		example := 0
		rapid.Check(t, func(rt *rapid.T) {
			example++
			from, to := s.AddTenant(t, fmt.Sprintf("from-%d", example)), s.AddTenant(t, fmt.Sprintf("to-%d", example))
			d := &drawing{T: rt}
			if err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error { return d.fill(ctx, tx, from.DeploymentID) }); err != nil {
				t.Fatal(err)
			}
			first := export(t, s, from, from.Token, ndjson)
			got := s.Do(t, to.Token, http.MethodPost, "/api/agent/deployments/"+to.Slug+"/findings/import", first.text)
			if got.Status != http.StatusOK {
				rt.Fatalf("import: %d %s", got.Status, got.Body)
			}
			if second := export(t, s, to, to.Token, ndjson); second.text != first.text {
				rt.Fatalf("the files differ: %s", difference(first.text, second.text))
			}
		})
	})
}

// keepEvidence keeps a job from computing the drawn evidence again, which would change the findings between two
// exports. The job starts with the server: it may be running, or not be enqueued yet.
func keepEvidence(t *testing.T, s *apitest.Server) {
	t.Helper()
	err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
		return tx.Setting.Create().SetName("identity_version").SetValue([]byte(strconv.Itoa(identity.Version))).Exec(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	reader, _ := s.Store.DB()
	apitest.Eventually(t, "no evidence is being computed", func() bool {
		var running int
		err := reader.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM river_job WHERE kind = 'upgrade_identities' AND state = 'running'").Scan(&running)
		if err != nil {
			t.Fatal(err)
		}
		return running == 0
	})
}

// fill stores a project with findings.
func (d *drawing) fill(ctx context.Context, tx *ent.Tx, deploymentID int64) error {
	p, err := tx.Project.Create().SetDeploymentID(deploymentID).SetName("acme/web").SetNameKey("acme/web").SetURL(d.one("url", "", "https://git.acme.test/web")).SetCreatedAt(d.time("at")).Save(ctx)
	if err != nil {
		return err
	}
	rule, err := proto.Marshal(&findingsv1.FindingRule{Name: "r", Message: d.text("message"), Help: d.text("help")})
	if err != nil {
		return err
	}
	r, err := tx.Rule.Create().SetDeploymentID(deploymentID).SetTool("t").SetName("r").SetCategory(d.text("category")).SetConfidence("high").SetContent(rule).
		SetNillableOrigin(d.word("origin", "custom", "community")).Save(ctx)
	if err != nil {
		return err
	}
	meta, err := proto.Marshal(&scansv1.ScanMeta{On: d.text("on")})
	if err != nil {
		return err
	}
	var scans []int64
	at := store.Now() // a job removes the findings of refs that nothing scans any more
	for range 2 {     // both look the same
		row, err := tx.Scan.Create().SetDeploymentID(deploymentID).SetProjectID(p.ID).SetRef("refs/heads/main").SetCommit("c").SetStatus("SCAN_STATUS_COMPLETED").
			SetProducts(2).SetIsFullScan(true).SetMeta(meta).SetStats(map[string]any{"a": d.text("stat"), "n": 7}).SetStartedAt(at).Save(ctx)
		if err != nil {
			return err
		}
		scans = append(scans, row.ID)
	}
	var before *ent.Finding
	for n := range rapid.IntRange(1, 5).Draw(d.T, "findings") {
		row, err := d.finding(ctx, tx, deploymentID, p.ID, r.ID, scans, n)
		if err != nil {
			return err
		}
		if before != nil && rapid.Bool().Draw(d.T, d.label("merged")) {
			if err := before.Update().SetMergedInto(row.ID).Exec(ctx); err != nil {
				return err
			}
		}
		before = row
	}
	return nil
}

func (d *drawing) finding(ctx context.Context, tx *ent.Tx, deploymentID, projectID, ruleID int64, scans []int64, n int) (*ent.Finding, error) {
	content, err := blob.Encode(&storev1.FindingContent{
		Location: &findingsv1.FindingLocation{FilePath: d.text("path"), Line: int32(n)}, Message: d.text("message"), Commit: strings.Repeat("0a", 20),
		Context: []byte(d.text("context")), CommittedAt: d.time("committed"),
	})
	if err != nil {
		return nil, err
	}
	state := d.one("state", lifecycle.Unresolved, lifecycle.Muted, lifecycle.Fixed)
	triage := d.one("triage", lifecycle.Untriaged, lifecycle.Ignored, lifecycle.Reopened, lifecycle.Reviewing, lifecycle.Fixing, lifecycle.ProvisionallyIgnored)
	create := tx.Finding.Create().SetDeploymentID(deploymentID).SetProjectID(projectID).SetRuleID(ruleID).SetFirstSeenScanID(scans[0]).SetRef("refs/heads/main").
		SetTool("t").SetAnalysisCategory(d.text("category")).SetFingerprint(fmt.Sprintf("print %d", n)).SetIssueType(d.one("type", vocabulary.Products...)).
		SetSeverity(d.one("severity", "low", "medium", "high", "critical")).SetState(state).SetTriageState(triage).SetStatus(lifecycle.Status(state, triage)).
		SetNillableTriageReason(d.word("reason", "false_positive", "no_time")).SetNillableTriageComment(d.optional("comment")).SetNillablePolicyMode(d.word("mode", "rule-board-audit", "rule-board-block")).
		SetNillableAutotriageVerdict(d.word("verdict", "true_positive", "false_positive")).SetNillableComponentTag(d.optional("tag")).SetNillableExposure(d.word("exposure", "reachable", "unknown")).
		SetNillableTransitivity(d.word("transitivity", "direct", "transitive")).SetNillablePackage(d.optional("package")).SetNillableAdvisory(d.optional("advisory")).
		SetNillableFilePath(d.optional("file")).SetNillableEpssProbability(d.word("epss", "low", "none")).SetNillableMalicious(d.yes("malicious")).
		SetNillableClickToFixState(d.word("fix", "open", "merged")).SetNillableValidationState(d.word("validation", "confirmed_valid", "no_validator")).SetNillableHistorical(d.yes("historical")).
		SetCreatedAt(d.time("created")).SetRelevantSince(d.time("relevant")).SetStateUpdatedAt(d.time("updated")).
		SetContentHash(7).SetContent(content)
	if rapid.Bool().Draw(d.T, d.label("more")) {
		create.SetTriagedAt(d.time("triaged")).SetMatchKey(rapid.Int64().Draw(d.T, d.label("key"))).SetEvidence([]byte(d.text("evidence"))).SetLastSeenScanID(scans[1])
	}
	row, err := create.Save(ctx)
	if err != nil {
		return nil, err
	}
	for range rapid.IntRange(0, 3).Draw(d.T, d.label("events")) {
		event := tx.FindingEvent.Create().SetDeploymentID(deploymentID).SetFindingID(row.ID).SetKind("triaged").SetFromStatus(d.one("from", "", "open", "fixed")).SetToStatus("open").
			SetReason(d.text("reason")).SetNote(d.text("note")).SetAt(d.time("at"))
		if rapid.Bool().Draw(d.T, d.label("scan")) {
			event.SetActorKind("scan").SetActorID(scans[1]).SetScanID(scans[1])
		} else {
			event.SetActorKind("user").SetActorID(0).SetActorName(d.text("name"))
		}
		if err := event.Exec(ctx); err != nil {
			return nil, err
		}
	}
	if rapid.Bool().Draw(d.T, d.label("request")) {
		request := tx.ExceptionRequest.Create().SetDeploymentID(deploymentID).SetProjectID(projectID).SetFindingID(row.ID).SetSource(d.one("source", "scm_comment", "platform", "api")).
			SetReason("no_time").SetNote(d.text("note")).SetRequesterKind(d.one("requester", "host", "user", "token")).SetRequesterID(0).SetRequesterLogin(d.text("login")).
			SetRequesterName(d.text("name")).SetCreatedAt(d.time("at"))
		if rapid.Bool().Draw(d.T, d.label("reviewed")) {
			request.SetState(d.one("answer", "approved", "rejected")).SetReviewerKind("user").SetReviewerLogin(d.text("reviewer")).SetReviewerName(d.text("name")).
				SetReviewNote(d.text("review")).SetReviewedAt(d.time("at"))
		}
		if err := request.Exec(ctx); err != nil {
			return nil, err
		}
	}
	match, err := proto.Marshal(&storev1.FindingMatch{IdentityVersion: 1, ContentBefore: []byte(d.text("before")), Considered: []*storev1.FindingMatchCandidate{{Rung: "x"}}})
	if err != nil {
		return nil, err
	}
	return row, tx.FindingMatch.Create().SetDeploymentID(deploymentID).SetFindingID(row.ID).SetScanID(scans[0]).SetRung("x").SetContent(match).SetAt(d.time("at")).Exec(ctx)
}
