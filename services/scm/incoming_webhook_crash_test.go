package scm_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/palisade/palisade/ent/findingevent"
	"github.com/palisade/palisade/ent/webhookevent"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/internal/testrun"
	"github.com/palisade/palisade/services/scm/host/hosttest"
)

const crashToken = "sgp_crash4Kq2vXw7RbZ4mLd8sYh3nPc6JfGa5TeUo1W"

// startProcess runs a server in its own process, and returns its address and a function that sends SIGKILL.
func startProcess(t testing.TB, binary string, o store.Options) (url string, kill func()) {
	t.Helper()
	address := apitest.FreeAddress(t)
	cmd := exec.Command(binary, "serve", "--http", address, "--grpc", apitest.FreeAddress(t), "--metrics", apitest.FreeAddress(t))
	cmd.Env = append(os.Environ(), "PALISADE_BOOTSTRAP_TOKEN="+crashToken, "PALISADE_DEPLOYMENT=acme", "PALISADE_EGRESS_ALLOW=127.0.0.1",
		"PALISADE_PUBLIC_URL=https://palisade.acme.test", "PALISADE_LOG_LEVEL=warn", "PALISADE_DATA="+o.DataDir, "PALISADE_DATABASE="+o.Database)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			t.Logf("log of the server:\n%s", log.String())
		}
	})
	t.Cleanup(kill)
	apitest.Eventually(t, "the server answers", func() bool {
		response, err := http.Get("http://" + address + "/api/v1/ping")
		if err == nil {
			_ = response.Body.Close()
		}
		return err == nil && response.StatusCode == http.StatusOK
	})
	return "http://" + address, kill
}

// TestKilledReceiver kills a server while it receives and processes events. Acknowledged events are processed after the
// next start, once.
func TestKilledReceiver(t *testing.T) {
	testrun.Deep(t) // kills processes
	binary, err := testrun.Program(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	storetest.Each(t, func(t *testing.T, o store.Options) {
		if o.DataDir == "" {
			o.DataDir = t.TempDir()
		}
		killAndLook(t, binary, o)
	})
}

func killAndLook(t *testing.T, binary string, o store.Options) {
	const requests, events = 40, 600
	url, kill := startProcess(t, binary, o)
	st, err := store.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	s := configCaller{Server: &apitest.Server{URL: url, Store: st, Tenant: apitest.Tenant{Slug: "acme", DeploymentID: 1, Token: crashToken}}}
	s.Config.PublicURL = "https://palisade.acme.test"
	h := hosttest.NewGitHub(t)
	s.create(t, "SCM_TYPE_GITHUB_ENTERPRISE", h.URL, "acme", h.Token, `,"subscribe":true`)
	r := s.receiverOf(t, h.Hooks()[0])
	for i := range requests {
		s.Upload(t, "acme/web", fmt.Sprintf("refs/pull/%d/merge", 100+i*events/requests), sarifOf(t, 42))
	}
	bodies := make([]string, events)
	for i := range bodies {
		bodies[i] = event(t, "github_pull_request", `"number": 17`, fmt.Sprintf(`"number": %d`, 100+i))
	}
	answered := r.untilKilled(bodies, kill)
	waiting := st.Reader.WebhookEvent.Query().Where(webhookevent.DueAtNotNil()).CountX(s.System(t))
	t.Logf("killed when %d events were answered and %d waited", len(answered), waiting)
	storetest.EndLeases(t, st)

	r.URL, _ = startProcess(t, binary, o)
	s.settle(t)
	for i, body := range bodies {
		status, err := r.post(http.DefaultClient, "pull_request", body, digest(r.secret, body))
		if err != nil || status != http.StatusOK {
			t.Fatalf("event %d after the start: %d, %v", i, status, err)
		}
	}
	s.settle(t)
	if n := st.Reader.WebhookEvent.Query().CountX(s.System(t)); n != events {
		t.Errorf("%d events are stored, want %d", n, events)
	}
	if n := st.Reader.FindingEvent.Query().Where(findingevent.ActorKind("host")).CountX(s.System(t)); n != requests {
		t.Errorf("%d findings were removed, want %d", n, requests)
	}
	for i := range answered {
		number := fmt.Sprintf("#%d", 100+i)
		if !st.Reader.WebhookEvent.Query().Where(webhookevent.SubjectHasSuffix(number), webhookevent.Failed(false), webhookevent.DueAtIsNil()).ExistX(s.System(t)) {
			t.Errorf("event %d was answered, and lost", i)
		}
	}
}

// untilKilled sends events and kills the server when half of them are acknowledged. It returns the numbers of the
// acknowledged ones.
func (r receiver) untilKilled(bodies []string, kill func()) map[int]bool {
	var next atomic.Int64
	var senders sync.WaitGroup
	var mu sync.Mutex
	answered := map[int]bool{}
	for range 8 {
		senders.Go(func() {
			for i := int(next.Add(1) - 1); i < len(bodies); i = int(next.Add(1) - 1) {
				status, err := r.post(http.DefaultClient, "pull_request", bodies[i], digest(r.secret, bodies[i]))
				if err != nil || status != http.StatusOK {
					continue
				}
				mu.Lock()
				answered[i] = true
				half := len(answered) == len(bodies)/2
				mu.Unlock()
				if half {
					kill()
				}
			}
		})
	}
	senders.Wait()
	return answered
}
