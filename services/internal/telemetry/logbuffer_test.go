package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// disk collects what is written and counts the writes. err is the result of a write.
type disk struct {
	mu     sync.Mutex
	text   bytes.Buffer
	writes int
	err    error
}

func (d *disk) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes++
	if d.err != nil {
		return 0, d.err
	}
	return d.text.Write(p)
}

// written returns the messages in order, and the number of writes.
func (d *disk) written() (messages string, writes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []string
	for line := range strings.Lines(d.text.String()) {
		_, message, _ := strings.Cut(strings.TrimSpace(line), "msg=")
		list = append(list, message)
	}
	return strings.Join(list, " "), d.writes
}

func newBufferedLogger(t *testing.T) (*slog.Logger, *LogBuffer, *disk) {
	t.Helper()
	out := &disk{}
	lines := NewLogBuffer(out)
	log, err := NewLogger(lines, "text", "info")
	if err != nil {
		t.Fatal(err)
	}
	return log, lines, out
}

func TestLogBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, lines, out := newBufferedLogger(t)
		want := func(messages string, writes int) {
			t.Helper()
			synctest.Wait()
			if got, n := out.written(); got != messages || n != writes {
				t.Errorf("got %q in %d writes, want %q in %d", got, n, messages, writes)
			}
		}
		log.Info("a")
		want("a", 1)

		lines.StartBuffering()
		log.Info("b")
		log.WithGroup("g").Info("c")
		want("a", 1)
		time.Sleep(maxBufferTime)
		want("a b c", 2)

		log.Info("d")
		log.Warn("e")
		want("a b c d e", 3)
		log.With().Error("f")
		want("a b c d e f", 4)
		time.Sleep(time.Hour)
		want("a b c d e f", 4)

		log.Info("g")
		if err := lines.StopBuffering(); err != nil {
			t.Error(err)
		}
		want("a b c d e f g", 5)
		log.Info("h")
		want("a b c d e f g h", 6)
	})
}

func TestLogBufferWritesWholeLines(t *testing.T) {
	const writers, each = 8, 500
	log, lines, out := newBufferedLogger(t)
	lines.StartBuffering()
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				log.Info(fmt.Sprintf("%d.%d", w, i), "filling", strings.Repeat("x", 200))
			}
		})
	}
	group.Wait()
	if err := lines.StopBuffering(); err != nil {
		t.Error(err)
	}
	got := map[string]bool{}
	for line := range strings.Lines(out.text.String()) {
		_, message, _ := strings.Cut(line, "msg=")
		message, filling, _ := strings.Cut(message, " filling=")
		got[message] = len(strings.TrimSpace(filling)) == 200
	}
	for w := range writers {
		for i := range each {
			if !got[fmt.Sprintf("%d.%d", w, i)] {
				t.Fatalf("line %d of writer %d is missing or broken", i, w)
			}
		}
	}
	if len(got) != writers*each || out.writes >= writers*each {
		t.Errorf("%d lines in %d writes", len(got), out.writes)
	}
}

// While a disk is full, only the lines of that time are lost.
func TestLogBufferGoesOnAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, lines, out := newBufferedLogger(t)
		lines.StartBuffering()
		out.err = errors.New("no space left on device")
		log.Error("lost")
		log.Info("lost, too")
		if err := lines.Flush(); !errors.Is(err, out.err) {
			t.Errorf("got %v", err)
		}
		out.err = nil
		log.Warn("written")
		if got, _ := out.written(); got != "written" {
			t.Errorf("got %q", got)
		}
	})
}
