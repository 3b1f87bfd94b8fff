package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/tenant"
	projectsv1 "github.com/palisade/palisade/gen/palisade/projects/v1"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/pgtest"
	"github.com/palisade/palisade/services/internal/server"
	"github.com/palisade/palisade/services/internal/testrun"
)

func init() {
	*server.WriteProbeInterval, *server.WriteProbeAgain = 300*time.Millisecond, 100*time.Millisecond
}

const outageToken = "sgp_outage4Kq2vXw7RbZ4mLd8sYh3nPc6JfGa"

// outage is a server with a failing database, and what callers of both ports see.
type outage struct {
	t    *testing.T
	s    *server.Server
	out  *apitest.Output
	conn *grpc.ClientConn

	good, failed map[string]*atomic.Int64 // by kind of call
	bad          sync.Map                 // responses that no caller may see
	stop         chan struct{}
	group        sync.WaitGroup
}

func newOutage(t *testing.T, database string) *outage {
	t.Helper()
	cfg := apitest.EmptyConfig(t)
	cfg.Database, cfg.BootstrapToken, cfg.RateLimit, cfg.KeyFile = database, outageToken, 0, filepath.Join(t.TempDir(), "palisade.key")
	s, out := apitest.StartConfigured(t, cfg)
	uploadTo(t, s, outageToken, "a.go")
	o := &outage{t: t, s: s, out: out, conn: dial(t, s.Addresses().GRPC), good: map[string]*atomic.Int64{}, failed: map[string]*atomic.Int64{}}
	for name := range o.calls() {
		o.good[name], o.failed[name] = &atomic.Int64{}, &atomic.Int64{}
	}
	return o
}

// calls read and write over both ports. Each returns "" for success, "503" for a refusal with a retry delay, or
// anything else that it got.
func (o *outage) calls() map[string]func(n int64) string {
	projects := projectsv1.NewProjectsServiceClient(o.conn)
	call := func(fn func(ctx context.Context) error) string {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return seenGRPC(fn(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+outageToken)))
	}
	const path = "/api/v1/deployments/default/projects/acme/a.go"
	return map[string]func(int64) string{
		"read over HTTP": func(int64) string { return o.do(http.MethodGet, "/api/v1/deployments/default/findings", "") },
		"write over HTTP": func(n int64) string {
			return o.do(http.MethodPatch, path, fmt.Sprintf(`{"tags":["h%d"]}`, n))
		},
		"read over gRPC": func(int64) string {
			return call(func(ctx context.Context) error {
				_, err := projects.ListProjects(ctx, &projectsv1.ListProjectsRequest{DeploymentSlug: "default"})
				return err
			})
		},
		"write over gRPC": func(n int64) string {
			return call(func(ctx context.Context) error {
				_, err := projects.UpdateProject(ctx, &projectsv1.UpdateProjectRequest{
					DeploymentSlug: "default", ProjectName: "acme/a.go", Tags: []string{"g" + strconv.FormatInt(n, 10)},
				})
				return err
			})
		},
	}
}

