package pace_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/palisade/palisade/services/internal/apierr"
	"github.com/palisade/palisade/services/internal/pace"
)

func TestPace(t *testing.T) {
	rule := pace.Rule{Rate: 100, Window: 10 * time.Second}
	m := rule.Meter()
	for range 50 { // at the minimum rate, forever
		m.Add(100, time.Second)
		if m.Slow() {
			t.Fatal("what comes fast enough is slow")
		}
	}
	m.Add(1_000_000, time.Second) // saves nothing for later windows
	if left, limited := m.Left(); !limited || left != 10*time.Second {
		t.Errorf("%v %t", left, limited)
	}
	m.Add(999, 6*time.Second)
	if left, _ := m.Left(); m.Slow() || left != 4*time.Second {
		t.Errorf("slow after %v", left)
	}
	m.Add(0, 4*time.Second)
	if !m.Slow() {
		t.Error("999 bytes in 10 s are fast enough")
	}
	if _, limited := (pace.Rule{Window: time.Second}).Meter().Left(); limited {
		t.Error("without a rate there is a limit")
	}
	if got := rule.ForMessages(500).Window; got != 15*time.Second {
		t.Errorf("got %v", got)
	}
	if err := rule.Error(); apierr.HTTPStatus(err) != http.StatusGatewayTimeout || !strings.Contains(err.Error(), "less than 100 B a second (upload-min-rate) over 10s") {
		t.Errorf("%v", err)
	}
}
