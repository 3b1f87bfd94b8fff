package feed

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/gate"
	"github.com/palisade/palisade/services/internal/secret"
	"github.com/palisade/palisade/services/internal/store"
)

// Limits of watchers on a node.
const (
	maxWatchers              = 1000
	maxWatchersPerDeployment = 200
	maxWatchersPerCredential = 50
	// tooManyRetry is when a refused watcher should try again.
	tooManyRetry = 15 * time.Second
	// catchUpsPerProcessor limits the concurrent readings of watchers that are behind the log, for each processor.
	catchUpsPerProcessor = 2
	// readTimeout limits one reading for all watchers.
	readTimeout = 30 * time.Second
)

// Feed is the change feed of a node.
type Feed struct {
	source    source
	keys      *secret.Keyring // of resume tokens
	retention time.Duration   // of resume tokens
	renewal   time.Duration   // between two checks of a watcher's access
	slow      time.Duration   // limit of sending one message
	catchUps  *gate.Gate
	// linger is how long a follower stays after its last watcher. Long polls come and go.
	poll, linger time.Duration

	mu            sync.Mutex
	followers     map[int64]*follower // by deployment
	watchers      int
	perCredential map[credential]int

	cluster struct {
		sync.Mutex
		known bool
		id    uint64
	}
}

// credential identifies the watchers that count together.
type credential struct {
	kind access.Kind
	id   int64
}

// New returns the feed of the store's events. Resume tokens are sealed with the keys and valid for the retention.
func New(st *store.Store, keys *secret.Keyring, retention time.Duration) *Feed {
	return &Feed{
		source: source{st}, keys: keys, retention: retention, renewal: renewInterval, slow: slowLimit, poll: pollInterval, linger: lingerTime,
		catchUps:  gate.New(catchUpsPerProcessor*max(2, runtime.GOMAXPROCS(0)), gate.Share(1)),
		followers: map[int64]*follower{}, perCredential: map[credential]int{},
	}
}

// join adds a watcher and starts the follower of the deployment if there is none.
func (f *Feed) join(deploymentID int64, who credential) (*follower, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	followed := f.followers[deploymentID]
	if f.watchers >= maxWatchers || f.perCredential[who] >= maxWatchersPerCredential ||
		followed != nil && followed.watchers >= maxWatchersPerDeployment {
		return nil, apierr.RateLimited(tooManyRetry)
	}
	if followed == nil {
		followed = newFollower(f, deploymentID)
		f.followers[deploymentID] = followed
		go followed.run(context.Background())
	}
	followed.watchers++
	f.watchers++
	f.perCredential[who]++
	return followed, nil
}

func (f *Feed) leave(followed *follower, who credential) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watchers--
	if f.perCredential[who]--; f.perCredential[who] == 0 {
		delete(f.perCredential, who)
	}
	if followed.watchers--; followed.watchers == 0 {
		followed.unwatched = time.Now()
	}
}

// release removes a follower that has had no watchers for a while, and reports whether it did.
func (f *Feed) release(followed *follower) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if followed.watchers > 0 || time.Since(followed.unwatched) < f.linger {
		return false
	}
	delete(f.followers, followed.deploymentID)
	return true
}

// logLimit is the memory of one follower's log, in bytes.
func (f *Feed) logLimit() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return min(logMemory, allLogsMemory/max(1, len(f.followers)))
}

// clusterID identifies the PostgreSQL cluster. It is read once.
func (f *Feed) clusterID(ctx context.Context) (uint64, error) {
	f.cluster.Lock()
	defer f.cluster.Unlock()
	if f.cluster.known {
		return f.cluster.id, nil
	}
	id, err := f.source.system(ctx)
	f.cluster.id, f.cluster.known = id, err == nil
	return id, err
}
