package nodestest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/apitest"
)

// findingsOfReport is the number of findings in each project.
const findingsOfReport = 5

// load is a set of clients that upload, triage and list, and record what was accepted.
type load struct {
	t    testing.TB
	http *http.Client
	base string // URL

	stop chan struct{}
	done sync.WaitGroup

	mu       sync.Mutex
	uploads  map[string]bool    // projects
	triaged  map[int64]decision // by finding
	failed   []failure
	requests int
}

// decision is an accepted triage.
type decision struct{ project, note string }

// failure is a request without a 200 response.
type failure struct {
	what       string
	began, end time.Time
}

func (f failure) String() string {
	return fmt.Sprintf("%s %s: %s", f.began.Format("15:04:05.000"), f.end.Sub(f.began).Round(time.Millisecond), f.what)
}

// startLoad runs clients until they are stopped.
func startLoad(t testing.TB, client *http.Client, base string, clients int) *load {
	l := &load{t: t, http: client, base: base, stop: make(chan struct{}), uploads: map[string]bool{}, triaged: map[int64]decision{}}
	for c := range clients {
		l.done.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-l.stop:
					return
				default:
				}
				if err := l.round(fmt.Sprintf("acme/c%d-%d", c, i)); err != nil {
					t.Errorf("client %d: %v", c, err)
					return
				}
			}
		})
	}
	t.Cleanup(l.end)
	return l
}

// end stops the clients after their current round.
func (l *load) end() {
	l.mu.Lock()
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.mu.Unlock()
	l.done.Wait()
}

// accepted returns the number of accepted uploads.
func (l *load) accepted() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.uploads)
}

// more waits for n more accepted uploads.
func (l *load) more(n int) {
	l.t.Helper()
	want := l.accepted() + n
	apitest.Eventually(l.t, fmt.Sprintf("%d uploads more", n), func() bool { return l.t.Failed() || l.accepted() >= want })
}

func (l *load) failures() []failure {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.failed)
}

