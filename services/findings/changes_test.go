package findings_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/user"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

// changesFixture has findings a and b of acme/web, and c of acme/api.
func changesFixture(t *testing.T, s *apitest.Server) *fixture {
	t.Helper()
	l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil, "acme/api": nil})
	l.seed(t, s, fact{label: "a", project: "acme/web", rule: "py.sqli"}, fact{label: "b", project: "acme/web", rule: "py.sqli", severity: "low"},
		fact{label: "c", project: "acme/api", rule: "py.sqli"})
	return l
}

func changesPath(deploymentID int64, query string) string {
	return fmt.Sprintf("/api/v1/deployments/%d/findings/changes?%s", deploymentID, query)
}

// decide triages findings, which writes an event each.
func (l *fixture) decide(t *testing.T, s *apitest.Server, labels, state string) {
	t.Helper()
	ids, err := json.Marshal(l.ids(t, labels))
	if err != nil {
		t.Fatal(err)
	}
	s.Body(t, s.Token, http.MethodPost, triagePath, fmt.Sprintf(`{"issue_type":"sast","issue_ids":%s,"new_triage_state":%q}`, ids, state), http.StatusOK)
}

// message is what the HTTP API sends.
type message struct {
	Changes []struct {
		ID      int64
		Kind    string
		To      string `json:"to_status"`
		Matches bool
		Finding struct {
			ID      int64
			Project string
		}
	}
	Token string `json:"resume_token"`
}

// text has the changes of a message, as label=status.
func (l *fixture) text(m message) string {
	var list []string
	for _, c := range m.Changes {
		for label, id := range l.findings {
			if id == c.Finding.ID {
				list = append(list, label+"="+c.To)
			}
		}
	}
	return strings.Join(list, " ")
}

// poll reads the next message by long poll.
func poll(t *testing.T, s *apitest.Server, token, query string) (m message) {
	t.Helper()
	body := s.Body(t, token, http.MethodGet, changesPath(s.DeploymentID, query), "", http.StatusOK)
	if err := json.Unmarshal([]byte(body), &m); err != nil || m.Token == "" {
		t.Fatalf("%v: %s", err, body)
	}
	return m
}

// The long poll returns each change once, by filter, limit and token, on any node and after a restart.
func TestChangesByLongPoll(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, on)
		l := changesFixture(t, s)
		start := poll(t, s, s.Token, "")
		if len(start.Changes) > 0 {
			t.Errorf("without a token: %v, want nothing", start)
		}
		l.decide(t, s, "a b c", "fixing")
		got := poll(t, s, s.Token, "wait=20&since="+start.Token)
		if l.text(got) != "a=fixing b=fixing c=fixing" {
			t.Errorf("got %s", l.text(got))
		}
		first := poll(t, s, s.Token, "limit=2&since="+start.Token)
		rest := poll(t, s, s.Token, "limit=2&since="+first.Token)
		if l.text(first) != "a=fixing b=fixing" || l.text(rest) != "c=fixing" {
			t.Errorf("in parts: %s and %s", l.text(first), l.text(rest))
		}
		for query, want := range map[string]string{
			"filter.repositoryNames=acme/api": "c=fixing", "filter.severities=low": "b=fixing", "filter.ids=" + fmt.Sprint(l.findings["a"]): "a=fixing", "filter.severities=critical": "",
		} {
			if got := poll(t, s, s.Token, query+"&since="+start.Token); l.text(got) != want {
				t.Errorf("%s: %s, want %s", query, l.text(got), want)
			}
		}
		if body := s.Body(t, s.Token, http.MethodGet, changesPath(s.DeploymentID, "limit=1&since="+start.Token), "", http.StatusOK); !strings.Contains(body, `"rule_name":"py.sqli"`) {
			t.Errorf("without the finding: %s", body)
		}
		waiting := make(chan message, 1)
		go func() {
			var m message
			answer := s.Try(t, s.Token, http.MethodGet, changesPath(s.DeploymentID, "wait=20&since="+got.Token), "")
			if err := json.Unmarshal([]byte(answer.Body), &m); err != nil {
				t.Errorf("%v: %d %s", err, answer.Status, answer.Body)
			}
			waiting <- m
		}()
		l.decide(t, s, "a", "reviewing")
		if late := <-waiting; l.text(late) != "a=reviewing" {
			t.Errorf("while waiting: %s", l.text(late))
		}

		again := apitest.Start(t, func(c *config.Config) { // another node, or the same one after a restart
			on(c)
			c.Data = s.Config.Data
			if c.Database == "" {
				s.Stop(t)
			}
		})
		if got := poll(t, again, s.Token, "since="+first.Token); l.text(got) != "c=fixing" && l.text(got) != "c=fixing a=reviewing" {
			t.Errorf("on another node: %s", l.text(got))
		}
		if oldest := poll(t, again, s.Token, "from_oldest=true"); !strings.HasPrefix(l.text(oldest), "a=fixing b=fixing c=fixing") {
			t.Errorf("from the oldest: %s", l.text(oldest))
		}
	})
}

