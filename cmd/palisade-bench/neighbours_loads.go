package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// load is what the hostile deployment does to one queue until the context ends.
type load struct {
	what string
	run  func(f *fairness, ctx context.Context) error
}

func theLoads() []load {
	return []load{
		{what: "lists without end", run: (*fairness).floodLists},
		{what: "uploads without end", run: (*fairness).floodUploads},
		{what: "a nested foreach", run: (*fairness).floodRuns},
		{what: "results of scanners without end", run: (*fairness).floodScans},
		{what: "messages to 30 receivers that never answer", run: (*fairness).floodMessages},
		{what: "analyses by a slow model", run: (*fairness).floodAnalyses},
	}
}

const (
	// listers ask for pages of listSize findings, each again as soon as it has its answer.
	listers, listSize = 64, 3000
	// uploaders send reports of uploadResults new findings, one after the other.
	uploaders, uploadResults = 8, 1000
	// slowRules is the number of rules of the hostile deployment, slowScans the number of scans that each rule announces.
	slowRules, slowScans = 30, 40
	// scannedResults are the results of each scan.
	scannedResults = 300
	// analysed are the findings of one order of analyses.
	analysed = 1000
	// nestedItems are the branches of each of two nested forks, nestedRuns the runs of them.
	nestedItems, nestedRuns = 200, 3
	// refusedPause is how long a client waits that was refused: a hostile one waits little.
	refusedPause = 50 * time.Millisecond
)

// The workflows.
const (
	workflowOneStep = "one-step"
	workflowNested  = "nested"
)

// flood lets clients of the hostile deployment repeat what they do until the context ends. They go on when the server
// holds them back.
func (f *fairness) flood(ctx context.Context, clients int, do func(ctx context.Context, c *client, n, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for n := range clients {
		group.Go(func() error {
			c := f.hostile.client(f.server, 1)
			defer c.close()
			for i := 0; ctx.Err() == nil; i++ {
				err := do(ctx, c, n, i)
				if err != nil && !refused(err) {
					return err
				} else if err != nil {
					time.Sleep(refusedPause)
				}
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}

// floodLists asks for large pages as fast as it is let. Each list is another one, which no cache knows.
func (f *fairness) floodLists(ctx context.Context) error {
	return f.flood(ctx, listers, func(ctx context.Context, c *client, n, i int) error {
		return c.get(c.findingsPath(pageQuery{Status: "open", Size: listSize, Since: 1 + n<<20 + i}), "", 0)(ctx)
	})
}

// floodUploads uploads as fast as it is let.
func (f *fairness) floodUploads(ctx context.Context) error {
	return f.flood(ctx, uploaders, func(ctx context.Context, c *client, n, i int) error {
		report, err := makeReport(uint64(1<<40+n<<20+i), uploadResults)
		if err == nil {
			_, err = c.upload(ctx, fmt.Sprintf("bench/flood-%d", n), "main", fmt.Sprintf("flood-%d", i), report)
		}
		return err
	})
}

// floodScans sends what scanners send, as fast as it is let.
func (f *fairness) floodScans(ctx context.Context) error {
	return f.flood(ctx, uploaders, func(ctx context.Context, c *client, n, i int) error {
		return c.scan(ctx, fmt.Sprintf("bench/scanned-%d", n), scannedResults, i)
	})
}

// refused says that the server held a client back, which is what it is to do with a hostile one.
func refused(err error) bool { return strings.Contains(err.Error(), ": 429 ") }

// floodRuns starts runs of very many branches.
func (f *fairness) floodRuns(ctx context.Context) error {
	c := f.hostile.client(f.server, 1)
	defer c.close()
	for range nestedRuns {
		if _, err := f.trigger(ctx, c, f.hostile, workflowNested); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

// floodMessages has very many messages waiting for receivers that never answer.
func (f *fairness) floodMessages(ctx context.Context) error {
	for n := range slowRules {
		if err := f.rule(ctx, f.hostile, fmt.Sprintf("slow %d", n), fmt.Sprintf("%s%d", pathSlow, n)); err != nil {
			return err
		}
	}
	c := f.hostile.client(f.server, 1)
	defer c.close()
	for i := range slowScans {
		report, err := makeReport(uint64(1<<50+i), probeResults)
		if err != nil {
			return err
		}
		if _, err := c.upload(ctx, "bench/told", "main", fmt.Sprintf("told-%d", i), report); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

// floodAnalyses orders analyses of many findings.
func (f *fairness) floodAnalyses(ctx context.Context) error {
	c := f.hostile.client(f.server, 1)
	defer c.close()
	ids, err := c.openFindings(ctx, analysed)
	if err != nil {
		return err
	}
	path := fmt.Sprintf("/api/ai/%d/combined_task", f.hostile.id)
	if err := c.call(ctx, http.MethodPost, path, object{"task": object{"issueIds": ids}}, nil); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}
