package retry

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDelayIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		failures := rapid.Int32().Draw(t, "failures")
		random := rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, "random")
		delay := Delay(failures, random)
		if delay < 0 || delay > MaxDelay {
			t.Fatalf("Delay(%d, %v) = %s", failures, random, delay)
		}
		if failures < math.MaxInt32 && Delay(failures+1, random) < delay {
			t.Fatalf("the delay after %d failures is longer than that after one more", failures)
		}
	})
	if got := Delay(1, 0.5); got != InitialDelay/2 {
		t.Errorf("first delay %s, want %s", got, InitialDelay/2)
	}
}

// With a receiver that fails half of the time, 10,000 messages arrive within minutes. A receiver that is down gets at
// most a hundred attempts per message.
func TestDelayDrains(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	latest, most := time.Duration(0), 0
	for range 10_000 {
		waited, failures := time.Duration(0), int32(0)
		for random.Float64() < 0.5 {
			failures++
			waited += Delay(failures, random.Float64())
		}
		latest = max(latest, waited)
	}
	for waited := time.Duration(0); waited < GiveUpAfter; most++ {
		waited += Delay(int32(most+1), 0.5)
	}
	if latest > 10*time.Minute || most > 100 {
		t.Errorf("the last of 10,000 arrives after %s; a receiver that is down is asked %d times", latest, most)
	}
}
