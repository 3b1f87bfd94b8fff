package scans_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/finding"
	"github.com/palisade/palisade/ent/project"
	"github.com/palisade/palisade/ent/tenant"
	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/policies/remediation"
	"github.com/palisade/palisade/services/scans/backtest"
)

// livePolicies have conditions on what changes between scans, and on what does not.
const livePolicies = `[
	{"slug":"no-new-high","name":"No new high","active":true,"actions":[{"type":"block"},{"type":"comment"}],"filters":{"mode":"all","conditions":[
		{"type":"severity","values":["high"]},{"type":"finding_state","values":["new"]}]}},
	{"slug":"pci","name":"PCI","active":true,"actions":[{"type":"block"}],"filters":{"mode":"all","conditions":[
		{"type":"project_tag","values":["pci"]},{"type":"product","values":["code"]},{"type":"severity","values":["high","critical"]}]}},
	{"slug":"backlog","name":"Backlog","active":true,"actions":[{"type":"block"}],"filters":{"mode":"all","conditions":[
		{"type":"project","values":["acme/two","acme/web"]},{"type":"finding_state","values":["existing"]},{"type":"severity","values":["medium"],"mode":"exclude"}]}},
	{"slug":"off","name":"Off","active":false,"actions":[{"type":"block"}],"filters":{"mode":"all"}},
	{"slug":"talk","name":"Talk","active":true,"actions":[{"type":"comment"}],"filters":{"mode":"any","conditions":[{"type":"severity","values":["low","medium"]}]}}]`

// livePeriod is a period of scans and decisions in which policies are in force.
type livePeriod struct {
	*situationRun
	random *rand.Rand
	// told is what the gate answered, by scan.
	told map[int64]liveAnswer
}

// liveAnswer is which policies block, with their numbers of findings, and the ids that scanners get.
type liveAnswer struct{ reason, ids string }

// TestBackTestEqualsLive: a period is run with policies in force, and then replayed with the same policies. Both block
// the same scans for the same findings.
func TestBackTestEqualsLive(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		p := &livePeriod{situationRun: &situationRun{t: t, scannerClient: newScanner(s), day: 1}, random: rand.New(rand.NewPCG(34, 90)), told: map[int64]liveAnswer{}}
		p.prepare()
		p.scripted()
		for range 70 {
			p.step()
		}
		replayed := p.replay()
		ids := slices.Sorted(maps.Keys(p.told))
		blocked := 0
		for _, id := range ids {
			if p.told[id].reason != "" {
				blocked++
			}
			if p.told[id] != replayed[id] {
				of := s.Store.Reader.Scan.GetX(s.System(t), id)
				t.Errorf("scan %d of %s (full %t, upload %t)\n  live     %+v\n  replayed %+v", id, of.Ref, of.IsFullScan, of.UniqueID == nil, p.told[id], replayed[id])
			}
		}
		if blocked < 20 || blocked > len(ids)-10 {
			t.Errorf("%d of %d scans are blocked: the period shows nothing", blocked, len(ids))
		}
		p.answers(len(ids), blocked)
		p.withoutCoverage(len(ids))
	})
}

