package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

func newPolicyDiff(std streams) *cobra.Command {
	var flags clientFlags
	cmd := &cobra.Command{
		Use:   "diff FILE",
		Short: "Compare a file of policies with the server",
		Long: `Compare a file of policies with the server; - is the standard input. The exit status is 0 without changes, 3 with changes
and 2 after an error.`,
		Args: policyFileArg,
		RunE: func(cmd *cobra.Command, args []string) error { return applyPolicies(cmd, flags, std, args[0], true) },
	}
	flags.add(cmd)
	return cmd
}

func newPolicyApply(std streams) *cobra.Command {
	var flags clientFlags
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Make the policies of the server equal to a file",
		Long: `Make the policies of the server equal to a file; - is the standard input. All sections are checked before the first is
applied: if the file has versions, the server must still have them. A section is applied as a whole or not at all, if
the server still has what was compared. In the end all sections must be those of the file; if somebody else has changed
one meanwhile, the exit status is 2. Without differences nothing is sent. A file that was pulled with --partial, or a
token that does not see all projects, cannot apply.`,
		Args: policyFileArg,
		RunE: func(cmd *cobra.Command, args []string) error { return applyPolicies(cmd, flags, std, args[0], dryRun) },
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing; the exit status is that of diff")
	return cmd
}

// partialWarning is the code of the warning that the token does not see all projects.
const partialWarning = "PARTIAL"

// policyChanges is the answer to a dry run.
type policyChanges struct {
	Creates, Updates, Deletes []policyChange
	Version                   string `json:"state_version"`
	Errors                    []struct {
		Code, Message string
	} `json:"validation_errors"`
	Warnings []struct{ Code, Message string }
}

func (c *policyChanges) count() int { return len(c.Creates) + len(c.Updates) + len(c.Deletes) }

type policyChange struct {
	Kind          string
	Key           map[string]string
	Before, After json.RawMessage
	OpenFindings  int `json:"open_findings"`
	Starts, Stops []string
}

// applyPolicies compares all sections of a file with the server, and applies the ones that differ.
func applyPolicies(cmd *cobra.Command, flags clientFlags, std streams, name string, dryRun bool) error {
	file, err := readPolicies(std, name)
	if err != nil {
		return err
	}
	if file.partial() && !dryRun {
		return errors.New("the file was pulled by a token that does not see all projects (partial: true), so applying it could delete " +
			"policies about the others: pull it with the token of an administrator; nothing is applied")
	}
	d, err := openDeployment(cmd.Context(), flags, std)
	if err != nil {
		return err
	}
	changes, err := comparePolicies(cmd.Context(), d, file)
	if err != nil {
		return err
	}
	total, partial := 0, false
	var stale []string
	for _, section := range policySections {
		change := changes[section.name]
		if change == nil {
			continue
		}
		for _, warning := range change.Warnings {
			if warning.Code != partialWarning || !partial { // all sections say it
				printWarning(std.err, warning.Message)
			}
			partial = partial || warning.Code == partialWarning
		}
		if change.count() == 0 {
			continue
		}
		total += change.count()
		change.print(std.out, section.name)
		if pulled := file.Versions[section.name]; pulled != "" && pulled != change.Version {
			stale = append(stale, section.name)
		}
	}
	switch {
	case len(stale) > 0:
		return fmt.Errorf("somebody has changed the policies after the file was pulled (%s): pull again, or remove versions from the file; nothing is applied", strings.Join(stale, ", "))
	case partial && !dryRun:
		return errors.New("the token does not see all projects, so it cannot apply: use the token of an administrator; nothing is applied")
	case total == 0 && partial:
		_, err = fmt.Fprintln(std.out, "no changes in what the token sees")
		return err
	case total == 0:
		_, err = fmt.Fprintln(std.out, "no changes")
		return err
	case dryRun:
		return errChanges
	}
	if err := file.put(cmd.Context(), d, changes); err != nil {
		return err
	}
	_, err = fmt.Fprintln(std.out, plural(int64(total), "change", "changes")+" applied")
	return err
}

