package traffic

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestYield(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &Calls{}
		work := calls.Beside()
		waited := func(worked time.Duration) time.Duration {
			time.Sleep(worked)
			began := time.Now()
			work.Yield(t.Context())
			return time.Since(began)
		}
		if got := waited(time.Second); got != 0 {
			t.Errorf("no request is in flight, and work waited %s", got)
		}
		if work.Crowded() {
			t.Error("work is crowded before it has yielded")
		}
		calls.Begin()
		if got := waited(workSlice / 2); got != 0 {
			t.Errorf("work that has only begun waited %s", got)
		}
		if got := waited(time.Millisecond); got < maxYield || got > maxYield+pollInterval {
			t.Errorf("work that has saved up %s waited %s during a call that does not end", maxYield, got)
		}
		if got := waited(time.Millisecond); got < 2*time.Millisecond || got > 2*time.Millisecond+pollInterval {
			t.Errorf("work of 1ms that has nothing saved up waited %s during a call that does not end", got)
		}
		work.budget = 0
		var worked, all time.Duration
		for range 1000 {
			worked, all = worked+workSlice, all+waited(workSlice)
		}
		if all < maxYieldRatio*worked-pollInterval || all > maxYieldRatio*worked+pollInterval {
			t.Errorf("work of %s waited %s during calls that do not end", worked, all)
		}
		if got := waited(time.Second); got < maxYield || got > maxYield+pollInterval {
			t.Errorf("work of 1s waited %s during a call that does not end", got)
		}
		if !work.Crowded() {
			t.Error("work is not crowded although it has just yielded")
		}
		time.Sleep(time.Second)
		if work.Crowded() {
			t.Error("work is crowded a second after the last call")
		}
		if work.Resume(); waited(0) != 0 {
			t.Error("time before Resume counts as work")
		}
		time.AfterFunc(time.Second+time.Millisecond, calls.End)
		if got := waited(time.Second); got < time.Millisecond+responseGrace || got > time.Millisecond+responseGrace+pollInterval {
			t.Errorf("work waited %s for a call that ended after 1ms", got)
		}
		time.Sleep(responseGrace)
		if got := waited(time.Second); got != 0 {
			t.Errorf("work waited %s after the response was sent", got)
		}
		calls.Begin()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		time.Sleep(time.Hour)
		began := time.Now()
		if work.Yield(ctx); time.Since(began) > 0 {
			t.Error("work waited after its context had ended")
		}
		var none *Calls
		none.Beside().Yield(t.Context())
	})
}
