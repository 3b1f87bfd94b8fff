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
		if got := waited(time.Millisecond); got < longest || got > longest+look {
			t.Errorf("work that has saved up %s waited %s beside a call that does not end", longest, got)
		}
		if got := waited(time.Millisecond); got < 2*time.Millisecond || got > 2*time.Millisecond+look {
			t.Errorf("work of 1ms that has nothing saved up waited %s beside a call that does not end", got)
		}
		work.spare = 0
		var worked, all time.Duration
		for range 1000 {
			worked, all = worked+stint, all+waited(stint)
		}
		if all < share*worked-look || all > share*worked+look {
			t.Errorf("work of %s waited %s beside calls that do not end", worked, all)
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
		if got := waited(time.Second); got < time.Millisecond+after || got > time.Millisecond+after+look {
			t.Errorf("work waited %s for a call that ended after 1ms", got)
		}
		time.Sleep(after)
		if got := waited(time.Second); got != 0 {
			t.Errorf("work waited %s for an answer that was sent", got)
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
