// Package pace tells uploads that come too slowly from others: one that trickles holds a place, and disk, that others
// wait for.
package pace

import (
	"time"

	"github.com/dustin/go-humanize"
	"google.golang.org/grpc/codes"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/apierr"
)

// Rule is the least average rate: in each window of waiting for a sender, Rate bytes must come for each second of it.
// What the receiver does between is not the sender's fault, and does not count.
type Rule struct {
	// Rate is in bytes a second; 0 means any.
	Rate int64
	// Window is how long nothing is said.
	Window time.Duration
}

// ForMessages is the rule for those who are seen only in messages of up to size bytes: they get the time for one more.
func (r Rule) ForMessages(size int64) Rule {
	if r.Rate > 0 {
		r.Window += time.Duration(float64(size) / float64(r.Rate) * float64(time.Second))
	}
	return r
}

// Error is what the sender is told.
func (r Rule) Error() error {
	text := "the upload came too slowly: less than " + humanize.IBytes(uint64(r.Rate)) + " a second (upload-min-rate) over " +
		r.Window.Round(time.Second).String() + ": send it over a faster connection, compressed or in parts"
	return apierr.New(codes.DeadlineExceeded, errorsv1.Reason_REASON_DEADLINE_EXCEEDED, text)
}

// Meter measures one upload. It is not safe for concurrent use.
type Meter struct {
	rule   Rule
	got    int64
	waited time.Duration
}

// Meter begins to measure.
func (r Rule) Meter() *Meter { return &Meter{rule: r} }

// Left is how long may be waited for the next bytes; false means for ever.
func (m *Meter) Left() (time.Duration, bool) { return m.rule.Window - m.waited, m.rule.Rate > 0 }

// Add notes that n bytes came after a wait. A window ends when it has all its bytes.
func (m *Meter) Add(n int, waited time.Duration) {
	m.got, m.waited = m.got+int64(n), m.waited+waited
	if float64(m.got) >= float64(m.rule.Rate)*m.rule.Window.Seconds() {
		m.got, m.waited = 0, 0
	}
}

// Slow reports that a window is over and had too few bytes.
func (m *Meter) Slow() bool { return m.rule.Rate > 0 && m.waited >= m.rule.Window }