// report returns a report with findings that no other project has.
func report(project string) []byte {
	results := make([]string, findingsOfReport)
	for i := range results {
		results[i] = fmt.Sprintf(`{"ruleId":"go.sqli","level":"error","message":{"text":"Query built from input"},"locations":[{"physicalLocation":{
			"artifactLocation":{"uri":"app/f%d.go"},"region":{"startLine":%d,"startColumn":2,"snippet":{"text":"db.Query(%s, %d)"}}}}]}`, i, i+1, project, i)
	}
	return []byte(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"gosec","version":"2.21"}},"results":[` + strings.Join(results, ",") + `]}]}`)
}

// uploadPath returns the upload path of a project's report.
func uploadPath(project string) string {
	return "/api/v1/deployments/acme/reports?" + url.Values{"project": {project}, "ref": {"main"}}.Encode()
}

// round is one client's work on a project: upload, list, triage, list.
func (l *load) round(project string) error {
	if _, err := l.untilAccepted(http.MethodPost, uploadPath(project), report(project)); err != nil {
		return err
	}
	l.mu.Lock()
	l.uploads[project] = true
	l.mu.Unlock()
	findings, err := l.list(project)
	if err != nil {
		return err
	}
	if len(findings) != findingsOfReport {
		return fmt.Errorf("%s has %d findings right after its upload, want %d", project, len(findings), findingsOfReport)
	}
	id, note := findings[0].ID, "decided for "+project
	body, err := json.Marshal(map[string]any{
		"issue_type": "sast", "issue_ids": []int64{id}, "new_triage_state": "ignored", "new_triage_reason": "acceptable_risk", "new_note": note,
	})
	if err != nil {
		return err
	}
	if _, err := l.untilAccepted(http.MethodPost, "/api/v1/deployments/acme/triage", body); err != nil {
		return err
	}
	l.mu.Lock()
	l.triaged[id] = decision{project, note}
	l.mu.Unlock()
	_, err = l.untilAccepted(http.MethodGet, "/api/v1/deployments/acme/findings?page_size=100", nil)
	return err
}

// listed is a finding in a list.
type listed struct {
	ID            int64
	TriageState   string `json:"triage_state"`
	TriageComment string `json:"triage_comment"`
}

func (l *load) list(project string) ([]listed, error) {
	answer, err := l.untilAccepted(http.MethodGet, "/api/v1/deployments/acme/findings?"+url.Values{"repos": {project}}.Encode(), nil)
	if err != nil {
		return nil, err
	}
	var page struct{ Findings []listed }
	if err := json.Unmarshal(answer, &page); err != nil {
		return nil, fmt.Errorf("%w in %s", err, answer)
	}
	return page.Findings, nil
}

// refusal is a permanent error response.
type refusal struct{ error }

// untilAccepted retries a request, as clients do, while there is no response or a temporary error. Each attempt
// counts as a failure.
func (l *load) untilAccepted(method, path string, body []byte) (answer []byte, err error) {
	deadline := time.Now().Add(timeout)
	for {
		began := time.Now()
		answer, err = l.send(method, path, body)
		l.mu.Lock()
		l.requests++
		if err != nil {
			l.failed = append(l.failed, failure{fmt.Sprintf("%s %s: %v", method, path, err), began, time.Now()})
		}
		l.mu.Unlock()
		if err == nil || errors.As(err, new(refusal)) || time.Now().After(deadline) {
			return answer, err
		}
		<-time.After(50 * time.Millisecond)
	}
}

func (l *load) send(method, path string, body []byte) ([]byte, error) {
	request, err := http.NewRequest(method, l.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := l.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		err := fmt.Errorf("%d %s", response.StatusCode, answer)
		if response.StatusCode < http.StatusInternalServerError {
			err = refusal{err}
		}
		return nil, err
	}
	return answer, nil
}

// verify requires that everything accepted is stored exactly once.
func (l *load) verify(d *database) {
	l.t.Helper()
	scans := d.counts("SELECT p.name, COUNT(*) FROM scans s JOIN projects p ON p.id = s.project_id GROUP BY p.name")
	events := d.counts("SELECT CAST(finding_id AS text), COUNT(*) FROM finding_events WHERE kind = 'triaged' GROUP BY finding_id")
	seen := map[int64]bool{}
	for _, project := range slices.Sorted(maps.Keys(l.uploads)) {
		findings, err := l.list(project)
		if err != nil {
			l.t.Fatal(err)
		}
		if len(findings) != findingsOfReport {
			l.t.Errorf("%s: %d findings, want %d", project, len(findings), findingsOfReport)
		}
		for _, f := range findings {
			want, ok := l.triaged[f.ID]
			seen[f.ID] = ok
			if ok && (f.TriageState != "ignored" || f.TriageComment != want.note || want.project != project) {
				l.t.Errorf("%s: finding %d is %s, %q; accepted was %+v", project, f.ID, f.TriageState, f.TriageComment, want)
			}
		}
		// An upload without a response may or may not have been stored.
		if most := 1 + l.failedUploads(project); scans[project] < 1 || scans[project] > most {
			l.t.Errorf("%s: %d scans of one upload, want 1 to %d", project, scans[project], most)
		}
	}
	for id, decision := range l.triaged {
		if !seen[id] {
			l.t.Errorf("finding %d is not listed, %+v was accepted", id, decision)
		}
		if n := events[strconv.FormatInt(id, 10)]; n != 1 { // a repeated decision adds no event
			l.t.Errorf("finding %d: %d decisions in its history, %+v was accepted", id, n, decision)
		}
	}
	if len(events) != len(l.triaged) {
		l.t.Errorf("%d findings have a decision, %d decisions were accepted", len(events), len(l.triaged))
	}
	l.t.Logf("%d uploads and %d decisions of %d requests were accepted, %d requests failed", len(l.uploads), len(l.triaged), l.requests, len(l.failed))
}

// failedUploads returns how many uploads of a project failed.
func (l *load) failedUploads(project string) (n int) {
	for _, f := range l.failures() {
		if strings.HasPrefix(f.what, http.MethodPost+" "+uploadPath(project)+":") {
			n++
		}
	}
	return n
}

// requireNoFailures requires that every request got a 200.
func (l *load) requireNoFailures() {
	l.t.Helper()
	for _, f := range l.failures() {
		l.t.Errorf("failed: %s", f)
	}
}
