package feed

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/tenant"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/findings/issuefilter"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apierr"
)

const (
	// heartbeat is the longest time between two messages.
	heartbeat = 15 * time.Second
	// scanTime is how long an empty message waits for changes while there are unread events.
	scanTime = time.Second
	// renewInterval is the time between two checks of a watcher's access.
	renewInterval = 5 * time.Second
	// slowLimit ends a watcher that does not take a message for this long.
	slowLimit = time.Minute
	// clockSkew is how much later than now a token of another node may be.
	clockSkew = 10 * time.Minute
	// defaultLimit is the number of changes in a message, messageMemory their size in bytes.
	defaultLimit, messageMemory = 500, 2 << 20
)

// watcher is one stream.
type watcher struct {
	feed         *Feed
	followed     *follower
	deploymentID int64
	clusterID    uint64
	limit        int
	scope        scope
	renewed      time.Time
	send         func(*findingsv1.WatchFindingsResponse) error

	at position // behind everything that was sent or is not visible
	// number is the number of the next page in the log; negative while the watcher is behind the log.
	number int64
	// page is the page that is being sent, and offset the first event of it that was not sent. The batch is nil
	// between pages.
	page   page
	offset int
}

// Watch sends the changes that the caller of ctx may see, until ctx ends or the caller loses access.
func (f *Feed) Watch(ctx context.Context, r *findingsv1.WatchFindingsRequest, send func(*findingsv1.WatchFindingsResponse) error) error {
	w, err := f.watcher(ctx, r, send)
	if err != nil {
		return err
	}
	since, err := w.start(r)
	if err != nil {
		return err
	}
	caller, _ := access.FromContext(ctx)
	who := credential{caller.Kind, caller.ID}
	if w.followed, err = f.join(w.deploymentID, who); err != nil {
		return err
	}
	defer f.leave(w.followed, who)
	head, err := w.followed.fresh(ctx)
	if err != nil {
		return err
	}
	switch {
	case since == nil:
		w.at = head
	case !since.within(head):
		return expired("its changes are not in this database, which may have been restored from a backup")
	default:
		w.at = *since
	}
	return w.run(ctx, time.Duration(r.GetWait())*time.Second)
}

func (f *Feed) watcher(ctx context.Context, r *findingsv1.WatchFindingsRequest, send func(*findingsv1.WatchFindingsResponse) error) (*watcher, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	if r.GetFilter() != nil { // report errors before anything is sent
		if _, err := issuefilter.WhereOfAll(ctx, r.GetFilter(), time.Now()); err != nil {
			return nil, err
		}
	}
	watched, err := newScope(ctx, r.GetFilter())
	if err != nil {
		return nil, err
	}
	clusterID, err := f.clusterID(ctx)
	return &watcher{
		feed: f, deploymentID: deploymentID, clusterID: clusterID, limit: cmp.Or(int(r.GetLimit()), defaultLimit),
		scope: watched, renewed: time.Now(), send: send, number: -1,
	}, err
}

// start returns the position that the request names; nil for the head.
func (w *watcher) start(r *findingsv1.WatchFindingsRequest) (*position, error) {
	if r.GetResumeToken() == "" {
		if r.GetFromOldest() {
			return &position{}, nil
		}
		return nil, nil
	}
	t, err := openToken(w.feed.keys, r.GetResumeToken(), w.deploymentID)
	switch {
	case err != nil:
		return nil, err
	case time.Until(t.issued) > clockSkew:
		return nil, expired("it is from " + t.issued.UTC().Format(time.RFC3339) + ", later than now: the clock of the server was set back")
	case time.Since(t.issued) > w.feed.retention:
		return nil, expired("it is from " + t.issued.UTC().Format(time.RFC3339) + ", and the feed goes back " + w.feed.retention.String())
	case t.at.numbered() && t.system != w.clusterID:
		return nil, expired("it is from another database")
	}
	return &t.at, nil
}

