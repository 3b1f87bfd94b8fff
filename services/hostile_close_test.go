package services

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/egress"
	"github.com/palisade/palisade/services/internal/egress/egresstest"
	"github.com/palisade/palisade/services/internal/testrun"
)

// A job sends the anchors of the audit trail, and no receiver may block it. Over HTTP the status decides, over syslog
// that everything was sent.
func TestAuditAnchorsAgainstHostileReceivers(t *testing.T) {
	testrun.Deep(t) // waits for deadlines
	const budget = 3 * time.Second
	egresstest.Shorten(t, budget)
	guard, err := egress.New(egress.Config{Allow: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	// More than the buffers of a connection on this machine hold.
	lines := make([][]byte, 64)
	for i := range lines {
		lines[i] = []byte(strings.Repeat("x", 1<<20))
	}
	for _, scheme := range []string{"http", "https", "syslog"} {
		for _, mode := range egresstest.Modes {
			if scheme == "https" && mode != egresstest.Silent {
				continue // the receiver has no certificate
			}
			t.Run(scheme+"/"+string(mode), func(t *testing.T) {
				t.Parallel()
				r := egresstest.Start(t, mode, egresstest.Options{})
				to := url.URL{Scheme: scheme, Host: r.Address}
				err := egresstest.Within(t, budget, func() error { return sendAnchors(t.Context(), to.String(), guard, lines) })
				inBody := mode == egresstest.SlowBody || mode == egresstest.EndlessBody || mode == egresstest.Reset
				if want := scheme != "syslog" && !inBody || mode == egresstest.Unread; want && err == nil {
					t.Error("anchors that no receiver accepted count as sent")
				}
				r.RequireClosed(t)
			})
		}
	}
}
