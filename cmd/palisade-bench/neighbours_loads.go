package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// load floods one queue as the hostile deployment, until the context ends.
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
	// listers is the number of clients that request pages of listSize findings, without a pause.
	listers, listSize = 64, 3000
	// uploaders is the number of clients that upload reports of uploadResults new findings, without a pause.
	uploaders, uploadResults = 8, 1000
	// slowRules is the number of rules in the hostile deployment, slowScans the number of scans that each rule
	// announces.
	slowRules, slowScans = 30, 40
	// scannedResults is the number of results per scan.
	scannedResults = 300
	// analysed is the number of findings per task.
	analysed = 1000
	// nestedItems is the number of branches in each of two nested forks, nestedRuns the number of runs.
	nestedItems, nestedRuns = 200, 3
	// refusedPause is the pause of a refused client: a hostile client waits only briefly.
	refusedPause = 50 * time.Millisecond
)

// Workflow definitions.
const (
	workflowOneStep = "one-step"
	workflowNested  = "nested"
)

// flood runs clients of the hostile deployment in a loop until the context ends. They continue when the server refuses
// them.
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

// floodLists requests large pages as fast as possible. Each list is a new one, so that no cache helps.
func (f *fairness) floodLists(ctx context.Context) error {
	return f.flood(ctx, listers, func(ctx context.Context, c *client, n, i int) error {
		return c.get(c.findingsPath(pageQuery{Status: "open", Size: listSize, Since: 1 + n<<20 + i}), "", 0)(ctx)
	})
}

// floodUploads uploads as fast as possible.
func (f *fairness) floodUploads(ctx context.Context) error {
	return f.flood(ctx, uploaders, func(ctx context.Context, c *client, n, i int) error {
		report, err := makeReport(uint64(1<<40+n<<20+i), uploadResults)
		if err == nil {
			_, err = c.upload(ctx, fmt.Sprintf("bench/flood-%d", n), "main", fmt.Sprintf("flood-%d", i), report)
		}
		return err
	})
}

// floodScans sends scanner results as fast as possible.
func (f *fairness) floodScans(ctx context.Context) error {
	return f.flood(ctx, uploaders, func(ctx context.Context, c *client, n, i int) error {
		return c.scan(ctx, fmt.Sprintf("bench/scanned-%d", n), scannedResults, i)
	})
}

// refused reports whether the server refused a client, as it must for a hostile one.
func refused(err error) bool { return strings.Contains(err.Error(), ": 429 ") }

// floodRuns starts runs with very many branches.
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

// floodMessages queues very many messages for receivers that never answer.
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

// floodAnalyses requests analyses of many findings.
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