// A list of open issues learns that an issue left it, and no other list hears of it.
func TestChangesOutOfTheFilter(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := changesFixture(t, s)
		start := poll(t, s, s.Token, "").Token
		l.decide(t, s, "a b", "ignored")
		l.decide(t, s, "b", "fixing")
		for query, want := range map[string]string{
			"":                          "a=ignored true b=ignored true b=fixing true",
			"filter.tab=ISSUE_TAB_OPEN": "a=ignored false b=ignored false",
			"filter.tab=ISSUE_TAB_OPEN&filter.severities=low":               "b=ignored false",
			"filter.tab=ISSUE_TAB_IGNORED":                                  "a=ignored true b=fixing false",
			"filter.tab=ISSUE_TAB_FIXING":                                   "b=ignored true b=fixing true",
			"filter.tab=ISSUE_TAB_CLOSED":                                   "",
			"filter.aggregateIssueStates=AGGREGATE_ISSUE_STATE_IGNORED_APP": "a=ignored true b=fixing false",
			"filter.status=ISSUE_STATUS_FIXED":                              "",
		} {
			var got []string
			for _, c := range poll(t, s, s.Token, query+"&since="+start).Changes {
				for label, id := range l.findings {
					if id == c.Finding.ID {
						got = append(got, fmt.Sprintf("%s=%s %v", label, c.To, c.Matches))
					}
				}
			}
			if text := strings.Join(got, " "); text != want {
				t.Errorf("%s: %q, want %q", query, text, want)
			}
		}
	})
}

// sse reads server-sent events.
type sse struct {
	lines *bufio.Scanner
}

func openEvents(t *testing.T, ctx context.Context, s *apitest.Server, path, last string) (*sse, *http.Response) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.Token)
	req.Header.Set("Accept", "text/event-stream")
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return &sse{lines: bufio.NewScanner(resp.Body)}, resp
}

// next returns the fields of the next event; nil at the end.
func (e *sse) next() map[string]string {
	fields := map[string]string{}
	for e.lines.Scan() {
		name, value, _ := strings.Cut(e.lines.Text(), ": ")
		if name == "" && len(fields) > 0 {
			return fields
		}
		fields[name] = value
	}
	return nil
}

// Server-sent events resume by Last-Event-ID, and end with an event when the server stops.
func TestChangesByEvents(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := changesFixture(t, s)
		path := changesPath(s.DeploymentID, "filter.severities=high,medium")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		events, resp := openEvents(t, ctx, s, path, "")
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Content-Encoding") != "" {
			t.Fatalf("%s %v", resp.Status, resp.Header)
		}
		first := events.next()
		if first["id"] == "" || first["data"] != "" {
			t.Errorf("the first event is %v, want an id", first)
		}
		l.decide(t, s, "a b c", "fixing")
		second := events.next()
		var m message
		if err := json.Unmarshal([]byte(second["data"]), &m); err != nil || l.text(m) != "a=fixing c=fixing" || m.Token != second["id"] {
			t.Errorf("%v: got %v", err, second)
		}
		resumed, _ := openEvents(t, ctx, s, path, first["id"])
		if again := resumed.next(); again["data"] == "" || again["data"] != strings.Replace(second["data"], second["id"], again["id"], 1) {
			t.Errorf("after Last-Event-ID: %v, want %v", again, second)
		}
		_ = resp.Body.Close()
		s.Stop(t)
		var last map[string]string
		for e := resumed.next(); e != nil; e = resumed.next() {
			last = e
		}
		if last["event"] != "error" || !strings.Contains(last["data"], `"UNAVAILABLE"`) {
			t.Errorf("the stream ended with %v", last)
		}
	})
}