// prepare makes the projects, the tag and the policies.
func (p *livePeriod) prepare() {
	p.t.Helper()
	err := p.Store.Write(tenant.NewContext(p.t.Context(), p.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		pci, err := tx.Tag.Create().SetName("pci").SetCreatedAt(store.Now()).Save(ctx)
		if err != nil {
			return err
		}
		for _, name := range []string{"acme/one", "acme/two", "acme/web"} {
			of, err := tx.Project.Create().SetName(name).SetNameKey(name).SetCreatedAt(store.Now()).Save(ctx)
			if err != nil {
				return err
			}
			if name == "acme/one" {
				if err := tx.ProjectTag.Create().SetProjectID(of.ID).SetTagID(pci.ID).Exec(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.Body(p.t, p.Token, http.MethodPut, p.policies(""), `{"bundle":{"policies":`+livePolicies+`}}`, 200, "If-Match", "*")
}

func (p *livePeriod) policies(verb string) string {
	return fmt.Sprintf("/api/policies/v2/deployments/%d/remediation-policies%s", p.DeploymentID, verb)
}

// medium makes the findings from line 100 medium.
func medium(body object) {
	for _, f := range body["findings"].([]any) {
		if f.(object)["line"].(int) >= 100 {
			f.(object)["severity"] = 1
		}
	}
}

// scanned does a scan and keeps the answer.
func (p *livePeriod) scanned(of string, r results, change ...func(object)) {
	p.t.Helper()
	p.project = of
	id := p.begin(change...)
	answer := p.end(id, r.with(medium))
	ids, _ := answer["app_blocking_match_based_ids"].([]any)
	text := make([]string, len(ids))
	for i, id := range ids {
		text[i] = fmt.Sprint(id)
	}
	reason, _ := answer["app_block_reason"].(string)
	p.told[id] = liveAnswer{reason, strings.Join(text, " ")}
}

// uploaded uploads a report of findings to acme/web and keeps the answer.
func (p *livePeriod) uploaded(ref string, list ...string) {
	p.t.Helper()
	run := run{Tool: "lint", Files: targets(liveFiles...)}
	for _, text := range list {
		place, code, _ := strings.Cut(text, " ")
		path, line, _ := strings.Cut(place, ":")
		one := result{Rule: "lint." + code, File: path, Code: code, Line: number(line), Level: "error"}
		if one.Line >= 100 {
			one.Level = "warning"
		}
		run.Results = append(run.Results, one)
	}
	answer := upload(p.t, p.Server, ref, sarifOf(p.t, run))
	p.told[answer.GetScanId()] = liveAnswer{reason: answer.GetBlockReason()}
}

// triage decides about a random finding of acme/web or of the scanner.
func (p *livePeriod) triage(state string) {
	p.t.Helper()
	rows := p.Store.Reader.Finding.Query().Where(finding.MergedIntoIsNil()).Order(ent.Asc(finding.FieldID)).AllX(p.System(p.t))
	if len(rows) == 0 {
		return
	}
	body := fmt.Sprintf(`{"issue_type":"sast","issue_ids":[%d],"new_triage_state":%q`, rows[p.random.IntN(len(rows))].ID, state)
	if state == "ignored" {
		body += `,"new_triage_reason":"acceptable_risk"`
	}
	p.Do(p.t, p.Token, http.MethodPost, "/api/v1/deployments/acme/triage", body+"}")
}

// liveFindings are those that scans may report: one in each file, so that none is taken for another that was edited.
// The severity of a finding and its identity are the current ones.
var liveFindings = []string{
	"app/run.py:12 eval", "app/new.py:3 open", "lib/hash.py:7 md5", "lib/old.py:9 pickle", "web/a.py:20 spawn",
	"web/b.py:140 input", "web/c.py:107 sha1", "web/d.py:5 yaml",
}

// liveFiles are their files.
var liveFiles = func() (files []string) {
	for _, one := range liveFindings {
		file, _, _ := strings.Cut(one, ":")
		files = append(files, file)
	}
	return append(files, "lib/exec.py")
}()

// some returns a random part of the findings.
func (p *livePeriod) some(among []string) (list []string) {
	for _, one := range among {
		if p.random.IntN(3) > 0 {
			list = append(list, one)
		}
	}
	return list
}

// scripted are the situations that have to be in the period.
func (p *livePeriod) scripted() {
	for _, of := range []string{"acme/one", "acme/two"} {
		all := func(list ...string) results { return found(list...).searching(liveFiles...) }
		p.scanned(of, all("app/run.py:12 eval", "lib/exec.py:20 exec"), commit("a"))
		p.scanned(of, all("app/run.py:12 eval", "lib/exec.py:20 exec"), commit("a"))
		p.ignore("app/run.py:12")
		p.scanned(of, all("app/run.py:12 eval", "lib/exec.py:20 exec"))
		p.scanned(of, found("app/new.py:3 open").searching("app/new.py"), pull, base("a"))
		p.scanned(of, found("app/new.py:3 open", "app/new.py:30 eval").searching("app/new.py"), pull, base("a"))
		p.scanned(of, all("app/run.py:12 eval"))
		p.scanned(of, all("app/run.py:12 eval", "lib/exec.py:20 exec")) // exec comes back
		p.scanned(of, all("lib/exec.py:20 exec").ignoring("app/run.py:12 eval"))
		p.scanned(of, all("lib/exec.py:20 exec", "lib/hash.py:107 sha1"), with("topic", "project_metadata", "branch"))
		p.scanned(of, found("app/main.py:12 eval").searching("app/main.py").with(with([]any{"app/run.py"}, "renamed_paths")), pull,
			with("refs/pull/6/merge", "project_metadata", "branch"))
		old := p.begin(pull)
		p.scanned(of, found("lib/zlib.py:3 open2").searching("lib/zlib.py"), pull)
		answer := p.end(old, found("lib/zlib.py:3 open").searching("lib/zlib.py").with(medium))
		reason, _ := answer["app_block_reason"].(string)
		p.told[old] = liveAnswer{reason: reason, ids: "older"}
	}
}

// step does a random scan or decision.
func (p *livePeriod) step() {
	of := []string{"acme/one", "acme/two"}[p.random.IntN(2)]
	pullRequest := fmt.Sprintf("refs/pull/%d/merge", 8+p.random.IntN(2))
	switch p.random.IntN(9) {
	case 0, 1:
		p.scanned(of, found(p.some(liveFindings)...).searching(liveFiles...))
	case 2:
		p.scanned(of, found(p.some(liveFindings)...).searching(liveFiles...), with("refs/heads/topic", "project_metadata", "branch"))
	case 3, 4:
		from := p.random.IntN(len(liveFindings) - 3)
		p.scanned(of, found(p.some(liveFindings[from:from+4])...).searching(liveFiles[from:from+4]...), pull, with(pullRequest, "project_metadata", "branch"))
	case 5:
		p.uploaded("refs/heads/main", p.some(liveFindings)...)
	case 6:
		p.uploaded(pullRequest, p.some(liveFindings)...)
	default:
		p.triage([]string{"ignored", "reopened", "fixing", "ignored"}[p.random.IntN(4)])
	}
}

// replay is what the replay answers, by scan.
func (p *livePeriod) replay() map[int64]liveAnswer {
	p.t.Helper()
	ctx := tenant.NewContext(p.t.Context(), p.DeploymentID)
	policies, err := remediation.Load(ctx, p.Store.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	byPolicy, found := map[int64]map[int][]int64{}, map[int64]map[int64]bool{}
	_, err = backtest.Replay(ctx, p.Store.Reader, backtest.Input{Policies: policies, To: store.Now()}, func(h *backtest.Hit) {
		if byPolicy[h.Scan] == nil {
			byPolicy[h.Scan], found[h.Scan] = map[int][]int64{}, map[int64]bool{}
		}
		for _, i := range h.Policies {
			if slices.Contains(policies[i].Actions(), remediation.ActionBlock) {
				byPolicy[h.Scan][i] = append(byPolicy[h.Scan][i], h.Finding)
				found[h.Scan][h.Finding] = true
			}
		}
	}, func(*backtest.Project) {})
	if err != nil {
		p.t.Fatal(err)
	}
	out := map[int64]liveAnswer{}
	for scan, of := range byPolicy {
		var reasons []string
		for _, i := range slices.Sorted(maps.Keys(of)) {
			findings := fmt.Sprintf("%d findings", len(of[i]))
			if len(of[i]) == 1 {
				findings = "1 finding"
			}
			reasons = append(reasons, "policy "+policies[i].Name()+": "+findings)
		}
		answer := liveAnswer{reason: strings.Join(reasons, "; "), ids: p.matchBasedIDs(scan, found[scan])}
		out[scan] = answer
	}
	for scan, live := range p.told {
		if live.ids == "older" { // its findings have the ids of the newer scan
			out[scan] = liveAnswer{out[scan].reason, "older"}
		}
	}
	return out
}

// matchBasedIDs are the ids that the scanner got; uploads have none.
func (p *livePeriod) matchBasedIDs(scan int64, findings map[int64]bool) string {
	if p.Store.Reader.Scan.GetX(p.System(p.t), scan).UniqueID == nil {
		return ""
	}
	var ids []string
	for id := range findings {
		ids = append(ids, contentOf(p.t, p.Store.Reader.Finding.GetX(p.System(p.t), id)).GetMatchBasedId())
	}
	slices.Sort(ids)
	return strings.Join(slices.Compact(ids), " ")
}

// answers compares the answer of the API over both wires with the period.
func (p *livePeriod) answers(scans, blocked int) {
	p.t.Helper()
	body := p.Body(p.t, p.Token, http.MethodPost, p.policies(":backTest"), `{"days":1}`, 200)
	got := &policiesv1.BackTestRemediationPoliciesResponse{}
	if err := protojson.Unmarshal([]byte(body), got); err != nil {
		p.t.Fatal(err)
	}
	if int(got.GetScans()) != scans {
		p.t.Errorf("%d scans are replayed, want %d", got.GetScans(), scans)
	}
	sum := map[string]int32{}
	for _, of := range got.GetProjects() {
		for _, c := range of.GetActions() {
			sum[c.GetAction()] += c.GetScans()
		}
	}
	for _, c := range got.GetActions() {
		if c.GetAction() == "block" && int(c.GetScans()) != blocked || sum[c.GetAction()] != c.GetScans() {
			p.t.Errorf("%v in all, %v by project, %d blocked live", c, sum, blocked)
		}
	}
	given := &policiesv1.BackTestRemediationPoliciesRequest{DeploymentId: p.DeploymentID, Bundle: &policiesv1.RemediationPoliciesBundle{}}
	if err := protojson.Unmarshal([]byte(`{"policies":`+livePolicies+`}`), given.GetBundle()); err != nil {
		p.t.Fatal(err)
	}
	answer, err := policiesv1.NewPoliciesV2ServiceClient(p.Conn).BackTestRemediationPolicies(p.Context(p.t, p.Token), given)
	if err != nil {
		p.t.Fatal(err)
	}
	answer.From, answer.To, got.From, got.To = nil, nil, nil, nil
	if one, other := protojson.Format(answer), protojson.Format(got); one != other {
		p.t.Errorf("the given bundle: %s\nthe stored one: %s", one, other)
	}
	web := p.Store.Reader.Project.Query().Where(project.Name("acme/web")).OnlyX(p.System(p.t))
	raw := struct{ Projects []struct{ Project string } }{}
	only := p.Body(p.t, p.Token, http.MethodPost, p.policies(":backTest"), fmt.Sprintf(`{"project_ids":["%d"]}`, web.ID), 200)
	if err := json.Unmarshal([]byte(only), &raw); err != nil || len(raw.Projects) != 1 || raw.Projects[0].Project != "acme/web" {
		p.t.Errorf("one project: %v %s", err, only)
	}
}

// withoutCoverage: an answer says of how many scans it is no longer stored what they analyzed.
func (p *livePeriod) withoutCoverage(scans int) {
	p.t.Helper()
	err := p.Store.Write(tenant.NewContext(p.t.Context(), p.DeploymentID), func(ctx context.Context, tx *ent.Tx) error {
		_, err := tx.ScanCoverage.Delete().Exec(ctx)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	body := p.Body(p.t, p.Token, http.MethodPost, p.policies(":backTest"), `{}`, 200)
	if want := fmt.Sprintf("Of %d of %[1]d scans it is no longer stored", scans); !strings.Contains(body, want) {
		p.t.Errorf("%s does not say %s", body, want)
	}
}
