// Package pace detects uploads that are too slow. A slow upload holds a slot and disk space that others wait for.
package pace

import (
	"time"

	"github.com/dustin/go-humanize"
	"google.golang.org/grpc/codes"

	errorsv1 "github.com/palisade/palisade/gen/palisade/errors/v1"
	"github.com/palisade/palisade/services/internal/apierr"
)

// Rule is the minimum average rate of an upload. In each window of waiting for the sender, Rate bytes must arrive for
// each second of the window. The receiver's processing time does not count.
type Rule struct {
	// Rate is in bytes per second. 0 means no minimum.
	Rate int64
	// Window is how much waiting time passes between two checks.
	Window time.Duration
}

// ForMessages adapts the rule to uploads that are measured in whole messages of up to size bytes: they get the time for
// one more message.
func (r Rule) ForMessages(size int64) Rule {
	if r.Rate > 0 {
		r.Window += time.Duration(float64(size) / float64(r.Rate) * float64(time.Second))
	}
	return r
}

// Error is the error for the sender.
func (r Rule) Error() error {
	text := "the upload was too slow: less than " + humanize.IBytes(uint64(r.Rate)) + " a second (upload-min-rate) over " +
		r.Window.Round(time.Second).String() + ": send it over a faster connection, compressed or in parts"
	return apierr.New(codes.DeadlineExceeded, errorsv1.Reason_REASON_DEADLINE_EXCEEDED, text)
}

// Meter measures one upload. It is not safe for concurrent use.
type Meter struct {
	rule   Rule
	got    int64
	waited time.Duration
}

// Meter returns a new meter for one upload.
func (r Rule) Meter() *Meter { return &Meter{rule: r} }

// Left is the longest permitted wait for the next bytes. false means no limit.
func (m *Meter) Left() (time.Duration, bool) { return m.rule.Window - m.waited, m.rule.Rate > 0 }

// Add records n bytes that arrived after a wait. A window ends when all its bytes have arrived.
func (m *Meter) Add(n int, waited time.Duration) {
	m.got, m.waited = m.got+int64(n), m.waited+waited
	if float64(m.got) >= float64(m.rule.Rate)*m.rule.Window.Seconds() {
		m.got, m.waited = 0, 0
	}
}

// Slow reports that a window is over and had too few bytes.
func (m *Meter) Slow() bool { return m.rule.Rate > 0 && m.waited >= m.rule.Window }