// The wire refuses before anything is sent: errors have a status and a body.
func TestChangesRefused(t *testing.T) {
	t.Parallel()
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) {
			on(c)
			c.FeedRetention = time.Nanosecond
		})
		other := s.AddTenant(t, "globex")
		token := poll(t, s, s.Token, "").Token
		for _, c := range []struct {
			credential, query string
			status            int
			code              string
		}{
			{s.Token, "since=" + token, http.StatusGone, "RESUME_TOKEN_EXPIRED"},
			{s.Token, "since=x" + token, http.StatusBadRequest, "INVALID_CURSOR"},
			{s.Token, "since=" + s.Token, http.StatusBadRequest, "resume_token of the last message"},
			{s.Token, "limit=1001", http.StatusBadRequest, "PAGE_SIZE_OUT_OF_RANGE"},
			{s.Token, "wait=x", http.StatusBadRequest, "INVALID_ARGUMENT"},
			{s.Token, "filter.severities=none", http.StatusBadRequest, "INVALID_ARGUMENT"},
			{other.Token, "wait=x", http.StatusNotFound, "NOT_FOUND"},
			{"sgp_none", "wait=x", http.StatusUnauthorized, "UNAUTHENTICATED"},
		} {
			for _, accept := range []string{"application/json", "text/event-stream"} {
				answer := s.Do(t, c.credential, http.MethodGet, changesPath(s.DeploymentID, c.query), "", "Accept", accept)
				if answer.Status != c.status || !strings.Contains(answer.Body, c.code) {
					t.Errorf("%s for %s: %d %s, want %d %s", c.query, accept, answer.Status, answer.Body, c.status, c.code)
				}
			}
		}
	})
}

// Over gRPC a team member sees the changes of the team's projects alone, and another tenant none.
func TestChangesOfTeams(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := changesFixture(t, s)
		mia := s.AddUser(t, s.Tenant, "mia@acme.test", access.RoleMember)
		err := s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
			team, err := tx.Team.Create().SetDeploymentID(s.DeploymentID).SetName("API").SetSlug("api").SetCreatedAt(1).SetUpdatedAt(1).Save(ctx)
			if err != nil {
				return err
			}
			if err := tx.TeamProject.Create().SetDeploymentID(s.DeploymentID).SetTeamID(team.ID).SetProjectID(l.projects["acme/api"]).SetCreatedAt(1).Exec(ctx); err != nil {
				return err
			}
			who, err := tx.User.Query().Where(user.Email("mia@acme.test")).OnlyID(ctx)
			if err != nil {
				return err
			}
			return tx.TeamMember.Create().SetDeploymentID(s.DeploymentID).SetTeamID(team.ID).SetUserID(who).SetRole("TEAM_ROLE_MEMBER").SetCreatedAt(1).Exec(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		client := findingsv1.NewFindingChangesServiceClient(s.Conn)
		ctx, cancel := context.WithTimeout(s.Context(t, mia), time.Minute)
		defer cancel()
		stream, err := client.WatchFindings(ctx, &findingsv1.WatchFindingsRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		if first, err := stream.Recv(); err != nil || first.GetResumeToken() == "" || len(first.GetChanges()) > 0 {
			t.Fatalf("the first message: %v %v", first, err)
		}
		l.decide(t, s, "a b c", "fixing")
		second, err := stream.Recv()
		if err != nil || len(second.GetChanges()) != 1 || second.GetChanges()[0].GetFinding().GetProject() != "acme/api" {
			t.Errorf("the second message: %v %v", second, err)
		}
		foreign, err := client.WatchFindings(s.Context(t, s.AddTenant(t, "globex").Token), &findingsv1.WatchFindingsRequest{DeploymentId: s.DeploymentID})
		if err == nil {
			_, err = foreign.Recv()
		}
		if status.Code(err) != codes.NotFound {
			t.Errorf("another tenant: %v", err)
		}
		cancel()
		if _, err := stream.Recv(); err == nil || err == io.EOF {
			t.Errorf("after the end of the call: %v", err)
		}
	})
}

// A watcher whose token is revoked ends.
func TestChangesAfterRevocation(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t, nil)
	value := s.AddToken(t, s.Tenant, access.TokenSpec{Name: "watcher"})
	stream, err := findingsv1.NewFindingChangesServiceClient(s.Conn).WatchFindings(s.Context(t, value), &findingsv1.WatchFindingsRequest{DeploymentId: s.DeploymentID})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	tokens := access.NewTokens(s.Store)
	list, err := tokens.List(t.Context(), s.DeploymentID)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range list {
		if row.Name == "watcher" {
			if err := tokens.Revoke(t.Context(), s.DeploymentID, row.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	for err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("got %v, want that the stream ends", err)
	}
}
