package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
)

// errNo ends a command with the status of a "no" after it has printed what it found.
var errNo = errors.New("no")

func newAudit(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Verify, anchor, list and export the audit trail: who changed what",
		Long: `The audit trail has an entry for each call that changed something, that could have and was refused or failed,
and for each change by a background job or a source-code host. The entries of a deployment are a chain: each holds
a keyed hash of itself and of the one before, so that one that is edited or removed is found.

These commands read the store itself, so they run where the server runs and with its settings; no token is needed.
The server may run meanwhile. Through the API: GET /api/audit/v1/deployments/{deploymentId}/entries.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAuditVerify(std), newAuditAnchor(std), newAuditList(std), newAuditExport(std), newAuditBegin(std))
	return cmd
}

func newAuditVerify(std streams) *cobra.Command {
	var known string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that no entry was edited or removed",
		Long: `Walk the audit trail of every deployment, or of one, from its beginning, and report the first place where an entry
was edited, added or removed, or where the end was cut off, and what is wrong beside the chain: entries that were taken
out of it, a head or a record that is gone, a trail that was emptied.

Exit status: 0 when all trails are whole, 1 when one is broken, 2 when it could not be found out.

What the database alone cannot show: that all of it, or a whole trail, was put back from an older copy. Keep anchors
elsewhere (palisade audit anchor, or the setting audit-anchor) and compare with --known: what was there then must still be
there. Without --known, the file of the setting audit-anchor is taken, if that is a file.`,
		Example: `  palisade audit verify
  palisade audit verify --known /mnt/elsewhere/anchors.ndjson
  palisade audit verify --deployment acme --known 1204:9f2c…   # the end of an earlier verification`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			slug := chosenDeployment(cmd, cfg)
			what, err := parseKnown(known)
			if err != nil {
				return err
			}
			if what.Anchor.Sequence != 0 && slug == "" {
				return usagef("--known: name the deployment, too: --deployment SLUG")
			}
			p := verifyPrinter{std: std, live: isTerminal(std.err)}
			if err := services.VerifyAudit(cmd.Context(), cfg, slug, what, p.progress, p.report); err != nil {
				return err
			}
			if p.broken {
				return errNo
			}
			return nil
		},
	}
	addOneDeployment(cmd, append(slices.Clone(storeKeys), "audit-anchor"))
	cmd.Flags().StringVar(&known, "known", "", "what must be there: `SEQUENCE:HASH` of an entry, as an earlier verification printed it, or a file of lines of palisade audit anchor")
	return cmd
}

// addOneDeployment adds the settings, with --deployment as a choice.
func addOneDeployment(cmd *cobra.Command, keys []string) {
	config.AddFlags(cmd.Flags(), keys...)
	cmd.Flags().Lookup("deployment").Usage = "slug of one deployment; all of them without this flag"
	cmd.Flags().Lookup("deployment").DefValue = ""
}

// chosenDeployment is the slug that was chosen; empty for all.
func chosenDeployment(cmd *cobra.Command, cfg config.Config) string {
	if cmd.Flags().Changed("deployment") {
		return cfg.Deployment
	}
	return ""
}

func newAuditAnchor(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "anchor",
		Short: "Print the ends of the audit trails, to be kept elsewhere",
		Long: `Print the end of the audit trail of every deployment, or of one, as a line of JSON: deployment, number and hash of the last
entry, the time, and a MAC. Keep the lines where who can change the database cannot: palisade audit verify --known FILE
proves later that everything up to there is still as it was. The server does it by itself: --audit-anchor.`,
		Example: `  palisade audit anchor >> /mnt/elsewhere/anchors.ndjson
  palisade audit anchor --deployment acme`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			return services.AnchorAudit(cmd.Context(), cfg, chosenDeployment(cmd, cfg), func(line []byte) error {
				_, err := std.out.Write(line)
				return err
			})
		},
	}
	addOneDeployment(cmd, storeKeys)
	return cmd
}

