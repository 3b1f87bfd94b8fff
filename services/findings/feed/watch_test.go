package feed

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent/tenant"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
)

// A caller that takes no messages is cut off, and continues with the last token. Meanwhile other watchers get theirs,
// and what fell out of the log is read from the database.
func TestSlowCaller(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		ctx, cancel := context.WithCancel(caller(t.Context()))
		defer cancel()
		f := newFeed(st)
		slow, other := newConsumer(), newConsumer()
		resume := make(chan struct{})
		slow.before = func(r *findingsv1.WatchFindingsResponse) error {
			if len(r.GetChanges()) > 0 {
				<-resume
			}
			return nil
		}
		watch(t, ctx, f, slow, &findingsv1.WatchFindingsRequest{})
		watch(t, ctx, f, other, &findingsv1.WatchFindingsRequest{})
		findings := make([]int64, 500)
		for i := range findings {
			findings[i] = int64(i + 1)
		}
		var ids []int64
		for range logMemory/eventMemory/len(findings) + 4 { // more than the log holds
			ids = append(ids, commit(t, st, findings...)...)
		}
		other.await(t, ids...)
		close(resume)
		slow.await(t, ids...)
		if again := append(duplicates(slow), duplicates(other)...); len(again) > 0 {
			t.Errorf("twice: %v", again)
		}

		impatient := newFeed(st)
		impatient.slow = 100 * time.Millisecond
		stuck := newConsumer()
		stuck.before = func(r *findingsv1.WatchFindingsResponse) error {
			if len(r.GetChanges()) > 0 {
				<-ctx.Done()
			}
			return nil
		}
		ended := watch(t, ctx, impatient, stuck, &findingsv1.WatchFindingsRequest{})
		missed := commit(t, st, 1)
		if err := <-ended; status.Code(err) != codes.Aborted {
			t.Errorf("got %v, want that the stream is aborted", err)
		}
		again := newConsumer()
		watch(t, ctx, f, again, &findingsv1.WatchFindingsRequest{ResumeToken: stuck.position()})
		again.await(t, missed...)
	})
}

// A watcher ends when its caller loses access, and follows a change of the caller's teams.
func TestAccessIsRenewed(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, store.Options{DataDir: storetest.SQLite(t)})
	f := newFeed(st)
	f.renewal = time.Millisecond
	ctx, cancel := context.WithCancel(caller(t.Context()))
	defer cancel()
	revoked := make(chan struct{})
	errRevoked := errors.New("revoked")
	asked := make(chan struct{}, 1)
	var renewing context.Context
	renewing = access.WithRenewal(ctx, func() (context.Context, error) {
		select {
		case <-revoked:
			return nil, errRevoked
		default:
		}
		select {
		case asked <- struct{}{}:
		default:
		}
		return tenant.WithTeams(renewing, []int64{1}), nil // which has no project
	})
	c, other := newConsumer(), newConsumer()
	ended := watch(t, renewing, f, c, &findingsv1.WatchFindingsRequest{})
	watch(t, ctx, f, other, &findingsv1.WatchFindingsRequest{})
	<-asked
	<-asked // so the first renewal has taken effect
	ids := commit(t, st, 1)
	other.await(t, ids...)
	close(revoked)
	if err := <-ended; !errors.Is(err, errRevoked) {
		t.Errorf("got %v, want that the stream ends", err)
	}
	if len(c.missing(ids)) != len(ids) {
		t.Error("a caller of another team got a change")
	}
}

func TestWatcherLimits(t *testing.T) {
	t.Parallel()
	st := storetest.Open(t, store.Options{DataDir: storetest.SQLite(t)})
	who := credential{access.KindToken, 1}
	for name, limit := range map[string]func(*Feed){
		"node":       func(f *Feed) { f.watchers = maxWatchers },
		"credential": func(f *Feed) { f.perCredential[who] = maxWatchersPerCredential },
		"deployment": func(f *Feed) { f.followers[deployment] = &follower{watchers: maxWatchersPerDeployment} },
	} {
		f := newFeed(st)
		limit(f)
		err := f.Watch(caller(t.Context()), &findingsv1.WatchFindingsRequest{}, nil)
		if !apierr.Is(err, errorsv1.Reason_REASON_RATE_LIMITED) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// Nothing is left of a watcher that has gone.
	f := newFeed(st)
	if err := f.Watch(caller(t.Context()), &findingsv1.WatchFindingsRequest{}, func(*findingsv1.WatchFindingsResponse) error { return errEnough }); !errors.Is(err, errEnough) {
		t.Fatal(err)
	}
	for {
		f.mu.Lock()
		left := len(f.followers)
		f.mu.Unlock()
		if left == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if f.watchers != 0 || len(f.perCredential) != 0 {
		t.Errorf("%d watchers, by credential %v", f.watchers, f.perCredential)
	}
}

// Tokens that the feed cannot continue from are refused with what to do.
func TestTokensThatCannotContinue(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, o store.Options) {
		st := storetest.Open(t, o)
		f := newFeed(st)
		head, err := f.source.head(caller(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		cluster, err := f.clusterID(t.Context())
		if err != nil || st.Postgres() != (cluster != 0) {
			t.Fatalf("the cluster is %d: %v", cluster, err)
		}
		later := head
		later.id++
		if later.seen.next > 0 {
			later.id, later.seen.next = 0, later.seen.next+1000
		}
		for name, c := range map[string]token{
			"too old":             {issued: time.Now().Add(-f.retention - time.Minute), at: head},
			"from the future":     {issued: time.Now().Add(400 * 24 * time.Hour), system: cluster, at: head},
			"newer than the data": {issued: time.Now(), system: cluster, at: later},
			"of another cluster":  {issued: time.Now(), system: cluster + 1, at: position{seen: snapshot{next: 3}}},
		} {
			c.deploymentID = deployment
			err := f.Watch(caller(t.Context()), &findingsv1.WatchFindingsRequest{ResumeToken: seal(t, c)}, nil)
			if !apierr.Is(err, errorsv1.Reason_REASON_RESUME_TOKEN_EXPIRED) || status.Code(err) != codes.OutOfRange {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
}
