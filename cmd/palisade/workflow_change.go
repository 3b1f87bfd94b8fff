package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

// newWorkflowEnable makes the commands enable and disable.
func newWorkflowEnable(std streams, enabled bool) *cobra.Command {
	var flags clientFlags
	cmd := &cobra.Command{
		Use:     "enable NAME…",
		Short:   "Enable workflows, so that runs can be started",
		Example: "  palisade workflow enable code-audit",
		Args:    workflowNames(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := openRegistry(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			for _, name := range args {
				var answer struct{ Workflow workflowType }
				if _, err := r.call(cmd.Context(), http.MethodPatch, map[string]bool{"enabled": enabled}, &answer, name); err != nil {
					return err
				}
				_, _ = fmt.Fprintf(std.out, "%s: version %s, %s\n", printable(answer.Workflow.Name), printable(answer.Workflow.Version), answer.Workflow.stateWithReason())
			}
			return nil
		},
	}
	if !enabled {
		cmd.Use, cmd.Short = "disable NAME…", "Let no more runs of workflows be started"
		cmd.Long = "Let no more runs of workflows be started. Runs that have begun go on."
		cmd.Example = "  palisade workflow disable code-audit triage-backlog"
	}
	flags.add(cmd)
	return cmd
}

func newWorkflowDelete(std streams) *cobra.Command {
	var flags clientFlags
	cmd := &cobra.Command{
		Use:   "delete NAME…",
		Short: "Delete workflows from the catalog",
		Long: `Delete workflows with all their versions from the catalog. Runs are kept, and running ones continue. The name may be
published again; its version numbers then continue.`,
		Example: `  palisade workflow show audit --definition > audit.yaml   # keep a copy
  palisade workflow delete audit`,
		Args: workflowNames(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := openRegistry(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			for _, name := range args {
				if _, err := r.call(cmd.Context(), http.MethodDelete, nil, &struct{}{}, name); err != nil {
					return err
				}
				_, _ = fmt.Fprintf(std.out, "%s: deleted\n", printable(name))
			}
			return nil
		},
	}
	flags.add(cmd)
	return cmd
}
