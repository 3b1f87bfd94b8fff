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
			t.Errorf("nobody waits for an answer, and work waited %s", got)
		}
		if work.Crowded() {
			t.Error("work is crowded that nobody met")
		}
		calls.Begin()
		if got := waited(stint / 2); got != 0 {
			t.Errorf("work that has only begun waited %s", got)
		}
		if got := waited(time.Millisecond); got < 2*time.Millisecond || got > 2*(time.Millisecond+stint) {
			t.Errorf("work of 1ms waited %s beside a call that does not end", got)
		}
		if got := waited(time.Second); got < longest || got > longest+look {
			t.Errorf("work of 1s waited %s beside a call that does not end", got)
		}
		if !work.Crowded() {
			t.Error("work is not crowded that a call has just made wait")
		}
		time.Sleep(time.Second)
		if work.Crowded() {
			t.Error("work is crowded by calls of a second ago")
		}
		if work.Resume(); waited(0) != 0 {
			t.Error("time without work counts as work")
		}
		time.AfterFunc(time.Second+time.Millisecond, calls.End)
		if got := waited(time.Second); got < time.Millisecond || got > time.Millisecond+look {
			t.Errorf("work waited %s for a call that ended after 1ms", got)
		}
		calls.Begin()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		time.Sleep(time.Hour)
		began := time.Now()
		if work.Yield(ctx); time.Since(began) > 0 {
			t.Error("work that was given up waited")
		}
		var none *Calls
		none.Beside().Yield(t.Context())
	})
}
