package services_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/palisade/palisade/ent/auditentry"
	"github.com/palisade/palisade/ent/tenant"
	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/spool"
	"github.com/palisade/palisade/services/internal/storetest"
	"github.com/palisade/palisade/services/internal/testrun"
)

const mebi = 1 << 20

// emptyReport is a report without results.
const emptyReport = `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t","rules":[]}},"results":[]}]}`

func reportsOf(slug string) string {
	return "/api/v1/deployments/" + slug + "/reports?project=acme/web&ref=main"
}

// blanks is a report of about size bytes that compresses to a thousandth.
func blanks(t testing.TB, size int) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := io.WriteString(w, strings.Repeat(" ", size)+emptyReport); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// spooled is the disk usage of uploads on a server.
func spooled(t testing.TB, s *apitest.Server) string {
	t.Helper()
	answer, err := http.Get("http://" + s.Addresses.Metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^palisade_spool_bytes (.*)$`).FindSubmatch(text)
	if found == nil {
		t.Fatal("no palisade_spool_bytes")
	}
	return string(found[1])
}

// Compressed reports count with their size on disk. Uploads of one deployment cannot exceed its quota, and do not
// affect others. When they have ended, nothing of them is left.
func TestUploadsHaveAQuotaOfDisk(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) {
			on(c)
			c.MaxUpload, c.SpoolQuota, c.SpoolQuotaDeployment = 8*mebi, 24*mebi, 16*mebi
		})
		other := s.AddTenant(t, "other")
		// Two uploads that stop before their ends: 7 MiB each are on disk.
		var group sync.WaitGroup
		var ends []*io.PipeWriter
		for range 2 {
			r, w := io.Pipe()
			ends = append(ends, w)
			group.Go(func() {
				if answer := s.Send(t, s.Token, http.MethodPost, reportsOf(s.Slug), r); answer.Status != http.StatusOK {
					t.Errorf("an upload within the quota: %d %s", answer.Status, answer.Body)
				}
			})
			if _, err := io.WriteString(w, strings.Repeat(" ", 7*mebi)); err != nil {
				t.Fatal(err)
			}
		}
		apitest.Eventually(t, "14 MiB are on disk", func() bool { return spooled(t, s) == "1.4680064e+07" })
		for range 6 {
			answer := s.Send(t, s.Token, http.MethodPost, reportsOf(s.Slug), bytes.NewReader(blanks(t, 7*mebi)))
			if answer.Status != http.StatusTooManyRequests || answer.Header.Get("Retry-After") != "10" || !strings.Contains(answer.Body, "16 MiB") ||
				!strings.Contains(answer.Body, "spool-quota-deployment") {
				t.Fatalf("beyond the quota: %d %v %s", answer.Status, answer.Header, answer.Body)
			}
		}
		stream, err := scansv1.NewReportUploadsServiceClient(s.Conn).UploadReport(s.Context(t, s.Token))
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.Send(&scansv1.UploadReportRequest{DeploymentSlug: s.Slug, Target: &scansv1.UploadReportTarget{Project: "acme/web", Ref: "main"},
			Chunk: blanks(t, 7*mebi)})
		if _, err = stream.CloseAndRecv(); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "spool-quota-deployment") {
			t.Errorf("over gRPC: %v", err)
		}
		if answer := s.Send(t, other.Token, http.MethodPost, reportsOf(other.Slug), bytes.NewReader(blanks(t, 7*mebi))); answer.Status != http.StatusOK {
			t.Errorf("another deployment: %d %s", answer.Status, answer.Body)
		}
		for _, w := range ends {
			_, _ = io.WriteString(w, emptyReport)
			_ = w.Close()
		}
		group.Wait()
		if answer := s.Send(t, s.Token, http.MethodPost, reportsOf(s.Slug), bytes.NewReader(blanks(t, 7*mebi))); answer.Status != http.StatusOK {
			t.Errorf("when there is room again: %d %s", answer.Status, answer.Body)
		}
		if got := spooled(t, s); got != "0" {
			t.Errorf("%s bytes are left", got)
		}
		left, err := os.ReadDir(filepath.Join(s.Config.Data, "spool"))
		if err != nil || len(left) != 0 {
			t.Errorf("%v %v", left, err)
		}
	})
}

// When the disk has less space than the reserve, uploads get 507, the refusal is in the audit trail, and probes report
// it.
func TestDiskReserve(t *testing.T) {
	apitest.EachDatabase(t, func(t *testing.T, on func(*config.Config)) {
		s := apitest.Start(t, func(c *config.Config) { on(c); c.DiskReserve = 1 << 60 })
		answer := s.Send(t, s.Token, http.MethodPost, reportsOf(s.Slug), strings.NewReader(emptyReport))
		if answer.Status != http.StatusInsufficientStorage || answer.Header.Get("Retry-After") != "60" || !strings.Contains(answer.Body, `"code":"STORAGE_FULL"`) ||
			!strings.Contains(answer.Body, `"status":"RESOURCE_EXHAUSTED"`) || !strings.Contains(answer.Body, "disk-reserve") {
			t.Errorf("%d %v %s", answer.Status, answer.Header, answer.Body)
		}
		stream, err := scansv1.NewReportUploadsServiceClient(s.Conn).UploadReport(s.Context(t, s.Token))
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.Send(&scansv1.UploadReportRequest{DeploymentSlug: s.Slug, Target: &scansv1.UploadReportTarget{Project: "acme/web", Ref: "main"},
			Chunk: []byte(emptyReport)})
		if _, err = stream.CloseAndRecv(); status.Code(err) != codes.ResourceExhausted || !apierr.Is(err, errorsv1.Reason_REASON_STORAGE_FULL) {
			t.Errorf("over gRPC: %v", err)
		}
		if n := refusedForRoom(t, s); n != 2 {
			t.Errorf("%d entries of refused uploads, want 2", n)
		}
		s.Get(t, "/api/v1/deployments/acme/projects")
		if answer := s.Do(t, "", http.MethodGet, "/readyz", ""); answer.Status != http.StatusServiceUnavailable || !strings.Contains(answer.Body, "the disk is full") {
			t.Errorf("/readyz: %d %s", answer.Status, answer.Body)
		}
		wantDoctor(t, s.Config, "the disk is full")
	})
}

func wantDoctor(t *testing.T, cfg config.Config, problem string) {
	t.Helper()
	for _, check := range services.Doctor(t.Context(), cfg) {
		if check.Name == "disk" && (check.OK != (problem == "") || !strings.Contains(check.Detail, problem)) {
			t.Errorf("doctor: %+v, want %q", check, problem)
		}
	}
}

// refusedForRoom counts the audit entries of calls that were refused for lack of space.
func refusedForRoom(t *testing.T, s *apitest.Server) int {
	t.Helper()
	n, err := s.Store.Reader.AuditEntry.Query().Where(auditentry.Code(codes.ResourceExhausted.String())).
		Count(tenant.NewContext(t.Context(), s.DeploymentID))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// On a disk that is completely full nothing returns 500 and reads continue. When there is space again, everything works
// and the audit trail has the refused calls.
func TestFullDisk(t *testing.T) {
	testrun.Deep(t) // fills a disk
	dir := storetest.SmallDisk(t, 96*mebi)
	s := apitest.Start(t, func(c *config.Config) {
		c.Data, c.DiskReserve, c.LogLevel = dir, 16*mebi, "error"
	})
	s.Upload(t, "acme/web", "main", []byte(emptyReport))
	ready := func(want int, text string) {
		t.Helper()
		if answer := s.Do(t, "", http.MethodGet, "/readyz", ""); answer.Status != want || !strings.Contains(answer.Body, text) {
			t.Errorf("/readyz: %d %q, want %d %q", answer.Status, answer.Body, want, text)
		}
	}
	ready(http.StatusOK, "ok\n")

	// Uploads stop at the reserve.
	var group sync.WaitGroup
	report := blanks(t, 60*mebi)
	for range 6 {
		group.Go(func() {
			answer := s.Send(t, s.Token, http.MethodPost, reportsOf(s.Slug), bytes.NewReader(report))
			if answer.Status != http.StatusRequestEntityTooLarge && answer.Status != http.StatusInsufficientStorage { // 413: that many blanks are not a report
				t.Errorf("one of six large uploads: %d %s", answer.Status, answer.Body)
			}
		})
	}
	tag := func(i int) apitest.Answer {
		return s.Do(t, s.Token, http.MethodPut, "/api/v1/deployments/acme/projects/acme%2Fweb/tags", fmt.Sprintf(`{"tags":["t%d"]}`, i))
	}
	for i := range 50 {
		if answer := tag(i); answer.Status != http.StatusOK {
			t.Fatalf("a write beside uploads: %d %s", answer.Status, answer.Body)
		}
	}
	group.Wait()
	ready(http.StatusOK, "ok\n")
	before := refusedForRoom(t, s)

	// Another process fills the disk.
	fill := filepath.Join(dir, "fill")
	if err := os.WriteFile(fill, make([]byte, 96*mebi), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	refused := 0
	for i := range 1500 {
		switch answer := tag(i); answer.Status {
		case http.StatusOK: // the journal still had space
		case http.StatusInsufficientStorage:
			refused++
		default:
			t.Fatalf("a write on a full disk: %d %s", answer.Status, answer.Body)
		}
		if refused == 20 {
			break
		}
	}
	if refused != 20 {
		t.Fatalf("%d writes were refused", refused)
	}
	if answer := s.Send(t, s.Token, http.MethodPost, reportsOf(s.Slug), strings.NewReader(emptyReport)); answer.Status != http.StatusInsufficientStorage {
		t.Errorf("an upload on a full disk: %d %s", answer.Status, answer.Body)
	}
	s.Get(t, "/api/v1/deployments/acme/projects")
	ready(http.StatusServiceUnavailable, "the disk is full")
	wantDoctor(t, s.Config, "the disk is full")

	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "the next probe finds room", func() bool { return s.Do(t, "", http.MethodGet, "/readyz", "").Status == http.StatusOK })
	wantDoctor(t, s.Config, "")
	if answer := tag(-1); answer.Status != http.StatusOK {
		t.Errorf("a write when there is room again: %d %s", answer.Status, answer.Body)
	}
	s.Upload(t, "acme/web", "main", []byte(emptyReport))
	apitest.Eventually(t, "the audit trail has what was refused", func() bool { return refusedForRoom(t, s) == before+21 })
}

// denseReport is a report whose import writes several times its size to the database.
func denseReport(results int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"t"}},"results":[`)
	for n := range results {
		if n > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"ruleId":"r%d","message":{"text":"Found '%[1]d' in the code."},"locations":[{"physicalLocation":`+
			`{"artifactLocation":{"uri":"src/%[2]d/file.js"},"region":{"startLine":%[2]d,"snippet":{"text":"value = get(%[2]d);"}}}}]}`, n%20, n)
	}
	b.WriteString(`]}]}`)
	return b.Bytes()
}

// Parallel uploads leave the reserve, whatever their imports write. When another process fills the disk anyway, deletes
// get the room that is kept for them, and the server starts.
func TestParallelUploadsLeaveTheReserve(t *testing.T) {
	testrun.Deep(t) // fills a disk
	const reserve = 32 * mebi
	dir := storetest.SmallDisk(t, 160*mebi)
	disk := spool.Disk{Dirs: []string{dir}}
	start := func() *apitest.Server {
		return apitest.Start(t, func(c *config.Config) { c.Data, c.DiskReserve = dir, reserve })
	}
	s := start()
	report := denseReport(12_000)
	var group sync.WaitGroup
	var stored atomic.Int64
	for uploader := range 8 {
		group.Go(func() {
			for round := range 4 {
				path := fmt.Sprintf("/api/v1/deployments/acme/reports?project=acme/p%d-%d&ref=main", uploader, round)
				switch answer, err := s.Exchange(t.Context(), s.Token, http.MethodPost, path, bytes.NewReader(report)); {
				case err != nil:
					t.Logf("ended without an answer: %v", err)
				case answer.Status == http.StatusOK:
					stored.Add(1)
				case answer.Status != http.StatusInsufficientStorage:
					t.Errorf("one of many uploads: %d %s", answer.Status, answer.Body)
				}
			}
		})
	}
	group.Wait()
	if stored.Load() == 0 {
		t.Error("no report was stored")
	}
	apitest.Eventually(t, "the log is moved into the file", func() bool { return s.Do(t, "", http.MethodGet, "/readyz", "").Body == "ok\n" })
	if free, _ := disk.Free(); free < reserve {
		t.Errorf("%d bytes are free after %d uploads of %d bytes, want %d", free, stored.Load(), len(report), reserve)
	}

	fill := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 160*mebi), 0o600); err == nil {
			t.Fatal("the disk is not full")
		}
	}
	fill("fill")
	remove := func() {
		t.Helper()
		projects := s.Store.Reader.Project.Query().AllX(s.System(t))
		if len(projects) == 0 {
			t.Fatal("no projects")
		}
		path := "/api/v1/deployments/acme/projects/" + url.PathEscape(projects[0].Name)
		if answer := s.Do(t, s.Token, http.MethodDelete, path, ""); answer.Status != http.StatusOK {
			t.Errorf("a delete on a full disk: %d %s", answer.Status, answer.Body)
		}
	}
	remove()
	s.Stop(t)
	fill("fill again")
	s = start()
	s.Get(t, "/api/v1/deployments/acme/projects")
	for _, name := range []string{"fill", "fill again"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	apitest.Eventually(t, "the node is ready", func() bool { return s.Do(t, "", http.MethodGet, "/readyz", "").Status == http.StatusOK })
	s.Upload(t, "acme/web", "main", []byte(emptyReport))
}

// Slow uploads of one token fill the queue of its deployment only as long as the minimum rate permits.
func TestTricklingUploadsAreEnded(t *testing.T) {
	testrun.Deep(t) // waits for deadlines
	s := apitest.Start(t, func(c *config.Config) {
		c.Uploads, c.UploadsPerDeployment, c.UploadQueue = 2, 1, 32
		c.UploadMinRate, c.UploadMinRateWindow = 1<<10, 5*time.Second
	})
	const senders, places = 40, 33 // the last senders find the queue full
	ended := make(chan endedUpload, senders)
	trickle, stop := make(chan struct{}), make(chan struct{})
	defer close(stop)
	for range senders {
		r, w := io.Pipe()
		go func() {
			answer, err := s.Exchange(t.Context(), s.Token, http.MethodPost, reportsOf(s.Slug), r)
			ended <- endedUpload{answer, err}
		}()
		go sendSlowly(w, trickle, stop)
	}
	whole := func() apitest.Answer {
		return s.Send(t, s.Token, http.MethodPost, reportsOf(s.Slug), strings.NewReader(emptyReport))
	}
	for range senders - places { // the others hold all places
		if one := apitest.Receive(t, "an upload beyond the queue ends", ended); one.err == nil && one.Status != http.StatusTooManyRequests {
			t.Fatalf("an upload beyond the queue: %d %s", one.Status, one.Body)
		}
	}
	if answer := whole(); answer.Status != http.StatusTooManyRequests {
		t.Errorf("while the queue is full: %d %s", answer.Status, answer.Body)
	}
	close(trickle)
	told := 0
	for range places {
		switch one := apitest.Receive(t, "an upload that trickles is ended", ended); {
		case one.err != nil:
			t.Logf("ended without an answer: %v", one.err)
		case one.Status == http.StatusRequestTimeout && strings.Contains(one.Body, "upload-min-rate"):
			told++
		default:
			t.Errorf("a trickling upload: %d %s", one.Status, one.Body)
		}
	}
	if told == 0 {
		t.Errorf("none of %d uploads was told why it was ended", places)
	}
	apitest.Eventually(t, "their places are free", func() bool { return whole().Status == http.StatusOK })
}

// endedUpload is the end of an upload. An error is one, too: a server that answers before it has read everything
// closes the connection, which may hide the answer from a client that still sends.
type endedUpload struct {
	apitest.Answer
	err error
}

// sendSlowly sends an upload that never ends: much faster than the minimum rate of a test, until trickle is closed, and
// then much slower.
func sendSlowly(w *io.PipeWriter, trickle, stop <-chan struct{}) {
	part := strings.Repeat(" ", 4<<10)
	for _, err := io.WriteString(w, part); err == nil; _, err = io.WriteString(w, part) {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-stop:
			_ = w.CloseWithError(io.ErrUnexpectedEOF)
		}
		select {
		case <-trickle:
			part = " "
		default:
		}
	}
}
