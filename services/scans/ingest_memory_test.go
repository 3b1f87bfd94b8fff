package scans_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// generated is a SARIF report of about size bytes, written while it is read. It has results of 50 rules in 20,000
// files, all different.
func generated(size int64) io.ReadCloser {
	reader, writer := io.Pipe()
	go func() {
		out := bufio.NewWriterSize(writer, 64<<10)
		_, _ = out.WriteString(`{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"lint","rules":[{"id":"r-0"}]}},"results":[`)
		filler := strings.Repeat("the value comes from an untrusted request and reaches a query without being checked; ", 8)
		written := int64(0)
		for n := 0; written < size; n++ {
			if n > 0 {
				_ = out.WriteByte(',')
			}
			k, err := fmt.Fprintf(out, `{"ruleId":"r-%d","message":{"text":"%s"},"locations":[{"physicalLocation":{"artifactLocation":{"uri":"src/dir%d/file%d.go"},
				"region":{"startLine":%d,"endLine":%d,"snippet":{"text":"rows, err := db.Query(\"select %s\" + name%d)"}}}}]}`,
				n%50, filler, n%200, n%20_000, n%3000+1, n%3000+2, filler[:100], n)
			if err != nil { // the server closed the connection: its answer says why
				break
			}
			written += int64(k)
		}
		_, _ = out.WriteString(`]}]}`)
		_ = writer.CloseWithError(out.Flush())
	}()
	return reader
}

// TestUploadMemory sends 48 MB twice. With PALISADE_TEST_SARIF=1024 (MB) it sends the largest report that is allowed,
// which takes minutes and several times the space on disk. Neither the first nor the second import may exceed the
// memory limit.
func TestUploadMemory(t *testing.T) {
	testrun.Deep(t) // measures memory
	megabytes := 48
	if text := os.Getenv("PALISADE_TEST_SARIF"); text != "" {
		var err error
		if megabytes, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	} else if testing.Short() {
		t.Skip("imports 48 MB twice")
	}
	s := apitest.Start(t, nil)
	// Measure the live heap, without the garbage that the collector has not freed yet.
	defer debug.SetGCPercent(debug.SetGCPercent(20))
	for _, what := range []string{"created", "unchanged"} {
		highest := watchHeap(t)
		// Less than the limit of a gigabyte, to leave room for the rest of the report.
		answer := s.Send(t, s.Token, http.MethodPost, "/api/v1/deployments/"+s.Slug+"/reports?project=acme/large&ref=main", generated(int64(megabytes)<<20-4096))
		if answer.Status != http.StatusOK {
			t.Fatalf("%d %s", answer.Status, answer.Body)
		}
		counts := map[string]any{}
		if err := json.Unmarshal([]byte(answer.Body), &counts); err != nil {
			t.Fatal(err)
		}
		results, _ := counts[what].(float64)
		if results < float64(megabytes)*700 {
			t.Errorf("%v %s of %d MB", counts[what], what, megabytes)
		}
		grown := highest()
		// 100 MB for buffers and garbage, and a hundred bytes for each result.
		if bound := 100<<20 + uint64(results)*100; grown > bound {
			t.Errorf("%s: the heap grew by %d MB for %.0f results, want at most %d", what, grown>>20, results, bound>>20)
		}
		t.Logf("%.0f results %s: heap +%d MB, %s", results, what, grown>>20, residentPeak())
	}
}

// watchHeap samples the heap until the returned function is called, which returns by how much the heap had grown.
func watchHeap(t *testing.T) func() uint64 {
	runtime.GC()
	inUse := func() uint64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64() + sample[1].Value.Uint64()
	}
	before := inUse()
	highest, stop, stopped := before, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				highest = max(highest, inUse())
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-stopped
		return highest - before
	}
}

// residentPeak is the peak resident memory of the process, if the system reports it.
func residentPeak() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "peak unknown"
	}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmHWM:") {
			return "peak of the process " + strings.TrimSpace(strings.TrimPrefix(line, "VmHWM:"))
		}
	}
	return "peak unknown"
}
