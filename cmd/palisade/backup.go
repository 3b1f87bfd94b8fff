package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services"
	"github.com/palisade/palisade/services/config"
)

func newBackup(std streams) *cobra.Command {
	var file, output string
	cmd := &cobra.Command{
		Use:   "backup --to FILE",
		Short: "Back up the SQLite database while the server runs",
		Long: `Copy the SQLite database into a new file while the server runs. The backup contains all writes that were acknowledged
before it began; later transactions are contained completely or not at all. The file appears under its name only when
it is complete and SQLite finds no damage in it, and never replaces an existing file.

The key file is not part of the backup. Store it separately: both together reveal the stored credentials, and without
the key file the credentials and the audit trail are lost. The key never changes, so one copy in a password manager or
a safe is enough.

On PostgreSQL this prints the commands of PostgreSQL's own tools. Exit status: 0 the backup was written; 2 an error.`,
		Example: `  palisade backup --to /backup/palisade-$(date +%F).db
  palisade backup --data /var/lib/palisade --to backup.db -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			var pages copyProgress
			pages.std = std
			report, err := services.Backup(cmd.Context(), cfg, file, func(done, total int64) { pages.show("backup", done, total) })
			pages.bar.finish()
			if err != nil {
				return err
			}
			return printBackup(std, report, output)
		},
	}
	config.AddFlags(cmd.Flags(), storeKeys...)
	cmd.Flags().StringVar(&file, "to", "", "the `FILE` to create")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

func printBackup(std streams, r services.BackupReport, output string) error {
	if output == "json" {
		return json.NewEncoder(std.out).Encode(map[string]any{
			"file": r.File, "database": r.Database, "keyFile": r.KeyFile, "bytes": r.Size, "findings": r.Findings,
		})
	}
	_, err := fmt.Fprintf(std.out, "%s: %s, %s\n", printable(r.File), plural(r.Size, "byte", "bytes"), plural(r.Findings, "finding", "findings"))
	_, _ = fmt.Fprintf(std.err, "The backup does not contain the key file %s: keep a copy elsewhere. Credentials and the audit trail are useless without it.\n", printable(r.KeyFile))
	return err
}

func newRestore(std streams) *cobra.Command {
	var req services.RestoreRequest
	var output string
	cmd := &cobra.Command{
		Use:   "restore --from FILE",
		Short: "Restore a backup of the SQLite database into the data directory",
		Long: `Validate a backup and restore it into the data directory. No server may run on that directory. The validation requires
that SQLite finds no damage, that this version of Palisade knows the schema, and that the audit trails are intact (see
palisade audit verify; put the key file in its place first). A backup of an older version is migrated. The backup is
only read, and the data directory does not change before the last step.

With --force, an existing database is renamed and replaced.

On PostgreSQL this prints the commands of PostgreSQL's own tools. Exit status: 0 restored; 1 an audit trail of the
backup is broken, and nothing was changed; 2 an error.`,
		Example: `  cp /safe/palisade.key /var/lib/palisade/
  palisade restore --data /var/lib/palisade --from /backup/palisade-2026-11-21.db
  palisade restore --from backup.db --force                 # keeps the old one as palisade.db.before-restore-…`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", output, "table", "json"); err != nil {
				return err
			}
			cfg, err := loadStore(cmd, std)
			if err != nil {
				return err
			}
			p := &verifyPrinter{std: std, live: isTerminal(std.err)}
			report, err := services.Restore(cmd.Context(), cfg, req, p.progress)
			if err != nil {
				return err
			}
			return printRestore(std, p, report, output)
		},
	}
	config.AddFlags(cmd.Flags(), storeKeys...)
	cmd.Flags().StringVar(&req.File, "from", "", "the backup `FILE`")
	cmd.Flags().BoolVar(&req.Force, "force", false, "replace an existing database; it is kept under another name")
	cmd.Flags().BoolVar(&req.AcceptBrokenAudit, "accept-broken-audit", false, "restore although an audit trail in the backup is broken")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	_ = cmd.MarkFlagRequired("from")
	return cmd
}

func printRestore(std streams, p *verifyPrinter, r services.RestoreReport, output string) error {
	if output == "json" {
		if err := printRestoreJSON(std, r); err != nil {
			return err
		}
	} else {
		for _, trail := range r.Audit {
			if err := p.report(trail); err != nil {
				return err
			}
		}
	}
	if !r.Restored {
		_, _ = fmt.Fprintln(std.err, "palisade: an audit trail of the backup is broken: nothing was restored. Use another backup, or --accept-broken-audit")
		return errNo
	}
	if output == "json" {
		return nil
	}
	_, err := fmt.Fprintf(std.out, "%s: %s, %s\n", printable(r.Database), plural(r.Size, "byte", "bytes"), plural(r.Findings, "finding", "findings"))
	if len(r.Migrated) > 0 {
		_, _ = fmt.Fprintf(std.out, "The backup was from an older version; %s applied.\n", plural(int64(len(r.Migrated)), "migration was", "migrations were"))
	}
	if r.Kept != "" {
		_, _ = fmt.Fprintf(std.out, "The previous database is now %s.\n", printable(r.Kept))
	}
	return err
}

func printRestoreJSON(std streams, r services.RestoreReport) error {
	type trail struct {
		Deployment string `json:"deployment"`
		Entries    int64  `json:"entries"`
		Broken     string `json:"broken"`
	}
	trails := []trail{}
	for _, a := range r.Audit {
		trails = append(trails, trail{a.Deployment, a.Entries, strings.Join(a.Broken, "; ")})
	}
	return json.NewEncoder(std.out).Encode(map[string]any{
		"restored": r.Restored, "database": r.Database, "kept": r.Kept, "bytes": r.Size, "findings": r.Findings,
		"migrations": len(r.Migrated), "audit": trails,
	})
}
