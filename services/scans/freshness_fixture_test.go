package scans_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/delivery"
	"github.com/palisade/palisade/ent/freshness"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/jobs"
	"github.com/palisade/palisade/services/notifications/outbox"
	"github.com/palisade/palisade/services/scans/watch"
)

// watched does the work of the jobs that watch freshness, at any time.
type watched struct {
	*apitest.Server
	watch *watch.Watch
	queue *jobs.Jobs
}

func newWatched(t testing.TB, s *apitest.Server) watched {
	t.Helper()
	queue, err := jobs.New(s.Store, slog.New(slog.DiscardHandler), jobs.Work{
		Register: func(workers *river.Workers) {
			river.AddWorker(workers, river.WorkFunc(func(context.Context, *river.Job[outbox.Deliver]) error { return nil }))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return watched{s, watch.New(s.Store, 90*day), queue}
}

// after does the work of the periodic job when this time has passed.
func (w watched) after(t testing.TB, passed time.Duration) {
	t.Helper()
	now := time.Now().Add(passed)
	if err := w.watch.Failed(t.Context(), w.queue, now); err != nil {
		t.Fatal(err)
	}
	if err := w.watch.Due(t.Context(), w.queue, now); err != nil {
		t.Fatal(err)
	}
}

// catchUp does the work of the hourly job, and returns how many projects it changed.
func (w watched) catchUp(t testing.TB) int {
	t.Helper()
	n, err := w.watch.CatchUp(t.Context(), w.queue, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// daily uploads reports to main of acme/web, one each day until now.
func (w watched) daily(t testing.TB, reports ...[]byte) {
	t.Helper()
	for i, report := range reports {
		if i > 0 {
			w.moveBack(t, day)
		}
		upload(t, w.Server, "main", report)
	}
}

// moveBack makes all scans and what is known of them older.
func (w watched) moveBack(t testing.TB, by time.Duration) {
	t.Helper()
	err := w.Store.Write(w.System(t), func(ctx context.Context, tx *ent.Tx) error {
		for _, change := range []string{
			"UPDATE scans SET started_at = started_at - %[1]d, completed_at = completed_at - %[1]d", "UPDATE scan_coverages SET at = at - %[1]d",
			"UPDATE freshnesses SET since = since - %[1]d, due_at = due_at - %[1]d",
		} {
			if _, err := tx.ExecContext(ctx, fmt.Sprintf(change, by.Microseconds())); err != nil {
				return err
			}
		}
		rows, err := tx.Freshness.Query().All(ctx)
		if err != nil {
			return err
		}
		for _, row := range rows {
			h := &storev1.Freshness{}
			if err := proto.Unmarshal(row.Content, h); err != nil {
				return err
			}
			h.FirstAt, h.LastAt = h.FirstAt-by.Microseconds(), h.LastAt-by.Microseconds()
			if h.FailingSince != 0 {
				h.FailingSince -= by.Microseconds()
			}
			for _, d := range h.Days {
				d.At -= by.Microseconds()
			}
			content, err := proto.Marshal(h)
			if err != nil {
				return err
			}
			if err := tx.Freshness.UpdateOneID(row.ID).SetContent(content).Exec(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// list returns the analyses over HTTP, and requires the same over gRPC.
func (w watched) list(t testing.TB, query string, request *scansv1.ListFreshnessRequest) []*scansv1.AnalysisFreshness {
	t.Helper()
	request.DeploymentId = w.DeploymentID
	body := w.Get(t, fmt.Sprintf("/api/v1/deployments/%d/freshness%s", w.DeploymentID, query))
	response, err := scansv1.NewFreshnessServiceClient(w.Conn).ListFreshness(w.Context(t, w.Token), request)
	if err != nil {
		t.Fatal(err)
	}
	apitest.Same(t, response, body)
	return response.GetFreshness()
}

// states lists the states of all analyses: project branch tool state.
func (w watched) states(t testing.TB) (list []string) {
	t.Helper()
	for _, f := range w.list(t, "", &scansv1.ListFreshnessRequest{}) {
		list = append(list, fmt.Sprintf("%s %s %s %s", f.GetProject(), f.GetRef(), f.GetTool(), f.GetState()))
	}
	return list
}

// wantsFreshness makes a receiver of changes. The result lists what it gets: before > after.
func (w watched) wantsFreshness(t testing.TB) (changes func() []string) {
	t.Helper()
	body := w.Body(t, w.Token, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/actions", w.DeploymentID),
		`{"notificationRule":{"channel":"webhook","name":"fresh","config":{"url":"https://hooks.acme.test/a"},"send_scan_completion":false,"send_freshness":true}}`, http.StatusOK)
	if at(parsed(t, body), "notification_rule", "send_freshness") != true {
		t.Fatal(body)
	}
	return func() (list []string) {
		for _, row := range w.Store.Reader.Delivery.Query().Where(delivery.Kind(outbox.KindFreshness)).Order(ent.Asc(delivery.FieldID)).AllX(w.System(t)) {
			about := at(parsed(t, string(row.Payload)), "palisade_freshness")
			list = append(list, fmt.Sprintf("%v > %v", at(about, "previous_state"), at(about, "state")))
		}
		return list
	}
}

// row is the only row of a ref.
func (w watched) row(t testing.TB, ref string) *ent.Freshness {
	t.Helper()
	return w.Store.Reader.Freshness.Query().Where(freshness.Ref(ref)).OnlyX(w.System(t))
}

// history is what a row knows.
func history(t testing.TB, row *ent.Freshness) string {
	t.Helper()
	h := &storev1.Freshness{}
	if err := proto.Unmarshal(row.Content, h); err != nil {
		t.Fatal(err)
	}
	return protojson.Format(h)
}
