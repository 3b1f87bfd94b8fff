package chain

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/palisade/palisade/services/internal/access"
)

func token(id int64) *call {
	return &call{principal: &access.Principal{Kind: access.KindToken, ID: id}, remote: "192.0.2.1"}
}

// In any period a credential gets at most the burst plus the rate. A caller that waits for the retry delay is accepted.
func TestLimiterKeepsItsRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perSecond := rapid.Float64Range(0.1, 500).Draw(t, "rate")
		l := newLimiter(perSecond, func() {})
		start := time.Unix(1_000_000, 0)
		now, taken := start, 0.0
		for range rapid.IntRange(1, 200).Draw(t, "calls") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "pause")))
			wait := l.take(token(1), now)
			if wait == 0 {
				taken++
			}
			if most := math.Ceil(perSecond) + perSecond*now.Sub(start).Seconds() + 1e-6; taken > most {
				t.Fatalf("%v calls after %v, want at most %v", taken, now.Sub(start), most)
			}
			if wait > 0 && rapid.Bool().Draw(t, "obey") {
				now = now.Add(wait)
				again := l.take(token(1), now)
				if again > time.Microsecond { // rounding in the library; callers get whole seconds
					t.Fatalf("refused for %v after waiting %v as told", again, wait)
				}
				if again == 0 {
					taken++
				}
			}
		}
	})
}

func TestLimiterSeparates(t *testing.T) {
	l := newLimiter(1, func() {})
	now := time.Unix(0, 0)
	address := func(remote string) *call { return &call{remote: remote} }
	for i, c := range []struct {
		call *call
		free bool
	}{
		{token(1), true}, {token(1), false}, {token(2), true},
		{&call{principal: &access.Principal{Kind: access.KindUser, ID: 1}}, true}, // user 1 is not token 1
		{address("192.0.2.1"), true}, {address("192.0.2.1"), false}, {address("192.0.2.2"), true},
		// One household shares one bucket.
		{address("2001:db8:1:2::1"), true}, {address("2001:db8:1:2:ffff::9"), false}, {address("2001:db8:1:3::1"), true},
		{address("no address"), true},
	} {
		if free := l.take(c.call, now) == 0; free != c.free {
			t.Errorf("call %d: free is %v, want %v", i, free, c.free)
		}
	}
}

func TestLimiterOff(t *testing.T) {
	l := newLimiter(0, func() {})
	for range 10_000 {
		if l.take(token(1), time.Unix(0, 0)) != 0 {
			t.Fatal("refused")
		}
	}
}

// Unauthenticated callers cannot evict the buckets of authenticated ones, even with many addresses.
func TestLimiterIsBounded(t *testing.T) {
	l := newLimiter(1, func() {})
	now := time.Unix(0, 0)
	l.take(token(1), now)
	for i := range maxBuckets + 1000 {
		l.take(&call{remote: fmt.Sprintf("host %d", i)}, now)
	}
	if l.take(token(1), now) == 0 {
		t.Error("the bucket of a credential was evicted by buckets of addresses")
	}
}

func TestRatesInWholeNumbers(t *testing.T) {
	for perSecond, want := range map[float64][2]float64{
		1000: {1000, 1}, 1.5: {3, 2}, 0.5: {1, 2}, 0.004: {1, 250}, 10.0 / 3: {10, 3}, 0.4: {2, 5}, 5000.0 / 7: {5000, 7},
	} {
		if requests, window := wholeRate(perSecond); [2]float64{requests, window} != want {
			t.Errorf("%v a second: %v in %v s, want %v in %v", perSecond, requests, window, want[0], want[1])
		}
	}
}
