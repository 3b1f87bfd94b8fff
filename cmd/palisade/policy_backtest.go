package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
	"github.com/palisade/palisade/services/findings/printout"
	"github.com/palisade/palisade/services/policies/remediation"
)

// defaultBackTest is the number of days of a back-test.
const defaultBackTest = 90

func newPolicyBackTest(std streams) *cobra.Command {
	var flags clientFlags
	var days int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "back-test [FILE]",
		Short: "Replay past scans with remediation policies",
		Long: `Replay the scans of the last days with the remediation policies of a file, or without a file with those of the server,
and print what would have happened; - is the standard input. Changes nothing. The exit status is 0 if nothing would have
blocked, 3 if something would have, and 2 after an error.`,
		Example: `  palisade policy back-test policies.yaml --days 30
  palisade policy back-test --json | jq .actions`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("want at most one file, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return backTest(cmd, flags, std, args, days, asJSON) },
	}
	flags.add(cmd)
	cmd.Flags().IntVar(&days, "days", defaultBackTest, "number of days, up to 365")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the answer of the server as JSON")
	return cmd
}

func backTest(cmd *cobra.Command, flags clientFlags, std streams, args []string, days int, asJSON bool) error {
	if days < 1 {
		return usagef("--days must be at least 1, got %d", days)
	}
	body := map[string]any{"days": days}
	if len(args) > 0 {
		file, err := readPolicies(std, args[0])
		if err != nil {
			return err
		}
		if file.Policies[remediationSection] == nil {
			return errors.New("the file has no section remediation")
		}
		body["bundle"] = file.Policies[remediationSection]
	}
	d, err := openDeployment(cmd.Context(), flags, std)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(std.err, "replaying %s…\n", plural(int64(days), "day", "days"))
	raw, err := d.send(cmd.Context(), http.MethodPost, "api/policies/v2", nil, body, "remediation-policies:backTest")
	if err != nil {
		return err
	}
	var answer policiesv1.BackTestRemediationPoliciesResponse
	if err := decode(raw, &answer); err != nil {
		return err
	}
	if err := refusedBundle(answer.GetValidationErrors()); err != nil {
		return err
	}
	for _, warning := range answer.GetWarnings() {
		printWarning(std.err, warning.GetMessage())
	}
	if asJSON {
		_, err = fmt.Fprintf(std.out, "%s\n", raw)
	} else {
		err = printBackTest(std.out, &answer)
	}
	if err != nil {
		return err
	}
	for _, count := range answer.GetActions() {
		if count.GetAction() == remediation.ActionBlock {
			return errChanges
		}
	}
	return nil
}

// refusedBundle returns all errors of a bundle as one.
func refusedBundle(problems []*policiesv1.BundleValidationError) error {
	if len(problems) == 0 {
		return nil
	}
	lines := make([]string, len(problems))
	for i, problem := range problems {
		lines[i] = "\n  - " + remediationSection + ": " + printable(problem.GetMessage()) + " (" + printable(problem.GetCode()) + ")"
	}
	return errors.New("the file is refused:" + strings.Join(lines, ""))
}

func printWarning(out io.Writer, text string) {
	_, _ = fmt.Fprintln(out, "palisade: warning: "+printable(text))
}

// printBackTest prints tables for people.
func printBackTest(out io.Writer, answer *policiesv1.BackTestRemediationPoliciesResponse) error {
	_, _ = fmt.Fprintf(out, "%s to %s: %s, %s\n", day(answer.GetFrom().AsTime()), day(answer.GetTo().AsTime()),
		plural(int64(answer.GetScans()), "scan", "scans"), plural(int64(answer.GetFindings()), "finding", "findings"))
	if len(answer.GetActions()) == 0 {
		_, _ = fmt.Fprintln(out, "nothing would have happened")
	}
	table := printout.NewTable(out)
	rows := func(title string, name func(i int) (string, []*policiesv1.BackTestCount, bool)) {
		for i := 0; ; i++ {
			of, counts, ok := name(i)
			if !ok {
				return
			}
			if i == 0 {
				_, _ = fmt.Fprintf(table, "\n%s\tACTION\tSCANS\tFINDINGS\n", title)
			}
			for _, c := range counts {
				_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%d\n", orDash(of), printable(c.GetAction()), c.GetScans(), c.GetFindings())
			}
		}
	}
	rows("ALL", listed(answer.GetActions(), func(c *policiesv1.BackTestCount) (string, []*policiesv1.BackTestCount) {
		return "all", []*policiesv1.BackTestCount{c}
	}))
	rows("POLICY", listed(answer.GetPolicies(), func(of *policiesv1.BackTestPolicy) (string, []*policiesv1.BackTestCount) {
		return of.GetSlug(), of.GetActions()
	}))
	rows("PROJECT", listed(answer.GetProjects(), func(of *policiesv1.BackTestProject) (string, []*policiesv1.BackTestCount) {
		return of.GetProject(), of.GetActions()
	}))
	rows("DAY", listed(answer.GetDays(), func(of *policiesv1.BackTestDay) (string, []*policiesv1.BackTestCount) {
		return of.GetDay(), of.GetActions()
	}))
	printBackTestRules(table, answer.GetRules())
	if err := table.Flush(); err != nil {
		return err
	}
	for _, limit := range answer.GetLimits() {
		_, _ = fmt.Fprintln(out, "note: "+printable(limit))
	}
	return nil
}

// listed yields the rows of a list by their positions.
func listed[T any](list []T, row func(T) (string, []*policiesv1.BackTestCount)) func(int) (string, []*policiesv1.BackTestCount, bool) {
	return func(i int) (string, []*policiesv1.BackTestCount, bool) {
		if i >= len(list) {
			return "", nil, false
		}
		name, counts := row(list[i])
		return name, counts, true
	}
}

func printBackTestRules(table io.Writer, rules []*policiesv1.BackTestRule) {
	for i, rule := range rules {
		if i == 0 {
			_, _ = fmt.Fprint(table, "\nRULE\tACTION\tSCANS\tFINDINGS\n")
		}
		for _, c := range rule.GetActions() {
			_, _ = fmt.Fprintf(table, "%s\t%s\t\t%d\n", orDash(rule.GetRule()), printable(c.GetAction()), c.GetFindings())
		}
	}
}
