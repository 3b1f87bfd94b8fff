package findings_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/apitest"
)

type secretsPage struct {
	Findings []struct {
		ID     string `json:"id"`
		Status string `json:"status"`
		Ref    string `json:"ref"`
	} `json:"findings"`
	Cursor   *string `json:"cursor"`
	Previous *string `json:"previous"`
}

// secretsOf reads a page of secrets and returns their labels.
func secretsOf(t testing.TB, s *apitest.Server, l *fixture, query string) (string, secretsPage) {
	t.Helper()
	var page secretsPage
	body := s.Get(t, secretsPath(s.Tenant)+"?"+query)
	if err := json.Unmarshal([]byte(body), &page); err != nil || page.Cursor == nil || page.Previous == nil {
		t.Fatalf("%v in %s", err, body)
	}
	byID := map[string]string{}
	for label, id := range l.findings {
		byID[fmt.Sprint(id)] = label
	}
	names := make([]string, len(page.Findings))
	for i, f := range page.Findings {
		names[i] = byID[f.ID]
	}
	return strings.Join(names, " "), page
}

func seedSecrets(t *testing.T, s *apitest.Server) *fixture {
	t.Helper()
	l := seedFixture(t, s, s.Tenant, map[string]func(*ent.ProjectCreate){"acme/web": nil, "acme/API": nil})
	l.seed(t, s,
		fact{label: "valid", kind: "secrets", rule: "aws.key", validation: "confirmed_valid", severity: "critical"},
		fact{label: "invalid", kind: "secrets", rule: "slack.url", validation: "confirmed_invalid", severity: "low", createdAt: -5_000_000},
		fact{label: "error", kind: "secrets", rule: "aws.key", validation: "validation_error", severity: "medium", triage: "ignored"},
		fact{label: "none", kind: "secrets", rule: "aws.key", validation: "no_validator", project: "acme/API", triage: "reviewing"},
		fact{label: "old", kind: "secrets", rule: "aws.key", project: "acme/API", historical: true, triage: "fixing"},
		fact{label: "prov", kind: "secrets", rule: "aws.key", project: "acme/API", triage: "provisionally_ignored"},
		fact{label: "fixed", kind: "secrets", rule: "aws.key", project: "acme/API", state: "fixed"},
		fact{label: "removed", kind: "secrets", rule: "aws.key", project: "acme/API", state: "removed"},
		fact{label: "code"},
	)
	// The same secret on another branch, reported there later and fixed.
	l.seed(t, s, fact{label: "valid-dev", kind: "secrets", print: "valid", ref: "refs/heads/dev", rule: "aws.key", state: "fixed", at: 5})
	return l
}