func newAuditBegin(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "begin",
		Short: "Accept trails whose record is missing, and go on from here",
		Long: `Make the record that a deployment has an audit trail, for deployments that have none, and the key of the trails when that
is missing. The server makes both by itself: this is for a deployment that a server of an older version created during an
upgrade, and to go on after somebody removed a trail. Look into that first: afterwards the trail counts as whole, with
the present time as its beginning. A chain that is broken stays broken.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			begun, err := services.BeginAudit(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			for _, slug := range begun {
				_, _ = fmt.Fprintf(std.out, "%s: the trail is recorded from now on\n", printable(slug))
			}
			if len(begun) == 0 {
				_, _ = fmt.Fprintln(std.out, "Nothing to do: every deployment whose trail can be recorded has its record.")
			}
			return nil
		},
	}
	config.AddFlags(cmd.Flags(), storeKeys...)
	return cmd
}

// parseKnown reads SEQUENCE:HASH or the name of a file.
func parseKnown(text string) (services.KnownAudit, error) {
	if text == "" {
		return services.KnownAudit{}, nil
	}
	number, digits, pair := strings.Cut(strings.TrimPrefix(text, "#"), ":")
	sequence, err := strconv.ParseInt(number, 10, 64)
	if err != nil || !pair {
		if _, err := os.Stat(text); err != nil {
			return services.KnownAudit{}, usagef("--known: got %q, want a number, a colon and 64 hexadecimal digits, as verify prints them, or a file of anchors (%v)", printable(text), err)
		}
		return services.KnownAudit{File: text}, nil
	}
	hash, err := hex.DecodeString(digits)
	if err != nil || sequence <= 0 || len(hash) != 32 {
		return services.KnownAudit{}, usagef("--known: got %q, want a number, a colon and 64 hexadecimal digits, as verify prints them, or a file of anchors", printable(text))
	}
	return services.KnownAudit{Anchor: services.AuditAnchor{Sequence: sequence, Hash: hash}}, nil
}

// verifyPrinter writes a paragraph for each deployment, and on a terminal how far the walk has come.
type verifyPrinter struct {
	std    streams
	live   bool
	broken bool
}

func (p *verifyPrinter) progress(deployment string, entries int64) {
	if p.live {
		_, _ = fmt.Fprintf(p.std.err, "\r\x1b[K%s: %d entries …", printable(deployment), entries)
	}
}

func (p *verifyPrinter) report(r services.AuditReport) error {
	if p.live {
		_, _ = fmt.Fprint(p.std.err, "\r\x1b[K")
	}
	var b strings.Builder
	name := printable(r.Deployment)
	for _, problem := range r.Broken {
		p.broken = true
		fmt.Fprintf(&b, "BROKEN  %s: %s\n", name, printable(problem))
	}
	switch {
	case len(r.Broken) > 0:
	case r.Entries == 0:
		fmt.Fprintf(&b, "OK      %s: no entries yet\n", name)
	default:
		fmt.Fprintf(&b, "OK      %s\n", name)
	}
	if r.Entries > 0 {
		fmt.Fprintf(&b, "        %s, %s to %s\n", plural(r.Entries, "good entry", "good entries"), instant(r.First), instant(r.Last))
		fmt.Fprintf(&b, "        last good entry: %d:%s\n", r.Sequence, r.Hash)
	}
	switch {
	case r.Since.IsZero():
		if len(r.Broken) == 0 {
			fmt.Fprintf(&b, "        not recorded yet since when there is a trail: the next start of the server does\n")
		}
	case r.Adopted:
		fmt.Fprintf(&b, "        recorded since %s, when the deployment was there already\n", instant(r.Since))
	default:
		fmt.Fprintf(&b, "        as old as the deployment: since %s\n", instant(r.Since))
	}
	if r.Anchors > 0 {
		fmt.Fprintf(&b, "        compared with %s\n", plural(int64(r.Anchors), "anchor", "anchors"))
	}
	if r.Unchained > 0 {
		fmt.Fprintf(&b, "        %s from before the chain\n", plural(r.Unchained, "entry", "entries"))
	}
	_, err := fmt.Fprint(p.std.out, b.String())
	return err
}

func plural(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + more
}

func instant(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }
