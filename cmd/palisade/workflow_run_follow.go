package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// followInterval is the poll interval of --wait.
const followInterval = time.Second

// workflowJobGraph has the steps and tasks of a run.
type workflowJobGraph struct {
	Steps []struct {
		Name, Status                           string
		TaskCount, TasksCompleted, TasksFailed int64
	}
	Tasks []struct {
		DisplayName, Status string
		Attempts            []struct{ ErrorSummary string }
	}
}

// follow waits for the end of a run and prints its progress. A run that did not complete ends the command with errNo.
func (r *registry) follow(ctx context.Context, std streams, output, job string) error {
	tick := time.NewTicker(followInterval)
	defer tick.Stop()
	shown := map[string]string{}
	for {
		// Read the state first: the graph is then at least as recent.
		var overview struct {
			Summary  workflowJob
			Metadata struct{ Status string }
		}
		raw, err := r.jobs(ctx, http.MethodGet, nil, nil, &overview, "jobs", "id", job, "overview")
		if err != nil {
			return err
		}
		var graph struct{ Graph workflowJobGraph }
		if _, err := r.jobs(ctx, http.MethodGet, url.Values{"limit": {"1000"}}, nil, &graph, "jobs", "id", job, "graph"); err != nil {
			return err
		}
		graph.Graph.progress(std.err, shown)
		if state := overview.Summary.state(); state != "submitted" && state != "running" {
			graph.Graph.failures(std.err)
			overview.Summary.words = overview.Metadata.Status
			if err := printJob(std.out, output, raw, overview.Summary); err != nil || state == "completed" {
				return err
			}
			return errNo
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no longer waiting: job %s continues; see: palisade workflow jobs", printable(job))
		case <-tick.C:
		}
	}
}

// progress prints a line for each step with a changed state.
func (g workflowJobGraph) progress(out io.Writer, shown map[string]string) {
	for _, step := range g.Steps {
		state := strings.ToLower(strings.TrimPrefix(step.Status, "WORKFLOW_STEP_STATUS_"))
		if step.TaskCount > 1 {
			state += fmt.Sprintf(", %d of %d tasks", step.TasksCompleted, step.TaskCount)
		}
		if step.TasksFailed > 0 {
			state += fmt.Sprintf(", %d failed", step.TasksFailed)
		}
		if shown[step.Name] != state && (state != "pending" || shown[step.Name] != "") {
			_, _ = fmt.Fprintf(out, "  %s: %s\n", printable(step.Name), printable(state))
			shown[step.Name] = state
		}
	}
}

// failures prints why tasks failed: one line per reason for any number of tasks.
func (g workflowJobGraph) failures(out io.Writer) {
	var reasons []string
	tasks := map[string][]string{}
	for _, task := range g.Tasks {
		failed := strings.HasSuffix(task.Status, "_FAILED") || strings.HasSuffix(task.Status, "_ERROR")
		n := len(task.Attempts)
		if !failed || n == 0 {
			continue
		}
		reason := task.Attempts[n-1].ErrorSummary
		if tasks[reason] == nil {
			reasons = append(reasons, reason)
		}
		tasks[reason] = append(tasks[reason], task.DisplayName)
	}
	for _, reason := range reasons {
		who := printable(tasks[reason][0])
		if more := len(tasks[reason]) - 1; more > 0 {
			who += fmt.Sprintf(" and %d more", more)
		}
		_, _ = fmt.Fprintf(out, "  %s: %s\n", who, printable(reason))
	}
}

func newWorkflowCancel(std streams) *cobra.Command {
	var flags clientFlags
	cmd := &cobra.Command{
		Use:     "cancel JOB…",
		Short:   "Cancel runs of workflows",
		Example: "  palisade workflow cancel 12",
		Args:    workflowJobs(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := openRegistry(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			for _, job := range args {
				var answer struct{ Summary workflowJob }
				if _, err := r.jobs(cmd.Context(), http.MethodPost, nil, struct{}{}, &answer, "jobs", "id", job, "cancel"); err != nil {
					return err
				}
				_, _ = fmt.Fprintln(std.out, answer.Summary.line())
			}
			return nil
		},
	}
	flags.add(cmd)
	return cmd
}

func newWorkflowRetry(std streams) *cobra.Command {
	var flags clientFlags
	var output string
	var wait bool
	cmd := &cobra.Command{
		Use:   "retry JOB",
		Short: "Start a finished run again, with the same inputs and version",
		Example: `  palisade workflow retry 12
  palisade workflow retry 12 --wait`,
		Args: workflowJobs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			r, err := openRegistry(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			return r.started(cmd.Context(), std, output, wait, struct{}{}, "jobs", "id", args[0], "retry")
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the end of the run")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

// workflowJobs requires ids of runs, at most the given number; 0 means any number.
func workflowJobs(most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usagef("%s needs the id of a run; see: palisade workflow jobs", cmd.CommandPath())
		case most > 0 && len(args) > most:
			return usagef("%s takes one id, got %q, too", cmd.CommandPath(), args[1])
		}
		return nil
	}
}
