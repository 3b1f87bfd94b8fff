package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services/findings/printout"
)

// shownWorkflow is the response for one workflow.
type shownWorkflow struct {
	Workflow   workflowType
	Definition string
	Versions   []struct {
		Version     string `json:"version"`
		PublishedAt string `json:"publishedAt"`
		PublishedBy string `json:"publishedBy"`
		Current     bool   `json:"current"`
	}
}

func newWorkflowShow(std streams) *cobra.Command {
	var flags clientFlags
	var output string
	var definition bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a workflow: its steps, inputs and versions, or its definition",
		Example: `  palisade workflow show triage-backlog
  palisade workflow show triage-backlog --definition > mine.yaml
  palisade workflow show code-audit -o json | jq '.workflow.inputs.jsonSchema'`,
		Args: workflowNames(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			r, err := openRegistry(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			var answer shownWorkflow
			raw, err := r.call(cmd.Context(), http.MethodGet, nil, &answer, args[0])
			switch {
			case err != nil:
				return err
			case definition:
				_, err = io.WriteString(std.out, strings.TrimSuffix(answer.Definition, "\n")+"\n")
				return err
			case output == "json":
				return printJSON(std.out, raw)
			}
			return answer.print(std.out)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&definition, "definition", false, "print only the published definition")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	cmd.MarkFlagsMutuallyExclusive("definition", "output")
	return cmd
}

func (s *shownWorkflow) print(out io.Writer) error {
	w := s.Workflow
	_, _ = fmt.Fprintf(out, "%s (%s), version %s, %s, works on a %s\n", printable(w.Name), printable(w.DisplayName), printable(w.Version), w.stateWithReason(), printable(w.TargetType))
	if w.Description != "" {
		_, _ = fmt.Fprintln(out, printable(w.Description))
	}
	table := printout.NewTable(out)
	_, _ = fmt.Fprintln(table, "\nSTEP\tTYPE\tLINE\tNEXT")
	for _, step := range w.Graph.Steps {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%s\n", printable(step.Name), printable(step.Type), step.Line, printable(strings.Join(step.Next, ", ")))
	}
	if len(w.Inputs.Fields) > 0 {
		_, _ = fmt.Fprintln(table, "\nINPUT\tTYPE\tDEFAULT\tDESCRIPTION")
	}
	for _, input := range w.Inputs.Fields {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", printable(input.Name), input.kind(), input.defaultText(), printable(input.Description))
	}
	_, _ = fmt.Fprintln(table, "\nVERSION\tPUBLISHED\tBY")
	for _, version := range s.Versions {
		current := ""
		if version.Current {
			current = " (current)"
		}
		_, _ = fmt.Fprintf(table, "%s%s\t%s\t%s\n", printable(version.Version), current, printable(version.PublishedAt), printable(version.PublishedBy))
	}
	return table.Flush()
}

func (i workflowInput) kind() string {
	return printable(strings.ToLower(strings.TrimPrefix(i.Type, "WORKFLOW_INPUT_TYPE_")))
}

func (i workflowInput) defaultText() string {
	switch {
	case i.Required && len(i.Default) == 0:
		return "(required)"
	case len(i.Default) == 0:
		return "-"
	}
	var text string
	if json.Unmarshal(i.Default, &text) == nil && text != "" {
		return printable(text)
	}
	return printable(string(i.Default))
}

// workflowNames requires at least one name, at most the given number; 0 means any number.
func workflowNames(most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return usagef("%s needs the name of a workflow; see: palisade workflow list", cmd.CommandPath())
		case most > 0 && len(args) > most:
			return usagef("%s takes one name, got %q, too", cmd.CommandPath(), args[1])
		}
		return nil
	}
}
