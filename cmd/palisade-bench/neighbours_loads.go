package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	// after puts an end to what is left; may be nil.
	after func(f *fairness, ctx context.Context) error
}

func theLoads() []load {
	return []load{
		{what: "uploads without end", run: (*fairness).floodUploads},
		{what: "a nested foreach", run: (*fairness).floodRuns, after: (*fairness).cancelRuns},
		{what: "messages to 30 receivers that never answer", run: (*fairness).floodMessages},
		{what: "analyses by a slow model", run: (*fairness).floodAnalyses},
	}
}

const (
	// uploaders send reports of uploadResults new findings, one after the other.
	uploaders, uploadResults = 8, 1000
	// slowRules are the rules of the hostile deployment, slowScans the scans of which each is told.
	slowRules, slowScans = 30, 40
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

// floodUploads uploads as fast as it is let.
func (f *fairness) floodUploads(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for n := range uploaders {
		group.Go(func() error {
			c := f.hostile.client(f.server, 1)
			defer c.close()
			for i := 0; ctx.Err() == nil; i++ {
				report, err := makeReport(uint64(1<<40+n<<20+i), uploadResults)
				if err != nil {
					return err
				}
				if _, err := c.upload(ctx, fmt.Sprintf("bench/flood-%d", n), "main", fmt.Sprintf("flood-%d", i), report); err != nil && !refused(err) {
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

// cancelRuns cancels what runs.
func (f *fairness) cancelRuns(ctx context.Context) error {
	c := f.hostile.client(f.server, 1)
	defer c.close()
	var answer struct{ Jobs []struct{ JobID string } }
	if err := c.call(ctx, http.MethodGet, f.hostile.jobs("?limit=100"), nil, &answer); err != nil {
		return err
	}
	for _, job := range answer.Jobs {
		if err := c.call(ctx, http.MethodPost, f.hostile.jobs("/id/"+job.JobID+"/cancel"), object{}, nil); err != nil && !strings.Contains(err.Error(), ": 400 ") {
			return err // 400: it has ended
		}
	}
	return nil
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
	var answer struct {
		Findings []struct {
			ID int64 `json:"id"`
		} `json:"findings"`
	}
	if err := c.call(ctx, http.MethodGet, c.findingsPath(pageQuery{Status: "open", Size: analysed}), nil, &answer); err != nil {
		return err
	}
	ids := make([]int64, 0, analysed)
	for _, found := range answer.Findings {
		ids = append(ids, found.ID)
	}
	path := fmt.Sprintf("/api/ai/%d/combined_task", f.hostile.id)
	if err := c.call(ctx, http.MethodPost, path, object{"task": object{"issueIds": ids}}, nil); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// rule makes a notification rule of a deployment.
func (f *fairness) rule(ctx context.Context, who account, name, path string) error {
	c := who.client(f.server, 1)
	defer c.close()
	return c.call(ctx, http.MethodPost, fmt.Sprintf("/api/agent/deployments/%d/actions", who.id), object{"notificationRule": object{
		"name": name, "channel": "webhook", "is_enabled": true,
		"config": object{"url": f.hosts.base + path, "secret": "a-secret-of-the-benchmark"},
	}}, nil)
}

// publish gives a deployment its workflows.
func (f *fairness) publish(ctx context.Context, who account) error {
	c := who.client(f.server, 1)
	defer c.close()
	items := make([]int, nestedItems)
	step := func(name, kind, next string, more object) object {
		out := object{"name": name, "type": kind}
		if next != "" {
			out["next"] = []string{next}
		}
		for key, value := range more {
			out[key] = value
		}
		return out
	}
	fork := func(name, join string) object {
		return object{"with": object{"output": items}, "foreach": "steps." + name + ".output", "matchingJoin": join}
	}
	for name, steps := range map[string][]object{
		workflowOneStep: {step("only", "linear", "", nil)},
		workflowNested: {
			step("outer", "foreach", "inner", fork("outer", "outer-end")),
			step("inner", "foreach", "leaf", fork("inner", "inner-end")),
			step("leaf", "linear", "inner-end", nil), step("inner-end", "join", "outer-end", nil), step("outer-end", "join", "", nil),
		},
	} {
		definition, err := json.Marshal(object{"name": name, "targetType": "deployment", "displayName": name, "description": "Of the benchmark.", "steps": steps})
		if err != nil {
			return err
		}
		if err := c.call(ctx, http.MethodPut, who.workflows("registry"), object{"definition": string(definition)}, nil); err != nil {
			return err
		}
	}
	return nil
}

func (a account) workflows(below string) string {
	return fmt.Sprintf("/api/workflows/v1/deployments/%d/%s", a.id, below)
}

func (a account) jobs(below string) string { return a.workflows("jobs" + below) }

// trigger starts a run.
func (f *fairness) trigger(ctx context.Context, c *client, who account, workflow string) (job string, err error) {
	var answer struct{ Summary struct{ JobID string } }
	err = c.call(ctx, http.MethodPost, who.jobs(""), object{"workflowType": workflow}, &answer)
	return answer.Summary.JobID, err
}

// state is how far a run is.
func (f *fairness) state(ctx context.Context, c *client, who account, job string) (string, error) {
	var answer struct{ Metadata struct{ Status string } }
	err := c.call(ctx, http.MethodGet, who.jobs("/id/"+job+"/overview"), nil, &answer)
	return answer.Metadata.Status, err
}

// call sends an object, unless it is nil, and reads the answer into another, unless that is nil.
func (c *client) call(ctx context.Context, method, path string, body, into any) (err error) {
	var encoded []byte
	if body != nil {
		if encoded, err = json.Marshal(body); err != nil {
			return err
		}
	}
	response, err := c.send(ctx, method, path, "", bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if into == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(into)
}
