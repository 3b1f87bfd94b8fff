package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
)

func newDoctor(std streams) *cobra.Command {
	var ci bool
	var output string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check configuration, database, migrations, key and clock; with --ci, a CI job",
		Long: `Check everything that a server with these settings needs, and print a remedy for each failure. Nothing is changed.
Exit status 2 if a check fails.

With --ci, check from inside a CI job whether a scan of this job can fail it: address, TLS, clock, token, scope, rules,
size of results, scanner, error handling and checkout. It reads SEMGREP_URL and SEMGREP_APP_TOKEN as the scanner does,
else PALISADE_URL and PALISADE_TOKEN. It needs no database and stores no scan. Exit status 1 if the gate does not hold.`,
		Example: `  palisade doctor
  palisade doctor --config /etc/palisade.yaml
  palisade doctor --ci                     # in a job, before semgrep ci
  palisade doctor --ci -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			if ci {
				return runCI(cmd.Context(), std, output)
			}
			if output != "table" {
				return usagef("--output is for --ci only")
			}
			cfg, err := config.Load(cmd.Flags(), std.environ)
			if err == nil {
				err = cfg.Validate()
			}
			checks := configChecks(err)
			// If the broken settings do not concern the store, the store can still be checked.
			if err == nil || cfg.ValidateStore() == nil {
				checks = append(checks, services.Doctor(cmd.Context(), cfg)...)
			}
			if !printChecks(std.out, checks) {
				return errReported
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&ci, "ci", false, "check a CI job instead of a server")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json, with --ci")
	config.AddFlags(cmd.Flags())
	cmd.Flags().SortFlags = false
	return cmd
}

func configChecks(err error) []services.Check {
	if err == nil {
		return []services.Check{{Name: "configuration", OK: true, Detail: "complete, and free of unknown keys"}}
	}
	var checks []services.Check
	for _, problem := range problems(err) {
		checks = append(checks, services.Check{
			Name: "configuration", Detail: problem,
			Fix: "correct the flag, environment variable or file; every key is in: palisade serve --help",
		})
	}
	return checks
}

// printChecks writes one line per check, with the remedy below each failed one. It returns whether all checks passed.
func printChecks(w io.Writer, checks []services.Check) bool {
	width := 0
	for _, c := range checks {
		width = max(width, len(c.Name))
	}
	well := true
	for _, c := range checks {
		mark := "ok    "
		if !c.OK {
			mark, well = "FAILED", false
		}
		_, _ = fmt.Fprintf(w, "%s  %-*s  %s\n", mark, width, c.Name, printable(c.Detail))
		if !c.OK && c.Fix != "" {
			_, _ = fmt.Fprintf(w, "%s  to do: %s\n", strings.Repeat(" ", 6+2+width), printable(c.Fix))
		}
	}
	return well
}
