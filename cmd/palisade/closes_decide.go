package main

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/findings/printout"
)

func newClosesConfirm(std streams) *cobra.Command {
	return closesDecider(std, &cobra.Command{
		Use:   "confirm ID",
		Short: "Close the findings whose closes are held",
		Long: `Close the findings whose closes are held: those that are still open and that no scan has reported since. Their
history says who confirmed.`,
		Example: `  palisade closes show 7
  palisade closes confirm 7 --note "the rules for PHP are off"`,
		Args: numbers("the id of held closes"),
	}, func(h *heldCloses, cmd *cobra.Command, id, note string) (string, error) {
		var answer scansv1.ConfirmHeldClosesResponse
		err := h.call(cmd.Context(), http.MethodPost, nil, map[string]string{"note": note}, &answer, "held-closes", id, "confirm")
		return fmt.Sprintf("Closed %d of %d findings.", answer.GetClosed(), answer.GetHeldCloses().GetFindings()), err
	})
}

func newClosesReject(std streams) *cobra.Command {
	return closesDecider(std, &cobra.Command{
		Use:   "reject ID",
		Short: "Keep the findings open whose closes are held",
		Long: `Keep the findings open whose closes are held. While the tool has the same version, further scans that miss these
findings do not close them either: their closes are held again, until a person confirms or a scan reports them.`,
		Example: `  palisade closes reject 7 --note "the scanner had no licence"`,
		Args:    numbers("the id of held closes"),
	}, func(h *heldCloses, cmd *cobra.Command, id, note string) (string, error) {
		var answer scansv1.RejectHeldClosesResponse
		err := h.call(cmd.Context(), http.MethodPost, nil, map[string]string{"note": note}, &answer, "held-closes", id, "reject")
		return fmt.Sprintf("%d findings stay open.", answer.GetKept()), err
	})
}

// closesDecider adds --note to a command that decides about held closes.
func closesDecider(std streams, cmd *cobra.Command, send func(h *heldCloses, cmd *cobra.Command, id, note string) (string, error)) *cobra.Command {
	var flags clientFlags
	var note string
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		h, err := openHeldCloses(cmd.Context(), flags, std)
		if err != nil {
			return err
		}
		outcome, err := send(h, cmd, args[0], note)
		if err == nil {
			_, err = fmt.Fprintln(std.out, outcome)
		}
		return err
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&note, "note", "", "reason, stored in the history of the findings")
	return cmd
}

func newClosesLimits(std streams) *cobra.Command {
	var flags clientFlags
	var projectName string
	var off, on, reset bool
	var allOf, share, shareOf int32
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Show or change from how many closes on a scan is held",
		Long: `Show the limits of the deployment, or of a project with --project. With one of the other flags, change them first;
this needs an administrator. Limits that a project does not set come from the deployment.`,
		Example: `  palisade closes limits
  palisade closes limits --project acme/web --share 80 --share-of 200
  palisade closes limits --project acme/sandbox --off
  palisade closes limits --project acme/sandbox --reset`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := openHeldCloses(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			limits := map[string]any{}
			for name, value := range map[string]any{"all-of": allOf, "share": share, "share-of": shareOf} {
				if cmd.Flags().Changed(name) {
					limits[map[string]string{"all-of": "all_of", "share": "share", "share-of": "share_of"}[name]] = value
				}
			}
			if off || on {
				limits["off"] = off
			}
			var answer scansv1.UpdateCloseLimitsResponse
			if reset || len(limits) > 0 {
				body := map[string]any{"project": projectName, "limits": limits, "reset": reset}
				err = h.call(cmd.Context(), http.MethodPatch, nil, body, &answer, "close-limits")
			} else {
				err = h.call(cmd.Context(), http.MethodGet, url.Values{"project": {projectName}}, nil, &answer, "close-limits")
			}
			if err != nil {
				return err
			}
			return printLimits(std, &answer)
		},
	}
	flags.add(cmd)
	cmd.Flags().StringVar(&projectName, "project", "", "limits of the project of this `name`")
	cmd.Flags().BoolVar(&off, "off", false, "hold no closes")
	cmd.Flags().BoolVar(&on, "on", false, "hold closes again")
	cmd.Flags().Int32Var(&allOf, "all-of", 10, "hold closes of all open findings from this `number` on")
	cmd.Flags().Int32Var(&share, "share", 60, "hold closes of more than this `percentage` of the open findings; 100: do not")
	cmd.Flags().Int32Var(&shareOf, "share-of", 50, "`number` of open findings from which on the share counts")
	cmd.Flags().BoolVar(&reset, "reset", false, "remove the limits that are set here, before the other flags")
	cmd.MarkFlagsMutuallyExclusive("on", "off")
	return cmd
}

// printLimits prints the limits in effect, and where they come from.
func printLimits(std streams, limits *scansv1.UpdateCloseLimitsResponse) error {
	table := printout.NewTable(std.out)
	_, _ = fmt.Fprintln(table, "LIMIT\tVALUE\tSET HERE")
	own, effective := limits.GetOwn(), limits.GetEffective()
	for _, row := range []struct {
		name  string
		value any
		set   bool
	}{
		{"off", effective.GetOff(), own != nil && own.Off != nil}, {"all-of", effective.GetAllOf(), own != nil && own.AllOf != nil},
		{"share", effective.GetShare(), own != nil && own.Share != nil}, {"share-of", effective.GetShareOf(), own != nil && own.ShareOf != nil},
	} {
		set := "no"
		if row.set {
			set = "yes"
		}
		_, _ = fmt.Fprintf(table, "%s\t%v\t%s\n", row.name, row.value, set)
	}
	return table.Flush()
}
