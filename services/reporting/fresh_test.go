package reporting_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/services/internal/apitest"
)

// severities returns the backlog at the end of the report of may: low, medium, high, critical.
func (w *world) severities() string {
	w.t.Helper()
	var got struct {
		Buckets []struct{ Low, Medium, High, Critical int }
	}
	read(w.t, w.server, w.Token, path(w.Tenant, reports["backlog_by_severity"]), may, &got)
	return fmt.Sprint(got.Buckets[len(got.Buckets)-1])
}

// Changes after a report are in the next one: changes of findings with each event, others at once.
func TestReportsAreFresh(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := newAcme(t, s, s.Tenant)
		web, api := w.projects["acme/web"], w.projects["acme/api"]
		update := func(id int64, set func(*ent.ProjectUpdateOne)) func() {
			return func() {
				w.write(func(ctx context.Context, tx *ent.Tx) error {
					u := tx.Project.UpdateOneID(id)
					set(u)
					return u.Exec(ctx)
				})
			}
		}
		late := &fact{project: "acme/web", ref: main, rule: "gosec/sqli", kind: "sast", severity: "high", changes: history(t, "6d open")}
		onDev := &fact{project: "acme/web", ref: dev, rule: "gosec/sqli", kind: "sast", severity: "critical", changes: history(t, "6d open")}
		for _, step := range []struct {
			what string
			do   func()
			want string
		}{
			{"nothing", func() {}, "{1 1 1 1}"},
			{"a new finding", func() { w.add(late) }, "{1 1 2 1}"},
			{"its severity", func() { w.add(&fact{id: late.id, severity: "low", changes: history(t, "7d open")}) }, "{2 1 1 1}"},
			{"its status", func() { w.add(&fact{id: late.id, severity: "low", changes: history(t, "8d fixed")}) }, "{1 1 1 1}"},
			{"a finding of another branch", func() { w.add(onDev) }, "{1 1 1 1}"},
			{"another primary branch", update(web, func(u *ent.ProjectUpdateOne) { u.SetPrimaryBranch(dev) }), "{0 0 0 2}"},
			{"the default branch again", update(web, func(u *ent.ProjectUpdateOne) { u.SetPrimaryBranch("") }), "{1 1 1 1}"},
			{"an archived project", update(api, func(u *ent.ProjectUpdateOne) { u.SetArchivedAt(after(0)) }), "{1 1 1 0}"},
			{"a deleted project", func() {
				answer := s.Do(t, s.Token, http.MethodDelete, "/api/v1/deployments/"+s.Slug+"/projects/acme/web", "")
				if answer.Status != http.StatusOK {
					t.Fatalf("%d %s", answer.Status, answer.Body)
				}
			}, "{0 0 0 0}"},
		} {
			step.do()
			if got := w.severities(); got != step.want {
				t.Errorf("%s: got %s, want %s", step.what, got, step.want)
			}
		}
	})
}

// The next report finds a project by its new name, tag or team.
func TestProjectsAreLookedUp(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		w := newAcme(t, s, s.Tenant)
		count := func(filter string) string {
			var got struct{ Total int }
			read(t, s, s.Token, path(s.Tenant, "findings"), `{"reportType":"REPORT_TYPE_PROJECT",`+strings.Replace(may[1:], `"filters":{`, `"filters":{`+filter+`,`, 1), &got)
			return fmt.Sprint(got.Total)
		}
		for _, filter := range []string{`"projects":["acme/site"]`, `"tags":["pci"]`, `"teams":["web"]`} {
			if got := count(filter); got != "0" {
				t.Errorf("%s before: %s", filter, got)
			}
		}
		w.write(func(ctx context.Context, tx *ent.Tx) error {
			return tx.Project.UpdateOneID(w.projects["acme/web"]).SetName("acme/site").SetNameKey("acme/site").Exec(ctx)
		})
		w.tag("pci", "acme/web")
		w.team("web", "", "acme/web")
		for _, filter := range []string{`"projects":["acme/site"]`, `"tags":["pci"]`, `"teams":["web"]`} {
			if got := count(filter); got != "3" {
				t.Errorf("%s afterwards: %s", filter, got)
			}
		}
	})
}

const goReport = `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"gosec","rules":[{"id":"G101"}]}},"results":[%s]}]}`

func result(line int, level string) string {
	return fmt.Sprintf(`{"ruleId":"G101","level":%q,"message":{"text":"Hardcoded credential"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"a%d.go"},"region":{"startLine":%d,"snippet":{"text":"password := load%d()"}}}}]}`, level, line, line, line)
}

