package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/findings/printout"
)

func newCloses(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "closes",
		Short: "Confirm or reject closes that are held because they are too many at once",
		Long: `A scan that would close too many findings at once closes none of them at first: the closes are held, because
a broken scan looks the same. By default this is the case if a scan misses all open findings of its tool,
category and ref, ten or more, or more than 60 % of fifty or more. Findings whose files are gone do not count.

The next report that misses the same findings closes them. "palisade closes confirm" closes them at once,
"palisade closes reject" keeps them open. A finding that a later scan reports is no longer held.`,
		Example: `  palisade closes list --state pending
  palisade closes show 7
  palisade closes confirm 7 --note "the directory legacy/ is not scanned any more"
  palisade closes limits --project acme/web --share 80`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newClosesList(std), newClosesShow(std), newClosesConfirm(std), newClosesReject(std), newClosesLimits(std))
	return cmd
}

// heldCloses calls the API of held closes of one deployment.
type heldCloses struct{ *deploymentClient }

func openHeldCloses(ctx context.Context, flags clientFlags, std streams) (*heldCloses, error) {
	c, err := flags.newClient(std)
	if err != nil {
		return nil, err
	}
	slug, err := c.resolveDeployment(ctx, flags.deployment)
	return &heldCloses{&deploymentClient{client: c, deploymentID: slug}}, err
}

// call sends a request; body may be nil. It decodes the response into result.
func (h *heldCloses) call(ctx context.Context, method string, query url.Values, body any, result proto.Message, path ...string) error {
	raw, err := h.send(ctx, method, "api/v1", query, body, path...)
	if err != nil {
		return err
	}
	return decode(raw, result)
}

func newClosesList(std streams) *cobra.Command {
	var flags clientFlags
	var projectName, ref, state string
	var l listing
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List held closes, newest first",
		Example: `  palisade closes list --state pending
  palisade closes list --project acme/web --ref main -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := l.check(cmd); err != nil {
				return err
			}
			h, err := openHeldCloses(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			query := url.Values{}
			for name, value := range map[string]string{"project": projectName, "ref": ref, "state": state} {
				if value != "" {
					query.Set(name, value)
				}
			}
			return l.print(std, query, "held_closes", 1000, func(query url.Values) (json.RawMessage, error) {
				return h.send(cmd.Context(), http.MethodGet, "api/v1", query, nil, "held-closes")
			}, func(raw json.RawMessage) error {
				var page scansv1.ListHeldClosesResponse
				if err := decode(raw, &page); err != nil {
					return err
				}
				return printHeldCloses(std, page.GetHeldCloses())
			})
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&projectName, "project", "", "only closes in the project of this `name`")
	cmd.Flags().StringVar(&ref, "ref", "", "only closes on this branch or full ref")
	cmd.Flags().StringVar(&state, "state", "", "pending, confirmed, rejected or superseded")
	l.add(cmd, 100, "entries")
	return cmd
}

func printHeldCloses(std streams, list []*scansv1.HeldCloses) error {
	table := printout.NewTable(std.out)
	_, _ = fmt.Fprintln(table, "ID\tSTATE\tPROJECT\tREF\tTOOL\tCATEGORY\tCLOSES\tOPEN\tWAITING\tSCAN\tHELD\tBY\tNOTE")
	for _, c := range list {
		by := "-"
		if c.GetActorKind() != "" {
			by = fmt.Sprintf("%s %d", printable(c.GetActorKind()), c.GetActorId())
		}
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", c.GetId(), printable(c.GetState()), orDash(c.GetProject()),
			orDash(c.GetRef()), orDash(c.GetTool()), orDash(c.GetCategory()), c.GetFindings(), c.GetOpen(), c.GetWaiting(), c.GetScanId(),
			day(c.GetCreatedAt().AsTime()), by, orDash(c.GetNote()))
	}
	return table.Flush()
}

func newClosesShow(std streams) *cobra.Command {
	var flags clientFlags
	var output string
	var all bool
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show held closes with their findings",
		Example: `  palisade closes show 7
  palisade closes show 7 --all -o json`,
		Args: numbers("the id of held closes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			h, err := openHeldCloses(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			shown, err := h.show(cmd.Context(), args[0], all || output == "json")
			if err != nil {
				return err
			}
			if output == "json" {
				text, err := protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true}.Marshal(shown)
				if err == nil {
					_, err = fmt.Fprintf(std.out, "%s\n", text)
				}
				return err
			}
			if shown.GetCursor() != "" {
				_, _ = fmt.Fprintln(std.err, "There are more findings: use --all.")
			}
			return printHeldFindings(std, shown)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "all findings in the table, not only the first 100; JSON always has all")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return cmd
}

// show reads held closes with the first page of their findings, or with all pages.
func (h *heldCloses) show(ctx context.Context, id string, all bool) (*scansv1.GetHeldClosesResponse, error) {
	query := url.Values{}
	if all {
		query.Set("limit", "1000")
	}
	shown := &scansv1.GetHeldClosesResponse{}
	for {
		var page scansv1.GetHeldClosesResponse
		if err := h.call(ctx, http.MethodGet, query, nil, &page, "held-closes", id); err != nil {
			return nil, err
		}
		shown.HeldCloses, shown.Findings, shown.Cursor = page.GetHeldCloses(), append(shown.Findings, page.GetFindings()...), page.GetCursor()
		if !all || page.GetCursor() == "" {
			return shown, nil
		}
		query.Set("cursor", page.GetCursor())
	}
}

func printHeldFindings(std streams, shown *scansv1.GetHeldClosesResponse) error {
	if err := printHeldCloses(std, []*scansv1.HeldCloses{shown.GetHeldCloses()}); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(std.out)
	table := printout.NewTable(std.out)
	_, _ = fmt.Fprintln(table, "FINDING\tSTATUS\tWAITS\tSEVERITY\tRULE\tLOCATION\tWOULD BE\tREASON")
	for _, f := range shown.GetFindings() {
		waits := "no"
		if f.GetWaiting() {
			waits = "yes"
		}
		location := orDash(f.GetPath())
		if f.GetLine() > 0 {
			location += ":" + strconv.Itoa(int(f.GetLine()))
		}
		_, _ = fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", f.GetId(), printable(f.GetStatus()), waits, printable(f.GetSeverity()),
			orDash(f.GetRuleName()), location, printable(f.GetClosesAs()), printable(f.GetReason()))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if shown.GetCursor() != "" {
		_, _ = fmt.Fprintln(std.err, "There are more findings: --all shows them.")
	}
	return nil
}
