package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/findings/printout"
)

func newSupport(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "support",
		Short: "List and work the support cases of a deployment",
		Long: `List and work the support cases of a deployment. An administrator sees all cases, other users see their own.

list and show need a user token (JWT), because the API shows cases to people only: palisade jwt mints one. update also
takes an API token of an administrator.`,
		Example: `  PALISADE_TOKEN=$(palisade jwt --email ada@example.com) palisade support list
  palisade support show 12
  palisade support update 12 --status in_progress --owner ada@example.com`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSupportList(std), newSupportShow(std), newSupportUpdate(std))
	return cmd
}

// supportCall sends a request about the cases of the deployment; body may be nil.
func (d *deploymentClient) supportCall(ctx context.Context, method string, query url.Values, body []byte, path ...string) (raw json.RawMessage, err error) {
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	req, err := d.request(ctx, method, query, content, append([]string{"api", "support", "cases", d.deploymentID}, path...)...)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	err = d.do(req, &raw)
	return raw, err
}

// supportCases reads pages until each returns false.
func (d *deploymentClient) supportCases(ctx context.Context, each func(*platformv1.SupportCase) bool) error {
	query := url.Values{}
	for {
		raw, err := d.supportCall(ctx, http.MethodGet, query, nil)
		if err != nil {
			return err
		}
		page := &platformv1.ListSupportCasesResponse{}
		if err := decode(raw, page); err != nil {
			return err
		}
		for _, c := range page.GetSupportCases() {
			if !each(c) {
				return nil
			}
		}
		if page.GetCursor() == "" {
			return nil
		}
		query.Set("cursor", page.GetCursor())
	}
}

func newSupportList(std streams) *cobra.Command {
	var flags clientFlags
	var output string
	var all bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the cases that are not closed, newest first",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			d, err := openDeployment(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			list := &platformv1.ListSupportCasesResponse{}
			err = d.supportCases(cmd.Context(), func(c *platformv1.SupportCase) bool {
				if all || c.GetStatus() != "closed" {
					list.SupportCases = append(list.SupportCases, c)
				}
				return true
			})
			if err != nil {
				return err
			}
			if output == "json" {
				_, err = fmt.Fprintf(std.out, "%s\n", list.AppendJSON(nil))
				return err
			}
			return printCases(std, list.GetSupportCases()...)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "closed cases, too")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

func newSupportShow(std streams) *cobra.Command {
	var flags clientFlags
	cmd := &cobra.Command{
		Use:   "show NUMBER",
		Short: "Show a case with its whole text",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := openDeployment(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			var found *platformv1.SupportCase
			err = d.supportCases(cmd.Context(), func(c *platformv1.SupportCase) bool {
				if c.GetCaseNumber() == args[0] {
					found = c
				}
				return found == nil
			})
			if err != nil {
				return err
			}
			if found == nil {
				return fmt.Errorf("there is no case %s that this user may see", printable(args[0]))
			}
			lines := strings.Split(found.GetDescription(), "\n")
			for i, line := range lines {
				lines[i] = printable(line)
			}
			_, err = fmt.Fprintf(std.out, "Case %s: %s\nType: %s\nPriority: %s\nStatus: %s\nOwner: %s\nAnswer to: %s\nOpened: %s\nChanged: %s\n\n%s\n",
				printable(found.GetCaseNumber()), printable(found.GetSubject()), printable(found.GetCaseType()), printable(found.GetPriority()),
				printable(found.GetStatus()), orDash(found.GetCaseOwner()), printable(found.GetEmail()), instant(found.GetCreatedAt().AsTime()), instant(found.GetUpdatedAt().AsTime()),
				strings.Join(lines, "\n"))
			return err
		},
	}
	flags.add(cmd)
	return cmd
}

func newSupportUpdate(std streams) *cobra.Command {
	var flags clientFlags
	change := &platformv1.UpdateSupportCaseRequest{}
	cmd := &cobra.Command{
		Use:   "update NUMBER",
		Short: "Change the status or the owner of a case",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if change.GetStatus() == "" && change.GetCaseOwner() == "" && !change.GetRemoveOwner() {
				return usagef("nothing to change: give --status, --owner or --no-owner")
			}
			if _, err := strconv.ParseUint(args[0], 10, 63); err != nil {
				return usagef("got %q, want the number of a case", args[0])
			}
			d, err := openDeployment(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			body, err := protojson.Marshal(change)
			if err != nil {
				return err
			}
			raw, err := d.supportCall(cmd.Context(), http.MethodPatch, nil, body, args[0])
			if err != nil {
				return err
			}
			out := &platformv1.UpdateSupportCaseResponse{}
			if err := decode(raw, out); err != nil {
				return err
			}
			return printCases(std, out.GetSupportCase())
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&change.Status, "status", "", "open, in_progress or closed")
	cmd.Flags().StringVar(&change.CaseOwner, "owner", "", "who works on it, such as a name or an e-mail address")
	cmd.Flags().BoolVar(&change.RemoveOwner, "no-owner", false, "nobody works on it any more")
	cmd.MarkFlagsMutuallyExclusive("owner", "no-owner")
	return cmd
}

func printCases(std streams, list ...*platformv1.SupportCase) error {
	table := printout.NewTable(std.out)
	_, _ = fmt.Fprintln(table, "NUMBER\tSTATUS\tPRIORITY\tTYPE\tOWNER\tOPENED\tSUBJECT")
	for _, c := range list {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", printable(c.GetCaseNumber()), printable(c.GetStatus()), printable(c.GetPriority()),
			printable(c.GetCaseType()), orDash(c.GetCaseOwner()), day(c.GetCreatedAt().AsTime()), printable(c.GetSubject()))
	}
	return table.Flush()
}