// Uploads and triage through the API change the current numbers, and not the past.
func TestReportsOfUploads(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		upload := func(results ...string) {
			s.Upload(t, "acme/web", "main", fmt.Appendf(nil, goReport, strings.Join(results, ",")))
		}
		now := func() string {
			var got struct {
				Buckets []struct{ Low, Medium, High, Critical int }
			}
			read(t, s, s.Token, path(s.Tenant, reports["backlog_by_severity"]), `{}`, &got)
			return fmt.Sprint(got.Buckets[len(got.Buckets)-1])
		}
		upload(result(1, "error"), result(2, "error"), result(3, "warning"))
		first := now()
		upload(result(1, "note"), result(2, "error"), result(3, "warning"))
		second := now()
		upload(result(2, "error"), result(3, "warning"))
		third := now()
		if first != "{0 1 2 0}" || second != "{1 1 1 0}" || third != "{0 1 1 0}" {
			t.Errorf("got %s, then with another severity %s, then without one %s", first, second, third)
		}
		answer := s.Do(t, s.Token, http.MethodPost, "/api/v1/deployments/"+s.Slug+"/triage", `{"issue_type":"sast","severities":["medium"],"new_triage_state":"ignored"}`)
		if got := now(); answer.Status != http.StatusOK || got != "{0 0 1 0}" {
			t.Errorf("after triage: %d %s: %s", answer.Status, answer.Body, got)
		}
		var activity struct {
			ThisPeriod struct{ TotalNew, TotalFixed, TotalIgnored, TotalNetNew int }
		}
		read(t, s, s.Token, path(s.Tenant, reports["activity"]), `{}`, &activity)
		if fmt.Sprint(activity.ThisPeriod) != "{3 1 1 1}" {
			t.Errorf("activity: %+v", activity)
		}
	})
}

// A transaction that commits after another one with higher ids is not lost: neither if the columns were read between
// the two, nor if they were built while it was open.
func TestOverlappingTransactions(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		if !s.Store.Postgres() {
			t.Skip("SQLite has one writer")
		}
		for _, built := range []bool{true, false} {
			w := newAcme(t, s, s.AddTenant(t, fmt.Sprintf("built-%v", built)))
			if built {
				w.severities()
			}
			critical := func(at string) *fact {
				return &fact{project: "acme/web", ref: main, rule: "gosec/sqli", kind: "sast", severity: "critical", changes: history(t, at)}
			}
			stored, finish, done := make(chan struct{}), make(chan struct{}), make(chan error)
			go func() {
				done <- s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
					err := w.store(ctx, tx, critical("1d open"))
					close(stored)
					<-finish
					return err
				})
			}()
			<-stored
			for n := range 3 {
				w.add(critical("2d open"))
				if got, want := w.severities(), fmt.Sprintf("{1 1 1 %d}", 2+n); got != want {
					t.Errorf("built %v: with a transaction open: %s, want %s", built, got, want)
				}
			}
			close(finish)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if got := w.severities(); got != "{1 1 1 5}" {
				t.Errorf("built %v: after it: %s", built, got)
			}
			w.add(critical("2d open"))
			if got := w.severities(); got != "{1 1 1 6}" {
				t.Errorf("built %v: and one more: %s", built, got)
			}
		}
	})
}

// An open transaction may have a number above all ended ones, which PostgreSQL does not report.
func TestNewestTransactionStaysOpen(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, s *apitest.Server) {
		if !s.Store.Postgres() {
			t.Skip("SQLite has one writer")
		}
		w := newAcme(t, s, s.AddTenant(t, "built"))
		before := w.severities()
		critical := func() *fact {
			return &fact{project: "acme/web", ref: main, rule: "gosec/sqli", kind: "sast", severity: "critical", changes: history(t, "1d open")}
		}
		older, newer, begun, stored := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
		ended := map[string]chan error{"older": make(chan error, 1), "newer": make(chan error, 1)}
		go func() {
			ended["older"] <- s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
				err := tx.Setting.Create().SetName("of the older one").SetValue([]byte("x")).Exec(ctx) // assigns its number
				close(begun)
				<-older
				return errors.Join(err, w.store(ctx, tx, critical()))
			})
		}()
		<-begun
		go func() {
			ended["newer"] <- s.Store.Write(s.System(t), func(ctx context.Context, tx *ent.Tx) error {
				err := w.store(ctx, tx, critical())
				close(stored)
				<-newer
				return err
			})
		}()
		<-stored
		close(older)
		if err := <-ended["older"]; err != nil {
			t.Fatal(err)
		}
		between := w.severities()
		close(newer)
		if err := <-ended["newer"]; err != nil {
			t.Fatal(err)
		}
		if after := w.severities(); between == before || after == between {
			t.Errorf("%s, then %s, then %s: want one more each time", before, between, after)
		}
	})
}
