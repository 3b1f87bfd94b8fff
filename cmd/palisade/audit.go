package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services"
)

// errNo ends a command with the status of a "no" after it has printed what it found.
var errNo = errors.New("no")

func newAudit(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Verify, list and export the audit trail: who changed what",
		Long: `The audit trail has an entry for each call that changed something, that could have and was refused or failed,
and for each change by a background job or a source-code host. The entries of a deployment are a chain: each holds
a keyed hash of itself and of the one before, so that one that is edited or removed is found.

These commands read the store itself, so they run where the server runs and with its settings; no token is needed.
The server may run meanwhile. Through the API: GET /api/audit/v1/deployments/{deploymentId}/entries.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAuditVerify(std), newAuditList(std), newAuditExport(std))
	return cmd
}

func newAuditVerify(std streams) *cobra.Command {
	var known string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that no entry was edited or removed",
		Long: `Walk the audit trail of every deployment, or of one, from its beginning, and report the first place where an entry
was edited, added or removed, or where the end was cut off.

Exit status: 0 when all trails are whole, 1 when one is broken, 2 when it could not be found out.

What the database alone cannot show: that all of it was put back from an older copy, or that a trail was removed
together with everything that tells of it. Keep the number and hash of the last entry (or exports) elsewhere and give them
to a later verification: --known proves that what was there then still is.`,
		Example: `  palisade audit verify
  palisade audit verify --deployment acme
  palisade audit verify --deployment acme --known 1204:9f2c…   # the end of an earlier verification`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			slug := ""
			if cmd.Flags().Changed("deployment") {
				slug = cfg.Deployment
			}
			anchor, err := parseAnchor(known)
			if err != nil {
				return err
			}
			if known != "" && slug == "" {
				return usagef("--known: name the deployment, too: --deployment SLUG")
			}
			p := verifyPrinter{std: std, live: isTerminal(std.err)}
			if err := services.VerifyAudit(cmd.Context(), cfg, slug, anchor, p.progress, p.report); err != nil {
				return err
			}
			if p.broken {
				return errNo
			}
			return nil
		},
	}
	services.AddFlags(cmd.Flags(), storeKeys...)
	cmd.Flags().Lookup("deployment").Usage = "slug of one deployment; all of them without this flag"
	cmd.Flags().Lookup("deployment").DefValue = ""
	cmd.Flags().StringVar(&known, "known", "", "`SEQUENCE:HASH` of an entry that must be there, as an earlier verification printed it")
	return cmd
}

func parseAnchor(text string) (services.AuditAnchor, error) {
	if text == "" {
		return services.AuditAnchor{}, nil
	}
	number, digits, _ := strings.Cut(strings.TrimPrefix(text, "#"), ":")
	sequence, err := strconv.ParseInt(number, 10, 64)
	hash, hexErr := hex.DecodeString(digits)
	if err != nil || sequence <= 0 || hexErr != nil || len(hash) != 32 {
		return services.AuditAnchor{}, usagef("--known: got %q, want a number, a colon and 64 hexadecimal digits, as verify prints them", printable(text))
	}
	return services.AuditAnchor{Sequence: sequence, Hash: hash}, nil
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
	switch {
	case r.Broken != "":
		p.broken = true
		fmt.Fprintf(&b, "BROKEN  %s: %s\n", name, r.Broken)
	case r.Entries == 0:
		fmt.Fprintf(&b, "OK      %s: no entries yet; if there should be some, the whole trail was removed\n", name)
	default:
		fmt.Fprintf(&b, "OK      %s\n", name)
	}
	if r.Entries > 0 {
		fmt.Fprintf(&b, "        %s, %s to %s\n", plural(r.Entries, "good entry", "good entries"), instant(r.First), instant(r.Last))
		fmt.Fprintf(&b, "        last good entry: %d:%s\n", r.Sequence, r.Hash)
	}
	if r.Unchained > 0 {
		fmt.Fprintf(&b, "        %s from before the chain, which nothing protects\n", plural(r.Unchained, "entry", "entries"))
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
