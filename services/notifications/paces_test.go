package notifications

import (
	"fmt"
	"testing"
	"time"
)

// One URL gets one message at a time, and the next a second after its end. Others do not wait for it.
func TestPaces(t *testing.T) {
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	p, one, two := paces{}, paceOf("https://hooks.slack.com/services/T0/B0/x"), paceOf("https://hooks.slack.com/services/T0/B0/y")
	want := func(of pace, free bool) {
		t.Helper()
		if p.free(of, now) != free {
			t.Errorf("free is %v after %s", !free, now.Sub(time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)))
		}
	}
	want(one, true)
	p.begin(one, now)
	now = now.Add(5 * time.Second) // it is still on its way
	want(one, false)
	want(two, true)
	want(pace{}, true)
	p.end(one, now)
	now = now.Add(999 * time.Millisecond)
	want(one, false)
	now = now.Add(time.Millisecond)
	want(one, true)
	p.begin(one, now)
	now = now.Add(maxPace) // its end was not reported
	want(one, true)
	p.begin(pace{}, now)
	p.end(pace{}, now)
	want(pace{}, true)
	for i := range 3 * maxPaces {
		of := paceOf(fmt.Sprint(i))
		p.begin(of, now)
		p.end(of, now)
		now = now.Add(time.Second)
	}
	if len(p) > maxPaces {
		t.Errorf("%d URLs are kept", len(p))
	}
}
