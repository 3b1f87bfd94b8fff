package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services/findings/printout"
)

type workflowRunOptions struct {
	client                       clientFlags
	inputs                       []string
	repo, ref, name, key, output string
	budget                       float64
	wait                         bool
}

func newWorkflowRun(std streams) *cobra.Command {
	var o workflowRunOptions
	cmd := &cobra.Command{
		Use:   "run NAME",
		Short: "Start a run of a workflow, and wait for its end with --wait",
		Long: `Start a run of a workflow. "palisade workflow show NAME" lists its inputs; absent inputs get their defaults. Values are
text, or JSON if the input is a number, a boolean, a list or an object.

With --wait the progress of the steps is printed to standard error until the run ends.
Exit status: 0 the run was started (with --wait: completed); 1 it failed or was cancelled; 2 an error.`,
		Example: `  palisade workflow run triage-backlog --repo acme/web --wait
  palisade workflow run code-audit --repo acme/web --ref main --input include='["src/**"]' --budget 500
  palisade workflow run code-audit --repo 7 --idempotency-key nightly-2026-05-08 -o json | jq -r .summary.jobId`,
		Args: workflowNames(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), std, args[0]) },
	}
	o.client.add(cmd)
	cmd.Flags().StringArrayVarP(&o.inputs, "input", "i", nil, "`NAME=VALUE` of an input; may be repeated")
	cmd.Flags().StringVar(&o.repo, "repo", "", "`name` or id of the project")
	cmd.Flags().StringVar(&o.ref, "ref", "", "branch, tag or commit; default: the primary branch of the project")
	cmd.Flags().StringVar(&o.name, "name", "", "display name of the run")
	cmd.Flags().Float64Var(&o.budget, "budget", 0, "budget in `credits` (100 are one US dollar); default: the budget of the workflow")
	cmd.Flags().StringVar(&o.key, "idempotency-key", "", "`text` of your choice: the same key starts no second run")
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait for the end of the run")
	cmd.Flags().StringVarP(&o.output, "output", "o", "table", "table or json")
	return cmd
}

func (o *workflowRunOptions) run(ctx context.Context, std streams, name string) error {
	if err := oneOf("output", o.output, "table", "json"); err != nil {
		return err
	}
	r, err := openRegistry(ctx, o.client, std)
	if err != nil {
		return err
	}
	body := map[string]any{
		"workflowType": name, "gitRef": o.ref, "jobName": o.name, "budgetCredits": o.budget, "idempotencyKey": o.key,
	}
	if body["inputs"], err = o.given(ctx, r, name); err != nil {
		return err
	}
	if o.repo != "" {
		if body["repoId"], err = r.projectID(ctx, o.client.deployment, o.repo); err != nil {
			return err
		}
	}
	return r.started(ctx, std, o.output, o.wait, body, "jobs")
}

// given parses the inputs by their types in the workflow: text unchanged, other values as JSON.
func (o *workflowRunOptions) given(ctx context.Context, r *registry, name string) (map[string]any, error) {
	inputs := map[string]any{}
	if len(o.inputs) == 0 {
		return inputs, nil
	}
	var workflow shownWorkflow
	if _, err := r.call(ctx, http.MethodGet, nil, &workflow, name); err != nil {
		return nil, err
	}
	for _, pair := range o.inputs {
		key, text, found := strings.Cut(pair, "=")
		if !found || key == "" {
			return nil, usagef("--input: got %q, want NAME=VALUE", pair)
		}
		inputs[key] = text
		for _, field := range workflow.Workflow.Inputs.Fields {
			if field.Name != key || strings.HasSuffix(field.Type, "_STRING") {
				continue
			}
			var value any
			if err := json.Unmarshal([]byte(text), &value); err != nil {
				kind := strings.ToLower(strings.TrimPrefix(field.Type, "WORKFLOW_INPUT_TYPE_"))
				return nil, usagef("--input %s: got %q, want JSON, as the input is of type %s", key, text, kind)
			}
			inputs[key] = value
		}
	}
	return inputs, nil
}

// projectID looks up the id of a project by its name; a number already is an id.
func (r *registry) projectID(ctx context.Context, deployment, project string) (string, error) {
	if _, err := strconv.ParseInt(project, 10, 64); err == nil {
		return project, nil
	}
	slug, err := r.resolveDeployment(ctx, deployment)
	if err != nil {
		return "", err
	}
	req, err := r.request(ctx, http.MethodGet, nil, nil, "api", "v1", "deployments", url.PathEscape(slug), "projects", project)
	if err != nil {
		return "", err
	}
	var answer struct{ Project struct{ ID json.Number } }
	err = r.do(req, &answer)
	return answer.Project.ID.String(), err
}