func (o *outage) do(method, path, body string) string {
	request, err := http.NewRequestWithContext(context.Background(), method, "http://"+o.s.Addresses().HTTP+path, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	request.Header.Set("Authorization", "Bearer "+outageToken)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	wait, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	switch {
	case err != nil:
		return err.Error()
	case response.StatusCode == http.StatusOK:
		return ""
	case response.StatusCode == http.StatusServiceUnavailable && wait > 0:
		return "503"
	}
	return fmt.Sprintf("%d, Retry-After %d: %s", response.StatusCode, wait, text)
}

func seenGRPC(err error) string {
	st, _ := status.FromError(err)
	if st.Code() == codes.OK {
		return ""
	}
	for _, d := range st.Details() {
		if retry, ok := d.(*errdetails.RetryInfo); ok && st.Code() == codes.Unavailable && retry.GetRetryDelay().AsDuration() > 0 {
			return "503"
		}
	}
	return err.Error()
}

// load makes calls in loops until end is called.
func (o *outage) load() (end func()) { return o.loadOf(func(string) bool { return true }) }

// loadOf makes some of the calls.
func (o *outage) loadOf(which func(name string) bool) (end func()) {
	o.stop = make(chan struct{})
	for name, call := range o.calls() {
		if !which(name) {
			continue
		}
		o.group.Go(func() {
			for n := int64(0); ; n++ {
				select {
				case <-o.stop:
					return
				case <-time.After(2 * time.Millisecond):
				}
				switch seen := call(n); seen {
				case "":
					o.good[name].Add(1)
				case "503":
					o.failed[name].Add(1)
				default:
					o.bad.Store(name+": "+seen, true)
				}
			}
		})
	}
	return func() {
		o.t.Helper()
		close(o.stop)
		o.group.Wait()
		for name := range o.good {
			o.t.Logf("%s: %d good, %d refused", name, o.good[name].Load(), o.failed[name].Load())
		}
		o.bad.Range(func(seen, _ any) bool { o.t.Errorf("a caller saw: %s", seen); return true })
	}
}

func (o *outage) wait(what string, ok func() bool) {
	o.t.Helper()
	// A busy machine needs a minute; calls are retried for seconds before they are refused.
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	o.t.Fatalf("not in 5 minutes: %s\n%s", what, o.out)
}

// ready returns the readiness on both ports, and the reason.
func (o *outage) ready() (ok bool, reason string) {
	o.t.Helper()
	code, body := apitest.Get(o.t, http.DefaultClient, "http://"+o.s.Addresses().HTTP+"/readyz", "")
	var states []bool
	for _, service := range []string{"", projectsv1.ProjectsService_ServiceDesc.ServiceName} {
		answer, err := healthv1.NewHealthClient(o.conn).Check(o.t.Context(), &healthv1.HealthCheckRequest{Service: service})
		states = append(states, err == nil && answer.GetStatus() == healthv1.HealthCheckResponse_SERVING)
	}
	if (code == http.StatusOK) != states[0] || states[0] != states[1] {
		return false, fmt.Sprintf("HTTP says %d, gRPC %v", code, states)
	}
	return code == http.StatusOK, body
}

func (o *outage) waitReady() {
	o.t.Helper()
	o.wait("the node is ready again", func() bool { ok, _ := o.ready(); return ok })
}

// entries counts the audit entries of project changes with this code.
func (o *outage) entries(code codes.Code) int {
	o.t.Helper()
	n, err := o.s.Store().Reader.AuditEntry.Query().Where(auditentry.Code(code.String()), auditentry.Method(projectsv1.ProjectsService_UpdateProject_FullMethodName)).
		Count(tenant.System(o.t.Context()))
	if err != nil {
		o.t.Fatal(err)
	}
	return n
}

// refusedOfKnown counts the changes that were refused after authentication. Earlier refusals leave no entry, because
// there is no actor.
func (o *outage) refusedOfKnown() (n int) {
	for line := range strings.SplitSeq(o.out.String(), "\n") {
		if strings.Contains(line, "code=Unavailable") && strings.Contains(line, " principal=") && strings.Contains(line, projectsv1.ProjectsService_UpdateProject_FullMethodName) {
			n++
		}
	}
	return n
}

func (o *outage) writes(of map[string]*atomic.Int64) int {
	return int(of["write over HTTP"].Load() + of["write over gRPC"].Load())
}

// While a database refuses writes, changes get 503, reads are answered, and the node is not ready. Afterwards the node
// is ready again and the entries of refused changes are written.
func TestReadOnlyDatabase(t *testing.T) {
	testrun.Deep(t) // fails databases over
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			var o *outage
			var set func(readOnly bool)
			if kind == "sqlite" {
				o = newOutage(t, "")
				set = func(readOnly bool) {
					_, writer := o.s.Store().DB()
					if _, err := writer.ExecContext(t.Context(), fmt.Sprintf("PRAGMA query_only = %t", readOnly)); err != nil {
						t.Fatal(err)
					}
				}
			} else {
				database := pgtest.NewDatabase(t)
				o = newOutage(t, database)
				set = func(readOnly bool) {
					apitest.OnDatabase(t, database, "SET default_transaction_read_only = off", "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = "+
						strconv.FormatBool(readOnly)+"', current_database()); END $$")
					if readOnly { // sessions keep their setting; the server itself replaces read-only ones
						apitest.OnDatabase(t, database, endSessions)
					}
				}
			}
			o.waitReady()
			end := o.load()
			o.wait("changes are made", func() bool { return o.writes(o.good) > 20 })
			set(true)
			o.wait("changes are refused", func() bool { return o.writes(o.failed) > 20 })
			var reason string
			o.wait("the node is not ready", func() (is bool) { is, reason = o.ready(); return !is && strings.Contains(reason, "read only") })
			if want := "the database accepts no writes: it is read only\n"; reason != want {
				t.Errorf("/readyz says %q, want %q", reason, want)
			}
			made, read := o.writes(o.good), o.good["read over HTTP"].Load()
			o.wait("what is read is answered", func() bool { return o.good["read over HTTP"].Load() > read+20 })
			if n := o.writes(o.good) - made; n != 0 {
				t.Errorf("%d changes were acknowledged by a database that takes none", n)
			}
			set(false)
			o.waitReady()
			o.wait("changes are made again", func() bool { return o.writes(o.good) > made+20 })
			end()
			// Each refused change has an entry in the database, written later.
			o.wait("the refused changes have their entries", func() bool { return o.entries(codes.Unavailable) >= min(o.refusedOfKnown(), 900) })
			if n := o.entries(codes.OK); n < o.writes(o.good) {
				t.Errorf("%d changes were acknowledged, %d have entries", o.writes(o.good), n)
			}
			for _, want := range []string{"this node is not ready until it does", "the database accepts writes again"} {
				if !strings.Contains(o.out.String(), want) {
					t.Errorf("the log does not say %q", want)
				}
			}
		})
	}
}

