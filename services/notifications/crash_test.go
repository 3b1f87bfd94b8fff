package notifications_test

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// eventsVariable sets the number of messages; from fullRun on the receiver fails at random instead of a few times per
// message.
const (
	eventsVariable = "PALISADE_TEST_EVENTS"
	defaultEvents  = 400
	fullRun        = 5000
)

const crashToken = "sgp_crash4Kq2vXw7RbZ4mLd8sYh3nPc6JfGa5TeUo1W"

// process is a server in its own process, which can be killed.
type process struct {
	t      testing.TB
	binary string
	env    []string
	url    string
	cmd    *exec.Cmd
	log    bytes.Buffer
}

func (p *process) start() {
	p.t.Helper()
	address := apitest.FreeAddress(p.t)
	p.cmd = exec.Command(p.binary, "serve", "--http", address, "--grpc", apitest.FreeAddress(p.t), "--metrics", apitest.FreeAddress(p.t))
	p.cmd.Env = append(append(os.Environ(), "PALISADE_BOOTSTRAP_TOKEN="+crashToken, "PALISADE_DEPLOYMENT=acme", "PALISADE_EGRESS_ALLOW=127.0.0.1",
		"PALISADE_RATE_LIMIT=0", "PALISADE_LOG_LEVEL=warn"), p.env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.url = "http://" + address
	apitest.Eventually(p.t, "the server answers", func() bool {
		response, err := http.Get(p.url + "/api/v1/ping")
		if err == nil {
			_ = response.Body.Close()
		}
		return err == nil && response.StatusCode == http.StatusOK
	})
}

// kill ends the process with SIGKILL.
func (p *process) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		p.t.Fatal(err)
	}
	_ = p.cmd.Wait() // it was killed
}

func (p *process) call(method, path string, body []byte) string {
	p.t.Helper()
	request, err := http.NewRequest(method, p.url+path, bytes.NewReader(body))
	if err != nil {
		p.t.Error(err)
		return ""
	}
	request.Header.Set("Authorization", "Bearer "+crashToken)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Error(err)
		return ""
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		p.t.Errorf("%s %s: %d %s %v", method, path, response.StatusCode, answer, err)
	}
	return string(answer)
}

// uploadAll creates n messages: per scan, one about its finding and one about the scan.
func (p *process) uploadAll(n int) {
	var group sync.WaitGroup
	next := make(chan int)
	for range 4 {
		group.Go(func() {
			for i := range next {
				query := url.Values{"project": {fmt.Sprintf("acme/p%d", i)}, "ref": {"main"}}
				p.call(http.MethodPost, "/api/v1/deployments/acme/reports?"+query.Encode(), report("a"))
			}
		})
	}
	for i := range n / 2 {
		next <- i
	}
	close(next)
	group.Wait()
}

// eventIDs returns the message ids of deliveries in a state.
func (p *process) eventIDs(state string) []string {
	p.t.Helper()
	var ids []string
	var page struct {
		Deliveries []delivered
		Cursor     string
	}
	for more := true; more; more = page.Cursor != "" {
		decode(p.t, p.call(http.MethodGet, "/api/notifications/v1/deployments/1/deliveries?limit=500&state=DELIVERY_STATE_"+state+"&cursor="+page.Cursor, nil), &page)
		for _, d := range page.Deliveries {
			ids = append(ids, d.EventID)
		}
	}
	return ids
}

// Each message arrives, whenever the server is killed; duplicates have the same id.
func TestKilledServerLosesNothing(t *testing.T) {
	testrun.Deep(t) // kills processes
	binary, err := testrun.Program(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	storetest.Each(t, func(t *testing.T, o store.Options) {
		if o.Database != "" && os.Getenv(eventsVariable) != "" {
			t.Skip("the full run is for SQLite, on which all nodes are one")
		}
		if o.DataDir == "" {
			o.DataDir = t.TempDir()
		}
		killAndDrain(t, binary, o)
	})
}

func killAndDrain(t *testing.T, binary string, o store.Options) {
	n := defaultEvents
	if text := os.Getenv(eventsVariable); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	to := newReceiver(t, nil)
	failing := newFailing(t, n >= fullRun) // repaired before the receiver closes, which waits for its answers
	to.answer = failing.answer
	server := &process{t: t, binary: binary, env: []string{"PALISADE_DATA=" + o.DataDir, "PALISADE_DATABASE=" + o.Database}}
	server.start()
	st := storetest.Open(t, o)
	t.Cleanup(func() {
		server.kill()
		if t.Failed() {
			t.Logf("log of the server:\n%s", server.log.String())
		}
	})
	server.call(http.MethodPost, "/api/agent/deployments/1/actions", fmt.Appendf(nil,
		`{"notificationRule":{"name":"all","channel":"webhook","is_enabled":true,"config":{"url":%q,"secret":%q}}}`, to.URL, hookSecret))
	server.uploadAll(n)
	t.Logf("%d messages are pending", n)

	begun := time.Now()
	failing.repair()
	for i := range 2 {
		wait(t, to, (i+1)*n/8)
		server.kill()
		t.Logf("killed after %s: %d of %d were taken", time.Since(begun).Round(time.Second), len(distinct(t, to.taken())), n)
		if st.Postgres() { // on SQLite there is only one process, so it takes over at once
			storetest.EndLeases(t, st)
		}
		server.start()
	}
	wait(t, to, n)
	t.Logf("all %d arrived after %s, in %d attempts, %d of them taken: %d duplicates", n, time.Since(begun).Round(time.Second),
		len(to.seen()), len(to.taken()), len(to.taken())-n)
	apitest.Eventually(t, "the ledger knows it", func() bool { return len(server.eventIDs("DELIVERED")) == n })
	taken := distinct(t, to.taken())
	for _, id := range server.eventIDs("DELIVERED") {
		if taken[id] == "" {
			t.Errorf("%s is said to be delivered, but did not arrive", id)
		}
	}
}

// wait waits for n distinct messages, as long as there is progress.
func wait(t *testing.T, to *receiver, n int) {
	t.Helper()
	last, since := 0, time.Now()
	for {
		have := len(distinct(t, to.taken()))
		if have >= n {
			return
		}
		if have > last {
			last, since = have, time.Now()
		}
		if time.Since(since) > 10*time.Minute {
			t.Fatalf("%d of %d messages arrived, and no more in ten minutes", have, n)
		}
		<-time.After(100 * time.Millisecond)
	}
}

// distinct returns message bodies by id and requires one body per id.
func distinct(t *testing.T, all []message) map[string]string {
	t.Helper()
	bodies := map[string]string{}
	for _, m := range all {
		if known, ok := bodies[m.id]; ok && known != m.body {
			t.Fatalf("two bodies with the id %s", m.id)
		}
		bodies[m.id] = m.body
	}
	return bodies
}

// failing is a receiver that blocks all requests. After a repair it fails half of them: at random, or up to two times
// per message.
type failing struct {
	random   bool
	repaired chan struct{}
	repair   func()
	mu       sync.Mutex
	asked    map[string]uint32
}

func newFailing(t testing.TB, random bool) *failing {
	f := &failing{random: random, repaired: make(chan struct{}), asked: map[string]uint32{}}
	f.repair = sync.OnceFunc(func() { close(f.repaired) })
	t.Cleanup(f.repair)
	return f
}

func (f *failing) answer(m message) int {
	<-f.repaired
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[m.id]++
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(m.id))
	if f.random && rand.Float64() < 0.5 || !f.random && f.asked[m.id] <= hash.Sum32()%3 {
		return http.StatusInternalServerError
	}
	return http.StatusOK
}
