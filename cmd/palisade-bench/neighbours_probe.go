package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

const (
	// probePause is the pause between two requests of the neighbour.
	probePause = 20 * time.Millisecond
	// requestsPerJob is the number of requests of each kind before each job.
	requestsPerJob = 5
	// jobTimeout is the timeout of a job of the neighbour, and the duration that is recorded then.
	jobTimeout = 60 * time.Second
	// probeResults is the number of results per upload.
	probeResults = 100
)

// Actions of the neighbour.
const (
	probeList = iota
	probeTriage
	probeUpload
	probeMessage
	probeRun
	probeKinds
)

var probeNames = [probeKinds]string{"list of 100", "triage of one", "upload of 100 results", "notification", "one-step workflow"}

// probes has the waiting times of the neighbour by action.
type probes struct{ waited [probeKinds][]time.Duration }

// prober runs the actions of the neighbour.
type prober struct {
	*fairness
	c       *client
	ids     []int64
	decided int
	uploads int
	out     *probes
}

// probe runs the actions of the neighbour for a while.
func (f *fairness) probe(ctx context.Context, length time.Duration) (*probes, error) {
	p := &prober{fairness: f, c: f.neighbour.client(f.server, 1), out: &probes{}, uploads: int(time.Now().UnixNano() & 0xffffffff)}
	defer p.c.close()
	if err := p.choose(ctx); err != nil {
		return nil, err
	}
	for until := time.Now().Add(length); time.Now().Before(until); {
		for range requestsPerJob {
			if err := p.requests(ctx); err != nil {
				return nil, err
			}
		}
		if err := p.message(ctx); err != nil {
			return nil, err
		}
		if err := p.timed(probeRun, func() error { return p.runOnce(ctx) }); err != nil {
			return nil, err
		}
	}
	return p.out, nil
}

func (p *prober) timed(kind int, do func() error) error {
	began := time.Now()
	if err := do(); err != nil {
		return fmt.Errorf("neighbour, %s: %w", probeNames[kind], err)
	}
	p.out.waited[kind] = append(p.out.waited[kind], time.Since(began))
	time.Sleep(probePause)
	return nil
}

// choose selects findings to triage.
func (p *prober) choose(ctx context.Context) (err error) {
	if p.ids, err = p.c.openFindings(ctx, pageSize); err != nil {
		return err
	}
	if len(p.ids) == 0 {
		return fmt.Errorf("the neighbour has no findings")
	}
	return nil
}

// requests sends one request of each kind.
func (p *prober) requests(ctx context.Context) error {
	if err := p.timed(probeList, func() error { return p.c.get(p.c.findingsPath(measuredQuery), "", 0)(ctx) }); err != nil {
		return err
	}
	if err := p.timed(probeTriage, func() error { return p.decide(ctx) }); err != nil {
		return err
	}
	report, err := p.report()
	if err != nil {
		return err
	}
	return p.timed(probeUpload, func() error { return p.upload(ctx, report) })
}

func (p *prober) decide(ctx context.Context) error {
	states := []string{"reviewing", "fixing"}
	i, state := p.decided%len(p.ids), states[p.decided/len(p.ids)%len(states)]
	p.decided++
	_, err := p.c.triage(ctx, p.ids[i:i+1], state)
	return err
}

// report returns a report with new results.
func (p *prober) report() ([]byte, error) {
	p.uploads++
	return makeReport(uint64(1<<32+p.uploads), probeResults)
}

func (p *prober) upload(ctx context.Context, report []byte) error {
	return p.c.create(ctx, "bench/neighbour", "main", fmt.Sprintf("probe-%d", p.uploads), report, probeResults)
}

// message uploads findings and waits until the receiver gets the message.
func (p *prober) message(ctx context.Context) error {
	report, err := p.report()
	if err != nil {
		return err
	}
	p.hosts.quiet(ctx)
	if err := p.upload(ctx, report); err != nil {
		return err
	}
	return p.timed(probeMessage, func() error {
		select {
		case <-p.hosts.messages:
		case <-time.After(jobTimeout):
		case <-ctx.Done():
		}
		return ctx.Err()
	})
}

// runOnce starts a workflow and waits for its completion.
func (p *prober) runOnce(ctx context.Context) error {
	job, err := p.trigger(ctx, p.c, p.neighbour, workflowOneStep)
	if err != nil {
		return err
	}
	for until := time.Now().Add(jobTimeout); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		state, err := p.state(ctx, p.c, p.neighbour, job)
		switch {
		case err != nil:
			return err
		case state == "completed":
			return nil
		case state == "failed" || state == "cancelled":
			return fmt.Errorf("job %s has %s", job, state)
		}
	}
	return nil
}

// comparison has the neighbour's waiting times in the rounds, alone and under load, in milliseconds.
type comparison struct {
	idle, busy [probeKinds]sample // p95
	middle     [probeKinds]sample // p50 under load
	n          [probeKinds]int
}

func (c *comparison) add(idle, busy *probes) {
	for kind := range probeKinds {
		slices.Sort(idle.waited[kind])
		slices.Sort(busy.waited[kind])
		c.idle[kind] = append(c.idle[kind], percentile(idle.waited[kind], 95))
		c.busy[kind] = append(c.busy[kind], percentile(busy.waited[kind], 95))
		c.middle[kind] = append(c.middle[kind], percentile(busy.waited[kind], 50))
		c.n[kind] += len(busy.waited[kind])
	}
}

// rows compare requests with an idle server; jobs have an absolute limit.
func (c *comparison) rows(load string) []row {
	var rows []row
	for kind := range probeKinds {
		r := row{
			what: probeNames[kind] + " during " + load + ": p95", value: c.busy[kind], unit: millis,
			ratio: c.busy[kind].over(c.idle[kind]), base: fmt.Sprintf("%.1f ms idle", c.idle[kind].median()), bar: atMost(fairRequests),
			note: fmt.Sprintf("%d in all, p50 %.1f ms", c.n[kind], c.middle[kind].median()),
		}
		if kind >= probeMessage {
			r.bar = within(fairJobs, "ms")
		}
		rows = append(rows, r)
	}
	return rows
}
