package main

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services"
)

// definitionFiles requires at least one file, and allows "-" once.
func definitionFiles(cmd *cobra.Command, args []string) error {
	stdin := 0
	for _, name := range args {
		if name == "-" {
			stdin++
		}
	}
	switch {
	case len(args) == 0:
		return usagef("%s needs at least one file with a definition, or - for standard input", cmd.CommandPath())
	case stdin > 1:
		return usagef("standard input (-) can be read only once")
	}
	return nil
}

func newWorkflowPublish(std streams) *cobra.Command {
	var flags clientFlags
	var output string
	cmd := &cobra.Command{
		Use:   "publish FILE…",
		Short: "Publish definitions for new runs",
		Long: `Publish definitions under the names in them. An unchanged definition keeps its version, a changed one becomes the next
version; a disabled workflow stays disabled. A definition with problems is refused as a whole.`,
		Example: `  palisade workflow publish audit.yaml
  palisade workflow publish workflows/*.yaml
  sed s/high/critical/ audit.yaml | palisade workflow publish -`,
		Args: definitionFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			r, err := openRegistry(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			for _, name := range args {
				source, err := readDefinition(std, name)
				if err != nil {
					return err
				}
				var answer struct{ Workflow workflowType }
				raw, err := r.call(cmd.Context(), http.MethodPut, map[string]string{"definition": string(source)}, &answer)
				if err != nil {
					return fmt.Errorf("%s: %w", printable(name), err)
				}
				if output == "json" {
					err = printJSON(std.out, raw)
				} else {
					w := answer.Workflow
					_, err = fmt.Fprintf(std.out, "%s: version %s, %s\n", printable(w.Name), printable(w.Version), w.stateWithReason())
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, or json: one response per line and file")
	return cmd
}

// fileProblem is a problem in a file.
type fileProblem struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Step string `json:"step"`
	Text string `json:"text"`
}

func newWorkflowLint(std streams) *cobra.Command {
	var flags clientFlags
	var output string
	var online bool
	cmd := &cobra.Command{
		Use:   "lint FILE…",
		Short: "Validate definitions, and print problems with step and line",
		Long: `Validate definitions and print every problem with line and step: the graph, the inputs, the parameters of every step,
the expressions. Nothing is published. This program validates by its own version; with --online the server validates,
which matters if it has another version.

Exit status: 0 no problems, 1 problems, 2 the check failed.`,
		Example: `  palisade workflow lint audit.yaml
  palisade workflow lint workflows/*.yaml -o json
  palisade workflow lint --online audit.yaml`,
		Args: definitionFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			lint := func(source []byte) ([]fileProblem, error) { return lintHere(source), nil }
			if online {
				r, err := openRegistry(cmd.Context(), flags, std)
				if err != nil {
					return err
				}
				lint = func(source []byte) ([]fileProblem, error) {
					var answer struct{ Problems []fileProblem }
					_, err := r.call(cmd.Context(), http.MethodPost, map[string]string{"definition": string(source)}, &answer, "lint")
					return answer.Problems, err
				}
			}
			return lintFiles(std, args, output, lint)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&online, "online", false, "validate on the server")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table (FILE:LINE: step NAME: problem) or json")
	return cmd
}

func lintHere(source []byte) []fileProblem {
	var out []fileProblem
	for _, p := range services.LintWorkflow(source) {
		out = append(out, fileProblem{Line: p.Line, Step: p.Step, Text: p.Text})
	}
	return out
}

func lintFiles(std streams, names []string, output string, lint func([]byte) ([]fileProblem, error)) error {
	all := []fileProblem{}
	for _, name := range names {
		source, err := readDefinition(std, name)
		if err != nil {
			return err
		}
		problems, err := lint(source)
		if err != nil {
			return err
		}
		for _, p := range problems {
			p.File = name
			all = append(all, p)
			if output == "json" {
				continue
			}
			step := ""
			if p.Step != "" {
				step = "step " + p.Step + ": "
			}
			_, _ = fmt.Fprintf(std.out, "%s:%d: %s\n", printable(p.File), p.Line, printable(step+p.Text))
		}
	}
	if output == "json" {
		text, err := json.Marshal(map[string]any{"problems": all})
		if err != nil {
			return err
		}
		if err := printJSON(std.out, text); err != nil {
			return err
		}
	}
	switch {
	case len(all) > 0:
		return errNo
	case output == "table":
		_, _ = fmt.Fprintln(std.err, "No problems.")
	}
	return nil
}