func (w *watcher) run(ctx context.Context, wait time.Duration) error {
	due := time.Now().Add(wait) // when the next message is sent even if it is empty
	for {
		if err := w.renew(ctx); err != nil {
			return err
		}
		changes, changed, err := w.next()
		if err != nil {
			return err
		}
		idle := changed != nil
		if late := time.Since(due); len(changes) > 0 || late >= 0 && idle || late >= scanTime {
			if err := w.deliver(ctx, changes); err != nil {
				return err
			}
			due = time.Now().Add(heartbeat)
			continue
		}
		if !idle { // there is more to read
			continue
		}
		timer := time.NewTimer(min(time.Until(due), time.Until(w.renewed.Add(w.feed.renewal))))
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// renew checks from time to time whether the caller still has access, and to which teams.
func (w *watcher) renew(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if time.Since(w.renewed) < w.feed.renewal {
		return nil
	}
	renewed, err := access.Renew(w.scope.ctx)
	if err != nil {
		return err
	}
	w.renewed = time.Now()
	w.scope, err = newScope(renewed, w.scope.filter)
	return err
}

// next returns the next visible changes. Without any, changed is closed when there may be more; nil means at once.
func (w *watcher) next() (changes []*findingsv1.FindingChange, changed <-chan struct{}, err error) {
	if w.page.batch == nil {
		if changed, err = w.turn(); w.page.batch == nil || err != nil {
			return nil, changed, err
		}
	}
	visible, err := w.page.sendable(w.scope)
	if err != nil {
		return nil, nil, err
	}
	size := 0
	i := w.offset
	for ; i < len(visible) && len(changes) < w.limit && size < messageMemory; i++ {
		if visible[i] != nil {
			changes = append(changes, visible[i])
			size += sizeOf(w.page.events[i])
		}
	}
	w.offset = i
	if i < len(visible) {
		w.at = inside(w.page.from, w.page.to, w.page.events[i-1])
	} else {
		w.at, w.page = w.page.to, page{}
	}
	// Of two events of one finding, the later one has the higher id: its transaction waited for the row.
	slices.SortFunc(changes, func(a, b *findingsv1.FindingChange) int { return cmp.Compare(a.GetId(), b.GetId()) })
	return changes, nil, nil
}

// turn gets the next page, from the log or from the database. Without one, changed is closed when there may be one;
// nil means at once.
func (w *watcher) turn() (changed <-chan struct{}, err error) {
	s := w.followed.at(w.number)
	switch {
	case s.err != nil:
		return nil, s.err
	case s.page.batch != nil:
		w.page, w.offset = s.page, 0
		w.number++
	case w.number >= 0 && !s.lost:
		return s.changed, nil
	case w.at.equal(s.head) && s.headAt >= 0:
		w.number = s.headAt
	case w.at.equal(s.head) || !w.at.within(s.head): // the follower is in the middle of a range
		w.number = -1
		return s.changed, nil
	default:
		w.number = -1
		return nil, w.catchUp(s.head)
	}
	return nil, nil
}

// catchUp reads the next page from the database.
func (w *watcher) catchUp(head position) error {
	if err := w.feed.catchUps.Enter(w.scope.ctx, w.deploymentID); err != nil {
		return err
	}
	defer w.feed.catchUps.Leave(w.deploymentID)
	ctx, cancel := context.WithTimeout(tenant.NewContext(context.WithoutCancel(w.scope.ctx), w.deploymentID), readTimeout)
	defer cancel()
	var events []*ent.FindingEvent
	events, to, err := w.feed.source.read(ctx, w.at, head, pageSize)
	if err == nil {
		w.page, w.offset = page{batch: newBatch(w.feed, w.deploymentID, events), from: w.at, to: to}, 0
	}
	return err
}

// deliver sends a message. The stream may outlive it by the time that it takes to notice a slow caller.
func (w *watcher) deliver(ctx context.Context, changes []*findingsv1.FindingChange) error {
	at, err := token{deploymentID: w.deploymentID, issued: time.Now(), system: w.clusterID, at: w.at}.seal(w.feed.keys)
	if err != nil {
		return err
	}
	message := &findingsv1.WatchFindingsResponse{Changes: changes, ResumeToken: at}
	sent := make(chan error, 1)
	go func() { sent <- w.send(message) }()
	timer := time.NewTimer(w.feed.slow)
	defer timer.Stop()
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return apierr.New(codes.Aborted, errorsv1.Reason_REASON_CONFLICT,
			"the caller did not take a message for "+w.feed.slow.String()+": connect again with the last resume token")
	}
}
