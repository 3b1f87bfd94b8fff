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

// errNo ends a command with exit status 1 ("no"), after the command has printed its findings.
var errNo = errors.New("no")

func newAudit(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Verify, anchor, list and export the audit trail: who changed what",
		Long: `The audit trail has an entry for each call that changed something, for each such call that was refused or failed,
and for each change by a background job or a source-code host. The entries of a deployment form a chain: each
entry has a keyed hash of itself and of the previous entry, so edited and removed entries are detected.

These commands read the store directly: run them on the server's machine with the server's settings. They need no
token, and the server may run at the same time. Through the API: GET /api/audit/v1/deployments/{deploymentId}/entries.`,
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
		Long: `Read the audit trail of every deployment, or of one, from its beginning. Report the first entry that was edited, added
or removed, a truncated end, and damage outside of the chain: entries that were detached from it, a missing chain head
or origin, an emptied trail.

Exit status: 0 all trails are intact, 1 a trail is broken, 2 the check failed.

The database alone cannot reveal that it, or a whole trail, was replaced by an older copy. Keep anchors elsewhere
(palisade audit anchor, or the setting audit-anchor) and compare with --known: entries that existed then must still
exist. Without --known, the file in the setting audit-anchor is used, if it is a file.`,
		Example: `  palisade audit verify
  palisade audit verify --known /mnt/elsewhere/anchors.ndjson
  palisade audit verify --deployment acme --known 1204:9f2c…   # from an earlier verification`,
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
	cmd.Flags().StringVar(&known, "known", "", "entries that must exist: `SEQUENCE:HASH` as printed by an earlier verification, or a file with lines of palisade audit anchor")
	return cmd
}

// addOneDeployment adds the settings, and --deployment as an optional filter.
func addOneDeployment(cmd *cobra.Command, keys []string) {
	config.AddFlags(cmd.Flags(), keys...)
	cmd.Flags().Lookup("deployment").Usage = "slug of one deployment; all deployments without this flag"
	cmd.Flags().Lookup("deployment").DefValue = ""
}

// chosenDeployment returns the slug in --deployment; empty for all deployments.
func chosenDeployment(cmd *cobra.Command, cfg config.Config) string {
	if cmd.Flags().Changed("deployment") {
		return cfg.Deployment
	}
	return ""
}

func newAuditAnchor(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "anchor",
		Short: "Print the heads of the audit trails, to be stored elsewhere",
		Long: `Print the head of the audit trail of every deployment, or of one, as a line of JSON: deployment, number and hash of the
last entry, the time, and a MAC. Store the lines out of reach of anybody who can change the database. Later, palisade
audit verify --known FILE proves that all entries up to the anchor are unchanged. The server writes anchors itself with
--audit-anchor.`,
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
		Short: "Accept trails without an origin, and continue from here",
		Long: `Create the origin of an audit trail (the record of its beginning) for deployments without one, and the
key of the trails if it is missing. The server creates both itself. Use this command for a deployment that a server of
an older version created during an upgrade, and to continue after a trail was removed. Investigate that first:
afterwards the trail counts as intact, and begins at the present time. A broken chain stays broken.`,
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
				_, _ = fmt.Fprintf(std.out, "%s: the trail now has an origin\n", printable(slug))
			}
			if len(begun) == 0 {
				_, _ = fmt.Fprintln(std.out, "Nothing to do: no trail without an origin can get one.")
			}
			return nil
		},
	}
	config.AddFlags(cmd.Flags(), storeKeys...)
	return cmd
}

// parseKnown parses SEQUENCE:HASH, or reads the named file.
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

// verifyPrinter writes a paragraph per deployment and, on a terminal, the progress.
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
	case r.Waiting > 0:
		fmt.Fprintf(&b, "OK      %s: %s for the database; the next start of the server writes them at the latest\n", name,
			plural(int64(r.Waiting), "entry waits", "entries wait"))
		_, err := fmt.Fprint(p.std.out, b.String())
		return err
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
			fmt.Fprintf(&b, "        the origin is missing; the next start of the server creates it\n")
		}
	case r.Adopted:
		fmt.Fprintf(&b, "        recorded since %s; the deployment is older\n", instant(r.Since))
	default:
		fmt.Fprintf(&b, "        complete since the creation of the deployment: %s\n", instant(r.Since))
	}
	if r.Anchors > 0 {
		fmt.Fprintf(&b, "        compared with %s\n", plural(int64(r.Anchors), "anchor", "anchors"))
	}
	if r.Unchained > 0 {
		fmt.Fprintf(&b, "        %s from before the chain\n", plural(r.Unchained, "entry", "entries"))
	}
	if r.UnsealedIDs > 0 && len(r.Broken) == 0 {
		fmt.Fprintf(&b, "        the ids of the last %s are not sealed yet: a server of the previous version wrote them\n",
			plural(r.UnsealedIDs, "entry", "entries"))
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