// TestRefusedWriteEndsReadiness: after the first refused change the node is not ready, without waiting for a probe, and
// it is ready again when a change works. What callers do wrong says nothing about the database.
func TestRefusedWriteEndsReadiness(t *testing.T) {
	o := newOutage(t, "")
	o.waitReady()
	set := func(readOnly bool) {
		_, writer := o.s.Store().DB()
		if _, err := writer.ExecContext(t.Context(), fmt.Sprintf("PRAGMA query_only = %t", readOnly)); err != nil {
			t.Fatal(err)
		}
	}
	calls := o.calls()
	for i, name := range []string{"write over HTTP", "write over gRPC"} {
		if got := o.do(http.MethodPatch, "/api/v1/deployments/default/projects/acme/none", `{"tags":["x"]}`); !strings.HasPrefix(got, "404") {
			t.Errorf("a change of a missing project: %s", got)
		}
		if ok, reason := o.ready(); !ok {
			t.Errorf("before: %s", reason)
		}
		set(true)
		if got := calls[name](int64(i)); got != "503" {
			t.Fatalf("%s: %s", name, got)
		}
		if ok, reason := o.ready(); ok || !strings.Contains(reason, "read only") {
			t.Errorf("after a refused %s: ready %v, %s", name, ok, reason)
		}
		set(false)
		o.waitReady()
		if got := calls[name](int64(i)); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// endSessions ends all sessions of a database except its own.
const endSessions = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"

// An administrator ends all sessions repeatedly, in the middle of requests. Failing requests get 503, and every
// acknowledged change is stored.
func TestEndedSessions(t *testing.T) {
	testrun.Deep(t) // fails databases over
	database := pgtest.NewDatabase(t)
	o := newOutage(t, database)
	end := o.load()
	for range 60 {
		apitest.OnDatabase(t, database, endSessions)
		time.Sleep(50 * time.Millisecond)
	}
	o.waitReady()
	end()
	o.afterCrashes()
}

// afterCrashes requires that some calls failed and others succeeded, and that each acknowledged change has its entry.
func (o *outage) afterCrashes() {
	o.t.Helper()
	if o.writes(o.failed) == 0 || o.writes(o.good) == 0 {
		o.t.Errorf("%d changes failed, %d did not: nothing is shown", o.writes(o.failed), o.writes(o.good))
	}
	if n := o.entries(codes.OK); n < o.writes(o.good) {
		o.t.Errorf("%d changes were acknowledged, %d have entries", o.writes(o.good), n)
	}
	for _, line := range slices.Compact(strings.Split(o.out.String(), "\n")) {
		if strings.Contains(line, "code=Internal") {
			o.t.Errorf("the log says %s", line)
		}
	}
}

// body returns the response of a call with any status.
func (o *outage) body(method, path, body string) string {
	o.t.Helper()
	request, err := http.NewRequestWithContext(o.t.Context(), method, "http://"+o.s.Addresses().HTTP+path, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+outageToken)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return string(text)
}

// newSwitch returns an address that forwards to a database, and a function that redirects new connections to another.
func newSwitch(t *testing.T, database string) (through string, to func(database string)) {
	t.Helper()
	parse := func(text string) *url.URL {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	var target atomic.Pointer[url.URL]
	target.Store(parse(database))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = from.Close() }()
				server, err := net.Dial("tcp", target.Load().Host)
				if err != nil {
					return
				}
				defer func() { _ = server.Close() }()
				go func() {
					_, _ = io.Copy(server, from) // until one side closes it
					_ = server.Close()
				}()
				_, _ = io.Copy(from, server)
			}()
		}
	}()
	changed := *parse(database)
	changed.Host = listener.Addr().String()
	return changed.String(), func(database string) { target.Store(parse(database)) }
}