// put applies the sections that differ. It then requires that the server has all sections of the file: another apply
// may have changed one while this one changed others.
func (f *policyFile) put(ctx context.Context, d *deploymentClient, changes map[string]*policyChanges) error {
	var applied []string
	failed := func(section policySection, err error) error {
		if len(applied) == 0 {
			return fmt.Errorf("%s: %w; nothing is applied", section.name, err)
		}
		return fmt.Errorf("%s: %w; applied are %s", section.name, err, strings.Join(applied, ", "))
	}
	versions := map[string]string{}
	for _, section := range policySections {
		change := changes[section.name]
		if change == nil {
			continue
		}
		versions[section.name] = change.Version
		if change.count() == 0 {
			continue
		}
		answer := &policyVersion{}
		if err := policyCall(ctx, d, http.MethodPut, section.path, change.Version, f.Policies[section.name], answer); err != nil {
			return failed(section, err)
		}
		versions[section.name] = answer.Version
		applied = append(applied, section.name)
	}
	for _, section := range policySections {
		answer := &policyVersion{}
		if versions[section.name] == "" {
			continue
		}
		if err := policyCall(ctx, d, http.MethodGet, section.path, "", nil, answer); err != nil {
			return failed(section, err)
		}
		if answer.Version != versions[section.name] {
			return failed(section, errors.New("somebody else has changed these policies meanwhile: compare again"))
		}
	}
	return nil
}

// policyVersion is the part of an answer that says which state the server has.
type policyVersion struct {
	Version string `json:"state_version"`
}

func readPolicies(std streams, name string) (*policyFile, error) {
	in := std.in
	if name != "-" {
		opened, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = opened.Close() }()
		in = opened
	}
	source, err := io.ReadAll(io.LimitReader(in, maxPolicyFile+1))
	if err != nil {
		return nil, err
	}
	return decodePolicies(source)
}

// comparePolicies previews all sections. It returns all errors of the file together.
func comparePolicies(ctx context.Context, d *deploymentClient, file *policyFile) (map[string]*policyChanges, error) {
	changes := map[string]*policyChanges{}
	var problems []string
	for _, section := range policySections {
		bundle := file.Policies[section.name]
		if bundle == nil {
			continue
		}
		change := &policyChanges{}
		if err := policyCall(ctx, d, http.MethodPost, section.path+":dryRun", "", bundle, change); err != nil {
			return nil, fmt.Errorf("%s: %w", section.name, err)
		}
		for _, problem := range change.Errors {
			problems = append(problems, section.name+": "+printable(problem.Message)+" ("+printable(problem.Code)+")")
		}
		changes[section.name] = change
	}
	if len(problems) > 0 {
		return nil, errors.New("the file is refused:\n  - " + strings.Join(problems, "\n  - "))
	}
	return changes, nil
}

// print lists changes: + for new, ~ for changed and - for deleted objects.
func (c *policyChanges) print(out io.Writer, section string) {
	for _, group := range []struct {
		sign string
		list []policyChange
	}{{"+", c.Creates}, {"~", c.Updates}, {"-", c.Deletes}} {
		for _, change := range group.list {
			_, _ = fmt.Fprintf(out, "%s %s\n", group.sign, printable(strings.Join(change.name(section), " ")))
			if change.Kind == "remediation_policy" {
				_, _ = fmt.Fprintf(out, "    open findings: %d\n", change.OpenFindings)
			} else {
				_, _ = fmt.Fprintf(out, "    rules start: %d, stop: %d, open findings: %d\n", len(change.Starts), len(change.Stops), change.OpenFindings)
			}
			if group.sign == "~" {
				_, _ = fmt.Fprintf(out, "    before: %s\n    after:  %s\n", printable(string(change.Before)), printable(string(change.After)))
			}
		}
	}
}

func (c *policyChange) name(section string) []string {
	name := []string{section}
	for _, key := range []string{"slug", "scope_type", "scope_target", "rule_type", "rule"} {
		if c.Key[key] != "" {
			name = append(name, c.Key[key])
		}
	}
	return name
}
