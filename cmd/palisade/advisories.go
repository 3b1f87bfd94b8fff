package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services/findings/printout"
)

func newAdvisories(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "advisories",
		Short: "Import and list the advisories of the malware firewall, and check packages",
		Long: `Import, list and query the advisories of the malware firewall. They come from files in the OSV format
(https://ossf.github.io/osv-schema), one advisory per file. An advisory that marks a package as malicious blocks
its installation; see docs/malware-firewall.md.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAdvisoriesImport(std), newAdvisoriesList(std), newAdvisoriesCheck(std))
	return cmd
}

// shownAdvisory is an advisory as the API returns it.
type shownAdvisory struct {
	ID          string     `json:"id"`
	Title       string     `json:"title"`
	Malicious   bool       `json:"malicious"`
	ModifiedAt  time.Time  `json:"modifiedAt"`
	WithdrawnAt *time.Time `json:"withdrawnAt"`
	Packages    []struct {
		Ecosystem string `json:"ecosystem"`
		Package   string `json:"package"`
	} `json:"packages"`
}

// effect returns what the advisory does to an installation.
func (a shownAdvisory) effect() string {
	switch {
	case a.WithdrawnAt != nil:
		return "withdrawn"
	case a.Malicious:
		return "blocks"
	}
	return "does not block"
}

func (a shownAdvisory) about() string {
	const most = 3
	var names []string
	for i, p := range a.Packages {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(a.Packages)-most))
			break
		}
		names = append(names, printable(p.Ecosystem+" "+p.Package))
	}
	return strings.Join(names, ", ")
}

func printAdvisories(std streams, list []shownAdvisory) error {
	table := printout.NewTable(std.out)
	_, _ = fmt.Fprintln(table, "ID\tEFFECT\tMODIFIED\tPACKAGES\tTITLE")
	for _, a := range list {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", printable(a.ID), a.effect(), day(a.ModifiedAt), a.about(), printable(a.Title))
	}
	return table.Flush()
}

// firewall is the malware firewall of one deployment.
type firewall struct {
	*client
	deploymentID string
}

func openFirewall(ctx context.Context, flags clientFlags, std streams) (*firewall, error) {
	c, err := flags.newClient(std)
	if err != nil {
		return nil, err
	}
	id, err := c.deploymentID(ctx, flags.deployment)
	return &firewall{client: c, deploymentID: id}, err
}

func (f *firewall) get(ctx context.Context, query url.Values, result any, path ...string) error {
	req, err := f.request(ctx, http.MethodGet, query, nil, append([]string{"api", "sca", "deployments", f.deploymentID}, path...)...)
	if err != nil {
		return err
	}
	return f.do(req, result)
}

func newAdvisoriesList(std streams) *cobra.Command {
	var flags clientFlags
	var ecosystem, name string
	var l listing
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the imported advisories, newest import first",
		Example: `  palisade advisories list --limit 20
  palisade advisories list --ecosystem npm --package left-pad -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.check(cmd); err != nil {
				return err
			}
			firewall, err := openFirewall(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			list, more, err := firewall.list(cmd.Context(), ecosystem, name, l.size())
			if err != nil {
				return err
			}
			if l.output == "json" {
				err = json.NewEncoder(std.out).Encode(list)
			} else {
				err = printAdvisories(std, list)
			}
			return errors.Join(err, l.more(std, more))
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&ecosystem, "ecosystem", "", "only advisories about packages of this ecosystem: npm, pypi, gomod, …")
	cmd.Flags().StringVar(&name, "package", "", "only advisories about this package; requires --ecosystem")
	l.add(cmd, 100, "advisories")
	return cmd
}

// list reads pages until it has limit advisories, or all for 0, and says whether there are more.
func (f *firewall) list(ctx context.Context, ecosystem, name string, limit int) (list []shownAdvisory, more bool, err error) {
	const most = 500 // page size
	list = []shownAdvisory{}
	for cursor := ""; ; {
		size := most
		if limit > 0 {
			size = min(limit-len(list), most)
		}
		query := url.Values{"limit": {strconv.Itoa(size)}}
		for key, value := range map[string]string{"ecosystem": ecosystem, "package": name, "cursor": cursor} {
			if value != "" {
				query.Set(key, value)
			}
		}
		var page struct {
			Advisories []shownAdvisory
			Cursor     string
		}
		if err := f.get(ctx, query, &page, "advisories"); err != nil {
			return nil, false, err
		}
		list = append(list, page.Advisories...)
		if cursor = page.Cursor; cursor == "" || limit > 0 && len(list) >= limit {
			return list, cursor != "", nil
		}
	}
}

func newAdvisoriesCheck(std streams) *cobra.Command {
	var flags clientFlags
	cmd := &cobra.Command{
		Use:   "check ECOSYSTEM PACKAGE VERSION",
		Short: "Check whether a package may be installed",
		Long: `Check whether a version of a package may be installed, and print all advisories about it. Nothing is recorded.

Exit status: 0 allowed; 1 blocked; 2 an error.`,
		Example: `  palisade advisories check npm left-pad 1.3.0
  palisade advisories check maven com.acme:util 2.0.1`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 3 {
				return usagef("want an ecosystem, a package and a version, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			firewall, err := openFirewall(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			var answer struct {
				Verdict    string
				Advisories []shownAdvisory
			}
			query := url.Values{"ecosystem": {args[0]}, "package": {args[1]}, "version": {args[2]}}
			if err := firewall.get(cmd.Context(), query, &answer, "advisories", "lookup"); err != nil {
				return err
			}
			blocked := answer.Verdict == "INSTALL_VERDICT_BLOCK"
			word := "may be installed"
			if blocked {
				word = "is malicious: it is blocked"
			}
			if _, err := fmt.Fprintf(std.out, "%s %s %s %s.\n", printable(args[0]), printable(args[1]), printable(args[2]), word); err != nil {
				return err
			}
			if len(answer.Advisories) > 0 {
				err = printAdvisories(std, answer.Advisories)
			}
			if blocked {
				return errors.Join(err, errNo)
			}
			return err
		},
	}
	flags.add(cmd)
	return cmd
}
