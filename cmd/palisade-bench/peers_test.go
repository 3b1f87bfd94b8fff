package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// The plain program and the plain reader list the same findings as the server, and take the same report twice.
// PocketBase is built from the network: the comparison itself checks that it lists the same, too.
func TestPlainPeers(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	b, err := newBench(t.Context(), options{findings: minFindings, rounds: 1, cpu: time.Millisecond, results: 50}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	p := &peers{bench: b, o: peersOptions{findings: minFindings, rounds: 1, cpu: time.Millisecond}}
	defer func() {
		if err := p.stopAll(); err != nil {
			t.Error(err)
		}
		if err := b.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := p.prepareOurs(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.startReference(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	p.all = []*peer{p.palisade, p.plain}
	if err := p.checkSame(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, one := range p.deepTargets() {
		if err := errors.Join(one.calibrate(t.Context(), p.cpu), one.round(t.Context())); err != nil {
			t.Fatal(err)
		}
		if len(one.cpu) != 1 {
			t.Errorf("%s: %v", one.what, one.cpu)
		}
	}
	checkWalks(t, p)
	if err := p.measureInserts(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkLog(t, filepath.Join(b.settings.Data, logFile))
	if len(p.plain.inserted) != 1 || len(p.plain.again) != 1 || len(p.palisade.again) != 1 {
		t.Errorf("got %+v and %+v", p.plain, p.palisade)
	}
}

// checkWalks makes sure that each walk reads a list of its own, page after page, and begins again at the end.
func checkWalks(t *testing.T, p *peers) {
	t.Helper()
	w := newWalks(p.palisade.many, p.deepNumber, p.lastNumber)
	if err := w.lay(t.Context()); err != nil {
		t.Fatal(err)
	}
	pages := w.last - w.first + 1
	for range manyConnections * (pages + 3) {
		if err := w.step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range manyConnections {
		if one := <-w.resting; one.since != i+1 || one.page != w.first+3%pages {
			t.Errorf("walk %d of pages %d to %d is at page %d of list %d", i, w.first, w.last, one.page, one.since)
		}
	}
}

// checkLog makes sure that the server that is measured logs its calls.
func checkLog(t *testing.T, file string) {
	t.Helper()
	log, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(log, []byte("level=INFO msg=call ")) {
		t.Errorf("no call in the log (%v):\n%s", err, log)
	}
}

func TestPocketBaseBatchIsTheReport(t *testing.T) {
	report, err := makeReport(3, 20)
	if err != nil {
		t.Fatal(err)
	}
	for again, method := range map[bool]string{false: "POST", true: "PUT"} {
		body, err := pocketBaseBatch(report, 7, again)
		if err != nil {
			t.Fatal(err)
		}
		var batch struct {
			Requests []struct {
				Method string
				Body   struct{ ID, Project string }
			}
		}
		if err := json.Unmarshal(body, &batch); err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, r := range batch.Requests {
			if r.Method != method || len(r.Body.ID) != 15 || r.Body.Project != "bench/peer-"+strconv.Itoa(7) {
				t.Errorf("got %+v", r)
			}
			seen[r.Body.ID] = true
		}
		if len(seen) != 20 {
			t.Errorf("got %d records, want 20", len(seen))
		}
	}
}
