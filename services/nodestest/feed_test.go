package nodestest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"testing"

	"github.com/palisade/palisade/services/internal/apitest"
)

// feedWatcher follows the change feed by long poll. The load balancer sends each request to another node.
type feedWatcher struct {
	load *load
	stop chan struct{}
	end  func() // stops it
	done sync.WaitGroup

	mu       sync.Mutex
	seen     map[string]bool // ids of changes
	requests int
}

// watchFeed starts a watcher of all changes, from the oldest on.
func (l *load) watchFeed() *feedWatcher {
	w := &feedWatcher{load: l, stop: make(chan struct{}), seen: map[string]bool{}}
	w.end = sync.OnceFunc(func() {
		close(w.stop)
		w.done.Wait()
	})
	l.t.Cleanup(w.end)
	w.done.Go(func() {
		query := url.Values{"from_oldest": {"true"}, "wait": {"1"}}
		for {
			select {
			case <-w.stop:
				return
			default:
			}
			answer, err := l.untilAccepted(http.MethodGet, "/api/v1/deployments/1/findings/changes?"+query.Encode(), nil)
			if err != nil {
				l.t.Errorf("watch the changes: %v", err)
				return
			}
			var message struct {
				Changes []struct{ ID int64 }
				Token   string `json:"resume_token"`
			}
			if err := json.Unmarshal(answer, &message); err != nil {
				l.t.Errorf("watch the changes: %v: %s", err, answer)
				return
			}
			query.Set("since", message.Token)
			w.mu.Lock()
			for _, c := range message.Changes {
				w.seen[strconv.FormatInt(c.ID, 10)] = true
			}
			w.requests++
			w.mu.Unlock()
		}
	})
	return w
}

// requireAll requires that every stored change arrives, and ends the watcher.
func (w *feedWatcher) requireAll(t testing.TB, d *database) {
	t.Helper()
	stored := d.counts("SELECT CAST(id AS text), 1 FROM finding_events")
	missing := func() (n int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for id := range stored {
			if !w.seen[id] {
				n++
			}
		}
		return n
	}
	apitest.Eventually(t, "the watcher has every change", func() bool { return t.Failed() || missing() == 0 })
	w.end()
	t.Logf("the watcher got %d changes in %d requests", len(w.seen), w.requests)
	if len(stored) == 0 {
		t.Error("there are no changes")
	}
}