func TestSecretsFilters(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedSecrets(t, s)
		const all = "valid-dev invalid error none old prov fixed"
		for _, c := range []struct{ query, want string }{
			{"", all},
			{"status=FINDING_STATUS_UNSPECIFIED&severity=SEVERITY_UNSPECIFIED&validationState=VALIDATION_STATE_UNSPECIFIED", all},
			{"since=0001-01-01T00:00:00Z&limit=0&cursor=", all},
			{"since=2026-05-04T10:20:30Z", "valid-dev error none old prov fixed"},
			{"since=2026-05-04T10:20:30.123457Z", ""},
			{"validationState=VALIDATION_STATE_CONFIRMED_VALID", "valid"},
			{"validationState=VALIDATION_STATE_CONFIRMED_INVALID,VALIDATION_STATE_NO_VALIDATOR", "invalid none"},
			{"validationState[0]=VALIDATION_STATE_VALIDATION_ERROR&validationState[1]=VALIDATION_STATE_NO_VALIDATOR", "error none"},
			{"validation_state=VALIDATION_STATE_VALIDATION_ERROR", "error"},
			{"status=FINDING_STATUS_OPEN", "valid invalid none old"},
			{"status=FINDING_STATUS_IGNORED", "error"},
			{"status=FINDING_STATUS_FIXED", "valid-dev fixed"},
			{"status=FINDING_STATUS_REMOVED", "removed"},
			{"status=FINDING_STATUS_UNKNOWN", ""},
			{"status=FINDING_STATUS_IGNORED,FINDING_STATUS_UNSPECIFIED&status=FINDING_STATUS_FIXED", "valid-dev error fixed"},
			{"status=FINDING_STATUS_PROVISIONALLY_IGNORED", "prov"},
			{"severity=SEVERITY_LOW&severity=SEVERITY_MEDIUM", "invalid error"},
			{"repo=acme/api", "none old prov fixed"},
			{"repo=ACME/WEB&severity=SEVERITY_LOW", "invalid"},
			{"repo[0]=acme/api&repo[1]=acme/web&status=FINDING_STATUS_FIXED", "valid-dev fixed"},
			{"repo=acme/api,acme/web&status=FINDING_STATUS_FIXED", "valid-dev fixed"},
			{"repo=acme/none", ""},
		} {
			if got, _ := secretsOf(t, s, l, c.query); got != c.want {
				t.Errorf("%s:\n got %s\nwant %s", c.query, got, c.want)
			}
		}
	})
}

func TestSecretsPages(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedSecrets(t, s)
		want := []string{"valid-dev invalid", "error none", "old prov", "fixed"}
		cursors := []string{""}
		for i, labels := range want {
			got, page := secretsOf(t, s, l, "limit=2&cursor="+cursors[i])
			if got != labels {
				t.Errorf("page %d: %s, want %s", i, got, labels)
			}
			if last := i == len(want)-1; last != (*page.Cursor == "") {
				t.Errorf("page %d: cursor %q", i, *page.Cursor)
			}
			cursors = append(cursors, *page.Cursor)

			// The previous page is the page before.
			if i == 0 {
				if *page.Previous != "" {
					t.Errorf("the first page has a previous one: %q", *page.Previous)
				}
				continue
			}
			back, before := secretsOf(t, s, l, "limit=2&cursor="+*page.Previous)
			if *page.Previous == "" || back != want[i-1] || *before.Cursor != cursors[i] {
				t.Errorf("before page %d (%q): %s, want %s; its cursor leads to %q, not %q", i, *page.Previous, back, want[i-1], *before.Cursor, cursors[i])
			}
			if i == 1 && *before.Previous != "" {
				t.Errorf("the first page, reached backwards, has a previous one: %q", *before.Previous)
			}
		}

		// New secrets do not move the pages of a cursor.
		l.seed(t, s, fact{label: "new", kind: "secrets", at: 9})
		if got, _ := secretsOf(t, s, l, "limit=2&cursor="+cursors[1]); got != want[1] {
			t.Errorf("page 1 after an upload: %s", got)
		}
		if got, _ := secretsOf(t, s, l, "limit=500&cursor="+cursors[1]); got != "error none old prov fixed" {
			t.Errorf("the rest: %s", got)
		}
	})
}

func TestSecretsAreRefused(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		l := seedSecrets(t, s)
		_, page := secretsOf(t, s, l, "limit=2")
		var bodies strings.Builder
		for _, query := range []string{
			"cursor=" + *page.Cursor + "&repo=acme/web", "cursor=garbage", "cursor=" + strings.Repeat("A", 34),
			"limit=-1", "limit=many", "status=OPEN_", "severity=SEVERITY_HUGE", "validationState=VALID", "since=yesterday",
		} {
			name := query
			if strings.Contains(query, *page.Cursor) {
				name = "the cursor of another filter"
			}
			bodies.WriteString(name + "\n\t" + failure(t, s, http.StatusBadRequest, http.MethodGet, secretsPath(s.Tenant)+"?"+query, "") + "\n")
		}
		apitest.Golden(t, "secrets_refused", bodies.String())
	})
}
