package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services/findings/printout"
)

func newWorkflow(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workflow",
		Short: "Validate, publish, run and show agentic workflows",
		Long: `A workflow is a YAML or JSON definition of inputs and of steps in their order. The server keeps every published
version, and a run keeps the version that it started with. Two workflows ship with the product: triage-backlog and
code-audit. See docs/workflows.md for the format of definitions.`,
		Example: `  palisade workflow show code-audit --definition > audit.yaml   # start from a copy
  palisade workflow lint audit.yaml                             # needs no server
  palisade workflow publish audit.yaml
  palisade workflow list`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newWorkflowList(std), newWorkflowShow(std), newWorkflowLint(std), newWorkflowPublish(std),
		newWorkflowEnable(std, true), newWorkflowEnable(std, false), newWorkflowDelete(std),
		newWorkflowRun(std), newWorkflowJobs(std), newWorkflowCancel(std), newWorkflowRetry(std))
	return cmd
}

// workflowType has the columns of a catalog entry.
type workflowType struct {
	Name        string `json:"name"`
	DisplayName string `json:"displayName"`
	Description string `json:"description"`
	TargetType  string `json:"targetType"`
	Version     string `json:"version"`
	Enabled     bool   `json:"enabled"`
	// DisabledReason is what the server lacks to run it.
	DisabledReason string `json:"disabledReason"`
	Graph          struct {
		Steps []workflowStep `json:"steps"`
	} `json:"graph"`
	Inputs struct {
		Fields []workflowInput `json:"fields"`
	} `json:"inputs"`
}

type workflowStep struct {
	Name string   `json:"name"`
	Type string   `json:"type"`
	Next []string `json:"next"`
	Line int      `json:"line"`
}

type workflowInput struct {
	Name        string          `json:"name"`
	Type        string          `json:"type"`
	Required    bool            `json:"required"`
	Default     json.RawMessage `json:"defaultValue"`
	Description string          `json:"description"`
}

// registry calls the catalog API of one deployment.
type registry struct{ *deploymentClient }

func openRegistry(ctx context.Context, flags clientFlags, std streams) (*registry, error) {
	d, err := openDeployment(ctx, flags, std)
	return &registry{d}, err
}

// call sends a request to the catalog; body may be nil. It returns the raw response, and decodes it into result.
func (r *registry) call(ctx context.Context, method string, body, result any, path ...string) (json.RawMessage, error) {
	return r.jobs(ctx, method, nil, body, result, append([]string{"registry"}, path...)...)
}

func newWorkflowList(std streams) *cobra.Command {
	var flags clientFlags
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the workflows of the deployment",
		Example: `  palisade workflow list
  palisade workflow list -o json | jq -r '.workflows[] | select(.enabled) | .name'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			r, err := openRegistry(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			var answer struct{ Workflows []workflowType }
			raw, err := r.call(cmd.Context(), http.MethodGet, nil, &answer)
			if err != nil {
				return err
			}
			if output == "json" {
				return printJSON(std.out, raw)
			}
			table := printout.NewTable(std.out)
			_, _ = fmt.Fprintln(table, "NAME\tVERSION\tSTATE\tTARGET\tSTEPS\tDISPLAY NAME\tLACKS")
			for _, w := range answer.Workflows {
				_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", printable(w.Name), printable(w.Version), w.state(),
					printable(w.TargetType), len(w.Graph.Steps), printable(w.DisplayName), orDash(w.DisabledReason))
			}
			return table.Flush()
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func (w workflowType) state() string {
	if w.Enabled {
		return "enabled"
	}
	return "disabled"
}

// stateWithReason is the state, and what the server lacks to run it.
func (w workflowType) stateWithReason() string {
	if w.DisabledReason == "" {
		return w.state()
	}
	return w.state() + " (" + printable(w.DisabledReason) + ")"
}

// printJSON prints a response as the API sent it.
func printJSON(w io.Writer, raw json.RawMessage) error {
	_, err := fmt.Fprintf(w, "%s\n", bytes.TrimSpace(raw))
	return err
}

// readDefinition reads a definition from a file, or from standard input for "-".
func readDefinition(std streams, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(std.in)
	}
	return os.ReadFile(name)
}