// workflowJob has the columns of a run.
type workflowJob struct {
	JobID            string  `json:"jobId"`
	WorkflowType     string  `json:"workflowType"`
	Status           string  `json:"status"`
	RepoID           string  `json:"repoId"`
	GitRef           string  `json:"gitRef"`
	StartedAt        string  `json:"startedAt"`
	FinishedAt       string  `json:"finishedAt"`
	TotalFindings    int64   `json:"totalFindings"`
	TotalCostCredits float64 `json:"totalCostCredits"`
	// words is the state, with the reason of a failure if known.
	words string
}

func (j workflowJob) state() string {
	return strings.ToLower(strings.TrimPrefix(j.Status, "PLATFORM_WORKFLOW_RUN_STATUS_"))
}

func (j workflowJob) line() string {
	words := j.words
	if words == "" {
		words = j.state()
	}
	return fmt.Sprintf("job %s of %s: %s", printable(j.JobID), printable(j.WorkflowType), printable(words))
}

// jobs sends a request about runs.
func (r *registry) jobs(ctx context.Context, method string, query url.Values, body, result any, path ...string) (json.RawMessage, error) {
	return r.ask(ctx, method, "api/workflows/v1", query, body, result, path...)
}

// started starts a run, prints it and, on request, waits for its end.
func (r *registry) started(ctx context.Context, std streams, output string, wait bool, body any, path ...string) error {
	var answer struct{ Summary workflowJob }
	raw, err := r.jobs(ctx, http.MethodPost, nil, body, &answer, path...)
	if err != nil {
		return err
	}
	if !wait {
		return printJob(std.out, output, raw, answer.Summary)
	}
	_, _ = fmt.Fprintln(std.err, answer.Summary.line())
	return r.follow(ctx, std, output, answer.Summary.JobID)
}

func printJob(out io.Writer, output string, raw json.RawMessage, job workflowJob) error {
	if output == "json" {
		return printJSON(out, raw)
	}
	_, err := fmt.Fprintln(out, job.line())
	return err
}

func newWorkflowJobs(std streams) *cobra.Command {
	var flags clientFlags
	var workflow, status, cursor string
	var l listing
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "List runs of workflows, newest first",
		Example: `  palisade workflow jobs --workflow code-audit --status failed
  palisade workflow jobs -o json | jq '.jobs[0]'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.check(cmd); err != nil {
				return err
			}
			query := url.Values{}
			for name, value := range map[string]string{"workflowType": workflow, "cursor": cursor} {
				if value != "" {
					query.Set(name, value)
				}
			}
			if status != "" {
				if err := oneOf("status", status, "submitted", "running", "completed", "failed", "cancelled"); err != nil {
					return err
				}
				query.Set("status", "PLATFORM_WORKFLOW_RUN_STATUS_"+strings.ToUpper(status))
			}
			r, err := openRegistry(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			return l.print(std, query, "jobs", 500, func(query url.Values) (json.RawMessage, error) {
				return r.send(cmd.Context(), http.MethodGet, "api/workflows/v1", query, nil, "jobs")
			}, func(raw json.RawMessage) error {
				var page struct{ Jobs []workflowJob }
				if err := json.Unmarshal(raw, &page); err != nil {
					return err
				}
				return printJobs(std.out, page.Jobs)
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&workflow, "workflow", "", "only runs of the workflow with this `name`")
	cmd.Flags().StringVar(&status, "status", "", "only runs in this state: submitted, running, completed, failed or cancelled")
	cmd.Flags().StringVar(&cursor, "cursor", "", "start after an earlier list: the cursor at the end of its JSON")
	l.add(cmd, 50, "runs")
	return cmd
}

func printJobs(out io.Writer, jobs []workflowJob) error {
	table := printout.NewTable(out)
	_, _ = fmt.Fprintln(table, "JOB\tWORKFLOW\tSTATE\tREF\tSTARTED\tFINISHED\tFINDINGS\tCREDITS")
	for _, j := range jobs {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\n", printable(j.JobID), printable(j.WorkflowType), printable(j.state()),
			printable(j.GitRef), second(j.StartedAt), second(j.FinishedAt), j.TotalFindings, money(j.TotalCostCredits))
	}
	return table.Flush()
}

// second formats a time to the second; "-" for none.
func second(text string) string {
	if len(text) < len("2026-05-08T12:00:00") {
		return "-"
	}
	return printable(text[:19]) + "Z"
}
